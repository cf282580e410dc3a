"""The record of a run in the once engine: who may work on it, and what was accepted.

Rule: the record is small (how the run ended, its counts, the digest of its folder); the folder holds the
artefacts. The key is computed from content, so it lives in the namespace of content keys.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from sameas.extraction.runs.metadata import RunMetadata, RunStatus
from sameas.once.call_builder import Options
from sameas.once.codec import codec_for, unpack
from sameas.once.engine import Engine
from sameas.once.policy import DAY, HOUR, Policy
from sameas.once.record import Record, State
from sameas.once.store import Backend, Store

SCOPE: Final = "extraction"
# Seconds by which the store's clock may be behind this machine's.
_CLOCKS_DIFFER_BY = 60.0


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What the record keeps of a run."""

    status: RunStatus
    entity_count: int
    relation_count: int
    digest: str
    """Of the folder, as `RunMetadata.digest` gives it."""
    place: str = ""
    """Where its files are, if they are kept as objects."""

    @classmethod
    def of(cls, metadata: RunMetadata, *, place: str = "") -> "RunSummary":
        return cls(
            status=metadata.status,
            entity_count=metadata.entity_count,
            relation_count=metadata.relation_count,
            digest=metadata.digest(),
            place=place,
        )

    @classmethod
    def in_record(cls, record: Record) -> "RunSummary | None":
        """What a record says was accepted; None where nothing was."""
        if record.state is not State.DONE or record.outcome is None:
            return None
        summary: RunSummary = unpack(record.outcome, codec_for(cls))
        return summary


def run_policy(*, lease: float = 30.0, retention: float | None = 7 * DAY, wait_for: float = HOUR) -> Policy:
    """The policy of runs, which may take long; a result is kept for seven days (source document 000, part 2.1)."""
    # A result that could not be recorded is still in its folder, where the next call finds it.
    return Policy(lease=lease, retention=retention, wait_for=wait_for, hand_in_for=5.0, on_unstored="return")


def ontology_tag(ontology_id: str) -> str:
    """The tag under which the records of an ontology are forgotten together."""
    return f"ontology:{ontology_id}"


def record_options(key: str, *, tenant: str, ontology_id: str, audit: Any = None) -> Options:
    """The options with which the engine is called for a run, the same everywhere."""
    return Options(
        scope=SCOPE,
        key=key,
        tenant=tenant,
        namespace="content",
        tags=(ontology_tag(ontology_id),),
        result_type=RunSummary,
        audit=audit or {},
    )


class RunRecords:
    """The records of one tenant's runs, for threads."""

    def __init__(
        self, backend: Backend, *, tenant: str, policy: Policy, clock: Callable[[], float] = time.time
    ) -> None:
        self._engine = Engine(Store(backend), policies={SCOPE: policy})
        self._tenant = tenant
        self._policy = policy
        self._clock = clock

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def retention(self) -> float:
        """Seconds for which a result is kept; infinite if it is kept until it is forgotten."""
        return float("inf") if self._policy.retention is None else self._policy.retention

    def read(self, key: str) -> Record | None:
        return self._engine.read(SCOPE, key, tenant=self._tenant, namespace="content")

    def fence(self, key: str) -> int | None:
        """The fence of the live record, if there is one."""
        record = self.read(key)
        return None if record is None else record.fence

    def is_held(self, key: str) -> bool:
        """Whether a worker holds it, as far as this machine's clock can tell; for information only."""
        record = self.read(key)
        if record is None or record.state is not State.HELD:
            return False
        return record.lease_until / 1e6 > self._clock() - _CLOCKS_DIFFER_BY

    def forget(self, key: str) -> bool:
        return self._engine.forget(SCOPE, key, tenant=self._tenant, namespace="content")

    def remake(self, metadata: RunMetadata) -> bool:
        """Record a result that its folder proves; returns False if there is a record already."""
        if self.read(metadata.idempotency_key) is not None:
            return False
        options = record_options(metadata.idempotency_key, tenant=self._tenant, ontology_id=metadata.ontology_id)
        summary = RunSummary.of(metadata)
        return not self._engine.record(lambda _: summary, **options).was_replay
