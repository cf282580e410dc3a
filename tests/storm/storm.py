"""The storm itself: eight processes, a killer, sleepers that outlive their lease, and a store that is killed now and then."""

import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sameas import Engine, StoreUnavailable, open_store
from tests.storm.checker import Verdict, check
from tests.storm.journal import Journal
from tests.storm.transactions import SqlalchemyRows, SqliteRows, check_rows
from tests.storm.worker import Worker

LEASE = 0.4
# What a scheduler with more processes than cores may add before a waiter looks again.
GRACE = 0.25


class Storm:
    """`restart`, where given, kills the store and starts it again; `transaction` opens the caller's own transaction."""

    def __init__(
        self,
        url: str,
        *,
        seconds: float,
        processes: int = 8,
        restart: Callable[[], None] | None = None,
        restart_every: float = 2.0,
        transaction: SqliteRows | SqlalchemyRows | None = None,
        seed: int = 1,
    ) -> None:
        self._url = url
        self._seconds = seconds
        self._processes = processes
        self._restart = restart
        self._restart_every = restart_every
        self._transaction = transaction
        self._random = random.Random(seed)
        self._workers: set[int] = set()
        self._stopped: dict[int, float] = {}
        self.kills = self.stops = self.restarts = 0

    def run(self) -> Verdict:
        """Let it rage, then check."""
        with tempfile.TemporaryDirectory() as folder:
            journal = Journal(Path(folder, "journal"))
            ends_at = time.monotonic() + self._seconds
            try:
                self._rage(journal, ends_at)
            finally:
                self._end_all()
            with Engine(self._open_patiently()) as engine:
                verdict = check(journal.lines(), engine, lease=LEASE, grace=GRACE)
                if self._transaction is not None:
                    check_rows(self._transaction.rows(), engine, verdict)
            journal.close()
        return verdict

    def _rage(self, journal: Journal, ends_at: float) -> None:
        restart_at = time.monotonic() + self._restart_every
        while (now := time.monotonic()) < ends_at:
            while len(self._workers) < self._processes:
                self._fork(journal, ends_at)
            time.sleep(self._random.uniform(0.01, 0.04))
            self._wake_sleepers(now)
            victim = self._random.choice(sorted(self._workers))
            if self._random.random() < 0.15 and victim not in self._stopped:
                os.kill(victim, signal.SIGSTOP)
                self._stopped[victim] = now + LEASE * self._random.uniform(1.2, 2.0)
                self.stops += 1
            else:
                self._kill(victim)
                self.kills += 1
            if self._restart is not None and now >= restart_at:
                self._restart()
                self.restarts += 1
                restart_at = time.monotonic() + self._restart_every

    def _fork(self, journal: Journal, ends_at: float) -> None:
        seed = self._random.getrandbits(32)
        child = os.fork()
        if child:
            self._workers.add(child)
            return
        status = 1
        try:
            # A worker that is born while the store is down waits for it, as a supervisor would start it again.
            while True:
                try:
                    worker = Worker(
                        self._url, journal, lease=LEASE, until=ends_at, seed=seed, transaction=self._transaction
                    )
                    break
                except StoreUnavailable:
                    time.sleep(0.02)
            worker.run()
            status = 0
        except BaseException as error:  # noqa: BLE001 - a child must never return into its parent's code
            journal.write("crashed", result=repr(error))
        finally:
            os._exit(status)

    def _wake_sleepers(self, now: float) -> None:
        for worker, until in list(self._stopped.items()):
            if now >= until:
                del self._stopped[worker]
                os.kill(worker, signal.SIGCONT)

    def _kill(self, worker: int) -> None:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
        self._workers.discard(worker)
        self._stopped.pop(worker, None)

    def _end_all(self) -> None:
        for worker in list(self._workers):
            self._kill(worker)

    def _open_patiently(self) -> Any:
        deadline = time.monotonic() + 20
        while True:
            try:
                return open_store(self._url)
            except StoreUnavailable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
