"""Who runs the tests, and where: root in this tree, and an ordinary user in a copy it may read."""

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

USER = "warden-test"
LOCK = "/run/lock/warden-test"
STAGED = ("test", "data", "tools")
PLAIN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# All that comes along of the caller's environment: a plain one is the same everywhere.
KEPT_ENV = ("PATH", "LANG", "LC_ALL", "TERM", "AW_MUST_WORK", "CI", "npm_config_registry",
            "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE")


@dataclasses.dataclass
class Person:
    label: str  # "root" or "user"
    name: str
    home: str
    tree: pathlib.Path  # has build/ and test/
    scratch: pathlib.Path  # TMPDIR and XDG_RUNTIME_DIR lie in here
    switch: dict = dataclasses.field(default_factory=dict)  # for subprocess.Popen

    def env(self):
        env = {name: os.environ[name] for name in KEPT_ENV if name in os.environ}
        if self.switch:
            env["PATH"] = PLAIN_PATH  # the caller's may lead into a home that is closed to others
        return {**env, "HOME": self.home, "USER": self.name, "LOGNAME": self.name,
                "SHELL": "/bin/bash", "TMPDIR": str(self.scratch / "tmp"),
                "XDG_RUNTIME_DIR": str(self.scratch / "run"), "AW_AS": self.label,
                "WARDEN": str(self.tree / "build/warden"),
                "WARDEN_BUILD_DIR": str(self.tree / "build"),
                "PYTHONDONTWRITEBYTECODE": "1"}


def _scratch(base, label, uid, gid):
    scratch = base / label
    for folder in (scratch, scratch / "tmp", scratch / "run"):
        folder.mkdir(mode=0o700)
        os.chown(folder, uid, gid)
    return scratch


def lend_npm_registry():
    """Where the caller's npm gets packages is where that of a user without settings is to get them."""
    if shutil.which("npm") and "npm_config_registry" not in os.environ:
        done = subprocess.run(["npm", "config", "get", "registry"], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            os.environ["npm_config_registry"] = done.stdout.strip()


@contextlib.contextmanager
def base_folder():
    """A fresh folder for stage and scratch, short enough for socket paths; removed afterwards."""
    base = pathlib.Path(tempfile.mkdtemp(prefix="wt-", dir="/tmp"))
    base.chmod(0o711)
    try:
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)


def myself(source, base):
    entry = pwd.getpwuid(os.getuid())
    label = "root" if os.getuid() == 0 else "user"
    scratch = _scratch(base, label, os.getuid(), os.getgid())
    return Person(label, entry.pw_name, entry.pw_dir, source, scratch)


def _executables(build):
    """Programs that tests start, below build/: all but the unit tests themselves."""
    done = subprocess.run(["meson", "introspect", "--targets", build], check=True,
                          capture_output=True, text=True)
    files = [pathlib.Path(file) for target in json.loads(done.stdout)
             if target["type"] == "executable" or target["installed"]
             for file in target["filename"]]
    return [file for file in files
            if file.exists() and not file.name.startswith(("unit-", "fuzz-"))]


def _stage(source, base):
    """Copy what tests need to where any user may read it (the tree may lie in a closed home)."""
    stage = base / "stage"
    for folder in STAGED:
        if (source / folder).is_dir():
            shutil.copytree(source / folder, stage / folder, symlinks=True)
    for file in _executables(source / "build"):
        target = stage / "build" / file.relative_to((source / "build").resolve())
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    subprocess.run(["chmod", "-R", "a+rX,go-w", stage], check=True)
    return stage


def _end_processes_of(uid):
    """Kill what the temporary user still runs: all of it is the tests' own."""
    for _ in range(50):
        pids = [int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit()
                and _uid_of(p) == uid]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not pids:
            return
        time.sleep(0.1)


def _uid_of(process):
    with contextlib.suppress(OSError):
        return process.stat().st_uid
    return None


def _remove_user():
    with contextlib.suppress(KeyError):
        _end_processes_of(pwd.getpwnam(USER).pw_uid)
        subprocess.run(["userdel", "-r", USER], check=True, capture_output=True)


@contextlib.contextmanager
def ordinary(source, base):
    """As root: a user of its own for the run, with a home; one run at a time has it."""
    with open(LOCK, "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _remove_user()  # of a run that was killed
        subprocess.run(["useradd", "-m", "-s", "/bin/bash", "-c", "Warden test run", USER],
                       check=True, capture_output=True)
        try:
            entry = pwd.getpwnam(USER)
            scratch = _scratch(base, "user", entry.pw_uid, entry.pw_gid)
            switch = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
            yield Person("user", USER, entry.pw_dir, _stage(source, base), scratch, switch)
        finally:
            _remove_user()
