"""Removing what has expired, from time to time, for as long as somebody serves: `keep_pruned(engine)`.

Rule: one turn ends, however much has expired; the rest waits for the next. A store that fails is logged and asked
again. Redis removes what has expired by itself: there a turn asks nothing of the server.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from random import uniform
from typing import Final

from sameas.once.archive import prune_into
from sameas.once.async_engine import AsyncEngine
from sameas.once.errors import SameasError

_LOG = logging.getLogger("sameas")

BATCH: Final = 1_000
# A hundred thousand records a turn: more than expire in the usual time between two, on a store that keeps up.
MAX_BATCHES: Final = 100


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
