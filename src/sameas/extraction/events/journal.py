"""The journal of a run: one event a line, appended as it happens. The number of an event is its line number, from 1.

Rule: a line counts once its newline is there. On reopening, a torn last line is cut off, so that a number is
never used twice and none is missing. Events are flushed to the operating system one by one; lifecycle events
and the ends of stages are also forced to the disk. A stage that begins has nothing to lose yet.
"""

import os
import threading
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from sameas.extraction.events.events import Event, ProgressEvent, StageStarted, decode_event, is_droppable
from sameas.identity.errors import SameasError

_BLOCK = 1 << 16


class Journal(Protocol):
    """Where the events of a run are kept."""

    @property
    def length(self) -> int:
        """The number of events."""
        ...

    def append(self, *events: Event) -> None:
        """Append events in their order, all or none."""
        ...

    def read(self, *, after: int = 0, up_to: int | None = None) -> Iterator[ProgressEvent]:
        """The events with numbers from after + 1 up to and including `up_to`."""
        ...

    def close(self) -> None: ...


class JournalDamagedError(SameasError):
    """A line in the middle of a journal is not an event: move the run's folder away and extract again."""


class MemoryJournal:
    """A journal for runs that leave nothing behind."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    @property
    def length(self) -> int:
        return len(self._lines)

    def append(self, *events: Event) -> None:
        _check_numbers(events, self.length + 1)
        self._lines.extend(event.to_json() for event in events)

    def read(self, *, after: int = 0, up_to: int | None = None) -> Iterator[ProgressEvent]:
        for line in islice(self._lines, after, up_to):
            yield decode_event(line)

    def close(self) -> None:
        pass


class NoJournal:
    """Counts events and keeps none, for runs that nobody will ask about; a late subscriber hears only new events."""

    def __init__(self) -> None:
        self._length = 0

    @property
    def length(self) -> int:
        return self._length

    def append(self, *events: Event) -> None:
        _check_numbers(events, self._length + 1)
        self._length += len(events)

    def read(self, *, after: int = 0, up_to: int | None = None) -> Iterator[ProgressEvent]:
        return iter(())

    def close(self) -> None:
        pass


class FileJournal:
    """`events.jsonl` of a run's folder. Only one process writes; any may read. Without `forced` nothing is forced to
    the disk: the journal is told elsewhere.
    """

    def __init__(self, path: Path, *, forced: bool = True) -> None:
        self._path = path
        self._forced = forced
        self._lock = threading.Lock()
        self._length = _repair(path)
        self._file: BinaryIO | None = None

    @property
    def length(self) -> int:
        return self._length

    def append(self, *events: Event) -> None:
        with self._lock:
            _check_numbers(events, self._length + 1)
            if self._file is None:
                self._file = self._path.open("ab", buffering=0)
            lines = b"".join([event.to_json() + b"\n" for event in events])
            written = self._file.write(lines)
            if written != len(lines):
                # The next line begins at the start of one.
                self._file.truncate(self._file.tell() - written)
                raise OSError(f"the journal {self._path.name} took only part of a line: is the disk full?")
            if self._forced and not all(is_droppable(event) or isinstance(event, StageStarted) for event in events):
                os.fsync(self._file.fileno())
            self._length += len(events)

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


def _check_numbers(events: Iterable[Event], first: int) -> None:
    for expected, event in enumerate(events, first):
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


class JournalLine(NamedTuple):
    """An event as its JSON, and its number."""

    number: int
    data: bytes


class JournalTail:
    """A reader that follows a journal. Blocking, but quick: what it reads was written a moment ago."""

    def __init__(self, path: Path, *, after: int = 0) -> None:
        self._path = path
        self._after = after
        self._inode = 0
        self._place = 0
        self._number = 0

    @property
    def number(self) -> int:
        """The number of the last event that was read or skipped."""
        return max(self._after, self._number)

    def read(self) -> list[Event]:
        """The events since the last call, in order; none while there is no journal."""
        return [decode_event(line.data) for line in self.lines()]

    def skip(self) -> JournalLine | None:
        """Skip to the present end; returns the last event."""
        last = None
        while lines := self.lines(at_most=_SKIPPED):
            last = lines[-1]
        return last

    def lines(self, *, at_most: int | None = None) -> list[JournalLine]:
        """The next events, all or about `at_most` bytes of them; none if nothing was added."""
        try:
            about = self._path.stat()
        except FileNotFoundError:
            return []
        if about.st_ino != self._inode or about.st_size < self._place:
            self._inode, self._place, self._number = about.st_ino, 0, 0
        if about.st_size == self._place:
            return []
        lines: list[JournalLine] = []
        with self._path.open("rb") as file:
            if os.fstat(file.fileno()).st_ino != self._inode:
                return []
            file.seek(self._place)
            for data in file:
                if not data.endswith(b"\n"):
                    break
                self._place += len(data)
                self._number += 1
                if self._number > self._after:
                    self._after = self._number
                    lines.append(JournalLine(self._number, data[:-1]))
                    if at_most is not None and (at_most := at_most - len(data)) <= 0:
                        break
        return lines


_SKIPPED = 1 << 18
