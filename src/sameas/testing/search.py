"""Every reachable state of a few workers on one key, and the promise asserted in each.

The search knows nothing of stores: it drives the protocol's own functions, breadth first, so the first failure it
finds is also a shortest one. Workers crash, sleep through their lease and write late, lose replies and ask again;
time passes, records are forgotten, pruned and expire.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sameas.once.record import (
    Accepted,
    Acquired,
    Answer,
    Busy,
    Claim,
    ClaimRequest,
    Identity,
    Lease,
    Mismatch,
    Outcome,
    Record,
    Replay,
    State,
)

_TICK = 1_000
_LEASE = _TICK
_RETAIN = 3 * _TICK
_RETRY_WINDOW = 2 * _TICK
_KEY = Identity(b"k", "", "scope", "key")


class Rules(Protocol):
    """The functions under test, with the signatures of `sameas.once.protocol`."""

    def claim(self, record: Record | None, request: ClaimRequest, now: int) -> tuple[Record | None, Claim]: ...
    def renew(self, record: Record | None, lease: Lease, *, lease_for: int, retain_for: int, now: int) -> Any: ...
    def complete(self, record: Record | None, lease: Lease, *, outcome: Outcome, retain_for: int, now: int) -> Any: ...
    def fail(self, record: Record | None, lease: Lease, *, outcome: Outcome, retain_for: int, now: int) -> Any: ...
    def release(self, record: Record | None, lease: Lease, *, now: int) -> Any: ...
    def forget(self, record: Record | None, *, now: int) -> Any: ...


@dataclass(frozen=True, slots=True)
class Worker:
    """What one worker believes: which try it is at, and the fence it holds."""

    tries: int = 0
    fence: int | None = None
    settled: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """One state of the search. `truth` is the result of this life of the record, once it was accepted."""

    record: Record | None
    workers: tuple[Worker, ...]
    ticks: int = 0
    taken: int = 0
    truth: str | None = None
    top_fence: int = -1

    @property
    def now(self) -> int:
        # Between two claims that take, the store's clock moves on by at least a microsecond.
        return self.ticks * _TICK + self.taken

    def key(self) -> tuple[object, ...]:
        """What tells two worlds apart. The rules only compare numbers, so what counts is who holds which and how long
        yet: that makes the space finite although time, tries and fences go on for ever."""
        record, now = self.record, self.now
        seen: tuple[object, ...] = ()
        holder = None
        if record is not None:
            holder = (record.fence, record.attempt_id)
            true = record.outcome is not None and _value(record) == self.truth
            seen = (record.state, _ticks_left(record.lease_until, now), _ticks_left(record.expires_at, now), true)
        workers = []
        for number, worker in enumerate(self.workers):
            attempt = _attempt(number, worker)
            own = record is not None and record.attempt_id == attempt
            held = worker.fence is not None and (worker.fence, attempt) == holder
            workers.append((worker.fence is None, held, own, worker.settled, self.truth == attempt))
        # Which worker is which makes no difference.
        return (seen, self.truth is None, *sorted(workers))


@dataclass(frozen=True)
class Report:
    """What was searched."""

    states: int
    transitions: int


class Counterexample(AssertionError):
    """The promise is broken; `path` is a shortest way there."""

    def __init__(self, broken: str, path: list[str]) -> None:
        self.broken = broken
        self.path = path
        steps = "\n".join(f"  {number}. {step}" for number, step in enumerate(path, 1))
        super().__init__(f"{broken}, after\n{steps}")


class _Broken(Exception):
    """A step that breaks the promise."""


def explore(rules: Rules, *, workers: int = 3) -> Report:
    """Visit every reachable state; raise Counterexample with a shortest path when the promise does not hold."""
    start = World(None, (Worker(),) * workers)
    came_from: dict[object, tuple[World, str] | None] = {start.key(): None}
    queue = deque([start])
    transitions = 0
    while queue:
        world = queue.popleft()
        steps = _Steps(rules, world)
        try:
            steps.assert_nothing_is_stuck()
            for name, following in steps:
                transitions += 1
                if (key := following.key()) not in came_from:
                    came_from[key] = (world, name)
                    queue.append(following)
        except _Broken as broken:
            path = [*_path(came_from, world), steps.current]
            raise Counterexample(str(broken), path) from None
    return Report(len(came_from), transitions)


def _path(came_from: dict[object, tuple[World, str] | None], world: World) -> list[str]:
    names: list[str] = []
    while (step := came_from[world.key()]) is not None:
        world, name = step
        names.append(name)
    return names[::-1]


class _Steps:
    """All that can happen next in one world."""

    def __init__(self, rules: Rules, world: World) -> None:
        self.rules = rules
        self.world = world
        self.current = ""

    def __iter__(self) -> Iterator[tuple[str, World]]:
        world = self.world
        for number, worker in enumerate(world.workers):
            name = f"worker {number}"
            if worker.fence is None:
                yield from self.claims(name, number, replace(worker, tries=worker.tries + 1))
            if worker.fence is not None:
                yield from self.claims(name + " (its reply was lost)", number, worker)
                yield from self.writes(name, number, worker)
                yield self.step(f"{name} crashes"), self.moved(number, replace(worker, fence=None, settled=False))
        yield from self.surroundings()

    def surroundings(self) -> Iterator[tuple[str, World]]:
        world = self.world
        yield self.step("time passes"), self.aged(1)
        if world.record is not None:
            self.step("the record is forgotten")
            record, _ = self.rules.forget(world.record, now=world.now)
            self.expect(record is None, "a forgotten record is still there")
            yield self.current, replace(world, record=None, truth=None)
        if world.record is not None and world.record.expires_at <= world.now:
            yield self.step("the record is pruned"), replace(world, record=None, truth=None)

    def claims(self, name: str, number: int, worker: Worker) -> Iterator[tuple[str, World]]:
        world = self.world
        yield self.step(f"{name} claims for another request"), self.other_request(number, worker)
        self.step(f"{name} claims, try {worker.tries}")
        record, answer = self.rules.claim(world.record, _request(number, worker), world.now)
        after = replace(world, record=record, truth=None if self.is_gone(world.record) else world.truth)
        match answer:
            case Acquired(fence=fence):
                self.expect(after.truth is None, "work is done again although its result was accepted")
                if fence != worker.fence:
                    self.expect(fence > world.top_fence, f"fence {fence} was given before")
                    after = replace(after, taken=world.taken + 1, top_fence=fence)
                yield self.current, self.moved(number, replace(worker, fence=fence, settled=False), after)
            case Replay(record=kept):
                if kept.state is State.DONE:
                    value = _value(kept)
                    self.expect(after.truth in (None, value), "a replay differs from the accepted result")
                    self.expect(after.truth is not None, "a result is replayed that was never accepted")
                yield self.current, self.moved(number, replace(worker, fence=None, settled=True), after)
            case Busy(time_left=left):
                self.expect(left > 0, "busy although the lease is over")
                self.expect(record == world.record, "a busy answer changed the record")
                yield self.current, self.moved(number, worker, after)
            case Mismatch():
                self.expect(False, "the same request is called another one")

    def other_request(self, number: int, worker: Worker) -> World:
        """A live record is never given, shown or changed to somebody who asks for something else under its key."""
        world = self.world
        if world.record is None or self.is_gone(world.record):
            return world
        request = ClaimRequest(_KEY, "another", f"{number}.other", _LEASE, _RETAIN)
        record, answer = self.rules.claim(world.record, request, world.now)
        self.expect(isinstance(answer, Mismatch), "another request was served under the key")
        self.expect(record == world.record, "another request changed the record")
        return world

    def writes(self, name: str, number: int, worker: Worker) -> Iterator[tuple[str, World]]:
        world = self.world
        lease = Lease(_KEY, worker.fence or 0, _attempt(number, worker))
        outcome = Outcome(lease.attempt_id.encode(), "text/plain")
        now = world.now

        if not worker.settled:
            self.step(f"{name} renews")
            yield self.written(
                number, worker, *self.rules.renew(world.record, lease, lease_for=_LEASE, retain_for=_RETAIN, now=now)
            )
        self.step(f"{name} completes")
        record, answer = self.rules.complete(world.record, lease, outcome=outcome, retain_for=_RETAIN, now=now)
        name_, after = self.written(number, replace(worker, settled=True), record, answer)
        if isinstance(answer, Accepted):
            self.expect(not self.is_gone(world.record), "a result was accepted for a record that is gone")
            value = outcome.data.decode()
            self.expect(world.truth in (None, value), "two results were accepted")
            self.expect(record is not None and _value(record) == value, "the accepted result is not the stored one")
            after = replace(after, truth=value)
        yield name_, after
        if worker.settled:
            return
        self.step(f"{name} fails, to be kept")
        yield self.written(
            number,
            replace(worker, fence=None),
            *self.rules.fail(world.record, lease, outcome=outcome, retain_for=_RETRY_WINDOW, now=now),
        )
        self.step(f"{name} releases")
        yield self.written(number, replace(worker, fence=None), *self.rules.release(world.record, lease, now=now))

    def written(self, number: int, worker: Worker, record: Record | None, answer: Answer) -> tuple[str, World]:
        """A write is taken from the holder alone, and changes nothing otherwise."""
        before = self.world.record
        believed = self.world.workers[number]
        holds = (
            before is not None
            and before.fence == believed.fence
            and before.attempt_id == _attempt(number, believed)
            and not self.is_gone(before)
        )
        if isinstance(answer, Accepted):
            self.expect(holds, "a write was taken from somebody who does not hold the record")
        else:
            self.expect(record == before, "a lost write changed the record")
            self.expect(not holds or before is None or before.state is not State.HELD, "the holder's write was lost")
        return self.current, self.moved(number, worker, replace(self.world, record=record))

    def assert_nothing_is_stuck(self) -> None:
        """Whatever happened: once the lease is over, the next claim gets the work or its result."""
        self.step("the lease runs out and somebody new claims")
        late = self.aged(2)
        request = ClaimRequest(_KEY, "", "new", _LEASE, _RETAIN)
        _, answer = self.rules.claim(late.record, request, late.now)
        self.expect(isinstance(answer, Acquired | Replay), f"the key is stuck: {answer}")

    def is_gone(self, record: Record | None) -> bool:
        return record is None or record.expires_at <= self.world.now

    def aged(self, ticks: int) -> World:
        late = replace(self.world, ticks=self.world.ticks + ticks)
        gone = late.record is not None and late.record.expires_at <= late.now
        return replace(late, truth=None) if gone else late

    def moved(self, number: int, worker: Worker, world: World | None = None) -> World:
        world = world or self.world
        workers = list(world.workers)
        workers[number] = worker
        return replace(world, workers=tuple(workers))

    def step(self, name: str) -> str:
        self.current = name
        return name

    def expect(self, holds: bool, broken: str) -> None:
        if not holds:
            raise _Broken(broken)


def _request(number: int, worker: Worker) -> ClaimRequest:
    return ClaimRequest(_KEY, "", _attempt(number, worker), _LEASE, _RETAIN)


def _attempt(number: int, worker: Worker) -> str:
    return f"{number}.{worker.tries}"


def _ticks_left(until: int, now: int) -> int:
    return max(0, -((now - until) // _TICK))


def _value(record: Record) -> str:
    return "" if record.outcome is None else record.outcome.data.decode()
