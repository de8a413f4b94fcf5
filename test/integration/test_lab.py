"""The lab is what its README says: the witness that everything else relies on."""

import os
import pathlib
import subprocess
import unittest

AS = ["root"]  # which covers ordinary users
TIMEOUT_S = 300
SELFTEST = pathlib.Path(__file__).resolve().parents[1] / "lab/selftest"


class Lab(unittest.TestCase):
    def test_holds_what_its_readme_says(self):
        # The ordinary users that it makes reach /tmp, not the runner's closed directory.
        done = subprocess.run([SELFTEST], capture_output=True, text=True, check=False,
                              env={**os.environ, "TMPDIR": "/tmp"})
        bad = [line for line in done.stdout.splitlines() if not line.startswith(("ok ", "  "))]
        self.assertEqual(done.returncode, 0, "\n".join(bad) + done.stderr)
