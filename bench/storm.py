"""`./run bench storm --seconds 60 [--store sqlite|redis|postgres|mariadb]`: kills, stops and restarts, then a reckoning."""

import argparse
import tempfile

from tests.servers.mariadb import MariaDBServer
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer
from tests.storm.storm import Storm
from tests.storm.transactions import SqlalchemyRows, SqliteRows

STORES = ("sqlite", "redis", "postgres", "mariadb")


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(prog="./run bench storm")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--store", choices=STORES, action="append")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    for store in chosen.store or STORES:
        {"sqlite": sqlite, "redis": redis, "postgres": postgres, "mariadb": mariadb}[store](chosen.seconds, chosen.seed)


def sqlite(seconds: float, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        report("SQLite", Storm(f"sqlite:///{folder}/records.db", seconds=seconds, seed=seed))
    with tempfile.TemporaryDirectory() as folder:
        rows = SqliteRows(f"{folder}/records.db")
        report(
            "SQLite, one transaction",
            Storm(f"sqlite:///{folder}/records.db", seconds=seconds, seed=seed, transaction=rows),
        )


def redis(seconds: float, seed: int) -> None:
    with RedisServer(appendonly="always") as server:
        report("Redis", Storm(server.url, seconds=seconds, seed=seed, restart=server.kill_and_restart))


def postgres(seconds: float, seed: int) -> None:
    with PostgresServer() as server:

        def restart() -> None:
            server.immediate_shutdown()
            server.start()

        url = server.create_database("lease")
        report("PostgreSQL", Storm(url, seconds=seconds, seed=seed, restart=restart))
        url = server.create_database("transaction")
        rows = SqlalchemyRows(url.replace("postgresql://", "postgresql+psycopg://"))
        report("PostgreSQL, one transaction", Storm(url, seconds=seconds, seed=seed, restart=restart, transaction=rows))


def mariadb(seconds: float, seed: int) -> None:
    with MariaDBServer() as server:
        url = server.create_database("lease")
        report("MariaDB", Storm(url, seconds=seconds, seed=seed, restart=server.kill_and_restart))
        url = server.create_database("transaction")
        report(
            "MariaDB, one transaction",
            Storm(url, seconds=seconds, seed=seed, restart=server.kill_and_restart, transaction=SqlalchemyRows(url)),
        )


def report(name: str, storm: Storm) -> None:
    verdict = storm.run()
    print(
        f"{name}: {storm.kills} kills, {storm.stops} stops, {storm.restarts} restarts of the store; {verdict}",
        flush=True,
    )


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
