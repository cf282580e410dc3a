"""How far a run is when a stage begins and when it ends, for people."""

from collections.abc import Mapping

from sameas.llm.timeouts import StageName

# How much of a run each stage is, for the progress that people see; the order is the stages'.
_SHARES: Mapping[StageName, float] = {
    "chunking": 0.03,
    "property_scoping": 0.02,
    "entity_extraction": 0.45,
    "entity_resolution": 0.03,
    "relation_extraction": 0.35,
    "grounding": 0.07,
    "serialization": 0.05,
}


def progress_of(stage: StageName) -> tuple[float, float]:
    """The run's progress before and after a stage, from 0 to 1."""
    before = 0.0
    for name, share in _SHARES.items():
        if name == stage:
            return before, before + share
        before += share
    raise KeyError(stage)
