"""What is already done of a run, by stage and chunk, so that a crash or an edit costs only what is missing.

Rule: a checkpoint is found by a digest of everything that went into it, so it can never be stale, and a wrong
or damaged one is a miss. A partial result is never kept.
"""

from typing import Protocol

from sameas.llm.timeouts import StageName


class Checkpoints(Protocol):
    """Bytes by stage and digest; a later part keeps them beside the run."""

    def load(self, stage: StageName, digest: str) -> bytes | None: ...

    def save(self, stage: StageName, digest: str, data: bytes) -> None: ...


class MemoryCheckpoints:
    """Checkpoints that live as long as the process."""

    def __init__(self) -> None:
        self._kept: dict[tuple[StageName, str], bytes] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def load(self, stage: StageName, digest: str) -> bytes | None:
        return self._kept.get((stage, digest))

    def save(self, stage: StageName, digest: str, data: bytes) -> None:
        self._kept[(stage, digest)] = data
