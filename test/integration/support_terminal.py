"""A person at a terminal: a program on a pty of its own, typed to and read from."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

WAIT_S = 15


class Terminal:
    """The program leads a session of its own, as after a login. Close it at the end of the test."""

    def __init__(self, case, argv, rows=24, columns=80, stdout=None, stdin=None):
        self.master, slave = pty.openpty()
        self.seen = ""
        self.resize(rows, columns)
        try:
            self.process = subprocess.Popen(
                argv, stdin=slave if stdin is None else stdin,
                stdout=slave if stdout is None else stdout, stderr=slave, start_new_session=True,
                preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0), env=case.env,
                cwd=case.project)
        finally:
            os.close(slave)
        case.addCleanup(self.close)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def send(self, text):
        os.write(self.master, text.encode())

    def read(self, timeout_s):
        """What comes within the time; "" if nothing does, None when nobody holds the other side."""
        if not select.select([self.master], [], [], max(0, timeout_s))[0]:
            return ""
        try:
            return os.read(self.master, 65536).decode(errors="replace")
        except OSError:  # EIO
            return None

    def expect(self, pattern, timeout_s=WAIT_S):
        """Read until the pattern is there; returns the match, and what follows stays unread."""
        end = time.monotonic() + timeout_s
        while True:
            match = re.search(pattern, self.seen, re.S)
            if match:
                self.seen = self.seen[match.end():]
                return match
            text = self.read(end - time.monotonic())
            if text is None or time.monotonic() > end:
                raise AssertionError(f"no {pattern!r} in {self.seen!r}")
            self.seen += text

    def drain(self, seconds=0.3):
        """Read on for a while; returns all that was not expected yet."""
        end = time.monotonic() + seconds
        while (text := self.read(end - time.monotonic())) is not None and time.monotonic() < end:
            self.seen += text
        text, self.seen = self.seen, ""
        return text

    def modes(self):
        """The terminal's settings: what `stty -g` would print."""
        return termios.tcgetattr(self.master)

    def is_sane(self):
        """Whether a person sees what is typed, and Ctrl-C works."""
        flags = self.modes()[3]
        wanted = termios.ISIG | termios.ICANON | termios.ECHO
        return flags & wanted == wanted and bool(self.modes()[1] & termios.OPOST)

    def wait(self, timeout_s=WAIT_S):
        """The exit code; output is read meanwhile, so that nothing blocks on a full pty."""
        end = time.monotonic() + timeout_s
        while self.process.poll() is None:
            if time.monotonic() > end:
                raise AssertionError(f"no end; last seen {self.seen[-500:]!r}")
            self.seen += self.read(0.05) or ""
        return self.process.returncode

    def hang_up(self):
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def close(self):
        self.hang_up()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def shell(case):
    """A person's own interactive shell, with job control and a prompt that is `READY>`."""
    terminal = Terminal(case, ["/bin/bash", "--norc", "--noprofile", "-i"])
    terminal.expect(r"[$#] ")
    # In two parts, so that the echo of this line is not taken for the prompt.
    terminal.send("PS1='READY''> '; bind 'set enable-bracketed-paste off'\n")
    terminal.expect("READY> ")
    return terminal
