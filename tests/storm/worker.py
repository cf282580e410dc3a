"""One process of the storm: asks for keys that others ask for too, until it is killed."""

import os
import random
import sqlite3
import time
from collections.abc import Callable
from typing import Any

import sqlalchemy.exc

from sameas import Engine, InProgress, OutcomeUnknown, Policy, StoreUnavailable, Superseded, open_store
from sameas.once.context import Context
from tests.storm.journal import Journal

SCOPE = "storm"
# What the caller's own connection may raise while the database is locked, down or starting.
FOREIGN = (sqlite3.OperationalError, sqlalchemy.exc.DBAPIError)
# Every window brings new keys, and workers ask for those of the last few windows: new work and replays mix.
WINDOW = 0.2
KEYS_PER_WINDOW = 6
WINDOWS_ASKED = 4


class Worker:
    """Runs until it is killed or `until` is reached. `transaction` puts the effect into the record's own transaction."""

    def __init__(
        self,
        url: str,
        journal: Journal,
        *,
        lease: float,
        until: float,
        seed: int,
        transaction: Callable[[], Any] | None,
    ) -> None:
        self._engine = Engine(open_store(url), policy=Policy(lease=lease, wait_for=20 * lease, hand_in_for=2 * lease))
        self._journal = journal
        self._until = until
        self._random = random.Random(seed)
        self._transaction = transaction

    def run(self) -> None:
        while time.monotonic() < self._until:
            key = self._some_key()
            call = os.urandom(6).hex()
            self._journal.write("asked", key=key, call=call)
            try:
                record = self._call(key, call)
            except (StoreUnavailable, InProgress, Superseded, OutcomeUnknown, *FOREIGN) as error:
                self._journal.write("refused", key=key, call=call, result=type(error).__name__)
                time.sleep(0.005)
                continue
            how = "replayed" if record.was_replay else "accepted" if record.stored else "unstored"
            self._journal.write(how, key=key, call=call, result=record.result, attempt=record.attempt)

    def _call(self, key: str, call: str) -> Any:
        def work(context: Context) -> str:
            self._journal.write("working", key=key, call=call, attempt=context.attempt)
            time.sleep(self._random.uniform(0, 0.02))
            self._journal.write("effect", key=key, call=call, result=context.child_key("mail"))
            time.sleep(self._random.uniform(0, 0.01))
            return f"{os.getpid()}-{os.urandom(6).hex()}"

        if self._transaction is None:
            return self._engine.record(work, scope=SCOPE, key=key)
        with self._transaction() as (connection, insert):

            def with_row(context: Context) -> str:
                result = work(context)
                insert(key, result)
                return result

            return self._engine.record(with_row, scope=SCOPE, key=key, connection=connection)

    def _some_key(self) -> str:
        window = int(time.monotonic() / WINDOW) - self._random.randrange(WINDOWS_ASKED)
        return f"{window}-{self._random.randrange(KEYS_PER_WINDOW)}"
