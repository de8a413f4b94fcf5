"""Tells about, or runs, the tests of one module in the identity and place the runner chose.

    worker.py plan FOLDER MODULE              {"plan": [[ID, TIMEOUT_S], ...], "traits": {...}}
    worker.py run FOLDER MODULE ID...         {"start": ID} and {"end": ID, "outcome", "text"} each

One JSON object a line on the first standard output; what tests print goes to standard error.
"""

import importlib
import json
import os
import sys
import traceback
import unittest

TIMEOUT_S = 60
# What a module may say about itself, and what it means when it does not: see doc/TESTING.md.
TRAITS = {"LAB": False, "LONG": False, "AS": ["root", "user"]}


class Teller(unittest.TestResult):
    def __init__(self, out, ids):
        super().__init__()
        self._out = out
        self._left = list(ids)
        self._failures, self._skips = [], []

    def _tell(self, **message):
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()

    def _end(self, test_id, outcome, text=""):
        if test_id in self._left:
            self._left.remove(test_id)
        sys.stdout.flush()  # what the test printed is in the log before the runner looks there
        self._tell(end=test_id, outcome=outcome, text=text)

    def startTest(self, test):
        super().startTest(test)
        self._failures, self._skips = [], []
        self._tell(start=test.id())

    def stopTest(self, test):
        super().stopTest(test)
        if self._failures:
            self._end(test.id(), "failed", "\n".join(self._failures))
        elif self._skips:
            self._end(test.id(), "skipped", "; ".join(self._skips))
        else:
            self._end(test.id(), "passed")

    def _tests_of(self, fixture):
        """setUpClass (module.Class) and setUpModule (module) stand for all tests in there."""
        place = fixture.id().partition("(")[2].rstrip(")")
        return [test_id for test_id in self._left if test_id.startswith(place + ".")]

    def addError(self, test, err):
        words = "".join(traceback.format_exception(*err))
        if isinstance(test, unittest.TestCase):
            self._failures.append(words)
            return
        # A failed tear-down has no tests left to blame: it is a result of its own.
        for test_id in self._tests_of(test) or [test.id().replace(" ", "")]:
            self._end(test_id, "failed", f"{test.id()}\n{words}")

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err is not None:
            words = "".join(traceback.format_exception(*err))
            self._failures.append(f"{subtest.id().removeprefix(test.id())}\n{words}")

    def addSkip(self, test, reason):
        if isinstance(test, unittest.TestCase):
            self._skips.append(reason)
            return
        for test_id in self._tests_of(test):
            self._end(test_id, "skipped", reason)

    def addExpectedFailure(self, test, err):
        self._failures.append("expectedFailure is not used here")

    def addUnexpectedSuccess(self, test):
        self._failures.append("expectedFailure is not used here")


def each_test(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from each_test(item)
        else:
            yield item


def timeout_of(test, module):
    method = getattr(test, test._testMethodName)
    return getattr(method, "timeout_s", getattr(module, "TIMEOUT_S", TIMEOUT_S))


def main():
    verb, folder, name, ids = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    # The runner's pipe is ours alone; what tests and their children print is for the log.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.path.insert(0, folder)
    module = importlib.import_module(name)
    tests = list(each_test(unittest.defaultTestLoader.loadTestsFromModule(module)))
    if verb == "plan":
        plan = [[test.id(), timeout_of(test, module)] for test in tests]
        traits = {trait: getattr(module, trait, value) for trait, value in TRAITS.items()}
        out.write(json.dumps({"plan": plan, "traits": traits}) + "\n")
        return
    chosen = [test for test in tests if test.id() in ids]
    unittest.TestSuite(chosen).run(Teller(out, [test.id() for test in chosen]))


if __name__ == "__main__":
    main()
