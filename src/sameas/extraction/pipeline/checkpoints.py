"""What is already done of a run, by stage and chunk, so that after a crash or an edit only the rest is done again.

Rule: a checkpoint is found by a digest of everything that went into it, so it is never stale; a wrong or damaged one is
a miss. A partial result is never kept.
"""

from collections.abc import Awaitable
from pathlib import Path
from typing import NamedTuple, Protocol, TypeGuard

from sameas.llm.timeouts import STAGES, StageName
from sameas.once.line_log import LineLog


class Checkpoints(Protocol):
    """Bytes by stage and digest."""

    @property
    def is_remote(self) -> bool:
        """Whether `load` and `save` may block for long, and so belong in a thread."""
        ...

    def load(self, stage: StageName, digest: str) -> bytes | None: ...

    def save(self, stage: StageName, digest: str, data: bytes) -> None: ...


class MemoryCheckpoints:
    """Checkpoints that live as long as the process."""

    is_remote = False

    def __init__(self) -> None:
        self._kept: dict[tuple[StageName, str], bytes] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def load(self, stage: StageName, digest: str) -> bytes | None:
        return self._kept.get((stage, digest))

    def save(self, stage: StageName, digest: str, data: bytes) -> None:
        self._kept[(stage, digest)] = data


_CHECKPOINT, _CALL = "checkpoint", "call"


class Used(NamedTuple):
    """What a run used; `is_known` is False if it was not written down, as in earlier releases."""

    checkpoints: frozenset[tuple[StageName, str]]
    calls: frozenset[str]
    is_known: bool


class UseNotes(Protocol):
    """Notes what a run uses, before it is used."""

    def begin(self) -> Awaitable[None] | None: ...

    def checkpoint(self, stage: StageName, digest: str) -> bool:
        """Note a checkpoint. Returns False if that failed; then it must not be used."""
        ...

    def call(self, key: str) -> Awaitable[None] | None: ...

    def close(self) -> None: ...


class UsedFile:
    """A file with what one attempt at a run uses. Only one process writes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: LineLog | None = None

    def begin(self) -> None:
        """Start noting: from now on it is known what the run uses."""
        if self._lines is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lines = LineLog(self._path)

    def checkpoint(self, stage: StageName, digest: str) -> bool:
        self._note(f"{_CHECKPOINT} {stage} {digest}")
        return True

    def call(self, key: str) -> None:
        self._note(f"{_CALL} {key}")

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()
            self._lines = None

    def _note(self, line: str) -> None:
        # Duplicate lines are harmless; remembering all lines would take memory that grows with the text.
        self.begin()
        assert self._lines is not None
        self._lines.append(line.encode())


class NotedCheckpoints:
    """The checkpoints of a tenant, with a note of each one that a run uses."""

    def __init__(self, checkpoints: Checkpoints, used: UseNotes) -> None:
        self._checkpoints = checkpoints
        self._used = used

    @property
    def is_remote(self) -> bool:
        return self._checkpoints.is_remote

    def load(self, stage: StageName, digest: str) -> bytes | None:
        found = self._checkpoints.load(stage, digest)
        return found if found is not None and self._used.checkpoint(stage, digest) else None

    def save(self, stage: StageName, digest: str, data: bytes) -> None:
        if self._used.checkpoint(stage, digest):
            self._checkpoints.save(stage, digest, data)


def is_stage(name: str) -> TypeGuard[StageName]:
    """Whether this is the name of a stage."""
    return name in STAGES


def read_used(path: Path) -> Used:
    """Read what a run used."""
    checkpoints: set[tuple[StageName, str]] = set()
    calls: set[str] = set()
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return Used(frozenset(), frozenset(), is_known=False)
    for line in lines:
        match line.split(" "):
            case [kind, stage, digest] if kind == _CHECKPOINT and is_stage(stage):
                checkpoints.add((stage, digest))
            case [kind, key] if kind == _CALL:
                calls.add(key)
            case _:
                # A killed process may leave a torn line; what it names was not saved.
                continue
    return Used(frozenset(checkpoints), frozenset(calls), is_known=True)
