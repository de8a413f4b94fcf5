"""Whatever dies, the cell dies with it, the terminal is usable, and nothing is left."""

import os
import signal
import time

from support import SLACK, WARDEN, Case, descendants, is_running, wait_for
from support_terminal import Terminal

DEAD_S = 0.1 * SLACK  # DESIGN: within 100 ms
# An agent that does what it can to stay: ignores what can be ignored, leaves group and session.
STUBBORN = """
trap '' INT TERM HUP QUIT PIPE
for i in 1 2 3 4 5 6; do
    (trap '' INT TERM HUP; setsid sleep 300 &)
    (while :; do sleep 0.2; done) &
done
touch there; while :; do sleep 1; done"""


class Death(Case):
    def stubborn(self, *options):
        session = self.session(STUBBORN, *options)
        wait_for("the agent", lambda: (self.project / "there").exists())
        return session

    def assert_all_die(self, pids, within_s=DEAD_S):
        begin = time.monotonic()
        wait_for("everything to die", lambda: not any(map(is_running, pids)), within_s + 5, 0.001)
        self.assertLess(time.monotonic() - begin, within_s)

    def assert_nothing_left(self, project_has=("there",)):
        wait_for("the janitor to sweep", self.runtime_is_empty)
        self.assertEqual(sorted(path.name for path in self.project.iterdir()), sorted(project_has))
        self.assertEqual(self.assert_ok(self.warden("ps", "--json")).stdout, "")

    def runtime_is_empty(self):
        folder = self.runtime / "warden"
        return not folder.exists() or not any(folder.iterdir())

    def test_monitor_killed(self):
        session = self.stubborn()
        members = session.members()
        self.assertGreaterEqual(len(members), 14, members)  # 4 of ours, 12 and more of the agent
        os.kill(session.pid, signal.SIGKILL)
        self.assert_all_die(set(members) - {session.pid})
        session.process.wait()
        self.assert_nothing_left()
        status = self.status_of_last()
        self.assertEqual((status["session"], status["reason"]), (session.id, "unexpected"))

    def test_without_a_cell_such_processes_stay(self):
        """The control: the same agent below a shell that is killed lives on."""
        pid_file = self.base / "pid"
        self.outside(f"(trap '' INT TERM HUP; setsid sleep 300 </dev/null >/dev/null 2>&1 & "
                     f"echo $! >{pid_file}); kill -9 $$")
        pid = int(pid_file.read_text(encoding="ascii"))
        self.assertTrue(is_running(pid))
        os.kill(pid, signal.SIGKILL)

    def test_janitor_and_monitor_killed(self):
        session = self.stubborn()
        members = session.members()
        for pid in (session.member("warden-janitor"), session.pid):
            os.kill(pid, signal.SIGKILL)
        self.assert_all_die(set(members) - {session.pid})
        session.process.wait()
        self.assert_ok(self.warden("ps"))  # sweeps what the janitor could not
        self.assert_nothing_left()

    def test_gate_killed(self):
        session = self.stubborn("--allow", "allowed.cell-lab.net")
        members = session.members()
        os.kill(session.member("warden-gate"), signal.SIGKILL)
        self.assert_all_die(set(members) - {session.pid})
        code, _, err, last = session.end()
        self.assertEqual((code, last["reason"], last["exit_code"]), (125, "gate-died", 125))
        self.assertIn("gate", err)
        self.assertEqual(len(self.events("gate.died")), 1)
        self.assertEqual(self.events("session.end")[0]["reason"], "gate-died")
        self.assert_nothing_left()

    def test_first_process_of_the_cell_killed(self):
        session = self.stubborn()
        members = set(session.members())
        os.kill(session.member("warden-cell"), signal.SIGKILL)
        code, _, err, last = session.end(DEAD_S)
        self.assertEqual((code, last["reason"]), (125, "failed"), err)
        self.assert_all_die(members)
        self.assert_nothing_left()

    def test_terminated(self):
        for sig, code in ((signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            with self.subTest(sig):
                session = self.session("exec sleep 300")
                os.kill(session.pid, sig)
                ended = session.end()
                self.assertEqual((ended[0], ended[3]["reason"]), (code, "stopped"))
                self.assert_nothing_left(())

    def test_terminated_with_an_agent_that_does_not_listen(self):
        session = self.stubborn()
        members = session.members()
        begin = time.monotonic()
        os.kill(session.pid, signal.SIGTERM)
        code = session.end()[0]
        self.assertEqual(code, 143)
        self.assertLess(time.monotonic() - begin, 8)  # 2 s of grace
        self.assert_all_die(members)
        self.assert_nothing_left()

    def test_stopped_and_continued(self):
        """A person's `kill -STOP` of the monitor does not end the cell; it goes on afterwards."""
        session = self.session("sleep 0.5; echo done")
        os.kill(session.pid, signal.SIGSTOP)
        time.sleep(1)
        os.kill(session.pid, signal.SIGCONT)
        self.assertEqual(session.end()[:2], (0, "done\n"))

    def test_B07_background_jobs_live_and_die_with_the_session(self):
        session = self.session("(setsid sleep 300 &); (nohup sleep 301 >/dev/null 2>&1 &); "
                               "sleep 0.5; pgrep -c sleep; touch there; sleep 1")
        wait_for("the jobs", lambda: (self.project / "there").exists())
        members = session.members()
        self.assertGreaterEqual(list(members.values()).count("sleep"), 3)
        code, out, _, _ = session.end()
        self.assertEqual((code, out), (0, "2\n"))
        self.assert_all_die(members)
        self.assert_nothing_left()


class AtATerminal(Case):
    def start(self, script):
        """A person who types one line, then another; the shell between them changes nothing."""
        self.write("script", script)
        terminal = Terminal(self, ["/bin/sh", "-c", f"{WARDEN} run -q . -- bash ./script; "
                                   "echo code $?; read line; echo got $line"])
        before = terminal.modes()
        terminal.expect("ALIVE")
        return terminal, before

    def assert_usable(self, terminal, before):
        wait_for("a sane terminal", lambda: terminal.modes() == before, DEAD_S)
        self.assertTrue(terminal.is_sane())
        terminal.send("hello\n")
        terminal.expect("hello\r\ngot hello\r\n")
        self.assertEqual(terminal.wait(), 0)

    def test_B03_monitor_killed_the_terminal_is_usable(self):
        terminal, before = self.start(r"printf '\033[?1000hALIVE'; exec sleep 300")
        self.assertFalse(terminal.is_sane())  # the control: the person's terminal was raw
        monitor = wait_for("the monitor", lambda: [
            pid for pid, name in descendants(terminal.process.pid).items() if name == "warden"])[0]
        members = descendants(monitor)
        os.kill(monitor, signal.SIGKILL)
        terminal.expect(r"(?=.*code 137)(?=.*\x1b\[\?1000l)")  # mouse reports are off again
        wait_for("the rest to die", lambda: not any(map(is_running, members)), DEAD_S)
        self.assert_usable(terminal, before)

    def test_B03_agent_killed_the_terminal_is_usable(self):
        terminal, before = self.start("echo ALIVE; stty raw -echo; kill -9 $$")
        terminal.expect("code 137")
        self.assert_usable(terminal, before)

    def test_agent_leaves_the_terminal_raw(self):
        terminal, before = self.start("echo ALIVE; stty raw -echo; exit 3")
        terminal.expect("code 3")
        self.assert_usable(terminal, before)

    def test_gate_killed_the_terminal_is_usable(self):
        terminal, before = self.start("echo ALIVE; exec sleep 300")
        gate = wait_for("the gate", lambda: [
            pid for pid, name in descendants(terminal.process.pid).items()
            if name == "warden-gate"])[0]
        os.kill(gate, signal.SIGKILL)
        terminal.expect("code 125")
        self.assert_usable(terminal, before)

    def test_terminal_closed(self):
        terminal, _ = self.start("trap '' HUP; (setsid sleep 300 &); echo ALIVE; exec sleep 300")
        members = descendants(terminal.process.pid)
        terminal.hang_up()
        terminal.process.wait(15)
        wait_for("everything to die", lambda: not any(map(is_running, members)))
