"""Reads the journal of a storm and says whether the promise held. Every number but `effects_repeated` must be zero."""

import time
from collections import defaultdict
from dataclasses import dataclass, field

from sameas import Engine
from tests.storm.journal import Line
from tests.storm.worker import SCOPE

TOLD = ("accepted", "replayed")


@dataclass
class Verdict:
    """What went wrong, by kind, and what the storm was like."""

    accepted_twice: list[str] = field(default_factory=list)
    different_answers: list[str] = field(default_factory=list)
    lost_results: list[str] = field(default_factory=list)
    stuck_keys: list[str] = field(default_factory=list)
    duplicate_rows: list[str] = field(default_factory=list)
    orphaned_rows: list[str] = field(default_factory=list)
    crashed_workers: list[str] = field(default_factory=list)
    keys: int = 0
    answers: int = 0
    takeovers: int = 0
    effects: int = 0
    effects_repeated: int = 0

    @property
    def broken(self) -> dict[str, list[str]]:
        return {name: value for name, value in vars(self).items() if isinstance(value, list) and value}

    def __str__(self) -> str:
        share = self.effects_repeated / max(self.effects, 1)
        return (
            f"{self.keys} keys, {self.answers} answers, {self.takeovers} takeovers; broken: {self.broken or 'nothing'}; "
            f"foreign effects that ran more than once: {self.effects_repeated} of {self.effects} ({share:.1%})"
        )


def check(lines: list[Line], engine: Engine, *, lease: float, grace: float) -> Verdict:
    """Judge a storm that is over; the store is asked once more for every key."""
    verdict = Verdict()
    by_key: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        if line.key:
            by_key[line.key].append(line)
        if line.what == "crashed":
            verdict.crashed_workers.append(line.result)
    verdict.keys = len(by_key)
    for key, events in by_key.items():
        _check_answers(key, events, verdict)
    for key, events in by_key.items():
        _ask_again(key, events, engine, verdict, lease=lease, grace=grace)
    return verdict


def _check_answers(key: str, events: list[Line], verdict: Verdict) -> None:
    told = {event.result for event in events if event.what in TOLD}
    accepted = [event for event in events if event.what == "accepted"]
    effects = sum(event.what == "effect" for event in events)
    verdict.answers += sum(event.what in TOLD for event in events)
    verdict.takeovers += sum(event.what == "working" and event.attempt > 1 for event in events)
    verdict.effects += bool(effects)
    verdict.effects_repeated += effects > 1
    if len(accepted) > 1:
        verdict.accepted_twice.append(f"{key}: {accepted}")
    if len(told) > 1:
        verdict.different_answers.append(f"{key}: {told}")


def _ask_again(key: str, events: list[Line], engine: Engine, verdict: Verdict, *, lease: float, grace: float) -> None:
    told = {event.result for event in events if event.what in TOLD}
    began = time.monotonic()
    record = engine.record(lambda context: "asked again", scope=SCOPE, key=key)
    waited = time.monotonic() - began
    if told and record.result not in told:
        verdict.lost_results.append(f"{key}: told {told}, now {record.result}")
    if waited > lease + grace:
        verdict.stuck_keys.append(f"{key}: {waited:.2f} s")
