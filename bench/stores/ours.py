"""What sameas does for one call, on any store: at the store (claim, complete) and at the engine (`run` with a key).

Each maker answers a function that does one call, fresh or replayed; a replay that runs the work, or a fresh call that
does not, is an error.
"""

import hashlib
import itertools
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from sameas.identity.key import record_digest
from sameas.once.async_engine import AsyncEngine
from sameas.once.context import Context
from sameas.once.engine import Engine
from sameas.once.record import About, Accepted, Acquired, ClaimRequest, Identity, Lease, Outcome, Replay
from sameas.once.store import AsyncStore, Store

SCOPE = "bench"
DAY_SECONDS = 86_400
DAY_MICROS = DAY_SECONDS * 1_000_000
LEASE_SECONDS = 30
LEASE_MICROS = LEASE_SECONDS * 1_000_000
# Small, and the same for the floors, for us and for the peers.
RESULT: dict[str, Any] = {"order": 123, "status": "paid", "lines": ["x" * 20] * 6}
DATA = json.dumps(RESULT).encode()
# What the engine says of a caller, in length.
OWNER = About(owner="hostname:12345")
OUTCOME = Outcome(DATA, "application/json")
NUMBERS = itertools.count()

Call = Callable[[], object]
AsyncCall = Callable[[], Awaitable[object]]


class WrongAnswerError(AssertionError):
    """A store answered what it must not: its figures would mean nothing."""


# What a shop sends: the payload where the content is the key.
ORDER: dict[str, Any] = {
    "id": "o-123",
    "customer": "c-9",
    "items": [{"sku": "a", "qty": 2, "price": "9.99"}, {"sku": "b", "qty": 1, "price": "5.00"}],
    "total": 24.98,
    "currency": "EUR",
    "sent_at": "2026-01-01T00:00:00Z",
}


def fresh_order() -> dict[str, Any]:
    return {**ORDER, "id": f"o-{next(NUMBERS)}"}


def content_hash(order: dict[str, Any]) -> str:
    """What one writes by hand to know an order again."""
    return hashlib.sha256(json.dumps(order, sort_keys=True).encode()).hexdigest()


def fresh_key() -> str:
    return f"order-{next(NUMBERS)}"


def wish_for(key: str) -> ClaimRequest:
    identity = Identity(record_digest("", SCOPE, key), "", SCOPE, key)
    return ClaimRequest(identity, "", f"attempt-{next(NUMBERS)}", LEASE_MICROS, DAY_MICROS, OWNER)


def lease_of(wish: ClaimRequest, claim: object) -> Lease:
    if not isinstance(claim, Acquired):
        raise WrongAnswerError(claim)
    return Lease(wish.identity, claim.fence, wish.attempt_id)


def must_be(kind: type, answer: object) -> None:
    if not isinstance(answer, kind):
        raise WrongAnswerError(answer)


def store_fresh(store: Store) -> Call:
    def call() -> None:
        wish = wish_for(fresh_key())
        lease = lease_of(wish, store.claim(wish))
        must_be(Accepted, store.complete(lease, outcome=OUTCOME, retain_for=DAY_MICROS))

    return call


def store_replay(store: Store) -> Call:
    wish = wish_for(fresh_key())
    lease = lease_of(wish, store.claim(wish))
    must_be(Accepted, store.complete(lease, outcome=OUTCOME, retain_for=DAY_MICROS))
    return lambda: must_be(Replay, store.claim(wish))


def engine_fresh(engine: Engine) -> Call:
    return lambda: engine.run(lambda _: RESULT, scope=SCOPE, key=fresh_key())


def engine_replay(engine: Engine) -> Call:
    key = fresh_key()
    engine.run(lambda _: RESULT, scope=SCOPE, key=key)
    return lambda: engine.run(_never, scope=SCOPE, key=key)


def decorated_fresh(engine: Engine) -> Call:
    @engine.once(scope=SCOPE)
    def charge(order: dict[str, Any]) -> dict[str, Any]:
        return RESULT

    return lambda: charge(fresh_order())


def decorated_replay(engine: Engine, orders: Sequence[dict[str, Any]]) -> Call:
    first = [RESULT] * len(orders)

    @engine.once(scope=SCOPE)
    def charge(order: dict[str, Any]) -> dict[str, Any]:
        return first.pop()

    for order in orders:
        charge(order)
    turns = itertools.cycle(orders)
    return lambda: charge(next(turns))


def async_decorated_fresh(engine: AsyncEngine) -> AsyncCall:
    @engine.once(scope=SCOPE)
    async def charge(order: dict[str, Any]) -> dict[str, Any]:
        return RESULT

    return lambda: charge(fresh_order())


async def async_decorated_replay(engine: AsyncEngine, orders: Sequence[dict[str, Any]]) -> AsyncCall:
    first = [RESULT] * len(orders)

    @engine.once(scope=SCOPE)
    async def charge(order: dict[str, Any]) -> dict[str, Any]:
        return first.pop()

    for order in orders:
        await charge(order)
    turns = itertools.cycle(orders)
    return lambda: charge(next(turns))


def async_store_fresh(store: AsyncStore) -> AsyncCall:
    async def call() -> None:
        wish = wish_for(fresh_key())
        lease = lease_of(wish, await store.claim(wish))
        must_be(Accepted, await store.complete(lease, outcome=OUTCOME, retain_for=DAY_MICROS))

    return call


async def async_store_replay(store: AsyncStore) -> AsyncCall:
    wish = wish_for(fresh_key())
    lease = lease_of(wish, await store.claim(wish))
    must_be(Accepted, await store.complete(lease, outcome=OUTCOME, retain_for=DAY_MICROS))

    async def call() -> None:
        must_be(Replay, await store.claim(wish))

    return call


def async_engine_fresh(engine: AsyncEngine) -> AsyncCall:
    async def call() -> object:
        return await engine.run(_work, scope=SCOPE, key=fresh_key())

    return call


async def async_engine_replay(engine: AsyncEngine) -> AsyncCall:
    key = fresh_key()
    must_be(dict, await engine.run(_work, scope=SCOPE, key=key))

    async def never(ctx: Context) -> object:
        return _never(ctx)

    async def call() -> object:
        return await engine.run(never, scope=SCOPE, key=key)

    return call


async def _work(_: Context) -> dict[str, Any]:
    return RESULT


def _never(_: Context) -> object:
    raise WrongAnswerError("the work of a finished record was run again")
