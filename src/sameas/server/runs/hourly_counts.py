"""What was asked of each space, hour by hour for thirty days: calls, replays, waiting, what was removed.

Rule: counting is a few additions in memory; what was counted goes to the table every few seconds and when the service
stops, added to what other processes counted. A killed process loses the last seconds. Records that expired are counted
for the service as a whole: whoever prunes does not see whose they were. What the counts give reason to advise is
judged by the same limits as in `deploy/alerts.yaml`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Literal, NamedTuple

import msgspec

from sameas.connections import open_database
from sameas.databases import Statements
from sameas.extraction.runs.record import SCOPE
from sameas.identity.errors import SameasError
from sameas.once.observe import CallEnded, Event, Removed, Settled, answered
from sameas.once.record import Accepted

HOUR = 3_600
KEPT_DAYS = 30
FLUSH_EVERY = 10.0
# No space has this name: what is counted for the service as a whole.
WHOLE = "~service"
# Above this many scopes of a space in an hour, further ones are counted together.
_MOST_SCOPES = 100
_OTHER = "other"
_LOG = logging.getLogger("sameas.server")


class Counts(msgspec.Struct, kw_only=True, rename="camel"):
    """What happened to one scope in one hour. `hits` were answered with a kept result, `shared` waited for the same
    work; both are replays.
    """

    calls: int = 0
    hits: int = 0
    shared: int = 0
    errors: int = 0
    waits: int = 0
    waited_ms: int = 0
    pruned: int = 0
    forgotten: int = 0


class Counted(Counts, kw_only=True, rename="camel"):
    """The counts of one scope in one hour, which is its first second since 1970."""

    scope: str
    hour: int


class _Place(NamedTuple):
    space: str
    scope: str
    hour: int


class HourlyCounts:
    """An observer that counts into a table. `on` may be called from any thread; `flush` and `read` block."""

    def __init__(self, url: str, *, clock: Callable[[], float] = time.time) -> None:
        self._database = open_database(url, Statements.of("sameas.server", "hourly_counts"))
        self._clock = clock
        self._lock = Lock()
        self._counted: dict[_Place, Counts] = {}
        self._cleaned = 0

    def on(self, event: Event) -> None:
        match event:
            case CallEnded():
                self._ended(event)
            case Removed(why="expired", count=count) if count:
                self._add(WHOLE, "", Counts(pruned=count))
            case Removed(count=count, selection=selection) if count and selection is not None:
                if selection.tenant is not None:
                    self._add(selection.tenant, selection.scope or "", Counts(forgotten=count))
            case Settled(operation="forget", identity=identity, answer=Accepted()):
                self._add(identity.tenant, identity.scope, Counts(forgotten=1))
            case _:
                pass

    def _ended(self, event: CallEnded) -> None:
        how, identity = answered(event), event.started.identity
        self._add(
            identity.tenant,
            identity.scope,
            Counts(
                calls=1,
                hits=int(how.replay and not event.waited),
                shared=int(how.replay and bool(event.waited)),
                errors=int(event.error is not None),
                waits=int(bool(event.waited)),
                waited_ms=round(event.waited * 1000),
            ),
        )

    def flush(self) -> None:
        """Add what was counted to the table; what the database does not take is kept for the next time."""
        with self._lock:
            counted, self._counted = self._counted, {}
        if not counted:
            return
        now = self._hour()
        try:
            with self._database.transaction(durable=False) as session:
                for place, counts in counted.items():
                    session.run("add", **place._asdict(), **msgspec.structs.asdict(counts))
                if self._cleaned != now:
                    session.run("remove_old", before=now - KEPT_DAYS * 24 * HOUR)
        except BaseException:
            with self._lock:
                for place, counts in counted.items():
                    self._merge(place, counts)
            raise
        self._cleaned = now

    def read(self, space: str, *, hours: int) -> list[Counted]:
        """What is known of a space, up to this moment, oldest first."""
        self.flush()
        since = self._hour() - (hours - 1) * HOUR
        with self._database.reading() as session:
            rows = session.run("of_space", space=space, since=since)
        return [Counted(**dict(zip(_COLUMNS, row, strict=True))) for row in rows]

    def close(self) -> None:
        self._database.close()

    def _hour(self) -> int:
        return int(self._clock()) // HOUR * HOUR

    def _add(self, space: str, scope: str, counts: Counts) -> None:
        with self._lock:
            self._merge(_Place(space, scope, self._hour()), counts)

    def _merge(self, place: _Place, counts: Counts) -> None:
        known = self._counted.get(place)
        if known is None:
            if len(self._counted) >= _MOST_SCOPES and place.scope not in ("", _OTHER):
                of_space = sum(1 for one in self._counted if one.space == place.space)
                if of_space >= _MOST_SCOPES:
                    self._merge(place._replace(scope=_OTHER), counts)
                    return
            self._counted[place] = counts
            return
        for name in Counts.__struct_fields__:
            setattr(known, name, getattr(known, name) + getattr(counts, name))


_COLUMNS = ("scope", "hour", "calls", "hits", "shared", "errors", "waits", "waited_ms", "pruned", "forgotten")


async def keep_flushed(counts: HourlyCounts, *, every: float = FLUSH_EVERY) -> None:
    """Write down what was counted from time to time, until it is cancelled."""
    while True:
        await asyncio.sleep(every)
        try:
            await asyncio.to_thread(counts.flush)
        except SameasError as trouble:
            _LOG.warning("the hourly counts could not be written; they are kept in memory: %s", trouble)


MANY_REPLAYS = 0.05
FEWEST_CALLS = 100
WEEKS = 14 * 24 * HOUR
DAY = 24 * HOUR


class Advice(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What was seen of a scope, and what to do about it."""

    scope: str
    kind: Literal["many-replays", "no-replays"]
    replay_rate: float
    calls: int
    said: str


def advise(counted: Iterable[Counted], *, now: float) -> tuple[Advice, ...]:
    """What to do, scope by scope, by the rules of source document 002.

    In the last day above 5 %: somebody retries too hard; none at all in two weeks: the key is wrong. Too few calls say
    nothing. Results of extraction are meant to be asked for again, so the first rule does not hold for their scope.
    """
    by_scope: dict[str, list[Counted]] = {}
    for one in counted:
        by_scope.setdefault(one.scope, []).append(one)
    found = (_many(scope, rows, now) or _none(scope, rows, now) for scope, rows in sorted(by_scope.items()))
    return tuple(one for one in found if one is not None)


def _many(scope: str, rows: list[Counted], now: float) -> Advice | None:
    calls, replays = _sums(one for one in rows if one.hour > now - DAY)
    if scope == SCOPE or calls < FEWEST_CALLS or replays / calls <= MANY_REPLAYS:
        return None
    return Advice(
        scope=scope,
        kind="many-replays",
        replay_rate=replays / calls,
        calls=calls,
        said=f"{replays} of {calls} calls in the last day were replays. Above 5 %, clients or the broker retry too "
        "hard: look at their time-outs and back-off.",
    )


def _none(scope: str, rows: list[Counted], now: float) -> Advice | None:
    recent = [one for one in rows if one.hour > now - WEEKS]
    calls, replays = _sums(recent)
    # The first hour of two weeks ago may itself be cut off.
    has_lasted = min((one.hour for one in rows if one.calls), default=now) <= now - WEEKS + DAY
    if calls < FEWEST_CALLS or replays or not has_lasted:
        return None
    return Advice(
        scope=scope,
        kind="no-replays",
        replay_rate=0.0,
        calls=calls,
        said=f"Not one of {calls} calls in two weeks was a replay, and redeliveries happen everywhere. The key may "
        "hold something that differs each time, such as a timestamp: compare two keys of the same work.",
    )


def _sums(rows: Iterable[Counted]) -> tuple[int, int]:
    calls = replays = 0
    for one in rows:
        calls += one.calls
        replays += one.hits + one.shared
    return calls, replays
