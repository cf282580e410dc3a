"""What was met already, where there may be more of it than memory holds."""

import msgspec

from sameas.extraction.scratch import Scratch


class Seen:
    """A set of things that can be added to and nothing else; each is a tuple of texts and numbers."""

    def __init__(self) -> None:
        self._scratch = Scratch("CREATE TABLE seen (thing BLOB PRIMARY KEY) WITHOUT ROWID")
        self._encoder = msgspec.msgpack.Encoder()

    def is_new(self, *thing: str | int) -> bool:
        """Whether it is met for the first time; from now on it is known."""
        return self._scratch.do("INSERT OR IGNORE INTO seen VALUES (?)", self._encoder.encode(thing)) == 1
