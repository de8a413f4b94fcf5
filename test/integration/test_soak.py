"""Many sessions, many of them killed at random: nothing is left of any but its journal."""

import ctypes
import os
import pathlib
import random
import signal
import subprocess
import time

from support import WARDEN, Case, descendants, is_running, wait_for

TIMEOUT_S = 180
IN_A_ROW = 200
KILLED = 50
WITHIN_MS = 90  # a start takes some 10 ms, so some are killed before it, some in it, some after
PR_SET_CHILD_SUBREAPER = 36
# What a session may be like; what each makes on the host differs.
KINDS = ([], ["--offline"], ["-m", "512m"], ["--ephemeral"], ["-t", "60"],
         ["--allow", "a.example.org"])
SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/run")


def control_groups():
    return {folder for folder, _, _ in os.walk("/sys/fs/cgroup") if "warden" in folder}


class Soak(Case):
    def setUp(self):
        super().setUp()
        self.need("git")
        # What loses its parent becomes our child: so nothing that is left goes unseen.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.env["TMPDIR"] = str(self.base / "tmp")
        (self.base / "tmp").mkdir()
        self.git("init", "-q", ".")
        self.write(".gitignore", "ignored\n")
        self.write("ignored", "")
        self.write(".vscode/tasks.json", "{}")
        self.in_cell("true")  # the first session makes the state directory
        self.before = self.snapshot()

    def snapshot(self):
        """What of a session could be left on a host."""
        mounts = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8")
        look = "find . -path ./.git -prune -o -printf '%p %i %m %T@\\n' | sort"
        return {"mounts": mounts, "groups": control_groups(), "files": self.outside(look).stdout,
                "git": self.git("status", "--porcelain", "--ignored"),
                "tmp": os.listdir(self.base / "tmp"), "home": sorted(os.listdir(self.home)),
                "descriptors": len(os.listdir("/proc/self/fd"))}

    def reap(self):
        """Reap what has become ours; true when there is nothing."""
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        return False

    def assert_nothing_left(self, sessions):
        wait_for("every process to end", self.reap)
        self.assertEqual(descendants(os.getpid()), {})
        self.assertEqual(self.assert_ok(self.warden("ps")).stdout, "")
        self.assertEqual(self.snapshot(), self.before)
        runtime = self.runtime / "warden"
        self.assertEqual(os.listdir(runtime) if runtime.exists() else [], [])
        self.assertEqual(self.sessions_without("status.json"), [])
        ids = os.listdir(self.state / "sessions")
        self.assertLessEqual(len(ids), sessions + 1)
        shared = " ".join(name for folder in SHARED for name in os.listdir(folder))
        self.assertEqual([name for name in ids if name in shared], [])
        beside = set(os.listdir(self.state)) - {"sessions", "homes", "logins", "lock", "run"}
        self.assertEqual(beside, set())

    def sessions_without(self, name):
        sessions = (self.state / "sessions").iterdir()
        return [path.name for path in sessions if not (path / name).exists()]

    def test_in_a_row(self):
        for i in range(IN_A_ROW):
            done = self.cell(f"exit {i % 7}", *KINDS[i % len(KINDS)])
            self.assertEqual(done.returncode, i % 7, f"session {i}: {done.stderr}")
        self.assert_nothing_left(IN_A_ROW)
        self.assertEqual(len(os.listdir(self.state / "sessions")), IN_A_ROW + 1)
        self.assertEqual(self.sessions_without("journal.head"), [])

    def test_killed_at_random(self):
        seed = time.time_ns()
        chance = random.Random(seed)
        for i in range(KILLED):
            options = KINDS[i % len(KINDS)]
            with self.subTest(i=i, seed=seed, options=options):
                monitor = subprocess.Popen(
                    [WARDEN, "run", "-q", *options, str(self.project), "--", "bash", "-c",
                     "(setsid sleep 300 &); while :; do :; done"],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    env=self.env)
                time.sleep(chance.uniform(0, WITHIN_MS / 1000))
                members = descendants(monitor.pid)
                monitor.send_signal(signal.SIGKILL)
                monitor.wait()
                wait_for("everything to end", lambda: self.reap() and not any(
                    map(is_running, members)), 5)
        self.assert_nothing_left(KILLED)

    def test_stopped_at_random(self):
        chance = random.Random(time.time_ns())
        for i in range(20):
            monitor = subprocess.Popen(
                [WARDEN, "run", "-q", *KINDS[i % len(KINDS)], str(self.project), "--", "sleep",
                 "300"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.env)
            time.sleep(chance.uniform(0, WITHIN_MS / 1000))
            monitor.send_signal(chance.choice((signal.SIGTERM, signal.SIGHUP, signal.SIGINT)))
            self.assertNotEqual(monitor.wait(10), 0)
        self.assert_nothing_left(20)

    def test_a_long_session_keeps_its_descriptors_and_memory(self):
        session = self.session("exec sleep 300", "-q")
        folder = f"/proc/{session.pid}/fd"

        def work(times):
            for _ in range(times):
                self.assert_ok(self.warden("exec", session.id, "--", "bash", "-c",
                                           "(true &); curl -s -o /dev/null http://127.0.0.1:3128/"))
                self.assert_ok(self.warden("status", session.id))

        work(3)
        before = len(os.listdir(folder))
        work(40)
        wait_for("descriptors to be closed", lambda: len(os.listdir(folder)) <= before)
        zombies = self.warden("exec", session.id, "--", "bash", "-c", "ps -eo stat | grep -c ^Z")
        self.assertEqual(zombies.stdout, "0\n")
