"""The lab's witnesses: NDJSON files, one whole line per event.

A line is written with one append before the event is answered, so that whoever has seen the answer
finds the line, and lines of several threads and processes never mix.
"""

from __future__ import annotations

import json
import os
import time


class Witness:
    """An append-only NDJSON file that may be shared by threads and by forked processes."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def note(self, **fields: object) -> None:
        line = json.dumps({"t": round(time.time(), 6), **fields}, separators=(", ", ": "))
        os.write(self._fd, line.encode() + b"\n")
