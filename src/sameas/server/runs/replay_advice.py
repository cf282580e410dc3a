"""What replay rates say about clients and keys, by the rules of source document 002.

Rule: above 5 % somebody retries too hard; none at all for weeks, and the key is wrong. Too few calls say nothing.
Results of extraction are meant to be asked for again, so the first rule does not hold for their scope.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from sameas.extraction.runs.record import SCOPE
from sameas.server.runs.hourly_counts import HOUR, Counted

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
    """What to do, scope by scope, judging the last day by the first rule and the last two weeks by the second."""
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
