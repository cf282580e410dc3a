"""The SQLite store keeps the contract, for threads and for tasks."""

import tempfile
from pathlib import Path

from sameas.once.store import AsyncStore, Store
from sameas.stores.sqlite import SqliteBackend, SqlitePerformer
from sameas.testing import Capabilities, MovableClock, StoreConformance


class TestSqlite(StoreConformance):
    capabilities = Capabilities(movable_clock=True)

    def open(self):
        self.clock = MovableClock()
        self.folder = tempfile.TemporaryDirectory()
        performer = SqlitePerformer(Path(self.folder.name, "records.db"), clock=self.clock, synchronous="OFF")
        return self.driven_by(SqliteBackend(performer, dialect="sqlite"))

    def driven_by(self, backend):
        return Store(backend)

    def advance(self, seconds):
        self.clock.advance(seconds)

    def teardown_method(self):
        super().teardown_method()
        self.folder.cleanup()


class TestAsyncSqlite(TestSqlite):
    def driven_by(self, backend):
        return AsyncStore(backend)
