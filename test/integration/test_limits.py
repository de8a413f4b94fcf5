"""Limits: what is over is ended and named; what the host cannot enforce is refused or recorded."""

import json
import time

from support import IS_ROOT, Case

EAT = """/usr/bin/python3 -c '
b = []
while len(b) < {}:
    b.append(bytearray(b"x" * (1 << 20)))
print("ate")'"""
FORK = """/usr/bin/python3 -c '
import os, time
n = 0
try:
    for n in range({}):
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
    print("all")
except BlockingIOError:
    print("stopped at", n)
'"""


class Limits(Case):
    def setUp(self):
        super().setUp()
        self.need("python3")

    def test_memory(self):
        done = self.warden("run", "-m", "96m", self.project, "--", "sh", "-c",
                           EAT.format(2000) + "; echo survived")
        self.assertNotIn("ate", done.stdout)
        status = self.status_of_last()
        if "survived" not in done.stdout:  # the whole cell, not only the process
            self.assertEqual((done.returncode, status["reason"]), (137, "limit"), done.stderr)
            self.assertIn("memory limit", done.stderr)
        self.assertEqual(self.in_cell(EAT.format(150)), "ate\n")
        self.assertEqual(self.in_cell(EAT.format(20), "-m", "96m"), "ate\n")

    def test_memory_of_many_processes_counts_together(self):
        eat = EAT.format(60).replace('print("ate")', 'import time; time.sleep(3); print("ate")')
        done = self.warden("run", "-m", "128m", self.project, "--", "bash", "-c",
                           f"for i in 1 2 3 4 5 6; do {eat} & done; wait; echo waited")
        self.assertLess(done.stdout.count("ate\n"), 6, done.stderr)

    def test_a_limit_that_is_only_watched_is_said_and_recorded(self):
        done = self.warden("run", "-m", "512m", self.project, "--", "true")
        self.assert_ok(done)
        degraded = self.events("degraded", what="limits")
        self.assertEqual("not enforced" in done.stderr, bool(degraded), done.stderr)
        self.assertEqual(self.events("session.ready")[0]["cgroup"] == 0, bool(degraded))
        if not degraded:
            return
        # Who does not allow that gets no session.
        self.write(self.config / "policy.json", json.dumps({"version": 1, "extends": "strict"}))
        done = self.cell("touch started", "-m", "512m")
        self.assertEqual(done.returncode, 78)
        self.assertIn("allow_degraded", done.stderr)
        self.assertFalse((self.project / "started").exists())

    def test_H03_processes_exactly(self):
        out = self.in_cell(FORK.format(100), "--max-processes", "40")
        stopped = int(out.split()[-1])
        self.assertTrue(30 <= stopped <= 40, out)
        self.assertEqual(self.in_cell(FORK.format(100)), "all\n")
        # What runs outside does not count.
        first = self.session("for i in $(seq 30); do sleep 60 & done; touch there; wait",
                             "--max-processes", "40")
        self.assertTrue(first.id)
        out = self.in_cell(FORK.format(100), "--max-processes", "40")
        self.assertTrue(30 <= int(out.split()[-1]) <= 40, out)

    def test_fork_bomb_leaves_the_host_alone(self):
        begin = time.monotonic()
        done = self.warden("run", "-q", "--max-processes", "200", "-t", "2", self.project, "--",
                           "bash", "-c", ":(){ :|:& };:; sleep 60", timeout_s=30)
        self.assertEqual(done.returncode, 124)
        self.assertLess(time.monotonic() - begin, 15)
        self.assertEqual(self.assert_ok(self.warden("ps")).stdout, "")

    def test_open_files(self):
        self.policy(code_execution={"max_open_files": 100})
        self.assertEqual(self.in_cell("ulimit -Hn; ulimit -Sn"), "100\n100\n")

    def test_cpu(self):
        busy = "/usr/bin/python3 -c 'import time\nwhile time.process_time() < 0.4: pass'"
        begin = time.monotonic()
        self.in_cell(busy, "--cpus", "0.2")
        took = time.monotonic() - begin
        if self.events("session.ready")[0]["cgroup"] != 0:
            self.assertGreater(took, 1.2)
        else:
            self.assertTrue(self.events("degraded", what="limits"))

    def test_a_limit_of_the_policy_and_the_smaller_one_wins(self):
        self.policy(code_execution={"max_processes": 60, "max_execution_time_s": 60})
        out = self.in_cell(FORK.format(200), "--max-processes", "4000")
        self.assertTrue(40 <= int(out.split()[-1]) <= 60, out)
        self.assertEqual(self.cell("sleep 60", "-t", "1").returncode, 124)

    def test_root_gets_a_group_where_there_is_one(self):
        if IS_ROOT and "ok        limits" in self.warden("doctor").stdout:
            self.in_cell("true", "-m", "256m")
            self.assertNotEqual(self.events("session.ready")[0]["cgroup"], 0)
