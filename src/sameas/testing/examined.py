"""A store under examination: opened empty for each test, spoken to in plain calls, its time let pass. Stores for
threads and stores for tasks are examined by one suite.

A step on the way to what a test shows must succeed; what is shown is in `contract`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

from sameas.identity.key import record_digest
from sameas.once.errors import StoreError
from sameas.once.record import (
    About,
    Accepted,
    Acquired,
    Answer,
    Claim,
    ClaimRequest,
    Identity,
    Lease,
    Outcome,
    Record,
    Renewal,
    Replay,
)
from sameas.once.store import AsyncStore, Page, Query, Selection, Store

SECOND = 1_000_000
OUTCOME = Outcome(b"the result", "text/plain", {"status": 201, "headers": {"x-a": "1"}})
OTHER = Outcome(b"another result", "text/plain")


@dataclass(frozen=True)
class Capabilities:
    """What a store can do, instead of its name in the tests."""

    # `advance` moves the store's clock at once; otherwise it waits.
    movable_clock: bool = False
    # Lists and forgets by tag, scope and tenant.
    searchable: bool = True


class Examined:
    """One open store and the ways to talk to it."""

    capabilities: ClassVar[Capabilities] = Capabilities()
    # Long enough for a slow machine to do a step within it, short enough to wait for.
    lease: ClassVar[float] = 0.4
    retention: ClassVar[float] = 60.0

    store: Driven

    def open(self) -> Store | AsyncStore:
        """The store under examination, empty."""
        raise NotImplementedError

    def advance(self, seconds: float) -> None:
        """Let the store's time pass."""
        time.sleep(seconds)

    def setup_method(self) -> None:
        self.store = Driven(self.open())

    def teardown_method(self) -> None:
        self.store.close()

    def request(
        self,
        key: str = "key",
        *,
        attempt: str = "a1",
        fingerprint: str = "f",
        scope: str = "scope",
        tenant: str = "tenant",
        lease: float | None = None,
        retention: float | None = None,
        about: About | None = None,
    ) -> ClaimRequest:
        return ClaimRequest(
            identity(key, scope=scope, tenant=tenant),
            fingerprint,
            attempt,
            round((lease or self.lease) * SECOND),
            round((retention or self.retention) * SECOND),
            about or About(),
        )

    def hold(self, request: ClaimRequest) -> Lease:
        """Claim, which must succeed."""
        claim = self.store.claim(request)
        assert isinstance(claim, Acquired), f"expected to acquire, got {claim}"
        return Lease(request.identity, claim.fence, request.attempt_id)

    def finish(self, key: str = "key", outcome: Outcome = OUTCOME, **words: str) -> Lease:
        """Claim and complete."""
        lease = self.hold(self.request(key, **words))  # type: ignore[arg-type]
        assert isinstance(self.complete(lease, outcome), Accepted)
        return lease

    def complete(self, lease: Lease, outcome: Outcome = OUTCOME, *, retention: float | None = None) -> object:
        return self.store.complete(lease, outcome=outcome, retain_for=round((retention or self.retention) * SECOND))

    def fail(self, lease: Lease, outcome: Outcome = OUTCOME, *, window: float = 30.0) -> object:
        return self.store.fail(lease, outcome=outcome, retain_for=round(window * SECOND))

    def renew(self, lease: Lease) -> object:
        return self.store.renew(lease, lease_for=round(self.lease * SECOND), retain_for=round(self.retention * SECOND))

    def renew_many(self, leases: Sequence[Lease], *, lease: float) -> list[Answer | StoreError]:
        return self.store.renew_many(
            [Renewal(each, round(lease * SECOND), round(self.retention * SECOND)) for each in leases]
        )

    def read(self, key: str = "key", *, scope: str = "scope", tenant: str = "tenant") -> Record | None:
        return self.store.read(identity(key, scope=scope, tenant=tenant))

    def pass_lease(self) -> None:
        self.advance(self.lease + 0.01)


def identity(key: str = "key", *, scope: str = "scope", tenant: str = "tenant") -> Identity:
    return Identity(record_digest(tenant, scope, key), tenant, scope, key)


def replayed(claim: Claim) -> Record:
    assert isinstance(claim, Replay), f"expected a replay, got {claim}"
    return claim.record


class Driven:
    """Calls a Store directly, an AsyncStore on an event loop of its own."""

    def __init__(self, store: Store | AsyncStore) -> None:
        self.store = store
        self._loop = asyncio.new_event_loop() if isinstance(store, AsyncStore) else None

    def claim(self, request: ClaimRequest) -> Claim:
        answer: Claim = self._answer(self.store.claim(request))
        return answer

    def claim_many(self, requests: Sequence[ClaimRequest]) -> list[Claim]:
        answer: list[Claim] = self._answer(self.store.claim_many(requests))
        return answer

    def claim_at_once(self, requests: Sequence[ClaimRequest]) -> list[Claim]:
        """All claims at the same moment: from threads, or from tasks."""
        store = self.store
        if isinstance(store, Store):
            with ThreadPoolExecutor(len(requests)) as threads:
                return list(threads.map(store.claim, requests))

        async def gather() -> list[Claim]:
            return list(await asyncio.gather(*(store.claim(request) for request in requests)))

        answer: list[Claim] = self._answer(gather())
        return answer

    def renew(self, lease: Lease, *, lease_for: int, retain_for: int) -> Answer:
        answer: Answer = self._answer(self.store.renew(lease, lease_for=lease_for, retain_for=retain_for))
        return answer

    def renew_many(self, renewals: Sequence[Renewal]) -> list[Answer | StoreError]:
        answer: list[Answer | StoreError] = self._answer(self.store.renew_many(renewals))
        return answer

    def complete(self, lease: Lease, *, outcome: Outcome, retain_for: int) -> Answer:
        answer: Answer = self._answer(self.store.complete(lease, outcome=outcome, retain_for=retain_for))
        return answer

    def fail(self, lease: Lease, *, outcome: Outcome, retain_for: int) -> Answer:
        answer: Answer = self._answer(self.store.fail(lease, outcome=outcome, retain_for=retain_for))
        return answer

    def release(self, lease: Lease) -> Answer:
        answer: Answer = self._answer(self.store.release(lease))
        return answer

    def forget(self, identity: Identity) -> Answer:
        answer: Answer = self._answer(self.store.forget(identity))
        return answer

    def read(self, identity: Identity) -> Record | None:
        answer: Record | None = self._answer(self.store.read(identity))
        return answer

    def forget_where(self, selection: Selection) -> int:
        answer: int = self._answer(self.store.forget_where(selection))
        return answer

    def find(self, query: Query) -> Page:
        answer: Page = self._answer(self.store.find(query))
        return answer

    def prune(self, limit: int = 1_000) -> int:
        answer: int = self._answer(self.store.prune(limit))
        return answer

    def close_store(self) -> None:
        """Close the store; it can still be asked."""
        self._answer(self.store.close())

    def close(self) -> None:
        self.close_store()
        if self._loop is not None:
            self._loop.close()

    def _answer(self, answer: Any) -> Any:
        if isinstance(answer, Coroutine):
            assert self._loop is not None
            return self._loop.run_until_complete(answer)
        return answer
