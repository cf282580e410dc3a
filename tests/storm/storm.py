"""The storm itself: eight processes, a killer, sleepers that outlive their lease, and a store that is killed now and then.

The killer is a process of its own: workers die also while the store is down and while it starts again.
"""

import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sameas import Engine, StoreUnavailable, open_store
from tests.storm.checker import Verdict, check
from tests.storm.journal import Journal
from tests.storm.killer import KILLED, STOPPED, Fury, Killer
from tests.storm.transactions import SqlalchemyRows, SqliteRows, check_rows

LEASE = 0.4
# What a scheduler with more processes than cores may add before a waiter looks again.
GRACE = 0.25
# How often somebody looks whether the storm is over, in seconds.
LOOK_EVERY = 0.02


class Storm:
    """`restart`, where given, kills the store and starts it again; `transaction` opens the caller's own transaction.

    It lasts for `seconds`, and on until `kills_at_least` workers were killed, but at most for `seconds_at_most`.
    """

    def __init__(
        self,
        url: str,
        *,
        seconds: float,
        processes: int = 8,
        kills_at_least: int = 0,
        seconds_at_most: float | None = None,
        restart: Callable[[], Any] | None = None,
        restart_every: float = 2.0,
        transaction: SqliteRows | SqlalchemyRows | None = None,
        seed: int = 1,
    ) -> None:
        self._url = url
        self._fury = Fury(processes, LEASE, seconds, kills_at_least, seconds_at_most or seconds)
        self._restart = restart
        self._restart_every = restart_every
        self._transaction = transaction
        self._seed = seed
        self.kills = self.stops = self.restarts = 0

    def run(self) -> Verdict:
        """Let it rage, then check."""
        with tempfile.TemporaryDirectory() as folder:
            journal = Journal(Path(folder, "journal"))
            killer = Killer(self._url, journal, fury=self._fury, seed=self._seed, transaction=self._transaction)
            self._weather(killer.start())
            lines = journal.lines()
            blows = Counter(line.what for line in lines)
            self.kills, self.stops = blows[KILLED], blows[STOPPED]
            with Engine(self._open_patiently()) as engine:
                verdict = check(lines, engine, lease=LEASE, grace=GRACE)
                if self._transaction is not None:
                    check_rows(self._transaction.rows(), engine, verdict)
            journal.close()
        return verdict

    def _weather(self, killer: int) -> None:
        """Restart the store from time to time until the killer has had enough."""
        restart_at = time.monotonic() + self._restart_every
        ended = 0
        try:
            while not ended:
                time.sleep(LOOK_EVERY)
                ended, _ = os.waitpid(killer, os.WNOHANG)
                if not ended and self._restart is not None and time.monotonic() >= restart_at:
                    self._restart()
                    self.restarts += 1
                    restart_at = time.monotonic() + self._restart_every
        finally:
            if not ended:
                os.kill(killer, signal.SIGTERM)
                os.waitpid(killer, 0)

    def _open_patiently(self) -> Any:
        deadline = time.monotonic() + 20
        while True:
            try:
                return open_store(self._url)
            except StoreUnavailable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
