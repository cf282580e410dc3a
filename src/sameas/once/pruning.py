"""Removing what has expired, from time to time, for as long as somebody serves: `keep_pruned(engine)`.

Rule: one turn ends, however much has expired; the rest waits for the next. A store that fails is logged and asked
again. Redis removes what has expired by itself: there a turn asks nothing of the server.
"""

from __future__ import annotations

import asyncio
import logging
from random import uniform
from typing import Final

from sameas.once.async_engine import AsyncEngine
from sameas.once.errors import SameasError

_LOG = logging.getLogger("sameas")

BATCH: Final = 1_000
# A hundred thousand records a turn: more than expire in the usual time between two, on a store that keeps up.
MAX_BATCHES: Final = 100


async def keep_pruned(engine: AsyncEngine, *, every: float) -> None:
    """Remove expired records about every so many seconds, and say how many, until it is cancelled."""
    while True:
        # Not all processes at once.
        await asyncio.sleep(every * uniform(0.5, 1.5))
        removed = 0
        try:
            for _ in range(MAX_BATCHES):
                gone = await engine.store.prune(BATCH)
                removed += gone
                if gone < BATCH:
                    break
        except SameasError as trouble:
            _LOG.warning("expired records could not be removed: %s", trouble)
        if removed:
            _LOG.info("expired records removed: %d", removed)
