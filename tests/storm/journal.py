"""What happened, as it happened: one line per event, each written in one append, so that a killed writer tears nothing."""

import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple


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
        os.write(self._file, (json.dumps(line) + "\n").encode())

    def lines(self) -> list[Line]:
        return [Line(*_parsed(line)) for line in self._path.read_text().splitlines()]

    def close(self) -> None:
        os.close(self._file)


def _parsed(line: str) -> list[Any]:
    parsed: list[Any] = json.loads(line)
    return parsed
