"""A worker: the service without its doors. It takes up runs that were promised and that nobody works on.

Rule: a server writes down every run before it begins, and begins as many at a time as it was told to. What waits, and
what a dead server left, is there for workers of the same home folder and store; the once engine lets one of them work
on each. A worker ends as a server does: runs finish within the grace time or are handed over.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys

from sameas.server.app import App
from sameas.server.authentication import open_entry
from sameas.server.logs import RequestLog, configure_logging
from sameas.settings import Settings

_LOG = logging.getLogger("sameas.server")
# Seconds between two looks: a worker has nothing else to do.
_LOOK_EVERY = 0.5


def work(settings: Settings) -> None:
    """Work until told to stop."""
    configure_logging()
    entry = open_entry(settings)
    app = App(settings, entry, log=RequestLog(enabled=False))
    handed_over = asyncio.run(_work(app))
    entry.close()
    if handed_over:
        sys.stderr.flush()
        os._exit(0)


async def _work(app: App) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for told in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(told, stop.set)
    await app.service.start()
    _LOG.warning("sameas works on promised runs of %s", app.service.settings.home.resolve())
    while not stop.is_set():
        await app.service.take_over()
        try:
            await asyncio.wait_for(stop.wait(), _LOOK_EVERY)
        except TimeoutError:
            continue
    return await app.service.close()
