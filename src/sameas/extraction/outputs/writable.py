"""Where an output is written to: anything that takes bytes, a file or what counts them on their way to one."""

from typing import Protocol


class Writable(Protocol):
    """Takes bytes."""

    def write(self, data: bytes, /) -> object: ...
