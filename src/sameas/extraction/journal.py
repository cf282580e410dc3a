"""The journal of a run: one event a line, appended as it happens; an event's number is its line number, from
1.

Rule: a line counts when its newline is there. On reopening, a torn last line is cut off, so that a number is
never used twice and none is missing. Events are flushed to the operating system one by one; lifecycle events
and the ends of stages are also forced to the disk. A stage that begins has nothing to lose yet.
"""

import os
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Protocol

from sameas.extraction.events import Event, ProgressEvent, StageStarted, decode_event, is_droppable

_BLOCK = 1 << 16


class Journal(Protocol):
    """Where the events of a run are kept."""

    @property
    def length(self) -> int:
        """How many events there are."""
        ...

    def append(self, event: Event) -> None: ...

    def read(self, *, after: int = 0, up_to: int | None = None) -> Iterator[ProgressEvent]:
        """The events with numbers from after + 1 up to and including `up_to`."""
        ...

    def close(self) -> None: ...


class JournalDamagedError(Exception):
    """A line in the middle of a journal is not an event: move the run's folder away and extract again."""


class MemoryJournal:
    """A journal for runs that leave nothing behind."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    @property
    def length(self) -> int:
        return len(self._lines)

    def append(self, event: Event) -> None:
        _check_number(event, self.length + 1)
        self._lines.append(event.to_json())

    def read(self, *, after: int = 0, up_to: int | None = None) -> Iterator[ProgressEvent]:
        for line in islice(self._lines, after, up_to):
            yield decode_event(line)

    def close(self) -> None:
        pass


class NoJournal:
    """Counts events and keeps none, for runs that nobody will ask about; who comes late hears from now on."""

    def __init__(self) -> None:
        self._length = 0

    @property
    def length(self) -> int:
        return self._length

    def append(self, event: Event) -> None:
        _check_number(event, self._length + 1)
        self._length += 1

    def read(self, *, after: int = 0, up_to: int | None = None) -> Iterator[ProgressEvent]:
        return iter(())

    def close(self) -> None:
        pass


class FileJournal:
    """`events.jsonl` of a run's folder. Only one process writes; any may read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._length = _repair(path)
        self._file: BinaryIO | None = None

    @property
    def length(self) -> int:
        return self._length

    def append(self, event: Event) -> None:
        with self._lock:
            _check_number(event, self._length + 1)
            if self._file is None:
                self._file = self._path.open("ab", buffering=0)
            line = event.to_json() + b"\n"
            written = self._file.write(line)
            if written != len(line):
                raise OSError(f"the journal {self._path.name} took only part of a line: is the disk full?")
            if not is_droppable(event) and not isinstance(event, StageStarted):
                os.fsync(self._file.fileno())
            self._length += 1

    def read(self, *, after: int = 0, up_to: int | None = None) -> Iterator[ProgressEvent]:
        return read_journal(self._path, after=after, up_to=up_to)

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None


def read_journal(path: Path, *, after: int = 0, up_to: int | None = None) -> Iterator[ProgressEvent]:
    """The events of a journal file, without opening it for writing; a torn last line is not read."""
    if not path.exists():
        return
    with path.open("rb") as lines:
        for number, line in enumerate(islice(lines, after, up_to), after + 1):
            if not line.endswith(b"\n"):
                return
            try:
                event = decode_event(line)
            except ValueError as error:
                raise JournalDamagedError(f"line {number} of {path.name} is not an event: {error}") from error
            if event.sequence_number != number:
                raise JournalDamagedError(f"line {number} of {path.name} has number {event.sequence_number}")
            yield event


def _check_number(event: Event, expected: int) -> None:
    if event.sequence_number != expected:
        raise ValueError(f"the next event of this journal has number {expected}, not {event.sequence_number}")


def _repair(path: Path) -> int:
    """Cut off a torn last line and count the whole ones."""
    if not path.exists():
        return 0
    lines = 0
    whole = 0
    place = 0
    with path.open("r+b") as file:
        while block := file.read(_BLOCK):
            lines += block.count(b"\n")
            newline = block.rfind(b"\n")
            if newline >= 0:
                whole = place + newline + 1
            place += len(block)
        if whole != place:
            file.truncate(whole)
            os.fsync(file.fileno())
    return lines
