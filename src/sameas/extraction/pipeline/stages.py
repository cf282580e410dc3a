"""The seven stages of a run, in the order of the data. What drives them, with checkpoints and limits, is elsewhere: a
stage only does its work on one chunk (`ChunkStage`), or on the whole text.

Rule: what a chunk gives is in the chunk's own offsets and never depends on another chunk. Only resolution sees all.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from sameas.extraction.events.bus import Bus
from sameas.extraction.events.events import EntityFound, RelationFound, TimeoutWarning
from sameas.extraction.extractors.contract import BoundExtractor, Extractor
from sameas.extraction.graph.grounding import Grounded, GroundingSettings, ground, refusal
from sameas.extraction.graph.guard import Guard
from sameas.extraction.graph.model import Claim, Evidence, Graph, Mention, Rejection
from sameas.extraction.graph.resolution import Resolution, resolve
from sameas.extraction.graph.scratch import Seen
from sameas.extraction.outputs import OutputContext, OutputFormat, OutputSpool, write_graph
from sameas.extraction.pipeline.chunkwise import StageIdentity
from sameas.extraction.pipeline.spools import ChunkSpool, ResultSpool
from sameas.extraction.text.chunking import Chunk, ChunkSettings, iter_chunks
from sameas.llm.timeouts import StageName, StageTimeout
from sameas.ontology.focus import Focus, Focuser
from sameas.ontology.index import OntologyIndex

_REST_EVERY = 64


class Chunked(NamedTuple):
    """The chunks, and whether the stage ended before the text did."""

    chunks: ChunkSpool
    ended_early: bool


class ChunkingStage:
    """Stage 1: cuts the text into chunks. It takes pieces as they come; only the spool grows."""

    name: StageName = "chunking"

    def __init__(self, settings: ChunkSettings, *, limits: StageTimeout) -> None:
        self._settings = settings
        self._limits = limits

    async def run(self, pieces: Iterable[str], *, bus: Bus) -> Chunked:
        spool = ChunkSpool()
        last = time.monotonic()
        for chunk in iter_chunks(pieces, settings=self._settings):
            spool.add(chunk)
            now = time.monotonic()
            took_ms, last = (now - last) * 1000, now
            if took_ms > self._limits.soft_ms:
                over = took_ms > self._limits.hard_ms
                limit, allowed = ("hard", self._limits.hard_ms) if over else ("soft", self._limits.soft_ms)
                bus.emit(TimeoutWarning, stage=self.name, limit=limit, timeout_ms=allowed, chunk_index=chunk.index)
                if over:
                    return Chunked(spool, True)
            if chunk.index % _REST_EVERY == 0:
                await asyncio.sleep(0)
                last = time.monotonic()
        return Chunked(spool, False)


class ScopingStage:
    """Stage 2: chooses the terms of the ontology that a chunk may be about; a small ontology is passed whole."""

    name: StageName = "property_scoping"
    result_type = Focus

    def __init__(self, focuser: Focuser) -> None:
        self._focuser = focuser

    def digest(self, chunk: Chunk) -> str:
        return ""

    async def work(self, chunk: Chunk) -> Focus:
        return self._focuser.focus(chunk.text)

    def nothing(self, _: Chunk) -> Focus:
        return Focus()

    def count(self, result: Focus) -> int:
        return len(result.classes) + len(result.properties)

    def announce(self, result: Focus, chunk: Chunk, bus: Bus) -> None:
        """A focus is not news."""


class ChunkMentions(msgspec.Struct, frozen=True):
    """The mentions of one chunk in its own offsets, what was refused, and notes for people.

    `claims` were found together with the mentions and wait for the relation stage.
    """

    mentions: tuple[Mention, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    notes: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()


class EntityStage:
    """Stage 3: asks the extractor for the typed mentions of each chunk and keeps what the guard lets through."""

    name: StageName = "entity_extraction"
    result_type = ChunkMentions

    def __init__(
        self, extractor: Extractor, guard: Guard, *, foci: ResultSpool[Focus], identity: StageIdentity
    ) -> None:
        self._extractor = extractor
        self._guard = guard
        self._foci = foci
        self._identity = identity
        self._told: set[tuple[str, tuple[str, ...]]] = set()

    def digest(self, chunk: Chunk) -> str:
        return self._identity.digest(self.name, chunk.digest, self._foci[chunk.index].encode())

    async def work(self, chunk: Chunk) -> ChunkMentions:
        found = await self._extractor.extract_entities(chunk, self._foci[chunk.index])
        checked = self._guard.mentions(chunk, found.items)
        return ChunkMentions(checked.kept, (*found.rejected, *checked.rejected), found.notes, found.claims)

    def nothing(self, _: Chunk) -> ChunkMentions:
        return ChunkMentions()

    def count(self, result: ChunkMentions) -> int:
        return sum(mention.kind != "literal" for mention in result.mentions)

    def announce(self, result: ChunkMentions, chunk: Chunk, bus: Bus) -> None:
        """Each name of each class once in a run: the same name again is no discovery."""
        new: list[dict[str, object]] = []
        for mention in result.mentions:
            seen = (mention.text, mention.types)
            if mention.kind != "literal" and seen not in self._told:
                self._told.add(seen)
                new.append({"entity": mention.shifted(chunk.start), "confidence": mention.confidence})
        bus.emit_all(EntityFound, new)


class ResolutionStage:
    """Stage 4: makes one entity of all mentions of a thing, in the document's offsets. `found` and `starts` are walked
    twice."""

    name: StageName = "entity_resolution"

    def __init__(self, index: OntologyIndex) -> None:
        self._index = index

    def run(self, found: Iterable[ChunkMentions], *, starts: Iterable[int]) -> Resolution:
        return resolve(_in_document(found, starts), index=self._index, untyped=_untyped(found, starts))


def _in_document(found: Iterable[ChunkMentions], starts: Iterable[int]) -> Iterator[Mention]:
    for chunk, start in zip(found, starts, strict=True):
        for mention in chunk.mentions:
            if mention.kind != "literal":
                yield mention.shifted(start)


def _untyped(found: Iterable[ChunkMentions], starts: Iterable[int]) -> Iterator[Mention]:
    """The names that a chunk alone gave no class to; another chunk may have."""
    for chunk, start in zip(found, starts, strict=True):
        for one in chunk.rejected:
            if one.code == "no_type":
                yield Mention(one.start + start, one.end + start, one.subject)


class ChunkClaims(msgspec.Struct, frozen=True):
    """The claims of one chunk in its own offsets, what was refused, and notes for people."""

    claims: tuple[Claim, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    notes: tuple[str, ...] = ()


class RelationStage:
    """Stage 5: asks the extractor for claims between the mentions of the same chunk; the guard checks them."""

    name: StageName = "relation_extraction"
    result_type = ChunkClaims

    def __init__(
        self,
        extractor: Extractor,
        guard: Guard,
        *,
        foci: ResultSpool[Focus],
        found: ResultSpool[ChunkMentions],
        identity: StageIdentity,
        is_kept: bool = True,
    ) -> None:
        self._is_kept = is_kept
        self._extractor = extractor
        self._guard = guard
        self._foci = foci
        self._found = found
        self._identity = identity
        self._told = Seen()

    def digest(self, chunk: Chunk) -> str:
        """Empty if the extractor is not asked: checking again is cheaper than a checkpoint."""
        found = self._found[chunk.index]
        if not self._is_kept or not (found.mentions or found.claims):
            return ""
        parts = [msgspec.msgpack.encode(found.mentions)]
        if found.claims:
            parts.append(msgspec.msgpack.encode(found.claims))
        return self._identity.digest(self.name, chunk.digest, self._foci[chunk.index].encode(), *parts)

    async def work(self, chunk: Chunk) -> ChunkClaims:
        earlier = self._found[chunk.index]
        mentions = earlier.mentions
        if not mentions and not earlier.claims:
            return ChunkClaims()
        found = await self._extractor.extract_relations(chunk, mentions, self._foci[chunk.index])
        checked = self._guard.claims(chunk, (*earlier.claims, *found.items), mentions=mentions)
        return ChunkClaims(checked.kept, (*found.rejected, *checked.rejected), found.notes)

    def nothing(self, _: Chunk) -> ChunkClaims:
        return ChunkClaims()

    def count(self, result: ChunkClaims) -> int:
        return len(result.claims)

    def announce(self, result: ChunkClaims, chunk: Chunk, bus: Bus) -> None:
        claims = result.claims
        new = self._told.new_of(
            [(one.subject.text, one.predicate, one.object.value or one.object.text) for one in claims]
        )
        bus.emit_all(
            RelationFound,
            [
                {"relation": claim.shifted(chunk.start), "confidence": claim.confidence}
                for claim, is_new in zip(claims, new, strict=True)
                if is_new
            ],
        )


class Supported(msgspec.Struct, frozen=True):
    """A grounded claim and the text of its evidence."""

    grounded: Grounded
    evidence: Evidence


class ChunkSupport(msgspec.Struct, frozen=True):
    """The supported claims of one chunk in its own offsets, and what was refused."""

    supported: tuple[Supported, ...] = ()
    rejected: tuple[Rejection, ...] = ()


class GroundingStage:
    """Stage 6: ties each claim to the characters that support it, or refuses it.

    If the extractor has a second model, that one is asked as well: a claim that it does not find in the chunk is
    refused, or marked if the settings say so. When the second model does not answer, nothing is refused: the claims
    stay, unverified, and the chunk is reported as missing. Only if unverified relations are not wanted at all are they
    left out until they are checked.
    """

    name: StageName = "grounding"
    result_type = ChunkSupport

    def __init__(
        self,
        settings: GroundingSettings,
        *,
        found: ResultSpool[ChunkClaims],
        second: BoundExtractor | None = None,
        identity: StageIdentity | None = None,
    ) -> None:
        self._settings = settings
        self._found = found
        self._second = second
        self._identity = identity

    def digest(self, chunk: Chunk) -> str:
        """Without a second model nothing was paid for, and nothing is worth keeping."""
        if self._second is None or self._identity is None:
            return ""
        claims = msgspec.msgpack.encode(self._found[chunk.index].claims)
        return self._identity.digest(self.name, chunk.digest, msgspec.json.encode(self._settings), claims)

    async def work(self, chunk: Chunk) -> ChunkSupport:
        grounded, rejected = self._ground(chunk)
        if self._second is not None:
            grounded, refused = await self._verify(self._second, chunk, grounded)
            rejected.extend(refused)
        return _support(chunk, grounded, rejected)

    def _ground(self, chunk: Chunk) -> tuple[list[Grounded], list[Rejection]]:
        """What the characters of the chunk support, without asking a model."""
        grounded: list[Grounded] = []
        rejected: list[Rejection] = []
        for claim in self._found[chunk.index].claims:
            outcome = ground(chunk, claim, settings=self._settings)
            if isinstance(outcome, Rejection):
                rejected.append(outcome)
            else:
                grounded.append(outcome)
        return grounded, rejected

    async def _verify(
        self, second: BoundExtractor, chunk: Chunk, grounded: list[Grounded]
    ) -> tuple[list[Grounded], list[Rejection]]:
        verdicts = await second.verify(chunk, [one.claim for one in grounded])
        kept: list[Grounded] = []
        refused: list[Rejection] = []
        for one, stands in zip(grounded, verdicts, strict=True):
            if stands:
                kept.append(one)
            elif self._settings.unverified == "mark":
                kept.append(Grounded(one.claim, "unverified"))
            else:
                refused.append(refusal(one.claim, "not_supported"))
        return kept, refused

    def nothing(self, chunk: Chunk) -> ChunkSupport:
        """What was found stays; only the second model's verdict is missing."""
        grounded, rejected = self._ground(chunk)
        if self._second is not None and self._settings.unverified == "drop":
            rejected.extend(refusal(one.claim, "not_checked") for one in grounded)
            grounded = []
        elif self._second is not None:
            grounded = [Grounded(one.claim, "unverified") for one in grounded]
        return _support(chunk, grounded, rejected)

    def count(self, result: ChunkSupport) -> int:
        return len(result.supported)

    def announce(self, result: ChunkSupport, chunk: Chunk, bus: Bus) -> None:
        """Relations were announced when they were found."""


def _support(chunk: Chunk, grounded: Sequence[Grounded], rejected: Sequence[Rejection]) -> ChunkSupport:
    return ChunkSupport(tuple(_with_evidence(chunk, one) for one in grounded), tuple(rejected))


def _with_evidence(chunk: Chunk, one: Grounded) -> Supported:
    start, end = one.claim.evidence.start, one.claim.evidence.end
    return Supported(one, Evidence(start, end, chunk.text[start:end]))


class SerializationStage:
    """Stage 7: writes the graph in the formats that were asked for; equal graphs give equal bytes."""

    name: StageName = "serialization"

    def __init__(self, context: OutputContext, *, formats: Sequence[OutputFormat]) -> None:
        self._context = context
        self._formats = formats

    def run(self, graph: Graph) -> OutputSpool:
        outputs = OutputSpool()
        for name in self._formats:
            write_graph(graph, outputs.add(name), to=name, context=self._context)
        return outputs
