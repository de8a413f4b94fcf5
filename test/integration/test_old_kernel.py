"""On a kernel that lacks a system call Warden works without it or refuses; it never runs open."""

import subprocess

from support import TREE, WARDEN, Case

# As the kernel of an older distribution answers: x86_64 numbers, the release that brought them.
CALLS = {"pidfd_send_signal (5.1)": 424, "open_tree (5.2)": 428, "move_mount (5.2)": 429,
         "fsopen (5.2)": 430, "fsconfig (5.2)": 431, "fsmount (5.2)": 432, "pidfd_open (5.3)": 434,
         "clone3 (5.3)": 435, "close_range (5.9)": 436, "openat2 (5.6)": 437,
         "pidfd_getfd (5.6)": 438, "faccessat2 (5.8)": 439, "mount_setattr (5.12)": 442,
         "landlock_create_ruleset (5.13)": 444, "landlock_add_rule (5.13)": 445,
         "landlock_restrict_self (5.13)": 446, "memfd_secret (5.14)": 447, "fchmodat2 (6.6)": 452,
         "seccomp (3.17)": 317, "memfd_create (3.17)": 319, "execveat (3.19)": 322}
WITHOUT = TREE / "test/integration/without_syscalls.py"
PROOF = ("touch ran; id -u; grep -E '^(CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | "
         "tr -d '\\n\\t'; cat /etc/shadow; true")
HANGS_S = 10
HELD = "1001\nCapBnd:0000000000000000NoNewPrivs:1Seccomp:2"


class OldKernel(Case):
    def without(self, numbers):
        command = ["/usr/bin/python3", "-B", WITHOUT, ",".join(map(str, numbers)), WARDEN, "run",
                   self.project, "--", "/bin/bash", "-c", PROOF]
        return subprocess.run(command, env=self.env, cwd=self.base, text=True, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=HANGS_S)

    def judge(self, name, done):
        ran = (self.project / "ran").exists()
        (self.project / "ran").unlink(missing_ok=True)
        if done.returncode == 0:
            self.assertEqual(done.stdout, HELD, name)
            return True
        self.assertIn(done.returncode, (78, 125), f"{name}: {done.stderr}")
        self.assertFalse(ran, name)
        self.assertIn("warden: ", done.stderr)
        return False

    def test_one_call_less(self):
        worked = set()
        for name, number in CALLS.items():
            with self.subTest(name):
                if self.judge(name, self.without([number])):
                    worked.add(name)
        # What older supported kernels lack must not be needed.
        self.assertLessEqual({"memfd_secret (5.14)", "fchmodat2 (6.6)", "faccessat2 (5.8)"}, worked)
        self.assertNotIn("mount_setattr (5.12)", worked)  # the control: the filter does filter

    def test_without_landlock_it_is_refused_or_recorded(self):
        self.assertEqual(self.without([444, 445, 446]).returncode, 78)
        self.write(self.config / "policy.json",
                   '{"version": 1, "allow_degraded": ["landlock", "limits"]}')
        done = self.without([444, 445, 446])
        self.assertEqual((done.returncode, done.stdout), (0, HELD), done.stderr)
        self.assertTrue(self.events("degraded", what="landlock"))

    def test_all_at_once(self):
        self.assertFalse(self.judge("all", self.without(CALLS.values())))
