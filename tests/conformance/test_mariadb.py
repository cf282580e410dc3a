"""The store on MariaDB keeps the contract, for threads and for tasks."""

import uuid

import pytest
import sqlalchemy

from sameas.once.store import AsyncStore, Store
from sameas.stores.sqlalchemy import open_backend
from sameas.testing import Capabilities, StoreConformance


@pytest.fixture(scope="module")
def database(mariadb_server):
    mariadb_server.start()
    name = f"conformance_{uuid.uuid4().hex}"
    yield mariadb_server.create_database(name)
    mariadb_server.drop_database(name)


class TestMariaDB(StoreConformance):
    capabilities = Capabilities(movable_clock=True)
    # The server's clock goes on by itself too: a slow machine must do a step within a lease.
    lease = 5.0

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
        self.backend = open_backend(self.url, pool_size=4)
        engine = sqlalchemy.create_engine(self.url)
        with engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM sameas_records")
        engine.dispose()
        return self.driven_by(self.backend)

    def driven_by(self, backend):
        return Store(backend)

    def advance(self, seconds):
        self.backend.performer.skew += round(seconds * 1_000_000)


class TestAsyncMariaDB(TestMariaDB):
    def driven_by(self, backend):
        return AsyncStore(backend)
