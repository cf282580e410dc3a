"""The settings of a run."""

from collections.abc import Mapping

import msgspec

from sameas.extraction.graph.grounding import GroundingSettings
from sameas.extraction.text.chunking import ChunkSettings
from sameas.llm.timeouts import STAGE_TIMEOUTS, StageName, StageTimeout
from sameas.ontology.focus import FocusSettings


class PipelineSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of them are part of the key, except concurrency and time limits."""

    chunking: ChunkSettings = ChunkSettings()
    focus: FocusSettings = FocusSettings()
    grounding: GroundingSettings = GroundingSettings()
    concurrency: int = 4
    timeouts: Mapping[StageName, StageTimeout] = STAGE_TIMEOUTS
    deadline_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ValueError("concurrency must be at least 1")
