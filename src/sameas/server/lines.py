"""The events of a run as the bytes that its journal has, read while somebody writes them.

Rule: an event is encoded once, by whoever wrote it; here it is only cut out of the file. Whole lines count, each once;
a journal that was put in the place of another by a worker that took over goes on at the number that was reached.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple, cast

import msgspec

from sameas.extraction.events import EVENT_TYPES, FINAL_EVENTS, Event, is_droppable, is_sampled

_BLOCK = 1 << 18


class Line(NamedTuple):
    """One event: its number (0 where it has none), its JSON, and the frame in which server-sent events carry it."""

    number: int
    type: str
    data: bytes
    frame: bytes
    droppable: bool
    sampled: bool
    final: bool


class JournalDamaged(Exception):
    """A whole line of a journal is no event."""


class _Kind(NamedTuple):
    head: bytes
    droppable: bool
    sampled: bool
    final: bool


class _Head(msgspec.Struct):
    type: str


def _kinds() -> dict[str, _Kind]:
    kinds = {}
    for kind in EVENT_TYPES:
        # What is asked of an event is a matter of its class; no field of it is looked at.
        sample = cast("Event", kind)
        name = str(kind.__struct_config__.tag)
        kinds[name] = _Kind(
            f"event: {name}\ndata: ".encode(), is_droppable(sample), is_sampled(sample), kind in FINAL_EVENTS
        )
    return kinds


_KINDS = _kinds()
_head = msgspec.json.Decoder(_Head)


def line_of(data: bytes, number: int = 0) -> Line:
    """The line of an event's JSON."""
    try:
        name = _head.decode(data).type
        kind = _KINDS[name]
    except (msgspec.DecodeError, KeyError) as error:
        raise JournalDamaged(f"event {number} cannot be read: {error}") from error
    frame = b"%s%s\n\n" % (kind.head, data)
    if number:
        frame = b"id: %d\n%s" % (number, frame)
    return Line(number, name, data, frame, kind.droppable, kind.sampled, kind.final)


def line_of_event(event: Event) -> Line:
    """The line of an event that concerns one subscriber and is in no journal."""
    return line_of(event.to_json(), event.sequence_number or 0)


class Tail:
    """A place in a journal. Blocking, and quick: what is read was written a moment ago."""

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

    def skip(self) -> Line | None:
        """Go to the end of what is there; gives the last event."""
        last = b""
        try:
            with self._path.open("rb") as file:
                self._inode = os.fstat(file.fileno()).st_ino
                for data in file:
                    if data.endswith(b"\n"):
                        self._place += len(data)
                        self._number += 1
                        last = data
        except FileNotFoundError:
            return None
        self._after = max(self._after, self._number)
        return line_of(last[:-1], self._number) if last else None

    def read(self, *, at_most: int = _BLOCK) -> list[Line]:
        """The next events, about `at_most` bytes of them; none where nothing was added."""
        try:
            about = self._path.stat()
        except FileNotFoundError:
            return []
        if about.st_ino != self._inode or about.st_size < self._place:
            self._inode, self._place, self._number = about.st_ino, 0, 0
        if about.st_size == self._place:
            return []
        lines: list[Line] = []
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
                    lines.append(line_of(data[:-1], self._number))
                    at_most -= len(data)
                    if at_most <= 0:
                        break
        return lines
