"""A store of either kind behind plain calls, so that one suite examines both."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sameas.once.errors import StoreError
from sameas.once.record import Answer, Claim, ClaimRequest, Identity, Lease, Outcome, Record, Renewal
from sameas.once.store import AsyncStore, Page, Query, Selection, Store


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
