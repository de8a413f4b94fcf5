"""Counting and printing of results; the closing line."""

import dataclasses
import fnmatch
import json
import os
import pathlib
import sys

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
SLOWEST = 10
SLOW_S = 0.5
TEXT_LINES_MAX = 60


@dataclasses.dataclass
class Result:
    id: str  # "suite:program.name", "suite[who]:module.Class.name"
    outcome: str
    text: str = ""  # why it failed or was skipped
    seconds: float = 0.0  # 0: only the whole program was timed


def read_allowed_skips(path):
    """[(pattern, reason)] from lines "PATTERN  reason"; # starts a comment line."""
    rows = []
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, _, reason = line.partition(" ")
            if not reason.strip():
                raise SystemExit(f"{path}: '{pattern}' has no reason")
            rows.append((pattern, reason.strip()))
    return rows


class Tally:
    """Collects results. With AW_MUST_WORK=1 only the skips that the list allows are skips."""

    def __init__(self, pattern=None, verbose=False, allowed_skips=()):
        self.results = []
        self._pattern = pattern
        self._verbose = verbose
        self._allowed = allowed_skips
        self._must_work = os.environ.get("AW_MUST_WORK") == "1"
        self._group = []
        self._times = []  # (seconds, id of a test or name of a program)

    def wants(self, test_id):
        return self._pattern is None or fnmatch.fnmatchcase(test_id, f"*{self._pattern}*")

    def add(self, result, is_chosen=False):
        """Count a result that the pattern wants; is_chosen: whatever the pattern says."""
        if not is_chosen and not self.wants(result.id):
            return
        if result.outcome == SKIPPED and self._must_work and not self._may_skip(result.id):
            result.outcome = FAILED
            result.text = f"skipped, but AW_MUST_WORK=1: {result.text}"
        self.results.append(result)
        self._group.append(result)
        if result.outcome != PASSED or self._verbose:
            self._print(result)

    def _may_skip(self, test_id):
        return any(fnmatch.fnmatchcase(test_id, pattern) for pattern, _ in self._allowed)

    def _print(self, result):
        text = result.text.strip()
        if result.outcome == FAILED:
            print(f"FAILED {result.id}")
            lines = text.splitlines()
            if len(lines) > TEXT_LINES_MAX:
                print(f"    ({len(lines) - TEXT_LINES_MAX} lines before)")
            for line in lines[-TEXT_LINES_MAX:]:
                print(f"    {line}")
        elif result.outcome == SKIPPED:
            print(f"skipped {result.id}: {' '.join(text.split())}")
        else:
            print(f"ok {result.id}" + (f" ({result.seconds:.2f} s)" if result.seconds else ""))
        sys.stdout.flush()

    def end_group(self, name, seconds):
        """One line for a program or module whose tests have all been added."""
        if not self._group:
            return
        counts = ", ".join(f"{n} {outcome}" for outcome, n in count(self._group) if n)
        print(f"{name}: {counts} ({seconds:.1f} s)", flush=True)
        tests = [(r.seconds, r.id) for r in self._group if r.seconds]
        self._times += tests or [(seconds, name)]
        self._group = []

    def write(self, path):
        """For take_over in another process, which has the closing line."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump([dataclasses.asdict(result) for result in self.results], file)

    def take_over(self, rows):
        """Count what another process has judged and printed already."""
        taken = [Result(**row) for row in rows]
        self.results += taken
        self._times += [(r.seconds, r.id) for r in taken]

    def close(self):
        """Print the slowest and the closing line; return the exit code."""
        slow = sorted((row for row in self._times if row[0] >= SLOW_S), reverse=True)[:SLOWEST]
        if slow:
            print("slowest:")
        for seconds, name in slow:
            print(f"  {seconds:6.2f} s  {name}")
        totals = dict(count(self.results))
        failed = [r.id for r in self.results if r.outcome == FAILED]
        if failed:
            print("failed:")
            for test_id in failed:
                print(f"  {test_id}")
        print(f"{totals[PASSED]} passed, {totals[FAILED]} failed, {totals[SKIPPED]} skipped")
        sys.stdout.flush()
        return 1 if failed or not self.results else 0


def count(results):
    return [(outcome, sum(1 for r in results if r.outcome == outcome))
            for outcome in (PASSED, FAILED, SKIPPED)]
