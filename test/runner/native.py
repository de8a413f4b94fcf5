"""The C part: build directories, and programs that answer in TAP (unit tests, corpus replays)."""

import contextlib
import json
import os
import re
import signal
import subprocess
import time

from runner.results import FAILED, PASSED, SKIPPED, Result

TIMEOUT_S = 60
TAP = re.compile(r"^(not )?ok (\d+)(?: -)? ?(.*)$")
PROGRESS = re.compile(r"\[\d+/\d+\]|cc |ninja: |Compiler for C supports")
SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}


class BuildFailed(Exception):
    pass


def build(source, directory, options=()):
    """Set the build directory up if it is new, then build all of it."""
    steps = [["ninja", "-C", directory]]
    if not (directory / "build.ninja").exists():
        steps.insert(0, ["meson", "setup", *options, directory, source])
    for step in steps:
        done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise BuildFailed("\n".join(line for line in done.stdout.splitlines()
                                        if not PROGRESS.match(line)))


def programs(directory, suite):
    """[(name, argv)] of the tests that meson knows in a suite."""
    done = subprocess.run(["meson", "introspect", "--tests", directory], check=True,
                          capture_output=True, text=True)
    return [(test["name"], test["cmd"]) for test in json.loads(done.stdout)
            if any(name.split(":")[-1] == suite for name in test["suite"])]


def _run(argv, env, cwd, timeout_s):
    """(output, exit code or None after a timeout). The program leads a process group of its own."""
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="backslashreplace", stdin=subprocess.DEVNULL, env=env,
                          cwd=cwd, start_new_session=True) as program:
        try:
            output, _ = program.communicate(timeout=timeout_s)
            return output, program.returncode
        except subprocess.TimeoutExpired:
            return _end(program), None
        except BaseException:
            _end(program)
            raise


def _end(program):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    return program.communicate()[0]


def _parse_line(match, prefix, said):
    failed, _, rest = match.groups()
    if failed and rest.startswith("# SKIP"):
        return Result(prefix + rest[len("# SKIP"):].strip(), SKIPPED, said)
    name, _, trouble = rest.partition(" ")
    if failed:
        return Result(prefix + name, FAILED, f"{said}\n{trouble}")
    return Result(prefix + name, PASSED)


def parse_tap(output, prefix):
    """(results, planned count). What is printed before a result is its reason, after it its story:
    what cmocka says of a failure follows it in comments."""
    results, planned, said = [], 0, []
    for line in output.splitlines():
        match = TAP.match(line)
        if line.startswith("1.."):
            planned = int(line[3:].split()[0])
        elif match:
            results.append(_parse_line(match, prefix, "\n".join(said)))
            said = []
        elif line.startswith("# ") and results and results[-1].outcome == FAILED:
            results[-1].text += "\n" + line.removeprefix("# ")
        else:
            said.append(line)
    return results, planned, "\n".join(said)


def run_program(tally, suite, name, argv, env=None, cwd=None):
    """Run one TAP program and add each of its tests; planned and not told is failed."""
    prefix = f"{suite}:{name}."
    begin = time.monotonic()
    env = {**os.environ, "CMOCKA_MESSAGE_OUTPUT": "TAP", **(env or {})}
    output, code = _run(argv, env, cwd, TIMEOUT_S)
    seconds = time.monotonic() - begin
    results, planned, last_words = parse_tap(output, prefix)
    end = f"no end after {TIMEOUT_S} s" if code is None else f"exit code {code}"
    for number in range(len(results) + 1, planned + 1):
        results.append(Result(f"{prefix}{number}", FAILED, f"no result, {end}\n{last_words}"))
    if code != 0 and all(r.outcome != FAILED for r in results) or planned == 0:
        results.append(Result(f"{prefix}exit", FAILED, f"{end}\n{last_words}"))
    for result in results:
        tally.add(result)
    tally.end_group(f"{suite}:{name}", seconds)


def run_suite(tally, suite, directory, label=None, env=None):
    """Run every program of a meson suite. `label` names the results."""
    for name, argv in programs(directory, suite):
        run_program(tally, label or suite, name, argv, env, directory)


def build_or_fail(tally, source, directory, options=()):
    try:
        build(source, directory, options)
    except BuildFailed as failure:
        tally.add(Result(f"{directory.name}:", FAILED, str(failure)), is_chosen=True)
        tally.end_group(directory.name, 0)
        return False
    return True
