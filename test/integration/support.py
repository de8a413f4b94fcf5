"""What the integration tests share: a person with a home and a project, Warden, and its sessions.

Each test gets a home, a project and runtime directory of its own, so that nothing of the real
person plays a part and what is left behind is found. `cell` runs a shell script in a cell,
`outside` runs the same one without: the control. doc/TESTING.md tells how the modules are run.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
WARDEN = os.environ.get("WARDEN", str(TREE / "build/warden"))
IS_ROOT = os.geteuid() == 0
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
AGENT_UID = 1001
RUN_S = 40  # no single command of a test takes longer
# What is measured against a promise in milliseconds gets this much more on a busy machine.
SLACK = 20
# The most memory a monitor may ever have had; proxies in scripting languages start far above it.
PEAK_KB = 24 * 1024


def lab_env():
    return {name: value for name, value in os.environ.items() if name.startswith("LAB_")}


def read_lines(path):
    """The records of an NDJSON log."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def wait_for(what, is_it, timeout_s=10, every_s=0.01):
    """Poll until is_it() is true; returns what it returned."""
    end = time.monotonic() + timeout_s
    while True:
        found = is_it()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout_s} s for {what}")
        time.sleep(every_s)


def is_running(pid):
    """Whether a process is there and not a zombie."""
    with contextlib.suppress(OSError):
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[0] not in "ZX"
    return False


def peak_kb(pid):
    """The most memory that a process has had so far."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def processes():
    """{pid: (parent, name)} of what is there and no zombie."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                text = pathlib.Path(f"/proc/{entry}/stat").read_text(encoding="utf-8",
                                                                     errors="replace")
                head, _, rest = text.rpartition(")")
                state, parent = rest.split()[:2]
                if state not in "ZX":
                    found[int(entry)] = (int(parent), head.partition("(")[2])
    return found


def descendants(root):
    """{pid: name} of everything below a process."""
    table = processes()
    found, left = {}, [root]
    while left:
        parent = left.pop()
        below = [pid for pid, (its_parent, _) in table.items() if its_parent == parent]
        found.update({pid: table[pid][1] for pid in below})
        left += below
    return found


class Session:
    """A session in the background, from the moment its agent has started."""

    def __init__(self, case, command, options, **popen):
        read_end, write_end = os.pipe()
        popen.setdefault("stdin", subprocess.DEVNULL)
        project = str(popen.pop("project", case.project))
        self.process = subprocess.Popen(
            [WARDEN, "run", "--status-fd", str(write_end), *options, project, "--", *command],
            stdout=popen.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, text=True,
            errors="surrogateescape", env=case.env, cwd=case.base, pass_fds=[write_end], **popen)
        os.close(write_end)
        self._status = os.fdopen(read_end, encoding="utf-8")
        first = self.next_status()
        if first is None or first["event"] != "started":
            raise AssertionError(f"no start: {first} {self.process.communicate(timeout=RUN_S)}")
        self.id = first["session"]

    def next_status(self):
        line = self._status.readline()
        return json.loads(line) if line else None

    @property
    def pid(self):
        """Of the monitor."""
        return self.process.pid

    def members(self):
        """{pid: name} of monitor, janitor, gate and everything in the cell."""
        return {self.pid: "warden", **descendants(self.pid)}

    def member(self, name):
        return wait_for(f"a process {name}", lambda: [
            pid for pid, its_name in self.members().items() if its_name == name])[0]

    def end(self, timeout_s=RUN_S):
        """Wait for its end by itself; (exit code, stdout, stderr, the last status line)."""
        out, err = self.process.communicate(timeout=timeout_s)
        last = self.next_status()
        return self.process.returncode, out, err, last

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.communicate(timeout=10)
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self._status.close()


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="case-"))
        self.addCleanup(self._remove_base)
        self.home = self.base / "home"
        self.project = self.home / "src/project"
        self.runtime = self.base / "run"
        self.state = self.home / ".local/state/warden"
        self.config = self.home / ".config/warden"
        for folder in (self.project, self.runtime, self.config):
            folder.mkdir(parents=True)
        self.runtime.chmod(0o700)
        self.env = {"PATH": PATH, "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "xterm",
                    "USER": os.environ.get("USER", "nobody"), "XDG_RUNTIME_DIR": str(self.runtime)}

    def _remove_base(self):
        # What root's agent made belongs to another id and may be closed to others: root may.
        for folder, _, _ in os.walk(self.base):
            with contextlib.suppress(OSError):
                os.chmod(folder, 0o700)
        shutil.rmtree(self.base)

    def need(self, *programs):
        """Skip unless the system (not the person's home) has these programs."""
        missing = [name for name in programs if shutil.which(name, path=PATH) is None]
        if missing:
            self.skipTest(f"{', '.join(missing)} not installed")

    def warden(self, *args, timeout_s=RUN_S, is_text=True, env=(), **run):
        """Run Warden to its end, with nothing on stdin."""
        run.setdefault("cwd", self.base)
        if "input" not in run:
            run.setdefault("stdin", subprocess.DEVNULL)
        if "stdout" not in run:
            run["capture_output"] = True
        text = {"text": True, "errors": "surrogateescape"} if is_text else {}
        return subprocess.run([WARDEN, *map(str, args)], env={**self.env, **dict(env)},
                              timeout=timeout_s, check=False, **text, **run)

    def cell(self, script, *options, project=None, shell="/bin/bash", **run):
        """Run a shell script in a cell."""
        return self.warden("run", "-q", *options, str(project or self.project), "--", shell, "-c",
                           script, **run)

    def outside(self, script, **run):
        """The control: the same script on the host, in the project."""
        run.setdefault("cwd", self.project)
        return subprocess.run(["/bin/bash", "-c", script], env={**self.env, **lab_env()},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=RUN_S, check=False, **run)

    def assert_ok(self, done):
        self.assertEqual(done.returncode, 0, f"stdout:\n{done.stdout}\nstderr:\n{done.stderr}")
        return done

    def in_cell(self, script, *options, **run):
        """What a script in a cell prints; it has to succeed."""
        return self.assert_ok(self.cell(script, *options, **run)).stdout

    def session(self, script, *options, **popen):
        """A session in the background that ends with the test."""
        session = Session(self, ["/bin/bash", "-c", script], options, **popen)
        self.addCleanup(session.close)
        return session

    def write(self, path, text, mode=None):
        """A file in the project (or at an absolute path), its folders with it."""
        path = self.project / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if mode is not None:
            path.chmod(mode)
        return path

    def policy(self, **capabilities):
        """Write the person's own policy."""
        self.write(self.config / "policy.json",
                   json.dumps({"version": 1, "capabilities": capabilities}))

    def git(self, *args, cwd=None):
        """The host's git, with an identity and without anybody's settings."""
        identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
        done = subprocess.run(["git", *identity, *args], cwd=cwd or self.project, env=self.env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, f"git {args}: {done.stderr}")
        return done.stdout

    def status_of_last(self):
        done = self.assert_ok(self.warden("status", "--last", "--json"))
        return json.loads(done.stdout)

    def journal(self, session=None):
        """The records of a session, or of the last one."""
        sessions = self.state / "sessions"
        if session is None:
            session = max(sessions.iterdir(), key=lambda path: path.stat().st_mtime_ns).name
        files = sorted((sessions / session).glob("journal-*"))
        return [record for file in files for record in read_lines(file)]

    def events(self, kind, **fields):
        """The records of a kind whose fields have these values."""
        return [record for record in self.journal() if record["kind"] == kind
                and all(record.get(name) == value for name, value in fields.items())]
