"""Reading a journal while somebody else writes it, another thread or another process.

Rule: only whole lines count, and each is read once. A worker that takes a run over puts a copy in the
journal's place; the reader notices and goes on at the number where it was.
"""

import os
from pathlib import Path

from sameas.extraction.events import Event, decode_event

_BLOCK = 1 << 20


class JournalTail:
    """A place in a journal; `read` gives what has been added since."""

    def __init__(self, path: Path, *, after: int = 0) -> None:
        self._path = path
        self._after = after
        self._inode = 0
        self._place = 0
        self._number = 0

    def read(self) -> list[Event]:
        """The events since the last time, in order; none while there is no journal."""
        events: list[Event] = []
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return events
        with file:
            about = os.fstat(file.fileno())
            if about.st_ino != self._inode or about.st_size < self._place:
                self._inode, self._place, self._number = about.st_ino, 0, 0
            file.seek(self._place)
            rest = b""
            while block := file.read(_BLOCK):
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    self._place += len(line) + 1
                    self._number += 1
                    if self._number > self._after:
                        self._after = self._number
                        events.append(decode_event(line))
        return events
