"""The one contract of everything that finds things in text: the lexicon, a learned model, a language model.

Rule: an extractor sees one chunk and never another chunk's results, so that an edit does not cascade. It
answers in the chunk's own offsets. Its name, version and settings are part of the key: equal identity, equal
answers. Whatever it offers is checked by the guard; an extractor is never trusted.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import msgspec

from sameas.extraction.graph.model import Claim, Mention, Rejection
from sameas.extraction.text.chunking import Chunk
from sameas.identity.canonical import canonical_json, sha256_hex
from sameas.identity.errors import SameasError
from sameas.llm.ledger import UsageRow
from sameas.ontology.focus import Focus

T = TypeVar("T")


class Found(msgspec.Struct, Generic[T], frozen=True):
    """What was found in a chunk, and notes for the person who runs it.

    Who finds claims together with mentions hands them in as `claims`; `rejected` is what the extractor itself could
    not place in the text.
    """

    items: tuple[T, ...] = ()
    notes: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    rejected: tuple[Rejection, ...] = ()


class ChunkFailedError(SameasError):
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


class RunLink(msgspec.Struct, frozen=True, kw_only=True):
    """What a run gives an extractor that spends something for it."""

    key: str
    chunks: int
    on_signal: Callable[[Any], None]
    """Told what the control services say while they work."""
    spent: tuple[UsageRow, ...] = ()
    """What earlier attempts at the run have spent."""
    on_spent: Callable[[UsageRow], None] | None = None
    """Told the accounts of a stage whenever they change, with the calls under way in them."""
    concurrency: int | None = None
    """How many chunks may wait for an answer at once; the run works on more, so that their questions are ready."""


class BoundExtractor(Extractor, Protocol):
    """An extractor at work for one run: it keeps accounts, and may check claims a second time."""

    @property
    def relates(self) -> bool:
        """Whether `extract_relations` asks anybody."""
        ...

    @property
    def verifies(self) -> bool:
        """Whether `verify` asks anybody."""
        ...

    async def verify(self, chunk: Chunk, claims: Sequence[Claim]) -> tuple[bool, ...]:
        """For each claim, whether the chunk supports it."""
        ...

    def usage(self) -> tuple[UsageRow, ...]:
        """What was spent and saved so far, by stage and model."""
        ...


@runtime_checkable
class Bindable(Protocol):
    """An extractor that works for one run at a time under limits, such as a language model."""

    def bind(self, run: RunLink) -> BoundExtractor: ...


def extractor_identity(extractor: Extractor) -> dict[str, Any]:
    """What goes into the key for an extractor."""
    return {"name": extractor.name, "version": extractor.version, "settings": dict(extractor.settings)}


def extractor_digest(extractor: Extractor) -> str:
    return sha256_hex(canonical_json(extractor_identity(extractor)))
