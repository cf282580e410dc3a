"""The Redis store keeps the contract, for threads and for tasks, on one server and on a cluster."""

import pytest

from sameas.once.store import AsyncStore, Store
from sameas.stores.redis import open_backend
from sameas.testing import Capabilities, StoreConformance
from tests.servers.program import program_or_skip
from tests.servers.redis_cluster import RedisCluster


class TestRedis(StoreConformance):
    capabilities = Capabilities(movable_clock=True)
    # The server's clock goes on by itself too: a slow machine must do a step within a lease.
    lease = 5.0

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def server(cls, redis_server):
        cls.redis = redis_server

    def open(self):
        self.redis.start()
        self.redis.flush()
        self.backend = open_backend(self.redis.url)
        return self.driven_by(self.backend)

    def driven_by(self, backend):
        return Store(backend)

    def advance(self, seconds):
        self.backend.skew_micros += round(seconds * 1_000_000)


class TestAsyncRedis(TestRedis):
    def driven_by(self, backend):
        return AsyncStore(backend)


class TestRedisCluster(TestRedis):
    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def server(cls):
        with program_or_skip():
            cluster = RedisCluster(appendonly="everysec")
        with cluster:
            cls.cluster = cluster
            yield

    def open(self):
        for node in self.cluster.nodes:
            node.flush()
        self.backend = open_backend(self.cluster.url.replace("redis://", "redis+cluster://"), timeout=10)
        return self.driven_by(self.backend)


class TestAsyncRedisCluster(TestRedisCluster):
    def driven_by(self, backend):
        return AsyncStore(backend)
