"""Warden where it may not have everything: namespaces of others, no privileges, no namespaces."""

import pathlib
import shutil
import subprocess

from support import IS_ROOT, RUN_S, WARDEN, Case

IDENTITY = "id -u; grep -c '^CapBnd:\\s*0000000000000000' /proc/self/status; touch made"
EXPECTED = "1001\n1\n"


class Places(Case):
    def within(self, wrapper, script, *options):
        """Warden below another program, for example unshare, and the shell line after it."""
        command = [*wrapper, WARDEN, "run", *options, self.project, "--", "bash", "-c", script]
        return self.execute(command)

    def execute(self, command, cwd=None, **env):
        return subprocess.run(command, env={**self.env, **env}, cwd=cwd or self.base, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=RUN_S,
                              check=False)

    def assert_works(self, wrapper):
        done = self.within(wrapper, IDENTITY, "-q")
        self.assertEqual((done.returncode, done.stdout), (0, EXPECTED), done.stderr)
        self.assertTrue((self.project / "made").exists())
        self.assertEqual((self.project / "made").stat().st_uid, self.project.stat().st_uid)

    def test_in_a_user_namespace_with_a_single_id(self):
        self.assert_works(["unshare", "-Ur"])
        if not IS_ROOT:
            self.assert_works(["unshare", "-U", "--map-current-user"])

    def test_in_a_network_namespace_of_its_own(self):
        self.assert_works(["unshare", "-n"] if IS_ROOT else ["unshare", "-Urn"])

    def test_in_a_pid_and_mount_namespace_of_its_own(self):
        flags = ["-pmf", "--mount-proc"]
        self.assert_works(["unshare", *flags] if IS_ROOT else ["unshare", "-Ur", *flags])

    def test_A04_as_root_with_few_capabilities(self):
        """Since Linux 5.12 uid 0 is only mapped by who has CAP_SETFCAP: told, and nothing runs."""
        if not IS_ROOT:
            return
        done = self.within(["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"], IDENTITY)
        self.assertEqual((done.returncode, done.stdout), (78, ""), done.stderr)
        self.assertIn("CAP_SETFCAP", done.stderr)
        self.assertFalse((self.project / "made").exists())
        self.assert_works(["setpriv", "--bounding-set=-all,+setfcap", "--inh-caps=-all", "--"])

    def test_without_a_session_or_terminal(self):
        self.assert_works(["setsid", "-w"])

    def test_with_no_new_privs_and_few_descriptors(self):
        self.assert_works(["setpriv", "--no-new-privs", "--"])
        self.assert_works(["bash", "-c", 'ulimit -n 128; exec "$@"', "-"])

    def test_A05_A07_without_user_namespaces_nothing_runs(self):
        """The limit of a namespace of our own stands for the host's sysctl."""
        script = 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"'
        done = self.within(["unshare", "-Ur", "sh", "-c", script, "-"], "touch started")
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("user.max_user_namespaces", done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(list(self.project.iterdir()), [])

    def test_A07_without_network_namespaces_nothing_runs(self):
        script = 'echo 0 >/proc/sys/user/max_net_namespaces; exec "$@"'
        done = self.within(["unshare", "-Ur", "sh", "-c", script, "-"], "touch started")
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertEqual(list(self.project.iterdir()), [])

    def test_A11_inside_a_cell_it_says_so(self):
        folder = str(pathlib.Path(WARDEN).parent)
        done = self.cell(f"mkdir inner; {WARDEN} run inner -- touch started; echo $?; "
                         "unshare -Ur touch inner/nested; ls inner", "--ro", folder)
        self.assertEqual(done.stdout, "78\n")
        self.assertIn("cell", done.stderr.lower())
        outside = self.outside("unshare -Ur touch inner/nested; ls inner")
        self.assertEqual(outside.stdout, "nested\n")

    def test_A09_from_another_place_and_without_a_path(self):
        folder = self.base / "moved"
        folder.mkdir()
        for name in ("warden", "warden-cell", "warden-gate"):
            shutil.copy2(pathlib.Path(WARDEN).with_name(name), folder)
        command = [folder / "warden", "run", "-q", self.project, "--"]
        for path in ("", "/nonexistent"):
            done = self.execute([*command, "/bin/echo", "ok"], cwd="/", PATH=path)
            self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)
        for name in ("warden-gate", "warden-cell"):
            (folder / name).unlink()
            done = self.execute([*command, "touch", "started"])
            self.assertIn(done.returncode, (78, 125))
            self.assertIn(name, done.stderr)
        self.assertFalse((self.project / "started").exists())

    def test_a_helper_that_others_could_replace_is_not_found_by_PATH(self):
        folder = self.base / "alone"
        evil = self.base / "evil"
        for place in (folder, evil):
            place.mkdir()
        shutil.copy2(WARDEN, folder)
        for name in ("warden-cell", "warden-gate"):
            self.write(evil / name, f"#!/bin/sh\ntouch {self.base}/ran\n", 0o755)
        self.execute([folder / "warden", "run", self.project, "--", "true"], cwd=evil,
                     PATH=f"{evil}:{self.env['PATH']}")
        self.assertFalse((self.base / "ran").exists())

    def test_state_on_a_full_or_read_only_disk_refuses(self):
        """Without a journal there is no session."""
        script = (f"mkdir -p {self.state} && mount -t tmpfs -o size=4k,nr_inodes=4 none "
                  f'{self.state}; exec "$@"')
        flags = ["-m"] if IS_ROOT else ["-Urm"]
        done = self.within(["unshare", *flags, "sh", "-c", script, "-"], "touch started")
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse((self.project / "started").exists())
