"""Programs that people use, and how they meet the filters: what has to work, and what must not."""

import json
import os

from support import Case

DEVICES = "null zero full random urandom tty ptmx shm fd stdin stdout stderr pts"
SOCKETS = """
import asyncio, multiprocessing, os, socket, threading
def main():
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    print(asyncio.run_coroutine_threadsafe(asyncio.sleep(0, result=42), loop).result(timeout=5))
    for place in (os.getcwd(), "/tmp"):
        server, client = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        server.bind(place + "/socket")
        server.listen()
        client.connect(place + "/socket")
        os.unlink(place + "/socket")
    with multiprocessing.get_context("forkserver").Pool(2) as pool:
        print(pool.map(abs, [-1, -2]))
if __name__ == "__main__":
    main()
"""
# number, arguments -> the errno that a program may see (0: it succeeds)
SYSCALLS = """
import ctypes, errno, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, allowed, *words):
    ctypes.set_errno(0)
    result = libc.syscall(*[ctypes.c_long(w) if isinstance(w, int) else w for w in words])
    code = 0 if result >= 0 else ctypes.get_errno()
    if code not in allowed:
        print(name, "gave", errno.errorcode.get(code, code))
E = errno
params = ctypes.create_string_buffer(120)
call("G03 io_uring_setup", (E.ENOSYS,), 425, 1, params)
call("G03 io_uring_enter", (E.ENOSYS,), 426, 0, 0, 0, 0, 0, 0)
call("G01 clone3", (E.ENOSYS,), 435, 0, 0)
call("G02 openat2", (E.ENOSYS, E.EINVAL), 437, -1, 0, 0, 0)
call("G02 faccessat2", (0,), 439, -100, b"/", 0, 0)
call("G02 fchmodat2", (E.ENOENT, E.ENOSYS), 452, -100, b"/nothing", 0o644, 0)
call("G02 statx", (E.EFAULT,), 332, -100, 0, 0, 0, 0)
call("G02 futex_waitv", (E.EINVAL, E.ENOSYS), 449, 0, 0, 0, 0, 0)
call("G02 unknown", (E.ENOSYS,), 9999)
call("G04 x32 getpid", (E.ENOSYS,), 0x40000000 | 39)
call("bpf", (E.EPERM,), 321, 0, 0, 0)
call("keyctl", (E.EPERM, E.ENOSYS), 250, 0, 0, 0)
call("userfaultfd", (E.EPERM,), 323, 0)
call("perf_event_open", (E.EPERM,), 298, params, 0, -1, -1, 0)
call("unshare", (E.EPERM,), 272, 0x10000000)
call("setns", (E.EPERM, E.EBADF), 308, -1, 0)
call("mount", (E.EPERM,), 165, 0, b"/tmp", b"tmpfs", 0, 0)
call("ptrace pid 1", (E.EPERM,), 101, 16, 1, 0, 0)
call("kexec", (E.EPERM, E.ENOSYS), 246, 0, 0, 0, 0)
call("init_module", (E.EPERM, E.ENOSYS), 175, 0, 0, 0)
call("reboot", (E.EPERM, E.ENOSYS), 169, 0, 0, 0, 0)
call("clone of a namespace", (E.EPERM,), 56, 0x10000000 | 17, 0, 0, 0, 0)
call("set-id by chmod", (E.EPERM,), 90, os.fsencode(sys.argv[1]), 0o4755)
call("set-id by open", (E.EPERM,), 2, b"./new", os.O_CREAT | os.O_WRONLY, 0o6755)
call("F_SETLEASE", (E.EPERM, E.EACCES, E.EAGAIN, E.EINVAL), 72, os.open(sys.argv[1], 0), 1024, 1)
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20 (getpid); int 0x80; ret
address = ctypes.addressof(ctypes.c_char.from_buffer(code))
pid = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
if pid == os.getpid():
    print("G04 a foreign ABI got through")
print("end")
"""


class Programs(Case):
    def test_A13_devices(self):
        out = self.in_cell(f"for d in {DEVICES}; do test -e /dev/$d || echo missing $d; done; "
                           ": >/dev/null; head -c1 /dev/urandom | wc -c; ls /dev")
        self.assertNotIn("missing", out)
        names = set(out.split()[1:])
        self.assertEqual(names - set(DEVICES.split()), set())

    def test_F03_local_sockets_and_worker_processes(self):
        self.need("python3")
        script = self.write("work.py", SOCKETS)
        self.assertEqual(self.in_cell(f"/usr/bin/python3 '{script}'"), "42\n[1, 2]\n")

    def test_G01_G02_G03_G04_system_calls(self):
        self.need("python3")
        self.write("file", "")
        script = self.write("calls.py", SYSCALLS)
        self.assertEqual(self.in_cell(f"/usr/bin/python3 '{script}' file"), "end\n")
        outside = self.outside(f"/usr/bin/python3 '{script}' file; stat -c %a file").stdout
        for name in ("G03 io_uring_setup", "G01 clone3", "set-id by chmod", "bpf"):
            self.assertIn(name, outside)  # the control
        self.assertTrue(outside.endswith("4755\n"))

    def test_G01_threads(self):
        self.need("node", "python3")
        self.in_cell("/usr/bin/python3 -c 'import threading; "
                     "[threading.Thread(target=print).start() for _ in range(3)]'; "
                     "node -e 'new (require(\"worker_threads\").Worker)(\"1\", {eval: true})'")

    def test_G06_many_pipelines(self):
        script = ("for i in $(seq 200); do echo abc | cat | cat >/dev/null || echo FAIL; done; "
                  "echo end")
        self.assertEqual(self.in_cell(script), "end\n")

    def test_B06_orphans_are_reaped(self):
        script = ("for i in $(seq 300); do (sleep 0 &); (setsid true &); done; sleep 0.5; "
                  "ps -eo stat | grep -c ^Z; true")
        self.assertEqual(self.in_cell(script), "0\n")

    def test_B07_a_server_of_the_agents_own(self):
        self.need("curl", "python3")
        out = self.in_cell("(/usr/bin/python3 -m http.server 8123 >/dev/null 2>&1 &); sleep 0.7; "
                           "curl -s -o /dev/null -w '%{http_code}' http://localhost:8123/")
        self.assertEqual(out, "200")
        self.assertNotEqual(self.outside("curl -s http://localhost:8123/").returncode, 0)

    def test_C20_ssh_reads_its_configuration(self):
        self.need("ssh")
        self.in_cell("ssh -G github.com >/dev/null; ssh -V")

    def test_D16_certificates_of_the_system(self):
        self.need("python3")
        out = self.in_cell("/usr/bin/python3 -c 'import ssl; "
                           "print(len(ssl.create_default_context().get_ca_certs()) > 10)'; "
                           "head -c 5 /etc/ssl/certs/ca-certificates.crt")
        self.assertEqual(out, "True\n-----")

    def test_K01_the_notice_tells_what_holds(self):
        self.policy(network={"allowed_domains": ["a.example.org"]})
        out = self.in_cell("cat $WARDEN_NOTICE; echo x >/etc/y; true")
        for part in (str(self.project), "a.example.org", "warden allowlist add"):
            self.assertIn(part, out)

    def test_K05_the_same_with_and_without_input(self):
        for stdin in ({"input": ""}, {"input": "y\ny\n"}, {}):
            self.assertEqual(self.cell("pwd", **stdin).stdout, f"{self.project}\n")

    def test_compilers_write_and_run_what_they_made(self):
        self.need("cc", "make")
        self.write("hello.c", '#include <stdio.h>\nint main(void) { puts("made"); return 0; }\n')
        self.write("Makefile", "all: hello\n\t./hello\n")
        self.assertTrue(self.in_cell("make -s").endswith("made\n"))


class Launching(Case):
    """A12: agents lie behind links, version managers and interpreters."""

    def install(self, path, text="#!/bin/sh\necho agent \"$@\"\n"):
        return self.write(self.home / path, text, 0o755)

    def test_A12_a_link_into_a_version_manager(self):
        tree = ".nvm/versions/node/v1.0.0"
        package = "lib/node_modules/@anthropic-ai/claude-code"
        self.install(f"{tree}/{package}/cli.js", "#!/usr/bin/env fakenode\n")
        self.install(f"{tree}/bin/fakenode",
                     "#!/bin/sh\necho fakenode $(cat ${1%cli.js}data) \"$2\"\n")
        self.write(self.home / tree / package / "data", "its-data")
        (self.home / tree / "bin/claude").symlink_to(f"../{package}/cli.js")
        (self.home / ".local/bin").mkdir(parents=True)
        (self.home / ".local/bin/claude").symlink_to(self.home / tree / "bin/claude")
        self.env["PATH"] = f"{self.home}/.local/bin:{self.home}/{tree}/bin:{self.env['PATH']}"
        done = self.assert_ok(self.warden("run", "-q", self.project, "claude", "--version"))
        self.assertEqual(done.stdout, "fakenode its-data --version\n")

    def test_A12_127_names_the_hop_that_is_missing(self):
        self.install(".local/bin/claude", "#!/usr/bin/env no-such-interpreter\n")
        done = self.warden("run", self.project, "claude")
        self.assertEqual(done.returncode, 127)
        self.assertIn("no-such-interpreter", done.stderr)

    def test_words_behind_an_agent_are_its_own(self):
        self.install(".local/bin/claude")
        for words, expected in ((["--version"], "agent --version\n"), (["--", "-x"], "agent -x\n"),
                                (["-x", "--", "y"], "agent -x -- y\n"), ([], "agent\n")):
            with self.subTest(words):
                done = self.warden("run", "-q", self.project, "claude", *words)
                self.assertEqual(done.stdout, expected, done.stderr)
        short = self.warden("claude", "-p", "hi", cwd=self.project)
        self.assertEqual(short.stdout, "agent -p hi\n", short.stderr)
        text = self.warden("-c", "echo $0 $((1 + 1))", cwd=self.project)
        self.assertEqual(text.stdout, "/bin/bash 2\n")

    def test_a_program_of_the_project_gets_no_profile(self):
        """What the agent can write is no agent of the person's: its key does not go there."""
        self.write("claude", "#!/bin/sh\necho key:$ANTHROPIC_API_KEY\n", 0o755)
        for command in ("./claude", f"{self.project}/claude"):
            done = self.warden("run", "-q", self.project, "--", command, cwd=self.project,
                               env={"ANTHROPIC_API_KEY": "secret"})
            self.assertEqual(done.stdout, "key:\n")
        self.env["PATH"] = f"{self.project}:{self.env['PATH']}"
        done = self.warden("run", "-q", self.project, "claude", env={"ANTHROPIC_API_KEY": "secret"})
        self.assertEqual(done.returncode, 127)
        self.install(".local/bin/claude", "#!/bin/sh\necho key:$ANTHROPIC_API_KEY\n")
        done = self.warden("run", "-q", self.project, "--", "claude",
                           env={"ANTHROPIC_API_KEY": "mine"})
        self.assertEqual(done.stdout, "key:mine\n")

    def test_toolchains_of_the_home_without_their_credentials(self):
        self.install(".cargo/bin/fakecargo")
        self.write(self.home / ".cargo/credentials.toml", "secret")
        self.write(self.home / ".nvm/.npmrc", "secret")
        self.install(".nvm/versions/node/v1/bin/fakenode")
        out = self.cell(f"fakecargo build; cd {self.home}; ls -A; echo x >.cargo/bin/new; "
                        "cat .cargo/credentials.toml .nvm/.npmrc").stdout
        self.assertIn("agent build", out)
        self.assertNotIn("secret", out)
        self.assertNotIn(".config", out)
        self.assertFalse((self.home / ".cargo/bin/new").exists())

    def test_an_agent_of_the_persons_own(self):
        self.install("bin/mine", "#!/bin/sh\necho mine $FLAVOUR \"$@\"\n")
        profile = {"name": "mine", "title": "Mine", "install": "see mine", "binaries": ["mine"],
                   "args": ["--first"], "domains": ["mine.example.org"], "env": {"FLAVOUR": "sour"}}
        self.write(self.config / "agents/mine.json", json.dumps(profile))
        done = self.assert_ok(self.warden("run", "-q", self.project, "mine", "--last"))
        self.assertEqual(done.stdout, "mine sour --first --last\n")
        self.write(self.config / "policy.json", '{"version": 1, "default_agent": "mine"}')
        done = self.assert_ok(self.warden("run", "-q", self.project))
        self.assertEqual(done.stdout, "mine sour --first\n")
        self.assertTrue(os.path.exists(self.config / "agents/mine.json"))
