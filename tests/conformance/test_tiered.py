"""A tier in front of a store changes nothing of its contract."""

import time

from sameas.stores.tiered import TieredBackend
from tests.conformance.test_memory import TestAsyncMemory as AsyncMemory
from tests.conformance.test_memory import TestMemory as Memory
from tests.conformance.test_redis import TestAsyncRedis as AsyncRedis
from tests.conformance.test_redis import TestRedis as Redis
from tests.conformance.test_sqlite import TestAsyncSqlite as AsyncSqlite
from tests.conformance.test_sqlite import TestSqlite as Sqlite


class Tiered:
    """The suite of the store behind the tier, whose timer moves with the store's clock."""

    moved = 0.0

    def open(self):
        store = super().open()
        store.backend = TieredBackend(store.backend, timer=self.timer, clock=lambda: 0)
        return store

    def timer(self):
        return time.monotonic() + self.moved

    def advance(self, seconds):
        self.moved += seconds
        super().advance(seconds)


class TestTieredMemory(Tiered, Memory):
    pass


class TestAsyncTieredMemory(Tiered, AsyncMemory):
    pass


class TestTieredSqlite(Tiered, Sqlite):
    pass


class TestAsyncTieredSqlite(Tiered, AsyncSqlite):
    pass


class TestTieredRedis(Tiered, Redis):
    pass


class TestAsyncTieredRedis(Tiered, AsyncRedis):
    pass


del Memory, AsyncMemory, Sqlite, AsyncSqlite, Redis, AsyncRedis
