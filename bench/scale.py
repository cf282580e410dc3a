"""Where the next limit is: a simulation of 1 to 1,000 workers with the times that the shared servers take, measured here.

    ./run bench scale [SECONDS OF WORK A RUN]

Each run visits the servers as the code does (`VISITS`), one visit after another, and works in between. A server does one
thing at a time, for as long as a visit takes of its processor, so that many workers queue at it: one that has several
processors does more. The simulation is held to what `bench.cluster` measures with 1, 2 and 4 workers; its own figures are
capacities of one server of each kind on this machine, not of yours.
"""

import heapq
import os
import statistics
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack

import redis

from bench.cluster import measured_throughput, processor_seconds
from sameas import Engine, open_store
from sameas.cluster.broker import RUN, Broker
from sameas.objects import open_objects
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer
from tests.servers.s3 import S3Server
from tests.servers.server import Server

WORKERS = (1, 2, 4, 10, 30, 100, 300, 1_000)
# How often a one-chunk run of two model calls goes to each server: claims and results of the run and of its calls; a message
# and its acknowledgement; the request, its look-ups and the result; live events.
VISITS: Mapping[str, int] = {"records": 8, "broker": 1, "objects": 12, "events": 2}
_THREADS = 4
_EACH = 800
_RUNS = 400


def main(work: str = "1.0") -> None:
    seconds = float(work)
    busy = measure()
    for name, took in busy.items():
        print(
            f"{name}: {1000 * took:.2f} ms a visit, {VISITS[name]} visits a run: at most {1 / (took * VISITS[name]):.0f} runs/s"
        )
    print(f"\nwork of {seconds:g} s a run, one run at a time a worker")
    for workers in WORKERS:
        rate, waited = simulate(workers, work=seconds, busy=busy)
        worst = max(waited, key=lambda name: waited[name])
        print(
            f"{workers:5d} workers: {rate:7.1f} runs/s, {100 * rate * seconds / workers:3.0f} % of ideal; longest queue at {worst}"
        )
    check(busy)


def check(busy: Mapping[str, float]) -> None:
    """Compare with what 1, 2 and 4 real workers did."""
    measured = {workers: measured_throughput(workers) for workers in (1, 2, 4)}
    # What a run takes beside the servers, from one worker.
    own = max(0.0, 1 / measured[1] - sum(took * VISITS[name] for name, took in busy.items()))
    for workers, rate in measured.items():
        simulated, _ = simulate(workers, work=own, busy=busy)
        print(
            f"{workers} workers: measured {rate:.2f} runs/s, simulated {simulated:.2f}, off by {100 * (simulated / rate - 1):+.0f} %"
        )


def simulate(workers: int, *, work: float, busy: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """Runs a second, and the seconds that were waited at each server in all."""
    visits = [name for name, count in VISITS.items() for _ in range(count)]
    pause = work / len(visits)
    free = dict.fromkeys(busy, 0.0)
    waited = dict.fromkeys(busy, 0.0)
    runs = max(_RUNS, 4 * workers)
    # When each worker goes to its next server, and which visit of its run that is.
    going = [(pause * number / workers, number, 0) for number in range(workers)]
    heapq.heapify(going)
    done, now = 0, 0.0
    while done < runs:
        now, worker, step = heapq.heappop(going)
        name = visits[step]
        begins = max(now, free[name])
        waited[name] += begins - now
        free[name] = begins + busy[name]
        step += 1
        if step == len(visits):
            done, step = done + 1, 0
        heapq.heappush(going, (free[name] + pause, worker, step))
    return done / now, waited


def measure() -> dict[str, float]:
    """Seconds of its processor that each shared server takes for a visit, with several clients at once."""
    with ExitStack() as stack:
        store = stack.enter_context(RedisServer(appendonly="always"))
        rabbitmq = stack.enter_context(RabbitMQServer())
        s3 = stack.enter_context(S3Server())
        engine = stack.enter_context(Engine(open_store(store.url)))
        broker = Broker(rabbitmq.url)
        stack.callback(broker.close)
        os.environ.update(s3.credentials)
        objects = open_objects(s3.url)
        client = redis.Redis.from_url(store.url)
        stack.callback(client.close)
        return {
            # A fresh call is two visits.
            "records": _busy(lambda number: engine.run(lambda _: number, scope="scale", key=str(number)), store) / 2,
            "broker": _busy(lambda number: broker.send(RUN, "", str(number), priority="batch"), rabbitmq),
            "objects": _busy(lambda number: objects.put(f"scale/{number}", b"x" * 2_000), s3),
            "events": _busy(lambda number: client.xadd("scale", {"n": number, "d": b"x" * 500}), store),
        }


def _busy(visit: Callable[[int], object], server: Server) -> float:
    """The median over rounds of the server's seconds for a visit, with several threads at it."""
    rounds = []
    for round_ in range(3):
        before = processor_seconds(server)
        threads = [
            threading.Thread(target=_visit_all, args=(visit, range(first, _EACH, _THREADS), round_))
            for first in range(_THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rounds.append((processor_seconds(server) - before) / _EACH)
    return statistics.median(rounds)


def _visit_all(visit: Callable[[int], object], numbers: range, round_: int) -> None:
    for number in numbers:
        visit(round_ * _EACH + number)
