"""Pytest fixtures for real servers: one of each for the whole run, and a clean address for each test.

Load it with `pytest_plugins = ["tests.servers.fixtures"]`. A missing program skips on a laptop, fails in CI.
"""

import uuid
import warnings
from collections.abc import Iterator

import pytest

from tests.servers.mariadb import MariaDBServer
from tests.servers.model_server import ModelServer
from tests.servers.pgbouncer import PgBouncerServer
from tests.servers.postgres import PostgresServer
from tests.servers.program import program_or_skip
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.real_model import RealModelServer
from tests.servers.redis import RedisServer


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A Redis that a strict store accepts: it evicts nothing and syncs every write."""
    with program_or_skip():
        server = RedisServer(appendonly="always")
    with server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL that a strict store accepts."""
    with program_or_skip():
        server = PostgresServer()
    with server:
        yield server


@pytest.fixture(scope="session")
def pgbouncer_server(postgres_server: PostgresServer) -> Iterator[PgBouncerServer]:
    """A PgBouncer in transaction mode before that PostgreSQL."""
    with program_or_skip():
        server = PgBouncerServer(postgres_server)
    with server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDBServer]:
    """A MariaDB that a strict store accepts."""
    with program_or_skip():
        server = MariaDBServer()
    with server:
        yield server


@pytest.fixture(scope="session")
def rabbitmq_server() -> Iterator[RabbitMQServer]:
    """A RabbitMQ; tests choose queue names of their own."""
    with program_or_skip():
        server = RabbitMQServer()
    with server:
        yield server


@pytest.fixture(scope="session")
def real_model_server() -> Iterator[RealModelServer]:
    """A real language model, with one thread and a key."""
    with program_or_skip():
        server = RealModelServer(api_key="key-of-the-real-model")
    with server:
        yield server


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """A scripted language model that only this test uses."""
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="session")
def providers() -> None:
    """The providers' packages, loaded: their sources, compiled for the first time, warn of themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import anthropic  # noqa: F401
        import google.genai  # noqa: F401
        import openai  # noqa: F401


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """The address of an empty Redis."""
    redis_server.start()
    redis_server.flush()
    return redis_server.url


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a database that only this test uses."""
    postgres_server.start()
    name = f"test_{uuid.uuid4().hex}"
    yield postgres_server.create_database(name)
    postgres_server.start()
    postgres_server.drop_database(name)


@pytest.fixture
def mariadb_url(mariadb_server: MariaDBServer) -> Iterator[str]:
    """The address of a database that only this test uses."""
    mariadb_server.start()
    name = f"test_{uuid.uuid4().hex}"
    yield mariadb_server.create_database(name)
    mariadb_server.start()
    mariadb_server.drop_database(name)
