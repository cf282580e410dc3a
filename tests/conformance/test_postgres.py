"""The PostgreSQL store keeps the contract: for threads, for tasks, and through a transaction pooler."""

import uuid

import psycopg
import pytest

from sameas.once.store import AsyncStore, Store
from sameas.stores.postgres import open_backend
from sameas.testing import Capabilities, StoreConformance


@pytest.fixture(scope="module")
def database(postgres_server):
    postgres_server.start()
    name = f"conformance_{uuid.uuid4().hex}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


class TestPostgres(StoreConformance):
    capabilities = Capabilities(movable_clock=True)
    # The server's clock goes on by itself too: a slow machine must do a step within a lease.
    lease = 5.0
    options = {"pool_size": 4}

    @pytest.fixture(autouse=True)
    def _opened(self, database):
        self.url = database
        super().setup_method()
        yield
        super().teardown_method()

    def setup_method(self):
        """The fixture does it, once it knows the server."""

    def teardown_method(self):
        """The same."""

    def open(self):
        self.backend = open_backend(self.url, **self.options)
        with psycopg.connect(self.url, prepare_threshold=None) as connection:
            connection.execute("DELETE FROM sameas_records")
        return self.driven_by(self.backend)

    def driven_by(self, backend):
        return Store(backend)

    def advance(self, seconds):
        self.backend.performer.skew += round(seconds * 1_000_000)


class TestAsyncPostgres(TestPostgres):
    def driven_by(self, backend):
        return AsyncStore(backend)


class TestPostgresWithoutNamedStatements(TestPostgres):
    options = {"pool_size": 4, "prepare_threshold": None}  # type: ignore[dict-item]


class TestPostgresThroughPgBouncer(TestPostgres):
    """The same, over connections that are somebody else's with every statement."""

    @pytest.fixture(autouse=True)
    def _opened(self, database, pgbouncer_server):
        self.url = pgbouncer_server.url_of(database)
        StoreConformance.setup_method(self)
        yield
        StoreConformance.teardown_method(self)


class TestAsyncPostgresThroughPgBouncer(TestPostgresThroughPgBouncer):
    def driven_by(self, backend):
        return AsyncStore(backend)
