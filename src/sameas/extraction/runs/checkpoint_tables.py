"""Checkpoints in the database that all nodes see, for machines that have no folder in common.

Rule: as in the file (`checkpoint_file.py`) a row is found by the digest of all that went into it, holds a digest over
that, and its loss costs nothing else: without the database, checkpoints are lost and the run goes on. What a run uses
is noted here before it is saved, so that any node can delete it. Blocking: asyncio code calls it in a thread.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

from sameas.connections import open_database
from sameas.databases import Row, Statements
from sameas.extraction.pipeline.checkpoints import Used, is_stage
from sameas.extraction.runs.checkpoint_file import DEFAULT_BYTES, is_look_due, name_of, seal_of
from sameas.llm.timeouts import StageName
from sameas.once.errors import StoreError

_TOUCH_EVERY = 3600.0
# After the database kept a caller waiting, it is not asked again at once.
_REST_SECONDS = 1.0
# After a look that finds too much this share stays, so that the next one does not follow at once.
_KEEP = 0.9
# About what a row takes beside its data.
_AROUND = 200

_log = logging.getLogger("sameas")


class CheckpointTables:
    """The checkpoints of one tenant in SQLite or PostgreSQL, within a bound of bytes; least recently used go first."""

    is_remote = True

    def __init__(
        self,
        url: str,
        *,
        tenant: str = "",
        max_bytes: int = DEFAULT_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = open_database(url, Statements.of("sameas.extraction", "checkpoints"))
        self._tenant = tenant
        self._max_bytes = max_bytes
        self._clock = clock
        self._rests_until = 0.0
        self._has_looked = False

    def close(self) -> None:
        self._database.close()

    def load(self, stage: StageName, digest: str) -> bytes | None:
        """A checkpoint; None also if it is damaged or the database is away."""
        name = name_of(stage, digest)
        if time.monotonic() < self._rests_until:
            return None
        try:
            rows = self._database.read("load", tenant=self._tenant, stage=stage, digest=name)
            if not rows:
                return None
            data, seal, used_at = rows[0]
            if not isinstance(data, bytes) or seal != seal_of(stage, name, data):
                return None
            if not isinstance(used_at, int) or not 0 <= self._clock() - used_at / 1000 < _TOUCH_EVERY:
                self._write("touch", stage=stage, digest=name, now=self._now())
        except StoreError as trouble:
            self._rest(trouble)
            return None
        return data

    def save(self, stage: StageName, digest: str, data: bytes) -> None:
        """Save a checkpoint; if the database is away, the checkpoint is lost and the run goes on."""
        name, size = name_of(stage, digest), len(data) + _AROUND
        if len(data) > self._max_bytes or time.monotonic() < self._rests_until:
            return
        seal = seal_of(stage, name, data)
        try:
            self._write("save", stage=stage, digest=name, now=self._now(), size=size, seal=seal, data=data)
            # The first one looks: there are processes that save only a few.
            if not self._has_looked or is_look_due(digest, size=size, bound=self._max_bytes):
                self._has_looked = True
                self._make_room()
        except StoreError as trouble:
            self._rest(trouble)

    def forget(self, names: Iterable[tuple[StageName, str]]) -> None:
        """Delete these checkpoints; raises StoreError if that fails."""
        rows = [
            {"tenant": self._tenant, "stage": stage, "digest": name_of(stage, digest)}
            # In one order for everybody: two that delete the same rows do not wait for each other for ever.
            for stage, digest in sorted(names)
        ]
        with self._database.transaction() as session:
            session.run_many("forget", rows)
        self._database.truncate_log()

    def clear(self) -> None:
        """Delete all checkpoints."""
        with self._database.transaction() as session:
            session.run("clear", tenant=self._tenant)
        self._database.truncate_log()

    def note_use(self, key: str, kind: str, *, stage: str = "", name: str = "") -> None:
        """Note what a run is about to use; raises StoreError if that fails."""
        self._write("note_use", key=key, kind=kind, stage=stage, name=name)

    def note_checkpoint(self, key: str, stage: StageName, digest: str) -> bool:
        """Note a checkpoint that a run is about to use; returns False if the database is away."""
        if time.monotonic() < self._rests_until:
            return False
        try:
            self.note_use(key, "checkpoint", stage=stage, name=digest)
        except StoreError as trouble:
            self._rest(trouble)
            return False
        return True

    def used_by(self, key: str) -> Used:
        """What a run uses, on all nodes that worked on it."""
        rows = self._database.read("uses", tenant=self._tenant, key=key)
        checkpoints: frozenset[tuple[StageName, str]] = frozenset(
            (stage, name) for kind, stage, name in rows if kind == "checkpoint" and is_stage(stage)
        )
        calls = frozenset(name for kind, _, name in rows if kind == "call")
        return Used(checkpoints, calls, is_known=bool(rows))

    def forget_uses(self, key: str) -> None:
        """Forget the notes of a deleted run."""
        with self._database.transaction() as session:
            session.run("forget_uses", tenant=self._tenant, key=key)

    def _make_room(self) -> None:
        (used,) = self._database.read("size", tenant=self._tenant)[0]
        if used > self._max_bytes:
            self._write("shrink", keep=int(self._max_bytes * _KEEP))

    def _write(self, name: str, /, **values: object) -> list[Row]:
        with self._database.transaction(durable=False) as session:
            return session.run(name, tenant=self._tenant, **values)

    def _now(self) -> int:
        return int(self._clock() * 1000)

    def _rest(self, trouble: StoreError) -> None:
        self._rests_until = time.monotonic() + _REST_SECONDS
        _log.warning("the database has no checkpoints now, and work may be done again: %s", trouble)


class UsedRows:
    """What one run uses, visible to all nodes."""

    def __init__(self, tables: CheckpointTables, key: str) -> None:
        self._tables = tables
        self._key = key

    async def begin(self) -> None:
        """Start noting: from now on it is known what the run uses."""
        await asyncio.to_thread(self._tables.note_use, self._key, "begun")

    def checkpoint(self, stage: StageName, digest: str) -> bool:
        return self._tables.note_checkpoint(self._key, stage, digest)

    async def call(self, key: str) -> None:
        await asyncio.to_thread(self._tables.note_use, self._key, "call", name=key)

    def close(self) -> None:
        """Nothing to close."""
