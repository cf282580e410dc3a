"""Several machines: how throughput grows with workers, what a run costs beyond its work, equal documents that cost once,
and limits that several nodes share.

    ./run bench cluster                        everything
    ./run bench cluster growth|cost|word       throughput; processor time; how soon word reaches another node
    ./run bench cluster limits [SECONDS]       the shared limits of 4 nodes, in windows of 12 s (the long form has 60)
    ./run bench cluster many [DOCUMENTS]       equal documents (1,500; the long form has 10,000), and the API while they wait

Model calls take a second and workers ask one at a time, so that the machines wait and the processor of this one is
enough. Processor time is that of every process together (API node, workers, broker, Redis, PostgreSQL, S3), with the time
that the same texts take in one process subtracted.
"""

import asyncio
import http.client
import itertools
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from random import Random

import psutil

from bench.limits import AT_LEAST, SCHEMA, Arrived, served, verdict
from bench.word import word
from sameas.llm.account import WINDOW_SECONDS, RateLimits
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.models import Ask, Message, open_model
from sameas.llm.redis_account import RedisAccount
from sameas.llm.supervisor import RequestSupervisor
from sameas.stores.redis import open_backend
from tests.integration.model_path import ORACLE, sentence
from tests.servers.model_script import Call, says
from tests.servers.redis import RedisServer
from tests.servers.server import Server
from tests.storm.cluster_storm import Machines
from tests.unit.server.house import TURTLE

# The lease of the product, and not of storms, after which everything is looked for.
_LEASE = {"SAMEAS_LEASE": "30"}
_SLOW = {"SAMEAS_MAX_RUNS": "1", "SAMEAS_MODEL_CONCURRENCY": "1000", **_LEASE}
_LATENCY = 1.0
_EACH = 12
_IDLE = 5.0
_YIELDS = 14
# Seconds of a call while the queue fills, and how many documents come when it is full.
_FILLING_LATENCY = 5.0
_WHILE_FULL = 300


def main(part: str = "", size: str = "") -> None:
    parts = {
        "limits": lambda: shared_limits(window=float(size or "12")),
        "growth": growth,
        "cost": cost_of_a_run,
        "word": lambda: [word(records) for records in ("redis", "postgres")],
        "many": lambda: many(int(size or "1500")),
    }
    for name, measure in parts.items():
        if part in ("", name):
            measure()


def growth() -> None:
    """How throughput grows with workers."""
    rates = {workers: measured_throughput(workers) for workers in (1, 2, 4)}
    for workers, rate in rates.items():
        print(f"{workers} workers, calls of {_LATENCY:g} s: {rate:.2f} runs/s, {rate / rates[1]:.2f}x of one")
    print(f"4 workers against 1: {rates[4] / rates[1]:.2f}x (at least 3.6x){verdict(rates[4] >= 3.6 * rates[1])}")


def measured_throughput(workers: int) -> float:
    """Runs a second of so many workers that each do one run of two calls at a time."""

    def slow(call: Call) -> object:
        return says(ORACLE(call), latency=_LATENCY / 2)

    with ExitStack() as stack:
        machines = Machines(stack, workers=workers, broker="rabbitmq", settings=_SLOW)
        machines.model.rescript(slow)
        count = _EACH * workers
        # The first run of a worker loads what the others find loaded.
        _ask_all(machines, [f"{sentence(9_000 + number)} Warm." for number in range(2 * workers)])
        began = time.monotonic()
        _ask_all(machines, [sentence(number) for number in range(count)])
        return count / (time.monotonic() - began)


def cost_of_a_run(count: int = 300) -> None:
    """Processor time of a one-chunk run over the cluster, beyond what the work itself takes in one process."""
    with ExitStack() as stack:
        machines = Machines(stack, workers=1, broker="rabbitmq", settings={"SAMEAS_EXTRACTOR": "lexicon", **_LEASE})
        texts = [f"{sentence(number)} Cost." for number in range(count)]
        _ask_all(machines, [f"{text} Warm." for text in texts[:20]], model=False)
        idle = sum(_spent_meanwhile(machines, lambda: time.sleep(_IDLE)).values()) / _IDLE
        began = time.monotonic()
        each = _spent_meanwhile(machines, lambda: _ask_all(machines, texts, model=False))
        waited = idle * (time.monotonic() - began)
    spent = sum(each.values())
    alone = _alone(texts)
    print(
        f"processor time of a one-chunk run: {1000 * spent / count:.1f} ms over the cluster, "
        f"{1000 * alone / count:.1f} ms alone; beyond the work {1000 * (spent - alone) / count:.1f} ms (12); "
        f"without what idle processes take {1000 * (spent - waited - alone) / count:.1f} ms; "
        + ", ".join(f"{name} {1000 * took / count:.1f}" for name, took in each.items())
    )


def many(documents: int) -> None:
    """Small documents with 30 % duplicates: calls equal the distinct ones; how long the API takes while they wait."""

    def slow(call: Call) -> object:
        return says(ORACLE(call), latency=_FILLING_LATENCY)

    distinct = documents * 7 // 10
    with ExitStack() as stack:
        machines = Machines(stack, workers=2, broker="rabbitmq", settings={"SAMEAS_MAX_RUNS": "16", **_LEASE})
        machines.model.rescript(ORACLE)
        # A node loads a provider's package before its first answer.
        _ask_all(machines, [f"{sentence(number)} Warm." for number in range(8)])
        # Of these machines each has processors of its own; here workers would take them from the nodes that are measured.
        for process in (one for worker in machines.workers for one in _tree(worker.pid)):
            process.nice(process.nice() + _YIELDS)
        calls_before = len(machines.model.calls)
        # The queue fills until everything is accepted; then it is worked off.
        machines.model.rescript(slow)
        began = time.monotonic()
        # In a process of their own: the model's server is in this one.
        command = [sys.executable, "-m", "bench.cluster", "clients", *(node.url for node in machines.nodes)]
        clients = stack.enter_context(
            subprocess.Popen([*command, str(documents)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        )
        stack.callback(clients.kill)
        assert clients.stdout is not None
        assert clients.stdin is not None
        keys = json.loads(clients.stdout.readline())
        accepted_after, waited = time.monotonic() - began, _promised(machines)
        before = _processor_time(machines)
        clients.stdin.write("and now\n")
        clients.stdin.flush()
        while_full = json.loads(clients.stdout.readline())
        spent = {kind: seconds - before[kind] for kind, seconds in _processor_time(machines).items()}
        machines.model.rescript(ORACLE)
        while _promised(machines):
            time.sleep(1.0)
        seconds = time.monotonic() - began
        calls = len(machines.model.calls) - calls_before
    new = distinct + _WHILE_FULL
    print(
        f"{documents} documents, {distinct} of them distinct, and {_WHILE_FULL} more: {keys} and {_WHILE_FULL} runs, {calls} "
        f"model calls ({2 * new} are two for each){verdict(calls == 2 * new)}; accepted in {accepted_after:.0f} s, done "
        f"in {seconds:.0f} s"
    )
    print(f"API while {waited} runs wait:")
    for what, took in while_full.items():
        p99 = statistics.quantiles(took, n=100)[98]
        print(
            f"  {what:<22} p99 {1000 * p99:.0f} ms (150), median {1000 * statistics.median(took):.0f} ms of {len(took)}"
        )
    print("  processor time meanwhile: " + ", ".join(f"{name} {took:.1f} s" for name, took in spent.items()))


def _accept(urls: Sequence[str], documents: int) -> None:
    """Clients of the nodes: send the documents and print how many keys there were; when told so, send more and ask how
    runs stand, and print how long the answers took.
    """
    distinct = documents * 7 // 10
    keys: list[str] = []
    took: dict[str, list[float]] = {"a new document": [], "one that waits already": [], "how a run stands": []}
    lock = threading.Lock()

    def post(connection: http.client.HTTPConnection, number: int) -> str:
        body = {"text": sentence(number), "ontologyId": "company", "extractionParams": {"extractor": "model"}}
        headers = {"Content-Type": "application/json", "Prefer": "respond-async"}
        connection.request("POST", "/api/v1/extract", json.dumps(body), headers)
        reply = connection.getresponse()
        return str(json.loads(reply.read())["idempotencyKey"])

    def client(url: str, numbers: Iterator[int], *, is_timed: bool) -> None:
        connection, random = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60.0), Random(url)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            began = time.perf_counter()
            key = post(connection, number)
            seconds = time.perf_counter() - began
            if not is_timed:
                with lock:
                    keys.append(key)
                continue
            took["a new document" if number >= documents else "one that waits already"].append(seconds)
            began = time.perf_counter()
            connection.request("GET", f"/api/v1/runs/{random.choice(keys)}")
            connection.getresponse().read()
            took["how a run stands"].append(time.perf_counter() - began)

    def all_clients(numbers: Iterable[int], *, is_timed: bool) -> None:
        queue = iter(numbers)
        threads = [
            threading.Thread(target=client, args=(url, queue), kwargs={"is_timed": is_timed}) for url in (*urls, *urls)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    all_clients((number % distinct for number in range(documents)), is_timed=False)
    print(len(set(keys)), flush=True)
    sys.stdin.readline()
    # Every other one is new.
    more = chain.from_iterable((documents + number, distinct - 1 - number % distinct) for number in range(_WHILE_FULL))
    all_clients(more, is_timed=True)
    print(json.dumps(took), flush=True)


def _promised(machines: Machines) -> int:
    """Runs that were accepted and have not ended."""
    return sum(1 for path in (machines.s3.folder / "buckets").glob("*/objects/requests/*/*") if path.is_file())


def shared_limits(*, nodes: int = 4, window: float = 12.0, windows: int = 4, limit: int = 120) -> None:
    """The requests of several nodes under pressure, counted where they arrive: never above the limit, and how much of it."""
    with (
        RedisServer(appendonly="always") as redis,
        served(window / WINDOW_SECONDS) as (address, told, tell),
        ExitStack() as stack,
    ):
        asking = [
            stack.enter_context(
                subprocess.Popen([sys.executable, "-m", "bench.cluster", redis.url, address, str(window), str(limit)])
            )
            for _ in range(nodes)
        ]
        stack.callback(lambda: [process.kill() for process in asking])
        # Starting takes as long as a busy machine needs; what counts is between the first call and the last.
        time.sleep(5.0 + windows * window)
        for process in asking:
            process.kill()
        tell.write("enough\n")
        tell.flush()
        times = sorted(Arrived(*one).at for one in json.loads(told.readline()))
    highest = max(bisect_left(times, at + window) - number for number, at in enumerate(times))
    # Whole windows: what came before the first call of the last, over the time until then.
    last = (len(times) - 1) // limit * limit
    share = last / limit / ((times[last] - times[0]) / window)
    print(
        f"{nodes} nodes share {limit} requests in {window:g} s: {len(times)} calls, at most {highest} in any window at "
        f"the server{verdict(highest <= limit)}, {share:.1%} used{verdict(share >= AT_LEAST)}"
    )


async def _press(redis: str, address: str, window: float, limit: int) -> None:
    """One node: asks for more than it is allowed, until it is killed."""
    limits = RateLimits(requests_per_minute=limit, tokens_per_minute=10**9, max_concurrent=30)
    account = RedisAccount(open_backend(redis), limits, account="bench", window=window)
    supervisor = RequestSupervisor(open_model(address), limiter=CentralRateLimiterService(account=account))
    numbers = itertools.count(os.getpid() * 10**6)

    async def ask_on() -> None:
        while True:
            message = Message("user", f"{next(numbers)}")
            await supervisor.ask(
                "entity_extraction",
                Ask(messages=(message,), schema=SCHEMA, schema_name="reply", max_output_tokens=5),
            )

    await asyncio.gather(*(ask_on() for _ in range(20)))


def _ask_all(machines: Machines, texts: list[str], *, model: bool = True) -> None:
    params = {"extractor": "model"} if model else {"extractor": "lexicon"}

    def ask(text: str) -> None:
        body = {"text": text, "ontologyId": "company", "extractionParams": params}
        node = machines.nodes[hash(text) % len(machines.nodes)]
        status, said = node.ask("POST", "/api/v1/extract", body, within=600.0)
        assert (status, said["status"]) == (200, "complete"), said

    threads = [threading.Thread(target=ask, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _spent_meanwhile(machines: Machines, work: Callable[[], object]) -> dict[str, float]:
    before = _processor_time(machines)
    work()
    return {kind: seconds - before[kind] for kind, seconds in _processor_time(machines).items()}


def _processor_time(machines: Machines) -> dict[str, float]:
    """Seconds by kind of process, those that they started included."""
    spent: dict[str, float] = {}
    for kind, servers in {
        "API": machines.nodes,
        "workers": machines.workers,
        "broker": [machines.broker],
        "Redis": [machines.redis],
        "PostgreSQL": [machines.postgres],
        "S3": [machines.s3],
    }.items():
        spent[kind] = sum(map(processor_seconds, servers))
    return spent


def processor_seconds(server: Server) -> float:
    """What a server has taken, with the processes that it started."""
    return sum(sum(one.cpu_times()[:2]) for one in _tree(server.pid))


def _tree(pid: int) -> list[psutil.Process]:
    first = psutil.Process(pid)
    return [first, *first.children(recursive=True)]


def _alone(texts: list[str]) -> float:
    """Processor time of the same texts in one process, with SQLite and folders."""
    import tempfile

    from sameas import open_async_store
    from sameas.extraction.extractors.lexicon import LexiconExtractor
    from sameas.extraction.runs.service import ExtractionService
    from sameas.ontology.index import OntologyIndex
    from sameas.ontology.load import read_ontology

    ontology = read_ontology(TURTLE, extension=".ttl")
    extractor = LexiconExtractor(OntologyIndex(ontology))

    async def work(home: Path) -> float:
        async with open_async_store(f"sqlite:///{home}/records.db") as store:
            service = ExtractionService(home=home, store=store)
            await service.extract(f"{texts[0]} Warm.", ontology=ontology, extractor=extractor)
            before = time.process_time()
            for text in texts:
                await service.extract(text, ontology=ontology, extractor=extractor)
            return time.process_time() - before

    with tempfile.TemporaryDirectory() as home:
        return asyncio.run(work(Path(home)))


if __name__ == "__main__" and sys.argv[1] == "clients":
    _accept(sys.argv[2:-1], int(sys.argv[-1]))
elif __name__ == "__main__":
    asyncio.run(_press(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])))
