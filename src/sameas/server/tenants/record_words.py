"""One record in words: whose it is, how it stands and since when, and what a request now would get.

Rule: it says what the record says. Whether a lease is over is judged by this machine's clock, which decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from sameas.extraction.runs.metadata import instant
from sameas.once.record import NEVER, Record, State, client_key


def describe_record(record: Record, *, now: float) -> tuple[str, ...]:
    """Sentences for a person; `now` is in seconds since 1970."""
    return (*_what(record), *_state(record, now), _next(record, now), *_other_request(record))


def next_caller(record: Record) -> str:
    """What the same request would get, in half a sentence."""
    match record.state:
        case State.DONE:
            return "gets this result again, nothing is run"
        case State.FAILED:
            return "gets this failure again until it expires"
        case State.HELD:
            return f"waits for the holder, and takes over when its lease ends at {_time(record.lease_until)}"


def _what(record: Record) -> Iterator[str]:
    about, identity = record.about, record.identity
    own = client_key(identity.key)
    kind = f"{about.method} {about.route}".strip()
    what = f"{kind} in the scope {identity.scope}" if kind else f"work in the scope {identity.scope}"
    chosen = "a client chose it" if own != identity.key else "it was computed from the content"
    yield f"The key {own} stands for {what}; {chosen}."
    who = about.audit.get("created_by_user_id") or about.audit.get("initiated_by_user_id")
    if who:
        yield f"The user {who} asked for it first."


def _state(record: Record, now: float) -> Iterator[str]:
    count = _ordinal(record.attempt)
    match record.state:
        case State.HELD:
            holder = record.about.owner or "somebody who gave no name"
            # A fence is the store's time of the claim, unless two claims met in one microsecond.
            since = _time(record.fence)
            yield f"{holder} has held it since {since}: the {count} attempt, with the fence {record.fence}."
            if record.lease_until / 1e6 > now:
                yield f"Its lease ends at {_time(record.lease_until)}; while the work lasts, it is renewed."
            else:
                yield f"Its lease ended at {_time(record.lease_until)}: the holder is dead, asleep or cut off."
        case State.DONE:
            yield f"The {count} attempt, with the fence {record.fence}, was accepted {_completed(record)}."
        case State.FAILED:
            yield f"The {count} attempt, with the fence {record.fence}, failed {_completed(record)}."
    if record.state is not State.HELD:
        is_endless = record.expires_at >= NEVER // 2
        yield "It is kept until somebody forgets it." if is_endless else f"It is kept until {_time(record.expires_at)}."


def _next(record: Record, now: float) -> str:
    match record.state:
        case State.HELD if record.lease_until / 1e6 <= now:
            return f"The same request now takes over at once, as the {_ordinal(record.attempt + 1)} attempt."
        case _:
            return f"The same request now {next_caller(record)}."


def _other_request(record: Record) -> Iterator[str]:
    if record.fingerprint:
        yield "Another request under this key is refused with 422 and told which fields differ."


def _completed(record: Record) -> str:
    return "at an unknown time" if record.completed_at is None else f"at {_time(record.completed_at)}"


def _ordinal(number: int) -> str:
    few = {1: "first", 2: "second", 3: "third"}
    return few.get(number, f"{number}th")


def _time(micros: int) -> str:
    return instant(micros / 1_000_000)
