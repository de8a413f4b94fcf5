"""The lab's processes: servers that end with the lab, the command, and whatever that leaves."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import traceback
from typing import Callable

LEFTOVER_GRACE_S = 0.5
LEFTOVER_LIMIT_S = 5.0
POLL_S = 0.01


class ServerGroup:
    """Forked server processes.  They live until the lab's end of a pipe is closed, by the lab or
    by the kernel when the lab is killed."""

    def __init__(self, log_path: str) -> None:
        self.pids: list[int] = []
        self._log_path = log_path
        self._watched, self._held = os.pipe()

    def start(self, work: Callable[[], None], last_act: Callable[[], None] | None = None) -> int:
        """Fork; the child does `work` (which returns when it serves), then waits for the lab's end
        and does `last_act`.  Returns the child's pid once it serves."""
        ready, tell_ready = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(self._held)
            self._be_server(work, tell_ready, last_act)
        os.close(tell_ready)
        with open(ready, "rb") as told:
            if told.read() != b"ready":
                raise RuntimeError("a server of the lab did not start")
        self.pids.append(pid)
        return pid

    def _be_server(self, work: Callable[[], None], tell_ready: int,
                   last_act: Callable[[], None] | None) -> None:
        status = 1
        try:
            os.setsid()
            work()
            self._leave_terminal()
            os.write(tell_ready, b"ready")
            os.close(tell_ready)
            os.read(self._watched, 1)
            if last_act is not None:
                last_act()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def _leave_terminal(self) -> None:
        """Let go of the caller's descriptors: who waits for their end must not wait for us."""
        log = os.open(self._log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)

    def stop(self) -> None:
        os.close(self._held)
        for pid in self.pids:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def run_command(args: list[str], env: dict[str, str], servers: ServerGroup) -> int:
    """Run `args` in the foreground; return its exit code, 128+N if signal N ended it."""
    pid = os.fork()
    if pid == 0:
        _exec(args, env)
    for number in (signal.SIGINT, signal.SIGQUIT):
        _catch(number, lambda *_: None)  # the terminal sends it to the command as well
    for number in (signal.SIGTERM, signal.SIGHUP):
        _catch(number, lambda received, _: _send(pid, received))
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if ended in servers.pids:
            servers.pids.remove(ended)
            _send(pid, signal.SIGKILL)
            raise RuntimeError("a server of the lab ended early")


def _exec(args: list[str], env: dict[str, str]) -> None:
    try:
        os.execvpe(args[0], args, env)
    except OSError as problem:
        print(f"lab: {args[0]}: {problem.strerror}", file=sys.stderr, flush=True)
    os._exit(125)


def _catch(number: int, handler: Callable[..., None]) -> None:
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, handler)


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def end_leftovers(servers: ServerGroup) -> list[str]:
    """Wait a little for what the command left running, kill what stays, return what was killed.

    Finds all of it because the lab is the subreaper of its descendants (prctl(2))."""
    killed: dict[int, str] = {}
    begun = time.monotonic()
    while left := _descendants(os.getpid(), set(servers.pids)):
        elapsed = time.monotonic() - begun
        if elapsed > LEFTOVER_LIMIT_S:
            raise RuntimeError(f"processes that do not die: {left}")
        if elapsed > LEFTOVER_GRACE_S:
            for pid in left:
                killed.setdefault(pid, f"{pid} {_command_line(pid)}")
                _send(pid, signal.SIGKILL)
        time.sleep(POLL_S)
        _reap(left)
    return list(killed.values())


def _reap(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _descendants(root: int, without: set[int]) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        children.setdefault(_parent_of(pid), []).append(pid)
    found: list[int] = []
    queue = [root]
    while queue:
        new = [pid for pid in children.get(queue.pop(), []) if pid not in without]
        found += new
        queue += new
    return found


def _parent_of(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _command_line(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return "(ended)"
