"""What the agent sees and is: no file, socket or process of the host, and no privilege."""

import contextlib
import os
import pathlib
import re
import socket
import tempfile

from support import AGENT_UID, IS_ROOT, Case, is_running

# Where a person, a service or root keeps what is nobody's business; those that this test may write.
PLACES = ("/root", "/etc", "/run", "/var/lib", "/var/tmp", "/var/log", "/tmp", "/dev/shm", "/srv",
          "/opt", "/mnt", "/media")
TOP = {"bin", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "tmp",
       "usr", "var", "workspace", "nix", "gnu"}
# What no program needs from the host's /etc.
PRIVATE_ETC = ("shadow", "gshadow", "sudoers", "ssh/ssh_host_rsa_key", "machine-id", "fstab",
               "crontab", "docker", "systemd", "gitconfig", "npmrc", "pip.conf",
               "warden/policy.json")
CONNECT = """
import socket, sys
for address in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(address.replace("@", "\\0", 1) if address[0] == "@" else address)
        print("reached", address)
    except OSError as error:
        print("refused", address, error.strerror)
"""
WRITE_ANYWHERE = ("/x", "/usr/x", "/usr/bin/x", "/etc/x", "/etc/passwd", "/etc/ld.so.preload",
                  "/lib/x", "/var/x", "/run/x", "/home/x", "/dev/x", "/proc/sysrq-trigger",
                  "/proc/sys/kernel/core_pattern", "/proc/1/oom_score_adj")


class Files(Case):
    def setUp(self):
        super().setUp()
        self.token = f"aw-marker-{self.base.name}"

    def plant(self, folder):
        """A file that only the host knows, with the token as its name and its content."""
        with contextlib.suppress(OSError):
            fd, path = tempfile.mkstemp(prefix=self.token, dir=folder)
            self.addCleanup(os.unlink, path)
            os.write(fd, self.token.encode())
            os.close(fd)
            return path
        return None

    def test_no_file_of_the_host_beyond_what_is_granted(self):
        (self.home / ".ssh").mkdir()
        (self.home / "src/neighbour").mkdir()
        folders = [*PLACES, self.home, self.home / ".ssh", self.home / "src/neighbour",
                   self.project.parent, self.base, self.runtime, self.config]
        planted = [path for path in map(self.plant, folders) if path]
        own = self.plant(self.project)
        self.assertGreater(len(planted), 8)
        search = f"find / -path /proc -prune -o -name '{self.token}*' -print 2>/dev/null"
        self.assertEqual(self.cell(search).stdout.split(), [own])
        # The control: every one of them is found where there is no cell.
        found = self.outside(search.replace("/ -path", " ".join(map(str, folders)) + " -path"))
        self.assertLessEqual(set(planted), set(found.stdout.split()))

    def test_a_planted_file_cannot_be_opened_by_its_path(self):
        paths = [path for path in map(self.plant, (self.home, self.base, "/var/tmp")) if path]
        paths += ["/etc/shadow", "/proc/1/root" + paths[0], "/proc/self/root" + paths[0]]
        read = "; ".join(f"cat '{path}' && echo READ" for path in paths)
        self.assertNotIn("READ", self.cell(read).stdout)
        self.assertEqual(self.outside(f"cat '{paths[0]}'").stdout, self.token)

    def test_the_root_has_only_what_is_known(self):
        names = set(self.in_cell("ls -A /").split())
        first = pathlib.PurePath(self.project).parts[1]
        self.assertLessEqual(names, TOP | {first})
        for place in ("/run", "/mnt", "/srv", "/var/lib", "/var/cache", "/home"):
            seen = set(self.cell(f"ls -A {place} 2>/dev/null").stdout.split())
            self.assertLessEqual(seen, {"ai_user"} if place == "/home" else set(), place)

    def test_no_private_file_of_etc(self):
        seen = set(self.in_cell("cd /etc; find . -mindepth 1 -maxdepth 2").split())
        self.assertEqual(seen & {f"./{name}" for name in PRIVATE_ETC}, set())
        self.assertIn("./passwd", seen)

    def test_only_project_and_home_are_writable_mounts(self):
        allowed = {str(self.project), "/home/ai_user", "/tmp", "/dev/shm", "/dev/pts", "/proc"}
        devices = {f"/dev/{name}" for name in "null zero full random urandom tty".split()}
        for line in self.in_cell("cat /proc/self/mountinfo").splitlines():
            fields = line.split()
            at, options = fields[4], set(fields[5].split(","))
            with self.subTest(mount=at):
                self.assertLessEqual({"nosuid"}, options)
                self.assertTrue("nodev" in options or at in devices | {"/dev/pts"}, options)
                self.assertTrue("ro" in options or at in allowed | devices, options)

    def test_nothing_of_the_system_can_be_written(self):
        tries = "; ".join(f"{{ echo x >>{path}; }} 2>/dev/null && echo WROTE {path}"
                          for path in WRITE_ANYWHERE)
        self.assertNotIn("WROTE", self.cell(tries).stdout)
        self.in_cell(f"for d in '{self.project}' ~ /tmp /dev/shm; do echo x >$d/ok; done")
        self.assertTrue((self.project / "ok").exists())

    def test_project_has_its_own_path_and_workspace_is_a_link_to_it(self):
        self.write("file", "hello")
        self.assertEqual(self.in_cell("pwd; cat /workspace/file; readlink /workspace"),
                         f"{self.project}\nhello{self.project}\n")


class Sockets(Case):
    def listen(self, address):
        server = socket.socket(socket.AF_UNIX)
        self.addCleanup(server.close)
        server.bind(address)
        server.listen(8)

    def test_E12_no_socket_of_the_host_answers(self):
        abstract = f"@aw-test-{self.base.name}"
        paths = [str(self.runtime / name) for name in ("bus", "docker.sock")]
        paths.append(str(self.home / "agent.sock"))
        for path in paths:
            self.listen(path)
        self.listen("\0" + abstract[1:])
        system = ["/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock",
                  "/run/systemd/private", "/run/dbus/system_bus_socket", "@/tmp/.X11-unix/X0"]
        script = self.write("connect.py", CONNECT)
        command = f"/usr/bin/python3 '{script}' " + " ".join(f"'{a}'" for a in [*paths, abstract])
        self.assertNotIn("reached", self.in_cell(command + " " + " ".join(system)))
        self.assertEqual(self.outside(command).stdout.count("reached"), len(paths) + 1)

    def test_E12_no_variable_names_a_socket(self):
        names = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "TMUX",
                 "DOCKER_HOST", "GPG_AGENT_INFO", "XDG_RUNTIME_DIR", "XAUTHORITY")
        out = self.in_cell("env", env={name: "/run/it" for name in names})
        self.assertEqual([name for name in names if f"{name}=" in out], [])

    def test_no_descriptor_is_inherited(self):
        secret = self.write(self.home / "secret", "secret")
        with open(secret, encoding="utf-8") as file:
            os.set_inheritable(file.fileno(), True)
            count = "ls -l /proc/self/fd"
            inside = self.in_cell(count, pass_fds=[file.fileno()])
            outside = self.outside(count, pass_fds=[file.fileno()])
        self.assertIn(str(secret), outside.stdout)
        self.assertNotIn("secret", inside)
        self.assertEqual(sorted(re.findall(r" (\d+) ->", inside)), ["0", "1", "2", "3"])


class Identity(Case):
    def test_ids_privileges_and_filters(self):
        self.assertEqual(self.in_cell("id -u; id -g; id -G; id -un; uname -n"),
                         f"{AGENT_UID}\n{AGENT_UID}\n{AGENT_UID}\nai_user\nwarden-sandbox\n")
        status = dict(re.findall(r"^(\w+):\s*(\S+)", self.in_cell("cat /proc/self/status"), re.M))
        expected = {"NoNewPrivs": "1", "Seccomp": "2", **{
            name: "0" * 16 for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}}
        self.assertEqual({name: status[name] for name in expected}, expected)

        if IS_ROOT:  # who has what the cell must not have
            outside = self.outside("cat /proc/self/status").stdout
            self.assertNotEqual(int(re.search(r"CapEff:\s*(\S+)", outside)[1], 16), 0)

    def test_the_agent_is_not_root_outside_either(self):
        session = self.session("exec sleep 60")
        status = pathlib.Path(f"/proc/{session.member('sleep')}/status").read_text(encoding="utf-8")
        uids = set(re.search(r"^Uid:(.*)$", status, re.M)[1].split())
        self.assertEqual(len(uids), 1)
        self.assertNotEqual(uids, {"0"})
        self.assertEqual(IS_ROOT, uids != {str(os.geteuid())})

    def test_only_the_cells_own_processes_are_there(self):
        pids = self.in_cell("echo /proc/[0-9]*; cat /proc/1/comm").split()
        self.assertEqual(pids[-1], "warden-cell")
        self.assertLessEqual(len(pids), 4)

    def test_pid_1_and_the_monitor_cannot_be_touched(self):
        session = self.session("""
            for sig in KILL STOP TERM ABRT; do kill -$sig 1; done
            cat /proc/1/environ /proc/1/maps && echo READ
            ls /proc/1/fd/* && echo READ
            exec sleep 60""")
        session.member("sleep")
        self.assertTrue(is_running(session.member("warden-cell")))
        self.assertTrue(is_running(session.pid))
        session.process.terminate()
        _, out, _, _ = session.end()
        self.assertNotIn("READ", out)

    def test_C18_C19_the_user_has_a_name_a_home_and_a_shell(self):
        self.need("python3")
        out = self.in_cell("id -un; echo $HOME; getent passwd $(id -u) | cut -d: -f6,7; "
                           "/usr/bin/python3 -c 'import os; print(os.path.expanduser(\"~\"))'")
        self.assertEqual(out, "ai_user\n/home/ai_user\n/home/ai_user:/bin/bash\n/home/ai_user\n")

    def test_C18_files_keep_their_owner_and_tar_does_not_try_to_change_it(self):
        self.write("f", "x")
        self.in_cell("tar c --owner=0 --group=0 f | (mkdir -p out && cd out && tar x)")
        owner = (self.project / "out/f").stat().st_uid
        self.assertEqual(owner, self.project.stat().st_uid)
