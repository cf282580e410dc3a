"""How much of a document is read: against files that are small on disk and endless inside."""

import time

import msgspec

from sameas.extraction.text.inputs.errors import DocumentLimitError

MIB = 1024 * 1024


class InputLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds for one document; all are checked while it is read."""

    file_bytes: int = 256 * MIB
    characters: int = 128 * MIB
    pages: int = 5_000
    objects: int = 500_000
    decompressed_bytes: int = 512 * MIB
    memory_bytes: int = 2048 * MIB
    seconds: float = 120.0

    def __post_init__(self) -> None:
        if any(getattr(self, name) <= 0 for name in self.__struct_fields__):
            raise ValueError("every input limit must be above zero")


class SizeMeter:
    """Counts what a reader has used and stops it at a limit."""

    def __init__(self, limits: InputLimits) -> None:
        self.limits = limits
        self._characters = 0
        self._objects = 0
        self._ends_at = time.monotonic() + limits.seconds

    def text(self, characters: int) -> None:
        self._characters += characters
        if self._characters > self.limits.characters:
            raise DocumentLimitError("too much text", limit=self.limits.characters, unit="characters")
        self.tick()

    def objects(self, number: int = 1) -> None:
        self._objects += number
        if self._objects > self.limits.objects:
            raise DocumentLimitError("too many objects", limit=self.limits.objects, unit="objects")

    def tick(self) -> None:
        if time.monotonic() > self._ends_at:
            raise DocumentLimitError("taken too long to read", limit=self.limits.seconds, unit="seconds")
