"""Limits by control groups, where they need a machine of their own: systemd, cgroup v2, logins.

Each class is one boot of tools/vm/vm, and each function test_NAME of its files in guest/ one test, which
guest/run runs inside. The first boot builds the machine's image, which takes minutes.
"""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
GUEST = HERE / "guest"
VM = HERE.parents[1] / "tools/vm/vm"
PROGRAMS = ("warden", "warden-cell", "warden-gate")
TIMEOUT_S = 1800  # the image, then a boot
BOOT_S = "600"


def names_in(file):
    return re.findall(r"^test_(\w+)\(\)$", (GUEST / file).read_text(encoding="utf-8"), re.M)


@functools.cache
def results_of(options, files):
    """{name: what it printed when it failed, or None} of one boot."""
    programs = pathlib.Path(os.environ["WARDEN"]).parent
    with tempfile.TemporaryDirectory(prefix="vm-job-") as job:
        os.chmod(job, 0o755)  # in there root's job is alice's to run, too
        (pathlib.Path(job) / "bin").mkdir()
        for name in PROGRAMS:
            shutil.copy2(programs / name, pathlib.Path(job) / "bin" / name)
        for file in ("run", *files):
            shutil.copy2(GUEST / file, job)
        done = subprocess.run([VM, "run", *options, "-t", BOOT_S, "-C", job, "./run", *files],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                              errors="backslashreplace", check=False)
    results, current = {}, None
    for line in done.stdout.splitlines():
        if line.startswith("ok "):
            results[line[3:]] = None
        elif line.startswith("not ok "):
            current = line[7:]
            results[current] = ""
        elif current is not None:
            results[current] += line + "\n"
    if not results:
        raise AssertionError(f"the machine said nothing, exit code {done.returncode}")
    return results


def machine(*options, files):
    """A class of tests for one boot with these options."""
    def make(name):
        def test(self):
            said = results_of(options, files).get(name, "it was not run")
            if said is not None:
                self.fail(said)
        return test
    return type("Machine", (unittest.TestCase,),
                {f"test_{name}": make(name) for file in files for name in names_in(file)})


class User(machine(files=("cell.sh", "session.sh", "limits.sh"))):
    """Logged in."""


class Root(machine("-u", "root", files=("cell.sh", "root.sh", "limits.sh"))):
    """Made by hand."""


class UserWithoutSession(machine("-n", files=("cell.sh", "nobody.sh"))):
    """Nothing can be enforced."""


class RootOnHybridHost(machine("-u", "root", "-a", "systemd.unified_cgroup_hierarchy=0",
                               files=("hybrid.sh",))):
    """cgroup v1."""
