"""`sameas worker`: the service without its doors, which does what a broker sends it.

Rule: a message names a run that was written down. The once engine lets one worker do it; whoever finds it held, done or
gone acknowledges the message and goes on. A message is acknowledged when its run has ended, so that a killed worker's
come back; one whose run a store ended that was away is put back, and taken again a moment later. A worker ends as a
server does: runs finish within the grace time or are handed over.

Without a broker a worker takes up what waits in its home folder, as in earlier releases; that goes with the next.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections import Counter
from typing import Any

from prometheus_client import start_http_server

from sameas.cluster.broker import CHUNKS, QUEUE, RUN, make_app
from sameas.extraction.pipeline.run import RunPart
from sameas.server.app import App, open_entry
from sameas.server.logs import RequestLog, configure_logging
from sameas.server.runs.background_loop import BackgroundLoop
from sameas.server.runs.takeover import TRY_AGAIN
from sameas.server.start_checks import check_start
from sameas.settings import Settings, make_home

_LOG = logging.getLogger("sameas.server")
# Seconds between two looks: a worker has nothing else to do.
_LOOK_EVERY = 0.5
# Seconds before a message is put back whose run a store ended, one time after the other; then whoever looks for runs
# that nobody holds sends it again.
_RESTS = (0.5, 1.0, 2.0, 4.0, 8.0, 8.0)


def work(settings: Settings) -> None:
    """Work until told to stop."""
    configure_logging()
    make_home(settings)
    check_start(settings)
    if settings.broker:
        ClusterWorker(settings).run()
        return
    _LOG.warning(
        "a worker on a shared folder goes with the next release; set SAMEAS_BROKER and SAMEAS_OBJECTS (docs/cluster.md)"
    )
    entry = open_entry(settings)
    app = App(settings, entry, log=RequestLog(enabled=False))
    handed_over = asyncio.run(_work(app))
    entry.close()
    if handed_over:
        sys.stderr.flush()
        os._exit(0)


class ClusterWorker:
    """A Celery worker whose tasks are done by a service in the same process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._entry = open_entry(settings)
        self._service = App(settings, self._entry, log=RequestLog(enabled=False), is_worker=True).service
        self._loop = BackgroundLoop()
        self._celery = make_app(settings.broker)
        self._celery.task(name=RUN, ignore_result=True)(self._do_run)
        self._celery.task(name=CHUNKS, ignore_result=True)(self._do_chunks)
        self._put_back: Counter[tuple[str, str]] = Counter()
        self._stopping = threading.Event()

    def run(self) -> None:
        """Take messages until told to stop."""
        from celery.signals import worker_shutting_down  # type: ignore[import-untyped]

        self._loop.start()
        self._wait_for(self._service.start())
        worker_shutting_down.connect(self._stop, weak=False)
        if self._settings.metrics_port:
            start_http_server(self._settings.metrics_port, addr=self._settings.host, registry=self._service.registry)
        _LOG.warning("sameas works on runs of the queue %r, %d at a time", QUEUE, self._settings.max_runs)
        worker = self._celery.Worker(
            pool="threads",
            concurrency=self._settings.max_runs,
            queues=[QUEUE],
            loglevel="WARNING",
            # A name of its own: two of one name share the queue over which tools talk to them, and one of them ends.
            hostname=f"{self._settings.worker_name or f'sameas-{os.getpid()}'}@{socket.gethostname()}",
            without_gossip=True,
            without_mingle=True,
        )
        worker.start()
        # Nothing is under way any more.
        self._wait_for(self._service.close())
        self._entry.close()
        self._loop.close()
        sys.exit(worker.exitcode or 0)

    def _do_run(self, space: str, key: str, *_later: Any, **_later_words: Any) -> None:
        # A later release may say more; what it asks for is in the request, which is left to it if need be.
        try:
            what = self._wait_for(self._service.do(self._service.runner.takeover.work_on(space, key)))
        except TRY_AGAIN as trouble:
            self._rest(space, key, trouble)
            return
        self._put_back.pop((space, key), None)
        _LOG.info("the run %s %s", key, what)

    def _rest(self, space: str, key: str, trouble: Exception) -> None:
        """A store or a disk is away: put the message back after a while, so that the queue waits as well."""
        from celery.exceptions import Reject  # type: ignore[import-untyped]

        tries = self._put_back[space, key]
        if tries == len(_RESTS):
            del self._put_back[space, key]
            _LOG.warning("the run %s is left until it is sent again: %s", key, trouble)
            return
        self._put_back[space, key] += 1
        _LOG.warning("the run %s is tried again in a moment: %s", key, trouble)
        self._stopping.wait(_RESTS[tries])
        raise Reject(str(trouble), requeue=True)

    def _do_chunks(self, space: str, key: str, number: int, parts: int, *_later: Any, **_later_words: Any) -> None:
        helpers = self._service.runner.helpers
        assert helpers is not None
        what = self._wait_for(self._service.do(helpers.help(space, key, RunPart(number, parts))))
        _LOG.info("the run %s %s", key, what)

    def _stop(self, **_: Any) -> None:
        """Celery waits for what is under way without end; after the grace time it is handed over."""
        self._stopping.set()
        threading.Thread(target=self._hand_over, daemon=True).start()

    def _hand_over(self) -> None:
        if (helpers := self._service.runner.helpers) is not None:
            self._wait_for(self._service.do(helpers.dismiss()))
        time.sleep(self._settings.grace)
        if self._service.runner.running:
            # Their messages were not acknowledged and come back; their claims are given back here.
            self._wait_for(self._service.close())
            sys.stderr.flush()
            os._exit(0)

    def _wait_for(self, work: Any) -> Any:
        return self._loop.submit(work).result()


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
