"""The one contract of everything that finds things in text: the lexicon, a learned model, a language model.

Rule: an extractor sees one chunk and never another chunk's results, so that an edit does not cascade. It
answers in the chunk's own offsets. Its name, version and settings are part of the key: equal identity, equal
answers. Whatever it offers is checked by the guard; an extractor is never trusted.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import msgspec

from sameas.extraction.chunking import Chunk
from sameas.extraction.graph import Claim, Mention
from sameas.identity.canonical import canonical_json, sha256_hex
from sameas.ontology.focus import Focus

T = TypeVar("T")


class Found(msgspec.Struct, Generic[T], frozen=True):
    """What was found in a chunk, and notes for the person who runs it."""

    items: tuple[T, ...] = ()
    notes: tuple[str, ...] = ()


class ChunkFailedError(Exception):
    """An extractor could not do this chunk, and the run may go on without it."""

    def __init__(self, code: str, message: str, *, retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after_ms = retry_after_ms


@runtime_checkable
class Extractor(Protocol):
    """Finds mentions, and claims between mentions, in one chunk at a time."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """Changes whenever its answers may change."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """Everything that was set and can change its answers, as JSON values."""
        ...

    async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
        """The typed mentions of the chunk, and its literals."""
        ...

    async def extract_relations(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> Found[Claim]:
        """The claims of the chunk between these mentions of it."""
        ...


def extractor_identity(extractor: Extractor) -> dict[str, Any]:
    """What goes into the key for an extractor."""
    return {"name": extractor.name, "version": extractor.version, "settings": dict(extractor.settings)}


def extractor_digest(extractor: Extractor) -> str:
    return sha256_hex(canonical_json(extractor_identity(extractor)))
