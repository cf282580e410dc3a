"""The process that forks the workers of a storm and ends them: by kill -9, or by a stop that outlives their lease.

It does nothing else, so that it goes on while the store is being started again; what it did is in the journal.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sameas import StoreUnavailable
from tests.storm.journal import Journal
from tests.storm.worker import Worker

KILLED = "killed"
STOPPED = "stopped"
# Of all blows, the share of stops.
STOPS = 0.15


@dataclass(frozen=True)
class Fury:
    """How it rages: for `seconds`, and on until `kills` were made, but never longer than `seconds_at_most`."""

    processes: int
    lease: float
    seconds: float
    kills: int
    seconds_at_most: float


class Killer:
    """`transaction` puts the effect of the workers into the record's own transaction."""

    def __init__(
        self, url: str, journal: Journal, *, fury: Fury, seed: int, transaction: Callable[[], Any] | None
    ) -> None:
        self._url = url
        self._journal = journal
        self._fury = fury
        self._random = random.Random(seed)
        self._transaction = transaction
        self._workers: set[int] = set()
        self._stopped: dict[int, float] = {}
        self._kills = 0

    def start(self) -> int:
        """Begin, in a process of its own; returns its id."""
        parent = os.getpid()
        child = os.fork()
        if child:
            return child
        status = 1
        try:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
            try:
                self._rage(parent)
                status = 0
            finally:
                for worker in list(self._workers):
                    self._end(worker)
        except BaseException as error:  # noqa: BLE001 - a child must never return into its parent's code
            self._journal.write("crashed", result=repr(error))
        finally:
            os._exit(status)

    def _rage(self, parent: int) -> None:
        began = time.monotonic()
        last_at = began + self._fury.seconds_at_most
        while (now := time.monotonic()) < last_at and os.getppid() == parent:
            if now >= began + self._fury.seconds and self._kills >= self._fury.kills:
                return
            while len(self._workers) < self._fury.processes:
                self._fork(last_at)
            time.sleep(self._random.uniform(0.01, 0.04))
            self._wake_sleepers(now)
            self._strike(self._random.choice(sorted(self._workers)), now)

    def _strike(self, victim: int, now: float) -> None:
        if self._random.random() < STOPS and victim not in self._stopped:
            os.kill(victim, signal.SIGSTOP)
            self._stopped[victim] = now + self._fury.lease * self._random.uniform(1.2, 2.0)
            self._journal.write(STOPPED)
        else:
            self._end(victim)
            self._kills += 1
            self._journal.write(KILLED)

    def _fork(self, until: float) -> None:
        seed = self._random.getrandbits(32)
        child = os.fork()
        if child:
            self._workers.add(child)
            return
        status = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._born(until, seed).run()
            status = 0
        except BaseException as error:  # noqa: BLE001 - a child must never return into its parent's code
            self._journal.write("crashed", result=repr(error))
        finally:
            os._exit(status)

    def _born(self, until: float, seed: int) -> Worker:
        # A worker that is born while the store is down waits for it, as a supervisor would start it again.
        while True:
            try:
                return Worker(
                    self._url,
                    self._journal,
                    lease=self._fury.lease,
                    until=until,
                    seed=seed,
                    transaction=self._transaction,
                )
            except StoreUnavailable:
                time.sleep(0.02)

    def _wake_sleepers(self, now: float) -> None:
        for worker, until in list(self._stopped.items()):
            if now >= until:
                del self._stopped[worker]
                os.kill(worker, signal.SIGCONT)

    def _end(self, worker: int) -> None:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
        self._workers.discard(worker)
        self._stopped.pop(worker, None)
