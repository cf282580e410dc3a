"""Five seconds of storm per store. The long form is `./run bench storm --seconds 60`."""

import pytest

from sameas import Engine, open_store
from tests.servers.fixtures import program_or_skip
from tests.servers.mariadb import MariaDBServer
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer
from tests.storm.storm import Storm
from tests.storm.transactions import SqlalchemyRows, SqliteRows

SECONDS = 5
# A machine with other things to do is slower: the storm goes on until it has seen so many, within a bound.
KILLS = 21
SECONDS_AT_MOST = 60


def weathered(url, **how):
    with Engine(open_store(url)) as engine:
        engine.run(lambda context: "the tables are there", scope="before", key="the storm")
    storm = Storm(url, seconds=SECONDS, kills_at_least=KILLS, seconds_at_most=SECONDS_AT_MOST, **how)
    verdict = storm.run()
    print(f"{storm.kills} kills, {storm.stops} stops, {storm.restarts} restarts of the store; {verdict}")
    assert verdict.broken == {}
    assert storm.kills >= KILLS
    assert verdict.keys > 20
    return storm


def test_sqlite_keeps_the_promise(tmp_path):
    weathered(f"sqlite:///{tmp_path}/records.db")


def test_sqlite_rows_and_records_agree(tmp_path):
    path = f"{tmp_path}/records.db"
    weathered(f"sqlite:///{path}", transaction=SqliteRows(path))


def test_redis_keeps_the_promise_while_it_is_killed():
    with program_or_skip():
        server = RedisServer(appendonly="always")
    with server:
        assert weathered(server.url, restart=server.kill_and_restart).restarts


def test_postgres_keeps_the_promise_while_it_is_shut_down_at_once():
    with program_or_skip():
        server = PostgresServer()

    def restart():
        server.immediate_shutdown()
        server.start()

    with server:
        assert weathered(server.create_database("storm"), restart=restart).restarts


def test_mariadb_keeps_the_promise_while_it_is_killed():
    with program_or_skip():
        server = MariaDBServer()
    with server:
        assert weathered(server.create_database("storm"), restart=server.kill_and_restart).restarts


@pytest.mark.parametrize("kind", [PostgresServer, MariaDBServer])
def test_rows_and_records_on_a_server_agree(kind):
    with program_or_skip():
        server = kind()
    with server:
        url = server.create_database("storm")
        rows = SqlalchemyRows(url.replace("postgresql://", "postgresql+psycopg://"))
        weathered(url, transaction=rows, restart=server.kill_and_restart)
