"""Stage 6, grounding: each claim tied to the characters that support it, or refused.

Where the extractor has a second model, that one is asked too: what it does not find in the chunk is refused, or marked
where so set. A second model that does not answer refuses nothing: what it was to check stays, unverified, and its chunk
is named as missing; only where unverified relations are not wanted at all is it left out until it is checked.
"""

from collections.abc import Sequence

import msgspec

from sameas.extraction.events.bus import Bus
from sameas.extraction.extractors.contract import BoundExtractor
from sameas.extraction.graph.grounding import Grounded, GroundingSettings, ground, refusal
from sameas.extraction.graph.model import Evidence, Rejection
from sameas.extraction.pipeline.stages.chunkwise import StageIdentity
from sameas.extraction.pipeline.stages.relations import ChunkClaims
from sameas.extraction.pipeline.stages.spools import ResultSpool
from sameas.extraction.text.chunking import Chunk
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
        """Only an answer that was paid for is worth keeping."""
        if self._second is None or self._identity is None:
            return ""
        claims = msgspec.msgpack.encode(self._found[chunk.index].claims)
        return self._identity.digest(self.name, chunk.digest, msgspec.json.encode(self._settings), claims)

    async def work(self, chunk: Chunk) -> ChunkSupport:
        grounded, rejected = self._grounded(chunk)
        if self._second is not None:
            grounded, refused = await self._asked(self._second, chunk, grounded)
            rejected.extend(refused)
        return _support(chunk, grounded, rejected)

    def _grounded(self, chunk: Chunk) -> tuple[list[Grounded], list[Rejection]]:
        """What the chunk's own characters say, without asking anybody."""
        grounded: list[Grounded] = []
        rejected: list[Rejection] = []
        for claim in self._found[chunk.index].claims:
            outcome = ground(chunk, claim, settings=self._settings)
            if isinstance(outcome, Rejection):
                rejected.append(outcome)
            else:
                grounded.append(outcome)
        return grounded, rejected

    async def _asked(
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
        """What was found stays: only the second model's word for it is missing."""
        grounded, rejected = self._grounded(chunk)
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
    return ChunkSupport(tuple(_supported(chunk, one) for one in grounded), tuple(rejected))


def _supported(chunk: Chunk, one: Grounded) -> Supported:
    start, end = one.claim.evidence.start, one.claim.evidence.end
    return Supported(one, Evidence(start, end, chunk.text[start:end]))
