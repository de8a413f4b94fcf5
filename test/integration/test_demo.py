"""`make demo`: every claim holds, and without a cell it says which do not."""

import os
import subprocess
import unittest

from support import TREE, WARDEN

TIMEOUT_S = 120
# A Warden that does nothing but run the agent where it is.
NONE = """#!/bin/bash
[ "$1" = run ] || exit 0
shift
while [ "${1#-}" != "$1" ]; do case $1 in --env|-t) shift ;; esac; shift; done
cd "$1" && shift
[ "$1" = -- ] && shift
[ "$1" = demo-agent ] && set -- "$HOME/bin/demo-agent" "${@:2}"
exec "$@"
"""


class Demo(unittest.TestCase):
    def play(self, warden):
        done = subprocess.run([TREE / "tools/demo"], env={**os.environ, "WARDEN": str(warden)},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=TIMEOUT_S, check=False)
        verdicts = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")
                    and line.split()[0] in ("PASS", "FAIL")]
        return done, verdicts.count("PASS"), verdicts.count("FAIL")

    def test_every_claim_holds(self):
        done, passed, failed = self.play(WARDEN)
        self.assertEqual((done.returncode, failed), (0, 0), done.stdout + done.stderr)
        self.assertGreaterEqual(passed, 25)
        self.assertIn(f"{passed} of {passed} claims hold", done.stdout)

    def test_without_a_cell_it_fails(self):
        fake = os.path.join(os.environ["TMPDIR"], "warden")
        with open(fake, "w", encoding="utf-8") as file:
            file.write(NONE)
        os.chmod(fake, 0o755)
        self.addCleanup(os.unlink, fake)
        done, _, failed = self.play(fake)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertGreaterEqual(failed, 15, done.stdout)
