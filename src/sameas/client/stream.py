"""Server-sent events read from bytes, and where to go on after a connection broke.

Rule: an event is given once. What has a number is given in the order of numbers; after a break the service is asked for
what follows the last number that came, a bounded number of times without a new one. The stream is over after a run's
last event, or the word that its result is there, and only then.
"""

from collections.abc import Iterator

import msgspec

from sameas.client.calls import AGAIN, ServiceError, ServiceUnreachable, pause_after
from sameas.extraction.events.events import FINAL_EVENTS, CacheHit, ProgressEvent, decode_event

NOTHING_FOLLOWS = 204


class EventReader:
    """Takes lines, or bytes, and gives events."""

    def __init__(self, *, after: int = 0) -> None:
        self.last = after
        self.is_over = False
        self._data: list[str] = []
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[ProgressEvent]:
        """The events that these bytes complete. Only a line feed ends a line: a text may hold every other separator."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            event = self.take(line.decode("utf-8", "replace"))
            if event is not None:
                yield event

    def take(self, line: str) -> ProgressEvent | None:
        """The event that this line completes, if it is one that has not come before."""
        line = line.rstrip("\r\n")
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
        if line or not self._data:
            return None
        data, self._data = "\n".join(self._data), []
        try:
            event = decode_event(data)
        except (msgspec.DecodeError, ValueError) as error:
            raise ServiceError(200, {"title": f"an event that this client does not understand: {error}"}) from error
        number = event.sequence_number
        if number is None:
            # Of what concerns this listener alone, two are a last word.
            self.is_over = self.is_over or isinstance(event, (*FINAL_EVENTS, CacheHit))
            return event
        if number <= self.last:
            return None
        self.last = number
        # Of a run that failed and was begun again, the later events follow the last one.
        self.is_over = isinstance(event, FINAL_EVENTS)
        return event

    def broke(self) -> None:
        """The connection ended: what had come of an event is not one."""
        self._data = []
        self._rest = b""


class ResumableStream:
    """A stream over as many connections as it takes; both clients carry it out."""

    def __init__(self, *, after: int, tries: int) -> None:
        self.reader = EventReader(after=after)
        self._tries = tries
        self._broken = 0
        self._before = after

    def begin(self) -> int:
        """Another connection: the number after which to ask."""
        self._before = self.reader.last
        return self._before

    def refuse(self, status: int, body: bytes) -> str:
        """Why the service did not give the stream; raises where asking again would not help."""
        error = ServiceError.of(status, body)
        if status not in AGAIN:
            raise error
        return str(error)

    def end(self, reason: str, retry_after: str = "") -> float:
        """The connection ended: seconds until the next; raises after too many without a new event."""
        self.reader.broke()
        if self.reader.is_over:
            return 0.0
        self._broken = 1 if self.reader.last > self._before else self._broken + 1
        if self._broken >= self._tries:
            raise ServiceUnreachable(
                f"the events stopped {self._broken} times without a new one: {reason}. Ask for them again"
            )
        return pause_after(self._broken, retry_after)
