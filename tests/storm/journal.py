"""What happened, as it happened: one line per event, each written in one append, so that a killed writer tears nothing.

A kill may end a write between two pages of the file. Lines are padded to a size that divides a page, so that none lies
on two.
"""

import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

_LINE_BYTES = 256


class Line(NamedTuple):
    """One event. `at` is the machine's monotonic clock, which every process shares."""

    at: float
    what: str
    process: int
    key: str
    call: str
    result: str
    attempt: int


class Journal:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, what: str, *, key: str = "", call: str = "", result: str = "", attempt: int = 0) -> None:
        line = [time.monotonic(), what, os.getpid(), key, call, result, attempt]
        padded = json.dumps(line).ljust(_LINE_BYTES - 1) + "\n"
        assert len(padded) == _LINE_BYTES, f"no room for {line}"
        os.write(self._file, padded.encode())

    def lines(self) -> list[Line]:
        return [Line(*_parsed(line)) for line in self._path.read_text().splitlines()]

    def close(self) -> None:
        os.close(self._file)


def _parsed(line: str) -> list[Any]:
    parsed: list[Any] = json.loads(line)
    return parsed
