"""The verbs beside `run`, against sessions that live and that ended."""

import json
import os
import re
import signal
import subprocess
import time

from support import WARDEN, Case, is_running, wait_for
from support_terminal import Terminal

# What an agent and a command of `exec` must have in common, line by line.
CONFINEMENT = ("readlink /proc/self/ns/{user,mnt,pid,net,ipc,uts,cgroup}; id -u; pwd; "
               "grep -E '^(Cap|NoNewPrivs|Seccomp)' /proc/self/status; "
               "grep -c . /proc/self/mountinfo; cat /etc/shadow 2>&1; ls /root 2>&1; "
               "touch /usr/x 2>&1; unshare -U true 2>&1; ulimit -a")


class Verbs(Case):
    def test_ps_lists_what_runs(self):
        self.assertEqual(self.assert_ok(self.warden("ps")).stdout, "")
        other = self.home / "src/other project"
        other.mkdir()
        first, second = self.session("exec sleep 60"), self.session("exec sleep 60", project=other)
        listed = [json.loads(line) for line in self.warden("ps", "--json").stdout.splitlines()]
        seen = {(row["session"], row["project"], row["agent"], row["pid"]) for row in listed}
        self.assertEqual(seen, {(first.id, str(self.project), "bash", first.pid),
                                (second.id, str(other), "bash", second.pid)})
        table = self.warden("ps").stdout
        self.assertEqual(len(table.splitlines()), 3)
        self.assertIn(str(other), table)

    def test_status_of_a_session_that_lives(self):
        session = self.session("exec sleep 60", "--allow", "a.example.org")
        for operand in ([session.id], [session.id[:4]], [str(self.project)], []):
            with self.subTest(operand):
                done = self.assert_ok(self.warden("status", "--json", *operand))
                status = json.loads(done.stdout)
                self.assertEqual((status["session"], status["state"], status["jobs"]),
                                 (session.id, "running", 1))
                self.assertTrue(status["posture_held"] and status["network"])
        self.assertIn("every check held", self.warden("status").stdout)

    def test_status_of_one_that_ended(self):
        self.assertEqual(self.warden("status", "--last").returncode, 1)
        self.cell("exit 5")
        status = self.status_of_last()
        self.assertEqual((status["state"], status["reason"], status["exit_code"]),
                         ("ended", "exited", 5))

    def test_stop(self):
        session = self.session("trap 'echo asked; exit 9' TERM; echo up; "
                               "while :; do sleep 0.1; done")
        self.assertEqual(session.process.stdout.readline(), "up\n")
        done = self.assert_ok(self.warden("stop", session.id))
        self.assertEqual(done.stdout, f"stopped {session.id}\n")
        code, out, _, last = session.end(5)
        self.assertEqual((code, out, last["reason"]), (9, "asked\n", "stopped"))
        self.assertEqual(self.warden("stop", session.id).returncode, 1)

    def test_stop_by_force(self):
        session = self.session("trap '' TERM; echo up; while :; do sleep 0.1; done")
        self.assertEqual(session.process.stdout.readline(), "up\n")
        begin = time.monotonic()
        self.assert_ok(self.warden("stop", "--force", session.id))
        session.end(5)
        self.assertLess(time.monotonic() - begin, 1.5)

    def test_down_ends_every_session(self):
        sessions = [self.session("exec sleep 60") for _ in range(3)]
        members = {pid for session in sessions for pid in session.members()}
        self.assertEqual(self.warden("stop").returncode, 125)  # which of them?
        done = self.assert_ok(self.warden("down"))
        self.assertEqual(set(re.findall(r"stopped (\w+)", done.stdout)), {s.id for s in sessions})
        for session in sessions:
            self.assertEqual(session.end(5)[3]["reason"], "stopped")
        wait_for("their processes to end", lambda: not any(map(is_running, members)))
        self.assert_ok(self.warden("down"))

    def test_logs_follow_until_the_end(self):
        session = self.session("exec sleep 60")
        follow = subprocess.Popen([WARDEN, "logs", "-f", session.id], env=self.env,
                                  stdout=subprocess.PIPE, text=True)
        time.sleep(0.3)
        session.process.terminate()
        out, _ = follow.communicate(timeout=10)
        self.assertEqual(follow.returncode, 0)
        self.assertIn("session.start", out.splitlines()[0])
        self.assertIn("session.end", out.splitlines()[-1])

    def test_logs_as_json_are_the_journal(self):
        self.cell("curl -s http://not-granted.example/ >/dev/null")
        lines = self.assert_ok(self.warden("logs", "--json")).stdout.splitlines()
        self.assertEqual([json.loads(line) for line in lines], self.journal())
        proxy = self.assert_ok(self.warden("logs", "proxy")).stdout.splitlines()
        self.assertEqual(len(proxy), 1)
        self.assertIn("not-granted.example", proxy[0])

    def test_J06_the_journal_cannot_be_forged_by_names(self):
        name = "a\n{\"event\":\"forged\"}\x1b[2J\udcff"
        self.warden("run", "-q", self.project, "--", name)
        host = "x\\r\\nforged.example"
        self.cell(f"printf 'CONNECT {host}:443 HTTP/1.1\\r\\n\\r\\n' >/dev/tcp/127.0.0.1/3128; "
                  "sleep 0.2")
        for record in self.journal():
            self.assertIn("seq", record)
        self.assertNotIn("\x1b", self.warden("logs").stdout)
        self.assert_ok(self.warden("audit", "verify"))

    def test_audit_verify_finds_every_change(self):
        self.cell("curl -s http://not-granted.example/ >/dev/null")
        self.assertIn("the chain holds", self.assert_ok(self.warden("audit", "verify")).stdout)
        journal = next((self.state / "sessions").glob("*/journal-000001.ndjson"))
        lines = journal.read_bytes().splitlines(keepends=True)
        changes = {
            "a value": b"".join(lines).replace(b"not-granted", b"was-granted"),
            "a line less": b"".join(lines[:2] + lines[3:]),
            "the end less": b"".join(lines[:-1]),
            "the order": b"".join([lines[0], lines[2], lines[1], *lines[3:]]),
            "a line twice": b"".join(lines[:2] + lines[1:]),
            "nothing": b"",
        }
        for what, data in changes.items():
            with self.subTest(what):
                journal.write_bytes(data)
                self.assertEqual(self.warden("audit", "verify").returncode, 1)
        journal.write_bytes(b"".join(lines))
        self.assert_ok(self.warden("audit", "verify"))

    def test_the_journal_has_start_and_end_with_the_policys_digest(self):
        digests = []
        for options in ((), (), ("--allow", "a.example.org")):
            self.cell("true", *options)
            digests.append(self.events("session.start")[0]["policy_digest"])
            self.assertEqual(self.journal()[-1]["kind"], "session.end")
        self.assertEqual(digests[0], digests[1])
        self.assertNotEqual(digests[0], digests[2])

    def test_A08_policy_show_is_what_holds(self):
        self.policy(network={"allowed_domains": ["b.example.org"]},
                    code_execution={"max_execution_time_s": 1})
        shown = self.assert_ok(self.warden("policy", "show", "--effective", self.project)).stdout
        self.assertIn("b.example.org", shown)
        self.assertRegex(shown, r'"max_execution_time_s": 1\b')
        self.assertEqual(self.cell("sleep 20").returncode, 124)
        dry = self.assert_ok(self.warden("run", "--dry-run", "--json", self.project, "--", "true"))
        self.assertEqual(dry.stdout, shown)
        # What it prints is a policy itself, and means the same.
        self.write(self.base / "again.json", shown)
        self.assert_ok(self.warden("policy", "check", self.base / "again.json"))

    def test_dry_run_starts_nothing(self):
        data = self.home / "data"
        data.mkdir()
        done = self.assert_ok(self.warden("run", "--dry-run", "--ro", data, self.project, "--",
                                          "touch", "started"))
        self.assertIn(f"read-only {data}", done.stdout)
        self.assertEqual(list(self.project.iterdir()), [])
        self.assertFalse((self.state / "sessions").exists())

    def test_words_for_people_who_come_from_elsewhere(self):
        for verb in ("build", "up", "version", "help"):
            done = self.assert_ok(self.warden(verb))
            self.assertTrue(done.stdout)
            self.assertTrue(verb == "help" or len(done.stdout.splitlines()) == 1)
        listed = re.findall(r"^  (\w+) ", self.warden("help").stdout.partition("verbs:")[2], re.M)
        self.assertGreater(len(listed), 12)
        for verb in listed:
            told = self.assert_ok(self.warden("help", verb)).stdout
            self.assertTrue(told.startswith(f"warden {verb}"))

    def test_an_agent_that_is_not_installed_is_answered_with_how(self):
        for words in (["run", self.project, "aider"], ["aider"]):
            done = self.warden(*words, cwd=self.project)
            self.assertEqual(done.returncode, 127)
            self.assertRegex(done.stderr, "(?i)aider.* install")

    def test_doctor_finds_this_host_able(self):
        done = self.warden("doctor", "--json")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertTrue(rows, done.stderr)
        text = self.warden("doctor").stdout
        for word in ("landlock", "seccomp", "user-namespaces", "network-namespace"):
            self.assertIn(f"ok        {word}", text)


class Exec(Case):
    def test_same_confinement_as_the_agent(self):
        session = self.session(f"({CONFINEMENT}) >agent; exec sleep 60")
        session.member("sleep")
        done = self.warden("exec", session.id, "--", "bash", "-c", CONFINEMENT, cwd=self.project)
        agent = (self.project / "agent").read_text(encoding="utf-8")
        self.assertEqual(done.stdout, agent)
        self.assertIn("Seccomp:\t2", agent)
        # One Landlock domain: from a sibling of the agent's, made alike, this would be EPERM.
        done = self.warden("exec", session.id, "--", "bash", "-c", "kill -0 $(pgrep -o sleep)")
        self.assert_ok(done)

    def test_streams_codes_and_directory(self):
        session = self.session("exec sleep 60")
        (self.project / "sub").mkdir()
        done = self.warden("exec", session.id, "--", "cat", input=b"\0\1\xff", is_text=False)
        self.assertEqual(done.stdout, b"\0\1\xff")
        for script, code in (("exit 42", 42), ("kill -9 $$", 137), ("nosuch", 127)):
            done = self.warden("exec", session.id, "--", "bash", "-c", script)
            self.assertEqual(done.returncode, code)
        self.assertEqual(self.warden("exec", "--", "nosuch").returncode, 127)
        done = self.warden("exec", "--", "pwd", cwd=self.project / "sub")
        self.assertEqual(done.stdout, f"{self.project}/sub\n")
        self.assertEqual(self.warden("exec", "--", "pwd").stdout, f"{self.project}\n")

    def test_it_ends_with_the_session_and_not_the_session_with_it(self):
        session = self.session("exec sleep 60")
        running = subprocess.Popen([WARDEN, "exec", session.id, "--", "sleep", "61"],
                                   env=self.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wait_for("the command", lambda: list(session.members().values()).count("sleep") == 2)
        running.kill()
        running.communicate()
        wait_for("its end", lambda: list(session.members().values()).count("sleep") == 1)
        second = subprocess.Popen([WARDEN, "exec", session.id, "--", "sleep", "62"],
                                  env=self.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wait_for("the command", lambda: list(session.members().values()).count("sleep") == 2)
        os.kill(session.pid, signal.SIGTERM)
        self.assertNotEqual(second.wait(10), 0)
        second.communicate()

    def test_at_a_terminal(self):
        session = self.session("exec sleep 60")
        terminal = Terminal(self, [WARDEN, "exec", session.id, "--", "bash", "-c",
                                   "tty; stty size; read x; echo got $x"], rows=33, columns=77)
        terminal.expect(r"/dev/pts/\d+\r\n33 77\r\n")
        terminal.send("line\r")
        terminal.expect("got line")
        self.assertEqual(terminal.wait(), 0)
        self.assertTrue(terminal.is_sane())

    def test_no_session_or_too_many(self):
        self.assertEqual(self.warden("exec", "--", "true").returncode, 125)
        first, second = self.session("exec sleep 60"), self.session("exec sleep 60")
        done = self.warden("exec", "--", "true")
        self.assertEqual(done.returncode, 125)
        self.assertTrue(first.id in done.stderr and second.id in done.stderr, done.stderr)

