"""A directory in SQLite and in PostgreSQL, with a clock that tests move."""

from datetime import UTC, datetime, timedelta

import pytest

from sameas.identity.normalize import normalize_context
from sameas.tenancy import ApiKeys, TenantDirectory, open_tables


class MovedClock:
    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        return self.now

    def move(self, **by):
        self.now += timedelta(**by)


@pytest.fixture
def clock():
    return MovedClock()


@pytest.fixture(scope="session")
def tenancy_postgres_url(postgres_server):
    """One database for all: each test has a tenant of its own, as in life."""
    postgres_server.start()
    yield postgres_server.create_database("tenancy")
    postgres_server.start()
    postgres_server.drop_database("tenancy")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "postgres":
        return request.getfixturevalue("tenancy_postgres_url")
    return f"sqlite:///{tmp_path / 'tenants.db'}"


@pytest.fixture
def database(url):
    database = open_tables(url)
    yield database
    database.close()


@pytest.fixture
def directory(database, clock):
    return TenantDirectory(database, clock=clock)


@pytest.fixture
def keys(database, clock):
    return ApiKeys(database, secret=b"of the deployment", clock=clock)


@pytest.fixture
def tenant(directory):
    return directory.bootstrap("Acme", service_id="setup")


@pytest.fixture
def ctx(tenant):
    return normalize_context(service_id="setup", tenant_id=tenant.tenant_id)
