"""`./run bench http [--quick] [--placement ...]`: every figure of the middleware, on a Redis of its own."""

import argparse
import os
from collections.abc import Mapping

from bench.http import in_process, served
from bench.http.memory import AT_MOST_BYTES, IN_FLIGHT, added_per_request
from bench.http.peers import peers_on
from bench.stores.page import _figures
from bench.stores.placement import PLACEMENTS, described, placed
from bench.stores.turns import Effort
from tests.servers.redis import RedisServer

FULL = Effort(rounds=5, turns=20, calls=40)
QUICK = Effort(rounds=5, turns=4, calls=20)


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(prog="./run bench http")
    parser.add_argument("--quick", action="store_true", help="few requests, to see that everything works")
    parser.add_argument(
        "--placement", choices=PLACEMENTS, default=PLACEMENTS[0], help="on which cores client and Redis run in process"
    )
    chosen = parser.parse_args(arguments)
    print(f"load before the run {os.getloadavg()[0]:.1f}; in process {described(chosen.placement)}\n")
    with RedisServer(appendonly="everysec") as server:
        with server.client() as client:
            version = client.info("server")["redis_version"]
        print(f"Redis {version}")
        if int(version.partition(".")[0]) < 7:
            print("the floor needs two commands here and is slower: for the targets, apt-get install redis-server")
        print()
        with placed(chosen.placement, server=server.pid):
            effort = QUICK if chosen.quick else FULL
            _show(in_process.figures(server.url, effort, redis_pid=server.pid))
            print("Peers, in process, beside the floor in their own process\n")
            print("\n".join(peers_on(server.url, rounds=2 * effort.rounds, calls=effort.turns * 10)) + "\n", flush=True)
        with served.servers(server.url) as addresses:
            show_served(addresses, quick=chosen.quick)
    added = added_per_request()
    verdict = "yes" if added <= AT_MOST_BYTES else "MISSED"
    print(
        f"memory added per request in flight, {IN_FLIGHT:,} of them: {added / 1_024:.1f} KB with its body "
        f"(at most {AT_MOST_BYTES // 1_024} KB: {verdict})"
    )


def show_served(addresses: Mapping[str, str], *, quick: bool) -> None:
    """What wrk measures, or what brings it."""
    rounds, seconds = (3, 1) if quick else (7, 2)
    try:
        _show(served.figures(addresses, rounds=rounds, seconds=seconds))
        _show(served.slow_readers(addresses, rounds=rounds, seconds=seconds))
    except served.WrkMissingError:
        print("uvicorn and wrk: not measured, wrk is not on this machine: run ./run services or install it\n")


def _show(tables) -> None:
    for title, figures in tables.items():
        print(f"{title}\n\n{_figures(figures)}\n", flush=True)
