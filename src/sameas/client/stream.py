"""Server-sent events read from lines, and where to go on after a connection broke.

Rule: an event is given once. What has a number is given in the order of numbers; after a break the service is asked for
what follows the last number that came. The stream is over after a run's last event, and only then.
"""

from sameas.extraction.events import FINAL_EVENTS, ProgressEvent, decode_event


class EventReader:
    """Takes lines, gives events."""

    def __init__(self, *, after: int = 0) -> None:
        self.last = after
        self.is_over = False
        self._data: list[str] = []

    def take(self, line: str) -> ProgressEvent | None:
        """The event that this line completes, if it is one that has not come before."""
        line = line.rstrip("\r\n")
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
        if line or not self._data:
            return None
        event = decode_event("\n".join(self._data))
        self._data = []
        number = event.sequence_number
        if number is not None:
            if number <= self.last:
                return None
            self.last = number
        self.is_over = isinstance(event, FINAL_EVENTS)
        return event

    def broke(self) -> None:
        """The connection ended: what had come of an event is not one."""
        self._data = []
