"""What is not given to an agent as its project: places with more in them than one."""

import os
import pathlib
import shutil
import subprocess

from support import IS_ROOT, WARDEN, Case

SYSTEM = ("/", "/etc", "/etc/ssl", "/usr", "/usr/share", "/usr/local", "/bin", "/lib", "/boot",
          "/dev", "/dev/shm", "/proc", "/proc/self", "/proc/self/cwd/..", "/sys", "/run", "/var",
          "/var/lib", "/var/log", "/var/tmp", "/tmp", "/opt", "/srv", "/mnt", "/media", "/home",
          "/root")


class Guard(Case):
    def assert_refused(self, place, **run):
        done = self.warden("run", place, "--", "touch", "aw-started", **run)
        self.assertIn(done.returncode, (78,), f"{place}: {done.stderr}")
        self.assertEqual(done.stdout, "")
        self.assertNotIn("policy balanced", done.stderr)  # no start line: nothing was started
        self.assertFalse(os.path.exists(os.path.join(place, "aw-started")))
        return done.stderr

    def test_A16_system_directories(self):
        for place in SYSTEM:
            if os.path.isdir(place):
                with self.subTest(place):
                    self.assertIn("not given to an agent", self.assert_refused(place))

    def test_A16_home_and_what_it_lies_in(self):
        for place in (self.home, f"{self.home}/", f"{self.home}/src/..", self.home.parent,
                      self.base.parent):
            with self.subTest(str(place)):
                self.assertIn("home directory", self.assert_refused(str(place)))

    def test_A16_wardens_own_state_configuration_and_program(self):
        self.in_cell("true")
        installed = self.home / "tools/warden/bin"
        installed.mkdir(parents=True)
        for name in ("warden", "warden-cell", "warden-gate"):
            shutil.copy2(pathlib.Path(WARDEN).with_name(name), installed)
        for place in (self.state, self.state / "sessions", self.state.parent, self.config,
                      self.config.parent):
            with self.subTest(str(place)):
                self.assertIn("Warden's own", self.assert_refused(str(place)))
        for place in (installed, installed.parent):
            done = subprocess.run([installed / "warden", "run", place, "--", "true"], env=self.env,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 78, done.stderr)

    def test_through_links(self):
        for target in ("/etc", "/", self.home, self.config, "/proc/self/root/usr"):
            with self.subTest(str(target)):
                link = self.home / "src/link"
                link.symlink_to(target)
                second = self.home / "src/second"
                second.symlink_to(link)
                self.assert_refused(str(link))
                self.assert_refused(str(second))
                link.unlink()
                second.unlink()

    def test_the_current_directory_passes_the_same_guard_and_is_named(self):
        for cwd in (self.home, "/etc"):
            done = self.warden("run", "--", "true", cwd=cwd)
            self.assertEqual(done.returncode, 78)
            self.assertIn(str(cwd), done.stderr)
        done = self.warden("--", "true", cwd=self.project)
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"{self.project} (the current directory)", done.stderr)

    def test_secrets_inside_need_a_word(self):
        for name in (".ssh", ".aws", ".kube", ".gnupg"):
            with self.subTest(name):
                folder = self.project / name
                folder.mkdir()
                self.assertIn(name, self.assert_refused(str(self.project)))
                self.assert_ok(self.cell("true", "--allow-secrets"))
                folder.rmdir()
        self.assert_ok(self.cell("true"))

    def test_another_users_directory(self):
        if IS_ROOT:  # root may work for others: see test_root.py
            return
        for place in ("/usr/share/doc", "/var/cache", "/var/spool"):
            self.assertEqual(self.warden("run", place, "--", "true").returncode, 78)

    def test_a_whole_drive(self):
        """The root of a file system, in a mount namespace of our own."""
        drive = self.home / "drive"
        drive.mkdir()
        script = (f"mount -t tmpfs none {drive} && mkdir {drive}/project && "
                  f"{WARDEN} run {drive} -- true; echo $?; "
                  f"{WARDEN} run -q {drive}/project -- true; echo $?")
        flags = ["-m"] if IS_ROOT else ["-Urm"]
        done = subprocess.run(["unshare", *flags, "sh", "-c", script], env=self.env, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)
        self.assertEqual(done.stdout, "78\n0\n", done.stderr)
        self.assertIn("whole drive", done.stderr)

    def test_two_meanings_of_one_word(self):
        (self.project / "claude").mkdir()
        done = self.warden("run", "claude", cwd=self.project)
        self.assertEqual(done.returncode, 125)
        self.assertIn("./claude", done.stderr)
        self.assertIn(". claude", done.stderr)

    def test_a_file_or_nothing_is_no_project(self):
        file = self.write("file", "")
        for place in (file, self.project / "missing"):
            done = self.warden("run", place, "--", "true")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(str(place), done.stderr)

    def test_extra_directories_pass_a_guard_too(self):
        for place in ("/", self.home, self.state, self.config, self.home.parent):
            for option in ("--ro", "--rw"):
                with self.subTest(place=str(place), option=option):
                    self.in_cell("true")
                    self.assertEqual(self.cell("true", option, str(place)).returncode, 78)
        data = self.write(self.home / "data/file", "data")
        read = f"cat {data}; echo x >>{data}"
        self.assertEqual(self.cell(read).stdout, "")
        self.assertEqual(self.cell(read, "--ro", str(data.parent)).stdout, "data")
        self.assertEqual(data.read_text(encoding="utf-8"), "data")
        self.cell(read, "--rw", str(data.parent))
        self.assertEqual(data.read_text(encoding="utf-8"), "datax\n")
