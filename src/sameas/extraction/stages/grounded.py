"""Stage 6, grounding: each claim tied to the characters that support it, or refused."""

import msgspec

from sameas.extraction.bus import Bus
from sameas.extraction.chunking import Chunk
from sameas.extraction.graph import Evidence, Rejection
from sameas.extraction.grounding import Grounded, GroundingSettings, ground
from sameas.extraction.stages.relations import ChunkClaims
from sameas.extraction.stages.result_spool import ResultSpool
from sameas.llm.timeouts import StageName


class Supported(msgspec.Struct, frozen=True):
    """A grounded claim and the text of its evidence."""

    grounded: Grounded
    evidence: Evidence


class ChunkSupport(msgspec.Struct, frozen=True):
    """The supported claims of one chunk in its own offsets, and what was refused."""

    supported: tuple[Supported, ...] = ()
    rejected: tuple[Rejection, ...] = ()


class GroundingStage:
    """Grounds the claims of each chunk in the chunk's text."""

    name: StageName = "grounding"
    result_type = ChunkSupport

    def __init__(self, settings: GroundingSettings, *, found: ResultSpool[ChunkClaims]) -> None:
        self._settings = settings
        self._found = found

    def digest(self, chunk: Chunk) -> str:
        return ""

    async def work(self, chunk: Chunk) -> ChunkSupport:
        supported: list[Supported] = []
        rejected: list[Rejection] = []
        for claim in self._found[chunk.index].claims:
            outcome = ground(chunk, claim, settings=self._settings)
            if isinstance(outcome, Rejection):
                rejected.append(outcome)
            else:
                start, end = outcome.claim.evidence.start, outcome.claim.evidence.end
                supported.append(Supported(outcome, Evidence(start, end, chunk.text[start:end])))
        return ChunkSupport(tuple(supported), tuple(rejected))

    def nothing(self) -> ChunkSupport:
        return ChunkSupport()

    def count(self, result: ChunkSupport) -> int:
        return len(result.supported)

    def announce(self, result: ChunkSupport, chunk: Chunk, bus: Bus) -> None:
        """Relations were announced when they were found."""
