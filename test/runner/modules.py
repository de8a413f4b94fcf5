"""Test modules in Python: plans them, runs each in a worker process, and watches its time."""

import contextlib
import ctypes
import dataclasses
import json
import os
import pathlib
import selectors
import signal
import subprocess
import time

from runner.results import FAILED, SKIPPED, Result

WORKER = "test/runner/worker.py"
START_S = 120  # for the lab to come up and a class to be set up
END_S = 10  # for the lab to go once its worker has
SAID_MAX = 4000  # bytes of what a failed test printed
PR_SET_CHILD_SUBREAPER = 36
PYTHON = ["/usr/bin/python3", "-B"]


@dataclasses.dataclass
class Module:
    suite: str
    name: str
    folder: str  # below the tree
    timeouts: dict  # test id -> seconds
    traits: dict

    def prefix(self, person):
        return f"{self.suite}[{person.label}]:"


class Broken(Exception):
    pass


def adopt_orphans():
    """Make what tests leave behind our children, so that it can be told and ended."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def load(source, suite, folder, name):
    done = subprocess.run([*PYTHON, source / WORKER, "plan", source / folder, name],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise Broken(done.stderr)
    answer = json.loads(done.stdout)
    return Module(suite, name, folder, dict(answer["plan"]), answer["traits"])


def _command(module, person, ids):
    tree = person.tree
    command = [*PYTHON, str(tree / WORKER), "run", str(tree / module.folder), module.name, *ids]
    if module.traits["LAB"]:
        user = ["--user", person.name] if person.switch else []
        command = [str(tree / "test/lab/lab"), *user, "--", *command]
    return ["setpriv", "--pdeathsig", "KILL", "--", *command]


class Worker:
    """One worker process at work on a list of tests."""

    def __init__(self, module, person, ids, log):
        switch = {} if module.traits["LAB"] else person.switch
        self._process = subprocess.Popen(
            _command(module, person, ids), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=log, env=person.env(), cwd=person.scratch / "tmp", start_new_session=True,
            **switch)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        self._pending = b""

    def next_message(self, deadline):
        """The next message; None at its end; TimeoutError when the deadline passes first."""
        while b"\n" not in self._pending:
            if not self._selector.select(max(0, deadline - time.monotonic())):
                raise TimeoutError
            data = os.read(self._process.stdout.fileno(), 65536)
            if not data:
                return None
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        return json.loads(line)

    def wait(self, limit_s):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(limit_s)

    def end(self):
        """Kill what is left of it and of what it started; returns the exit code."""
        for pid in [*descendants(self._process.pid), self._process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._selector.close()
        self._process.stdout.close()
        return self._process.wait()


def _parents():
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            yield int(stat.parent.name), int(fields[1])


def descendants(root):
    children = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found, left = [], [root]
    while left:
        next_ones = children.get(left.pop(), [])
        found += next_ones
        left += next_ones
    return found


def end_orphans():
    """Kill and reap what was left to us; returns the names, for the report."""
    names = []
    _reap(0)
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
            if command:
                names.append(f"{pid} {command.decode(errors='backslashreplace').strip()[:120]}")
            os.kill(pid, signal.SIGKILL)
    _reap(END_S)
    return names


def _reap(limit_s):
    """Reap what has ended, and wait for what has not."""
    deadline = time.monotonic() + limit_s
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] > 0 or time.monotonic() < deadline:
            time.sleep(0.001)


class Run:
    """All tests of a module by one person; a worker that hangs or dies is replaced for the rest."""

    def __init__(self, tally, module, person, ids):
        self._tally, self._module, self._person = tally, module, person
        self._left = list(ids)
        self._log_path = person.scratch / f"{module.suite}-{module.name}.log"
        self._current = None
        self._begin = time.monotonic()
        self._log_offset = 0

    def _add(self, test_id, outcome, text):
        if test_id in self._left:
            self._left.remove(test_id)
        seconds = time.monotonic() - self._begin
        said = self._said()
        if outcome == FAILED and said:
            text += f"\n--- printed:\n{said}"
        self._tally.add(Result(self._module.prefix(self._person) + test_id, outcome, text, seconds))
        self._current, self._begin = None, time.monotonic()

    def _said(self):
        """What the log has got since the last result."""
        with open(self._log_path, "rb") as log:
            end = log.seek(0, os.SEEK_END)
            log.seek(max(self._log_offset, end - SAID_MAX))
            self._log_offset = end
            return log.read().decode(errors="backslashreplace")

    def _handle(self, message):
        if "start" in message:
            self._current, self._begin = message["start"], time.monotonic()
        else:
            self._add(message["end"], message["outcome"], message["text"])

    def _deadline(self):
        limit_s = START_S if self._current is None else self._module.timeouts[self._current]
        return self._begin + limit_s

    def _work(self, worker):
        """Until the worker ends; returns how it ended."""
        while True:
            try:
                message = worker.next_message(self._deadline())
            except TimeoutError:
                limit_s = round(self._deadline() - self._begin)
                worker.end()
                return f"no end after {limit_s} s"
            if message is None:
                worker.wait(END_S)
                return f"the worker ended, exit code {worker.end()}"
            self._handle(message)

    def all(self):
        while self._left:
            before = len(self._left)
            self._begin = time.monotonic()
            with open(self._log_path, "ab") as log:
                worker = Worker(self._module, self._person, self._left, log)
                try:
                    end = self._work(worker)
                except BaseException:
                    worker.end()
                    raise
            if self._current is not None:
                self._add(self._current, FAILED, end)
            elif len(self._left) == before:
                for test_id in list(self._left):
                    self._add(test_id, FAILED, end)


def run(tally, module, person, include_long):
    """Run the module's tests that are wanted, if it is for this person and this kind of run."""
    if module.traits["LONG"] != include_long or person.label not in module.traits["AS"]:
        return
    ids = [i for i in module.timeouts if tally.wants(module.prefix(person) + i)]
    begin = time.monotonic()
    Run(tally, module, person, ids).all()
    for name in end_orphans():
        print(f"left behind by {module.prefix(person)}{module.name}: {name}")
    tally.end_group(module.prefix(person) + module.name, time.monotonic() - begin)


def skip(tally, module, label, reason):
    for test_id in module.timeouts:
        if label in module.traits["AS"]:
            tally.add(Result(f"{module.suite}[{label}]:{test_id}", SKIPPED, reason))
    tally.end_group(f"{module.suite}[{label}]:{module.name}", 0)
