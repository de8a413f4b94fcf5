"""What the self-test's parts share: expectations, the lab's logs, running a list of checks."""

from __future__ import annotations

import json
import os
import subprocess
import traceback
from typing import Any, Callable, Iterable

Check = Callable[[], None]


def expect(holds: object, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def is_equal(found: object, wanted: object, what: str) -> None:
    expect(found == wanted, f"{what}: {found!r}, not {wanted!r}")


def events(log: str, **wanted: object) -> list[dict[str, Any]]:
    """The lines of the log named by the variable `log` that have the wanted fields."""
    with open(os.environ[log], encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [one for one in lines if all(one.get(key) == value for key, value in wanted.items())]


def curl(*args: str, text: str = "") -> tuple[int, str]:
    """Exit code and standard output of curl, given `text`; -q: no configuration of the user's."""
    done = subprocess.run(["curl", "-q", "-sS", "--max-time", "10", *args], input=text.encode(),
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def run_checks(title: str, checks: Iterable[Check]) -> tuple[int, int]:
    """Run and print each; return how many passed and failed."""
    passed = failed = 0
    for check in checks:
        name = f"{title}: {check.__name__.replace('_', ' ')}"
        try:
            check()
        except Exception as problem:
            failed += 1
            print(f"FAIL {name}: {problem}", flush=True)
            if not isinstance(problem, AssertionError):
                traceback.print_exc()
        else:
            passed += 1
            print(f"ok   {name}", flush=True)
    return passed, failed
