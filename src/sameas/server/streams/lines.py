"""The events of a run as the bytes that its journal has, read while somebody writes them.

Rule: an event is encoded once, by whoever wrote it; here it is only cut out of the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, cast

import msgspec

from sameas.extraction.events.events import EVENT_TYPES, FINAL_EVENTS, Event, is_droppable, is_sampled
from sameas.extraction.events.journal import JournalTail
from sameas.identity.errors import SameasError

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


class JournalDamaged(SameasError):
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
    """A place in a journal, as lines."""

    def __init__(self, path: Path, *, after: int = 0) -> None:
        self._tail = JournalTail(path, after=after)

    @property
    def number(self) -> int:
        """The number of the last event that was read or skipped."""
        return self._tail.number

    def skip(self) -> Line | None:
        """Go to the end of what is there; gives the last event."""
        last = self._tail.skip()
        return None if last is None else line_of(last.data, last.number)

    def read(self, *, at_most: int = _BLOCK) -> list[Line]:
        """The next events, about `at_most` bytes of them; none where nothing was added."""
        return [line_of(one.data, one.number) for one in self._tail.lines(at_most=at_most)]
