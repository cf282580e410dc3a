"""The events of a run as the bytes that its journal has, read while somebody writes them, and sent to browsers.

Rule: an event is encoded once, by whoever wrote it; here it is only cut out of the file. The id of a server-sent event
is its number, so that `Last-Event-ID` resumes exactly; what has no number has no id. A stream ends after the run's last
event; when the service stops, it ends without one, and the client comes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from sameas.extraction.events.events import EVENT_TYPES, FINAL_EVENTS, Event, is_droppable, is_sampled
from sameas.extraction.events.journal import JournalTail
from sameas.identity.errors import SameasError
from sameas.server.streams.admissions import Admission

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


MEDIA_TYPE = "text/event-stream"
# Milliseconds after which a browser comes back.
_RETRY = b"retry: 1000\n\n"
_ALIVE = b": alive\n\n"
_HEADERS = [
    (b"content-type", MEDIA_TYPE.encode() + b"; charset=utf-8"),
    (b"cache-control", b"no-store"),
    # Proxies that buffer would make a stream of a run into one answer at its end.
    (b"x-accel-buffering", b"no"),
]


class EventStream:
    """An ASGI answer that sends batches of events until there are no more, or the client is gone."""

    def __init__(self, batches: AsyncGenerator[list[Line], None], *, admission: Admission | None = None) -> None:
        self._batches = batches
        self._admission = admission

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        # A stream has a bound of its own, and leaves its place among the requests.
        scope["sameas.note"].leave()
        try:
            await self._stream(receive, send)
        finally:
            if self._admission is not None:
                self._admission.leave()

    async def _stream(self, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
        task, gone = asyncio.current_task(), asyncio.create_task(_until_gone(receive))
        # Sending to a client that is gone does nothing and says nothing, so its leaving is watched for.
        gone.add_done_callback(lambda left: task.cancel() if task is not None and not left.cancelled() else None)
        try:
            await send({"type": "http.response.body", "body": _RETRY, "more_body": True})
            async for batch in self._batches:
                body = b"".join([line.frame for line in batch]) if batch else _ALIVE
                await send({"type": "http.response.body", "body": body, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except asyncio.CancelledError:
            if task is None or not gone.done():
                raise
            task.uncancel()
        finally:
            gone.cancel()
            await self._batches.aclose()


async def _until_gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
