"""The store goes away under accepted runs and comes back: whether each of them ends well by itself, once.

The service runs in this process over a real Redis or PostgreSQL and asks a model on loopback. As soon as calls are under
way the server is killed, stopped (it accepts connections and says nothing), or what is sent to it is swallowed on the way.
Nobody asks for anything until it is back, and then only how the runs stand.
"""

import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from dataclasses import replace as changed
from pathlib import Path
from typing import Any, Literal, TypeAlias

from sameas import Engine, open_store
from sameas.extraction.runs.record import SCOPE as RUNS
from sameas.once.record import State
from tests.integration.model_path import sentence
from tests.servers.model_script import Call
from tests.servers.model_server import ModelServer
from tests.servers.postgres import PostgresServer
from tests.servers.proxy import FaultProxy
from tests.servers.redis import RedisServer
from tests.storm.cluster_storm import answer_marked, marker, recorded_calls
from tests.unit.server.house import Running, running

Kind: TypeAlias = Literal["redis", "postgres"]
How: TypeAlias = Literal["killed", "stopped", "swallowed"]
HOWS: tuple[How, ...] = ("killed", "stopped", "swallowed")
LEASE = 2.0
# Longer than it takes to accept the runs, so that calls of some are under way when the store goes.
_CALL_TAKES = 1.0
_AT_ONCE = 8
_CLOCKS = 0.02
_LOOK = 0.25


@dataclass
class AwayReport:
    """What was seen when the store was back."""

    accepted: int = 0
    complete: int = 0
    after_return: float = 0.0
    """Seconds from the return of the store to the end of the last run."""
    states: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    repeated_in_flight: int = 0
    repeated_after_recorded: list[str] = field(default_factory=list)
    promises_left: int = 0
    without_record: list[str] = field(default_factory=list)
    begun_again: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        wrong = self.repeated_after_recorded or self.without_record or self.begun_again or self.promises_left
        return self.accepted == self.complete and not wrong

    def line(self) -> str:
        return (
            f"{self.complete} of {self.accepted} complete, the last {self.after_return:.1f} s after the return; {self.calls} "
            f"calls, {self.repeated_in_flight} repeated that were in flight, {len(self.repeated_after_recorded)} after they "
            f"were recorded; completed twice {len(self.begun_again)}, promises left {self.promises_left}"
        )


def store_away(
    home: Path, *, kind: Kind, how: How, seconds: float, runs: int = 32, within: float = 120.0
) -> AwayReport:
    """Accept so many runs, have the store away for so long, and wait for their ends."""
    report = AwayReport()
    with ExitStack() as stack:
        server = stack.enter_context(RedisServer(appendonly="always") if kind == "redis" else PostgresServer())
        proxy = stack.enter_context(FaultProxy(port=server.port))
        model = stack.enter_context(ModelServer(_answer))
        url = server.url if kind == "redis" else server.url.replace("postgresql://", "postgresql+psycopg://")
        service = stack.enter_context(
            running(
                home,
                store=proxy.url_of(url),
                lease=LEASE,
                max_runs=_AT_ONCE,
                models=model.address("tiny"),
                model_requests_per_minute=100_000,
                model_tokens_per_minute=1_000_000_000,
                model_concurrency=_AT_ONCE,
            )
        )
        places = [_accepted(service, number) for number in range(runs)]
        report.accepted = len(places)
        model.wait_for_calls(_AT_ONCE // 2)
        match how:
            case "killed":
                server.kill()
            case "stopped":
                server.pause()
            case "swallowed":
                proxy.half_open()
        time.sleep(seconds)
        match how:
            case "killed":
                server.start()
            case "stopped":
                server.resume()
            case "swallowed":
                proxy.heal()
        _wait(service, places, report, within=within)
        _check(service, places, report, home=home, url=url, model=model)
    return report


def _accepted(service: Running, number: int) -> str:
    request = {"text": sentence(number), "ontologyId": "company", "extractionParams": {"extractor": "model"}}
    answer = service.client.post("/api/v1/extract", json=request, headers={"Prefer": "respond-async"})
    assert answer.status_code == 202, answer.text
    return str(answer.headers["location"])


def _wait(service: Running, places: list[str], report: AwayReport, *, within: float) -> None:
    began, left = time.monotonic(), set(places)
    while left and time.monotonic() - began < within:
        for place in sorted(left):
            answer = service.client.get(place)
            if answer.status_code == 200 and answer.json()["status"] == "complete":
                left.discard(place)
                report.after_return = time.monotonic() - began
        time.sleep(_LOOK)
    report.states.update(_state(service, place) for place in places)
    report.complete = report.states["complete"]


def _state(service: Running, place: str) -> str:
    answer = service.client.get(place)
    return str(answer.json().get("status", answer.status_code))


def _check(
    service: Running, places: list[str], report: AwayReport, *, home: Path, url: str, model: ModelServer
) -> None:
    ends_at = time.monotonic() + 10.0
    while (left := list((home / "requests").glob("*/*.json"))) and time.monotonic() < ends_at:
        time.sleep(_LOOK)
    report.promises_left = len(left)
    for place in places:
        events = service.client.get(f"{place}/events").text
        if events.count("event: extraction_completed") != 1:
            report.begun_again.append(place)
    with Engine(open_store(url)) as engine:
        for place in places:
            record = engine.read(RUNS, place.rpartition("/")[2], tenant="", namespace="content")
            if record is None or record.state is not State.DONE:
                report.without_record.append(place)
        recorded = recorded_calls(engine)
    offset, made = time.time() - time.monotonic(), model.calls
    calls = Counter(map(marker, made))
    report.calls = calls.total()
    report.repeated_in_flight = report.calls - len(calls)
    for call in made:
        completed_at = recorded.get(marker(call))
        if completed_at is not None and call.arrived_at + offset > completed_at + _CLOCKS:
            report.repeated_after_recorded.append(f"{marker(call)}")


def _answer(call: Call) -> Any:
    return changed(answer_marked(call), latency=_CALL_TAKES)
