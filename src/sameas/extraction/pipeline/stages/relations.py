"""Stage 5, relation extraction: the claims of each chunk between its own mentions, checked by the guard."""

import msgspec

from sameas.extraction.events.bus import Bus
from sameas.extraction.events.events import RelationFound
from sameas.extraction.extractors.contract import Extractor
from sameas.extraction.graph.guard import Guard
from sameas.extraction.graph.model import Claim, Rejection
from sameas.extraction.graph.scratch import Seen
from sameas.extraction.pipeline.stages.chunkwise import StageIdentity
from sameas.extraction.pipeline.stages.entities import ChunkMentions
from sameas.extraction.pipeline.stages.spools import ResultSpool
from sameas.extraction.text.chunking import Chunk
from sameas.llm.timeouts import StageName
from sameas.ontology.focus import Focus


class ChunkClaims(msgspec.Struct, frozen=True):
    """The claims of one chunk in its own offsets, what was refused, and notes for people."""

    claims: tuple[Claim, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    notes: tuple[str, ...] = ()


class RelationStage:
    """Asks the extractor about each chunk's own mentions, never about another chunk's results."""

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
        """Nothing where the extractor is asked nothing: checking again takes less than a file does."""
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
        for claim in result.claims:
            if self._told.is_new(claim.subject.text, claim.predicate, claim.object.value or claim.object.text):
                bus.emit(RelationFound, relation=claim.shifted(chunk.start), confidence=claim.confidence)
