"""A storm over several machines: API nodes, workers, broker, Redis and PostgreSQL are killed, and connections cut, while
clients ask.

Clients ask for each text twice, at nodes of their choice, and come back until they have an answer; some listen to the
events of their run and go on at another node when a stream breaks. Afterwards what they were told is compared with what
was kept: no accepted run is lost, none has two results, nobody was told two different ones, no model call was made after
its reply was recorded, and no listener missed a number.
"""

import http.client
import json
import random
import re
import threading
import time
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sameas import Engine, open_store
from sameas.extraction.runs.record import SCOPE as RUNS
from sameas.llm.memo import SCOPE as CALLS
from sameas.once.record import State
from sameas.once.store import Query
from tests.integration.model_path import ORACLE, sentence
from tests.servers.cluster import ApiNode, WorkerNode
from tests.servers.model_script import Call, says
from tests.servers.model_server import ModelServer
from tests.servers.postgres import PostgresServer
from tests.servers.proxy import FaultProxy
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer
from tests.servers.s3 import S3Server
from tests.servers.server import Server
from tests.unit.server.house import TURTLE

Victim = Literal["worker", "api", "broker", "redis", "postgres", "connections"]
LEASE = 2.0
_ASKED_WITHIN = 5.0
_CALL_TAKES = 0.05
_CUT_FOR = 0.3
# Between the store's clock and the arrival of a call at the model, on one machine.
_CLOCKS = 0.02
_AWAY = (OSError, urllib.error.URLError, http.client.HTTPException, ValueError)


@dataclass
class StormReport:
    """What was done to the machines, and what clients and stores say."""

    asked: int = 0
    answered: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    told_differently: list[str] = field(default_factory=list)
    two_results: list[str] = field(default_factory=list)
    repeated_after_recorded: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    streams: int = 0
    reconnects: int = 0
    calls: int = 0
    repeated_in_flight: int = 0
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.told_differently or self.two_results or self.repeated_after_recorded or self.gaps)

    def lines(self) -> list[str]:
        return [
            f"{self.asked} requests, {self.answered} answered, in {self.seconds:.0f} s; kills {dict(self.kills)}",
            f"accepted runs lost {len(self.lost)}; runs with two results {len(self.two_results)}",
            f"clients told two different results {len(self.told_differently)}",
            f"model calls {self.calls}; repeated after they were recorded {len(self.repeated_after_recorded)}",
            f"calls repeated because they were in flight {self.repeated_in_flight}",
            f"event streams {self.streams}, {self.reconnects} reconnections, gaps {len(self.gaps)}",
        ]


class Machines:
    """Two API nodes and some workers, each with a home of its own, and the servers that they share."""

    def __init__(
        self,
        stack: ExitStack,
        *,
        workers: int,
        broker: Literal["rabbitmq", "redis"],
        settings: dict[str, str],
        with_proxies: bool = False,
        records: Literal["redis", "postgres"] = "redis",
        former: Path | None = None,
    ) -> None:
        self.model = stack.enter_context(ModelServer(_answer))
        self.redis = stack.enter_context(RedisServer(appendonly="always"))
        self.broker: Server = stack.enter_context(
            RabbitMQServer() if broker == "rabbitmq" else RedisServer(appendonly="always")
        )
        self.postgres = stack.enter_context(PostgresServer())
        self.s3 = stack.enter_context(S3Server())
        # What nodes and workers say to the servers goes through these, where connections are to be cut.
        servers = (self.redis, self.broker, self.postgres, self.s3) if with_proxies else ()
        self.proxies = [stack.enter_context(FaultProxy(port=server.port)) for server in servers]
        redis, broker_url, postgres, endpoint = (
            self.redis.url,
            self.broker.url,
            self.postgres.url,
            self.s3.credentials["AWS_ENDPOINT_URL"],
        )
        if with_proxies:
            redis, broker_url, postgres, endpoint = (
                proxy.url_of(url)
                for proxy, url in zip(self.proxies, (redis, broker_url, postgres, endpoint), strict=True)
            )
        self.records = self.redis.url if records == "redis" else self.postgres.url
        shared = {
            "SAMEAS_STORE": redis if records == "redis" else postgres,
            "SAMEAS_EVENTS": redis,
            "SAMEAS_DATABASE": postgres,
            "SAMEAS_OBJECTS": self.s3.url,
            "SAMEAS_BROKER": broker_url,
            "SAMEAS_LEASE": str(LEASE),
            "SAMEAS_GRACE": "2",
            "SAMEAS_MAX_RUNS": "8",
            "SAMEAS_MODELS": self.model.address("tiny"),
            "SAMEAS_MODEL_REQUESTS_PER_MINUTE": "100000",
            "SAMEAS_MODEL_TOKENS_PER_MINUTE": "1000000000",
            "SAMEAS_MODEL_CONCURRENCY": "64",
            "SAMEAS_TENANT_TOKENS_PER_DAY": "1000000000000",
            **self.s3.credentials,
            "AWS_ENDPOINT_URL": endpoint,
            **settings,
        }
        # The first of each runs the package in this folder, if one is given: another release.
        theirs = shared if former is None else {**shared, "PYTHONPATH": str(former)}
        self.nodes = [ApiNode(theirs), ApiNode(shared)]
        self.workers = [WorkerNode(shared if number else theirs) for number in range(workers)]
        # Starting a process takes as long as a processor is busy with it, and they do not wait for each other.
        starting = [threading.Thread(target=one.start) for one in (*self.nodes, *self.workers)]
        for one in (*self.nodes, *self.workers):
            stack.callback(one.close)
        for thread in starting:
            thread.start()
        for thread in starting:
            thread.join()
        status, said = self.nodes[0].ask("PUT", "/api/v1/ontologies/company", TURTLE)
        assert status == 201, said

    def cut(self, proxy: FaultProxy) -> None:
        """End all connections to a server, and refuse new ones for a moment."""
        proxy.reset()
        time.sleep(_CUT_FOR)
        proxy.heal()

    def victims(self, kind: Victim) -> list[Server]:
        servers: dict[Victim, list[Server]] = {
            "connections": [],
            "worker": [*self.workers],
            "api": [*self.nodes],
            "broker": [self.broker],
            "redis": [self.redis],
            "postgres": [self.postgres],
        }
        return servers[kind]


class ClusterStorm:
    """`requests` of which half are duplicates, sent over `seconds` while `victims` are killed one after another."""

    def __init__(
        self,
        machines: Machines,
        *,
        seconds: float,
        requests: int,
        victims: tuple[Victim, ...],
        every: float = 1.0,
        clients: int = 12,
        answered_within: float = 120.0,
        seed: int = 1,
    ) -> None:
        self._machines = machines
        self._seconds = seconds
        # Other people than those of tests on the same machines.
        self._texts = [f"{sentence(100 + number)} Storm {seed}." for number in range(requests // 2)]
        self._victims = victims
        self._every = every
        self._clients = clients
        self._answered_within = answered_within
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._answers: defaultdict[str, set[str]] = defaultdict(set)
        self._accepted: set[str] = set()
        self._is_over = threading.Event()
        self._calls_before = 0
        self.report = StormReport()

    def run(self) -> StormReport:
        """Let it rage, then wait for every answer and check."""
        began = time.monotonic()
        self._machines.model.rescript(_answer)
        self._calls_before = len(self._machines.model.calls)
        asked = [(text, number) for text in self._texts for number in range(2)]
        self._random.shuffle(asked)
        queue = iter(asked)
        threads = [threading.Thread(target=self._client, args=(queue, began)) for _ in range(self._clients)]
        for thread in threads:
            thread.start()
        self._rage(began)
        for thread in threads:
            thread.join()
        self.report.seconds = time.monotonic() - began
        self._check()
        return self.report

    def _rage(self, began: float) -> None:
        kinds = list(self._victims)
        starting: list[threading.Thread] = []
        while kinds and time.monotonic() - began < self._seconds:
            if self._is_over.wait(self._every * self._random.uniform(0.5, 1.5)):
                break
            kind = kinds[self.report.kills.total() % len(kinds)]
            if kind == "connections":
                self._machines.cut(self._random.choice(self._machines.proxies))
                self.report.kills[kind] += 1
                continue
            victim = self._random.choice(self._machines.victims(kind))
            if not victim.running:
                continue
            victim.kill()
            self.report.kills[kind] += 1
            # Others die while it comes back.
            starting.append(threading.Thread(target=victim.start))
            starting[-1].start()
        for thread in starting:
            thread.join()
        for kind in kinds:
            for victim in self._machines.victims(kind):
                victim.start()

    def _client(self, queue: Any, began: float) -> None:
        chance = random.Random(threading.get_ident())
        while True:
            with self._lock:
                text, number = next(queue, (None, 0))
                if text is None:
                    return
                self.report.asked += 1
                place = self.report.asked / (2 * len(self._texts))
            # Spread over the storm.
            time.sleep(max(0.0, began + self._seconds * place - time.monotonic()))
            self._ask(text, listens=number == 0 and chance.random() < 0.3, chance=chance)

    def _ask(self, text: str, *, listens: bool, chance: random.Random) -> None:
        body = {"text": text, "ontologyId": "company", "extractionParams": {"extractor": "model"}}
        ends_at = time.monotonic() + self._answered_within
        key = ""
        while time.monotonic() < ends_at:
            node = chance.choice(self._machines.nodes)
            try:
                if not key and chance.random() < 0.7:
                    status, said = node.ask(
                        "POST", "/api/v1/extract", body, headers={"Prefer": "respond-async"}, within=_ASKED_WITHIN
                    )
                    if status == 202:
                        key = said["idempotencyKey"]
                        with self._lock:
                            self._accepted.add(key)
                        if listens:
                            self._listen(key, ends_at, chance)
                        continue
                else:
                    status, said = node.ask("POST", "/api/v1/extract", body, headers={"Prefer": "wait=5"}, within=20.0)
            except _AWAY:
                time.sleep(chance.uniform(0.05, 0.3))
                continue
            if status == 200 and said["status"] == "complete":
                told = json.dumps([said["idempotencyKey"], said["entities"], said["relations"]], sort_keys=True)
                with self._lock:
                    self._answers[said["idempotencyKey"]].add(told)
                    self.report.answered += 1
                return
            if status not in (200, 202):
                with self._lock:
                    self.report.refused[status] += 1
            elif status == 202:
                key = said["idempotencyKey"]
                with self._lock:
                    self._accepted.add(key)
            time.sleep(chance.uniform(0.05, 0.3))
        with self._lock:
            self.report.lost.append(f"{key or text}: no answer within {self._answered_within} s")

    def _listen(self, key: str, ends_at: float, chance: random.Random) -> None:
        """Every event of a run, over as many streams as it takes."""
        last, is_over = 0, False
        self.report.streams += 1
        while not is_over and time.monotonic() < ends_at:
            node = chance.choice(self._machines.nodes)
            request = urllib.request.Request(
                f"{node.url}/api/v1/runs/{key}/events", headers={"Last-Event-ID": str(last)} if last else {}
            )
            try:
                with urllib.request.urlopen(request, timeout=_ASKED_WITHIN) as stream:
                    if stream.status == 204:
                        return
                    for line in stream:
                        if line.startswith(b"data: "):
                            event = json.loads(line[6:])
                            number = event.get("sequenceNumber")
                            if number is not None and number != last + 1:
                                with self._lock:
                                    self.report.gaps.append(f"{key}: {number} after {last}")
                            last = number or last
                            is_over = event["type"] == "extraction_completed"
            except _AWAY as trouble:
                if isinstance(trouble, urllib.error.HTTPError):
                    trouble.close()
                self.report.reconnects += 1
                time.sleep(chance.uniform(0.05, 0.3))
        if not is_over:
            with self._lock:
                self.report.gaps.append(f"{key}: nothing after {last}, and no end")

    def _check(self) -> None:
        report = self.report
        with Engine(open_store(self._machines.redis.url)) as engine:
            for key in self._accepted - set(self._answers):
                report.lost.append(f"{key}: accepted, never answered")
            for key, told in self._answers.items():
                if len(told) > 1:
                    report.told_differently.append(key)
                record = engine.read(RUNS, key, tenant="", namespace="content")
                if record is None or record.state is not State.DONE:
                    report.two_results.append(f"{key}: answered, and no result is accepted")
            recorded = _recorded(engine)
        offset = time.time() - time.monotonic()
        made = self._machines.model.calls[self._calls_before :]
        calls = Counter(map(marker, made))
        report.calls = calls.total()
        report.repeated_in_flight = report.calls - len(calls)
        for call in made:
            completed_at = recorded.get(marker(call))
            if completed_at is not None and call.arrived_at + offset > completed_at + _CLOCKS:
                report.repeated_after_recorded.append(
                    f"{marker(call)}: {call.arrived_at + offset - completed_at:.3f} s"
                )


def _answer(call: Call) -> Any:
    # As many blanks at its end as the person's number, and one, tell which call a recorded reply is of.
    return says(json.dumps(ORACLE(call)) + " " * (int(marker(call)[1]) + 1), latency=_CALL_TAKES)


def marker(call: Call) -> tuple[str, str]:
    """What a call is about: its question, and the person that its text names."""
    return call.schema_name, call.user.partition(" Stone")[0].rpartition("Person")[2]


def _recorded(engine: Engine) -> dict[tuple[str, str], float]:
    """When the reply to each call was recorded, in seconds since 1970."""
    found: dict[tuple[str, str], float] = {}
    after: str | None = None
    while True:
        page = engine.store.find(Query(scope=CALLS, limit=500, after=after))
        for listed in page.records:
            record = engine.store.read(listed.identity)
            if (
                record is None
                or record.state is not State.DONE
                or record.outcome is None
                or record.completed_at is None
            ):
                continue
            said = record.outcome.data
            schema = "RelationReply" if b"relations" in said else "EntityReply"
            blanks = re.search(rb'\}( *)","usage"', said)
            if blanks is not None and blanks[1]:
                found[schema, str(len(blanks[1]) - 1)] = record.completed_at / 1e6
        after = page.next
        if after is None:
            return found
