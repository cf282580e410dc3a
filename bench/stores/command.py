"""`./run bench stores [--quick] [--growth] [--placement ...] [--output FILE]`: every figure of the stores, on servers of its own.

A quick run is to see that everything works; it writes a page only where it is told to, so that it cannot replace
figures that took longer.
"""

import argparse
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psycopg
import redis

from bench.growth_postgres import ALL, FEW, MANY, SERVER_OPTIONS, growth
from bench.peers import peers_on
from bench.stores.on_postgres import postgres_figures
from bench.stores.on_redis import redis_figures
from bench.stores.ours import RESULT
from bench.stores.page import Circumstances, page
from bench.stores.placement import PLACEMENTS, described, placed
from bench.stores.turns import Effort
from bench.waiters import waiters
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
FULL = Effort(rounds=5, turns=100, calls=5)
QUICK = Effort(rounds=5, turns=4, calls=10)
QUICK_GROWTH = 10 * FEW


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(prog="./run bench stores")
    parser.add_argument("--quick", action="store_true", help="few calls, to see that everything works; no page")
    parser.add_argument("--growth", action="store_true", help=f"fill PostgreSQL with {ALL:,} records: takes minutes")
    parser.add_argument(
        "--placement", choices=PLACEMENTS, default=PLACEMENTS[0], help="on which cores clients and server run"
    )
    parser.add_argument("--output", type=Path, help="the page to write instead of docs/benchmarks.md")
    chosen = parser.parse_args(arguments)
    effort = QUICK if chosen.quick else FULL
    many = ALL if chosen.growth else QUICK_GROWTH if chosen.quick else MANY
    busy = f"{os.getloadavg()[0]:.1f}"

    with RedisServer(appendonly="everysec") as server, peers_on(server.url, RESULT) as peers:
        with placed(chosen.placement, server=server.pid, clients=peers.processes):
            tables = redis_figures(server.url, effort, peers)
        served = waiters(server.url)
        versions = {"Redis": _redis_version(server)}
    with PostgresServer(options=SERVER_OPTIONS) as database:
        with placed(chosen.placement, server=database.pid):
            tables |= postgres_figures(database.create_database("bench"), effort)
        grown = growth(database, many=many, placement=chosen.placement)
        versions["PostgreSQL"] = _postgres_version(database)

    versions |= {
        "Python": platform.python_version(),
        "redis-py, hiredis": f"{redis.__version__}, {version('hiredis')}",
        "psycopg": f"{psycopg.__version__} ({psycopg.pq.__impl__})",
        "peers": ", ".join(f"{name} {number}" for name, number in peers.versions.items()) or "not measured",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "cores": str(os.cpu_count()),
        "placement": described(chosen.placement),
        "load before the run": busy,
    }
    options = "".join(f" --{name}" for name in ("quick", "growth") if getattr(chosen, name))
    if chosen.placement != PLACEMENTS[0]:
        options += f" --placement {chosen.placement}"
    about = Circumstances(f"./run bench stores{options}", versions, effort.rounds, effort.turns, effort.calls)
    text = page(about, tables, peers.missing, served, grown)
    print(text)
    output = chosen.output or (None if chosen.quick else PAGE)
    if output is not None:
        output.write_text(text)


def _redis_version(server: RedisServer) -> str:
    with server.client() as client:
        return str(client.info("server")["redis_version"])


def _postgres_version(server: PostgresServer) -> str:
    with psycopg.connect(server.url) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    assert row is not None
    return str(row[0])
