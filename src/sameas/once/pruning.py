"""Removing what has expired, from time to time, for as long as somebody serves: `keep_pruned(engine)`.

Rule: one turn ends, however much has expired; the rest waits for the next. A store that fails is logged and asked
again. Redis removes what has expired by itself: there a turn asks nothing of the server.

With an archive, what is removed is on the disk first, one JSON object a line, without its result. One process at a time
archives what has expired in a store, by a claim of the engine, so that nobody removes what another is about to write
down.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import uniform
from typing import Final

import msgspec

from sameas.once.async_engine import AsyncEngine
from sameas.once.errors import InProgress, SameasError
from sameas.once.line_log import LineLog
from sameas.once.record import NEVER, Record, State, client_key
from sameas.once.store import AsyncStore, Query

_LOG = logging.getLogger("sameas")

BATCH: Final = 1_000
# A hundred thousand records a turn: more than expire in the usual time between two, on a store that keeps up.
MAX_BATCHES: Final = 100

_SCOPE: Final = "sameas.archive"
_PAGE: Final = 500


async def keep_pruned(engine: AsyncEngine, *, every: float, archive: Path | None = None) -> None:
    """Remove expired records about every so many seconds, and say how many, until it is cancelled; with an `archive`
    they are appended to that file first, and stay where they cannot be.
    """
    while True:
        # Not all processes at once.
        await asyncio.sleep(every * uniform(0.5, 1.5))
        removed = 0
        try:
            if archive is not None:
                removed = await prune_into(archive, engine, batch=BATCH)
            else:
                removed = await _prune(engine)
        except (SameasError, OSError) as trouble:
            _LOG.warning("expired records could not be removed: %s", trouble)
        if removed:
            _LOG.info("expired records removed: %d", removed)


async def _prune(engine: AsyncEngine) -> int:
    removed = 0
    for _ in range(MAX_BATCHES):
        gone = await engine.store.prune(BATCH)
        removed += gone
        if gone < BATCH:
            break
    return removed


class _Over(Exception):
    """The turn is over: the claim is given back, and leaves no record that would expire itself."""

    def __init__(self, removed: int) -> None:
        self.removed = removed


async def prune_into(archive: Path, engine: AsyncEngine, *, batch: int) -> int:
    """Remove what has expired after it was written down; how many. None if another process is at it."""

    async def turn(_: object) -> None:
        raise _Over(await _write_down_and_prune(engine.store, archive, batch))

    # Observers are not to hear of a call that fails by design.
    claiming = AsyncEngine(engine.store)
    try:
        await claiming.run(turn, scope=_SCOPE, key="expired", namespace="content", on_busy="refuse")
    except _Over as over:
        return over.removed
    except InProgress:
        pass
    return 0


def record_facts(record: Record) -> dict[str, object]:
    """What is known of a record, without its result, for people."""
    return {
        "id": record.identity.digest.hex(),
        "key": record.identity.key,
        "client key": client_key(record.identity.key),
        "scope": record.identity.scope,
        "tenant": record.identity.tenant,
        "state": str(record.state),
        "status": record.status_code,
        "attempt": record.attempt,
        "fence": record.fence,
        "owner": record.about.owner,
        "created": time_of(record.created_at),
        "lease until": time_of(record.lease_until),
        "completed": time_of(record.completed_at) if record.completed_at is not None else "",
        "expires": time_of(record.expires_at),
        "tags": ", ".join(record.about.tags),
        "route": f"{record.about.method} {record.about.route}".strip(),
        "fingerprint": record.fingerprint,
    }


def time_of(micros: int) -> str:
    """An instant of a record, in UTC."""
    if micros >= NEVER:
        return "never"
    return datetime.fromtimestamp(micros / 1_000_000, UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")


def next_caller(record: Record, time: Callable[[int], str]) -> str:
    """What the same request would get now, in half a sentence; `time` says an instant."""
    match record.state:
        case State.DONE:
            return "gets this result again, nothing is run"
        case State.FAILED:
            return "gets this failure again until it expires"
        case State.HELD:
            return f"waits for the holder, and takes over when its lease ends at {time(record.lease_until)}"


async def _write_down_and_prune(store: AsyncStore, archive: Path, batch: int) -> int:
    """As many as were written down are removed: those that expired first, which are those."""
    total = 0
    while found := await _expired(store):
        await asyncio.to_thread(_append, archive, found)
        left = len(found)
        while left and (count := await store.prune(min(batch, left))):
            left -= count
            total += count
        if left:
            # Somebody else has removed them, or holds them.
            break
    return total


async def _expired(store: AsyncStore) -> list[Record]:
    found: list[Record] = []
    after = None
    while True:
        page = await store.find(Query(expired=True, limit=_PAGE, after=after))
        found += page.records
        after = page.next
        if after is None:
            return found


def _append(archive: Path, records: Sequence[Record]) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    with LineLog(archive, fsync=True) as lines:
        lines.append(*(msgspec.json.encode({**record_facts(one), "audit": one.about.audit}) for one in records))
