"""Stage 3, entity extraction: the typed mentions of each chunk, checked by the guard."""

import msgspec

from sameas.extraction.events.bus import Bus
from sameas.extraction.events.events import EntityFound
from sameas.extraction.extractors.contract import Extractor
from sameas.extraction.graph.guard import Guard
from sameas.extraction.graph.model import Claim, Mention, Rejection
from sameas.extraction.pipeline.stages.chunkwise import StageIdentity
from sameas.extraction.pipeline.stages.spools import ResultSpool
from sameas.extraction.text.chunking import Chunk
from sameas.llm.timeouts import StageName
from sameas.ontology.focus import Focus


class ChunkMentions(msgspec.Struct, frozen=True):
    """The mentions of one chunk in its own offsets, what was refused, and notes for people.

    `claims` were found together with the mentions and wait for the relation stage.
    """

    mentions: tuple[Mention, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    notes: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()


class EntityStage:
    """Asks the extractor and keeps what the guard lets through."""

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
        for mention in result.mentions:
            seen = (mention.text, mention.types)
            if mention.kind != "literal" and seen not in self._told:
                self._told.add(seen)
                bus.emit(EntityFound, entity=mention.shifted(chunk.start), confidence=mention.confidence)
