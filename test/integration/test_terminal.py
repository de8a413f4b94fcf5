"""The agent at a terminal of its own: job control, size, raw mode; never the person's terminal."""

import os
import signal
import time

from support import PEAK_KB, WARDEN, Case, descendants, peak_kb, wait_for
from support_terminal import Terminal, shell

ISATTY = "s=; for fd in 0 1 2; do [ -t $fd ] && s=${s}1 || s=${s}0; done; echo $s"
INJECT = """
import fcntl, sys, termios
WIDE = 1 << 32 | termios.TIOCSTI  # the kernel takes the low half
for request, argument in ((termios.TIOCSTI, b"x"), (0x541C, b"\\x02"), (WIDE, b"y")):
    try:
        fcntl.ioctl(0, request, argument)
        print("INJECTED", hex(request))
    except (OSError, OverflowError) as error:
        print("refused", hex(request))
"""


class AtATerminal(Case):
    def run_in(self, *command, options=("-q",), **terminal):
        return Terminal(self, [WARDEN, "run", *options, ".", "--", *command], **terminal)

    def bash(self):
        """An interactive shell in a cell."""
        terminal = self.run_in("/bin/bash", "--norc", "--noprofile", "-i")
        terminal.expect(r"[$#] ")
        terminal.send("PS1='CELL''> '; bind 'set enable-bracketed-paste off'\n")
        terminal.expect("CELL> ")
        return terminal

    def test_B02_job_control(self):
        terminal = self.bash()
        terminal.send("sleep 100\n")
        time.sleep(0.3)
        terminal.send("\x1a")
        terminal.expect(r"Stopped\s+sleep 100")
        terminal.expect("CELL> ")
        terminal.send("fg\n")
        terminal.expect("sleep 100\r\n")
        time.sleep(0.3)
        terminal.send("\x03")
        terminal.expect("CELL> ")
        terminal.send("sleep 200 & jobs; kill %1; exit 7\n")
        terminal.expect(r"Running\s+sleep 200")
        self.assertEqual(terminal.wait(), 7)

    def test_B01_size_and_resize(self):
        terminal = self.run_in("bash", "-c", "stty size; trap 'stty size; exit' WINCH; "
                               "echo READY; while :; do sleep 0.1; done", rows=31, columns=99)
        terminal.expect("31 99\r\nREADY")
        terminal.resize(40, 120)
        terminal.expect("40 120\r\n")
        self.assertEqual(terminal.wait(), 0)

    def test_A14_raw_mode_and_back(self):
        terminal = self.run_in("bash", "-c", "stty raw -echo; printf RAW; head -c 3 | od -An -tx1; "
                               "stty sane; printf 'rc=%s\\n' $?")
        terminal.expect("RAW")
        terminal.send("\x03\x1a\x04")  # no signals, no end of file: bytes
        terminal.expect(r"03 1a 04\s+rc=0")
        self.assertEqual(terminal.wait(), 0)
        self.assertTrue(terminal.is_sane())

    def test_A14_python_and_node_at_a_terminal(self):
        self.need("node", "python3")
        code = "import tty, termios; old = termios.tcgetattr(0); tty.setraw(0); " \
               "termios.tcsetattr(0, 0, old); print('python', 'ok')"
        terminal = self.run_in("/usr/bin/python3", "-c", code)
        terminal.expect("python ok")
        script = "process.stdin.setRawMode(true); process.stdin.setRawMode(false);" \
                 "console.log(`node ${process.stdout.columns}`); process.exit(0)"
        terminal = self.run_in("node", "-e", script, columns=132)
        terminal.expect("node 132")

    def test_B01_isatty_is_true_exactly_where_the_hosts_is(self):
        with open(self.base / "out", "wb") as file, open("/dev/null", "rb") as null:
            for stdin, stdout, expected in ((None, None, "111"), (None, file, "101"),
                                            (null, None, "011"), (null, file, "001")):
                with self.subTest(expected):
                    terminal = self.run_in("bash", "-c", f"{ISATTY} >seen", stdin=stdin,
                                           stdout=stdout)
                    self.assertEqual(terminal.wait(), 0)
                    seen = (self.project / "seen").read_text(encoding="ascii")
                    self.assertEqual(seen, expected + "\n")

    def test_B02_injected_keystrokes_stay_inside(self):
        self.write("inject.py", INJECT)
        terminal = self.run_in("/usr/bin/python3", "inject.py")
        terminal.wait()
        text = terminal.drain()
        self.assertNotIn("INJECTED", text)
        self.assertEqual(text.count("refused"), 3, text)

    def test_the_agent_has_a_terminal_of_its_own(self):
        """Its name, its group and its settings are not those of the person's."""
        terminal = self.run_in("bash", "-c", "tty; ps -o tty= -p $$; stty -ixon; echo SET; read x")
        terminal.expect("/dev/pts/0\r\npts/0")
        before = terminal.modes()
        terminal.expect("SET")
        self.assertEqual(terminal.modes(), before)
        terminal.send("\n")
        self.assertEqual(terminal.wait(), 0)

    def test_B03_stopped_by_ctrl_z_the_persons_shell_has_its_terminal(self):
        """Ctrl-Z goes to the agent; a stop of Warden itself gives the terminal back."""
        terminal = shell(self)
        terminal.send(f"{WARDEN} run -q . -- bash -c 'echo ALI\"\"VE; read x; echo got $x'\n")
        terminal.expect("ALIVE")
        monitor = wait_for("the monitor", lambda: [
            pid for pid, name in descendants(terminal.process.pid).items() if name == "warden"])[0]
        os.kill(monitor, signal.SIGSTOP)
        terminal.expect(r"Stopped.*READY> ")
        terminal.send("echo us''able\n")
        terminal.expect("usable\r\n.*READY> ")
        terminal.send("fg\n")
        time.sleep(0.5)
        terminal.send("hello\r")
        terminal.expect("got hello")
        terminal.expect("READY> ")

    def test_started_in_the_background_it_leaves_the_terminal_alone(self):
        terminal = shell(self)
        before = terminal.modes()
        terminal.send(f"{WARDEN} run -q . -- bash -c 'sleep 0.5; echo x >done' &\n")
        terminal.expect("READY> ")
        wait_for("the end", lambda: (self.project / "done").exists())
        self.assertEqual(terminal.modes()[3], before[3])
        terminal.send("wait; echo us''able $?\n")
        terminal.expect("usable 0\r\n")

    def test_output_volume_and_memory(self):
        size = 40_000_000
        terminal = self.run_in("bash", "-c", f"head -c {size} /dev/zero | tr '\\0' x; echo END; "
                               "read x")
        total = 0
        while not terminal.seen.endswith("END\r\n"):
            text = terminal.read(15)
            self.assertTrue(text, "the output stopped")
            total += text.count("x")
            terminal.seen = text[-5:]
        self.assertEqual(total, size)
        self.assertLess(peak_kb(terminal.process.pid), PEAK_KB)
        terminal.send("\n")
        self.assertEqual(terminal.wait(), 0)

    def test_colours_and_terminal_variables(self):
        self.env.update(TERM="xterm-256color", COLORTERM="truecolor", NO_COLOR="1")
        terminal = self.run_in("bash", "-c", "echo $TERM $COLORTERM $NO_COLOR; "
                               "ls --color=auto -d /; tput colors")
        terminal.expect("xterm-256color truecolor 1\r\n.*\x1b\\[.*256\r\n")

    def test_nothing_of_wardens_while_the_agent_has_the_terminal(self):
        terminal = self.run_in("bash", "-c", "echo BEGIN; curl -s -m 5 http://not-granted.example/ "
                               ">/dev/null; sleep 0.3; echo END", options=())
        terminal.expect("BEGIN\r\nEND\r\n")
        terminal.wait()
        self.assertIn("not-granted.example", terminal.drain())


class WithoutATerminal(Case):
    def test_interrupt_goes_to_the_agent(self):
        for script, code in (("trap 'exit 5' INT; echo up; while :; do sleep 0.1; done", 5),
                             ("echo up; exec sleep 60", 130)):
            session = self.session(script, start_new_session=True)
            self.assertEqual(session.process.stdout.readline(), "up\n")
            os.killpg(session.pid, signal.SIGINT)
            self.assertEqual(session.end()[0], code)

    def test_there_is_no_terminal_to_be_had(self):
        out = self.cell("(: </dev/tty) 2>/dev/null || echo none; tty; ls -A /dev/pts").stdout
        self.assertEqual(out, "none\nnot a tty\nptmx\n")
