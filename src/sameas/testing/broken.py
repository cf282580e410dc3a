"""Stores with one defect each, taken from life. The suite is worth something only while it rejects all of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from msgspec.structs import replace

from sameas.identity.key import record_digest
from sameas.once import protocol
from sameas.once.record import (
    LOST,
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
    Renewal,
    State,
)
from sameas.once.script import Script
from sameas.once.store import Page, Query, Renewed, Selection, Store
from sameas.stores.memory import MemoryBackend
from sameas.testing.clock import MovableClock
from sameas.testing.conformance import StoreConformance
from sameas.testing.examined import Capabilities


class BrokenBackend(MemoryBackend):
    """A memory store with a defect; `caught_by` names tests that must reject it."""

    caught_by: ClassVar[Sequence[str]] = ()

    def _record(self, digest: bytes) -> Record | None:
        return self._records.get(digest)

    def _as_holder(self, lease: Lease) -> Lease:
        """A lease that passes for the record's own."""
        record = self._record(lease.identity.digest)
        return lease if record is None else Lease(lease.identity, record.fence, record.attempt_id)


class UnfencedComplete(BrokenBackend):
    """Takes a result from whoever comes."""

    caught_by = ("test_complete_with_an_old_fence_changes_nothing",)

    def complete(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        return super().complete(self._as_holder(lease), outcome, retain_for)


class FenceAlone(BrokenBackend):
    """Checks the fence but not the attempt."""

    caught_by = ("test_complete_needs_the_right_attempt_too",)

    def complete(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        attempt = self._as_holder(lease).attempt_id
        return super().complete(Lease(lease.identity, lease.fence, attempt), outcome, retain_for)


class AttemptAlone(BrokenBackend):
    """Checks the attempt but not the fence."""

    caught_by = ("test_complete_needs_the_right_fence_too",)

    def complete(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        fence = self._as_holder(lease).fence
        return super().complete(Lease(lease.identity, fence, lease.attempt_id), outcome, retain_for)


class CheckThenAct(BrokenBackend):
    """Looks first and writes later, in two steps that others can get between."""

    caught_by = ("test_one_of_many_simultaneous_claims_wins",)

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        now: int = yield lambda records, now: now
        after, claim = protocol.claim(self._record(request.identity.digest), request, now)
        yield lambda records, now: time.sleep(0.001)
        if isinstance(claim, Acquired) and after is not None:
            yield partial(_put, after)
        return claim

    def perform(self, command: Any) -> Any:
        return command(self._records, self._clock())

    async def aperform(self, command: Any) -> Any:
        return self.perform(command)


class WorkerClock(BrokenBackend):
    """Judges a lease by the worker's clock; some workers' clocks are slow."""

    caught_by = ("test_expired_lease_is_taken_over_with_a_higher_fence",)

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        slow = 0 if request.attempt_id.endswith("1") else request.lease_for // 2
        claim: Claim = yield lambda records, now: _claim_at(records, request, now - slow)
        return claim


class SameFenceAgain(BrokenBackend):
    """Hands the old fence to the one who takes over."""

    caught_by = ("test_expired_lease_is_taken_over_with_a_higher_fence",)

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        before = self._record(request.identity.digest)
        claim = yield from super().claim(request)
        if isinstance(claim, Acquired) and before is not None:
            self._records[request.identity.digest] = replace(self._records[request.identity.digest], fence=before.fence)
            return Acquired(before.fence, claim.attempt)
        return claim


class FenceFromOne(BrokenBackend):
    """Counts fences per record and begins anew when the record was gone."""

    caught_by = ("test_released_record_is_claimed_again_with_a_higher_fence",)

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        before = self._record(request.identity.digest)
        claim = yield from super().claim(request)
        if isinstance(claim, Acquired) and before is None:
            self._records[request.identity.digest] = replace(self._records[request.identity.digest], fence=1)
            return Acquired(1, claim.attempt)
        return claim


class AnyRequest(BrokenBackend):
    """Serves whatever is stored under the key, whatever was asked."""

    caught_by = ("test_other_fingerprint_is_a_mismatch_when_done",)

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        record = self._record(request.identity.digest)
        return super().claim(request if record is None else replace(request, fingerprint=record.fingerprint))


class LeaseBeforeFingerprint(BrokenBackend):
    """Lets another request take over once the lease is over."""

    caught_by = ("test_other_fingerprint_is_a_mismatch_after_the_lease",)

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        claim = yield from super().claim(request)
        record = self._record(request.identity.digest)
        now: int = yield lambda records, now: now
        if isinstance(claim, Mismatch) and record is not None and record.state is State.HELD:
            if record.lease_until > now:
                return claim
            yield partial(_drop, request.identity.digest)
            return (yield from super().claim(request))
        return claim


class ReleaseByAnyone(BrokenBackend):
    """Deletes the lock without looking whose it is."""

    caught_by = ("test_release_with_an_old_fence_changes_nothing",)

    def release(self, lease: Lease) -> Script[Answer]:
        return super().release(self._as_holder(lease))


class RenewByAnyone(BrokenBackend):
    """Lets a late heartbeat move its successor's lease."""

    caught_by = ("test_renew_with_an_old_fence_is_lost_and_does_not_help_the_successor",)

    def renew(self, lease: Lease, lease_for: int, retain_for: int) -> Script[Answer]:
        return super().renew(self._as_holder(lease), lease_for, retain_for)


class RenewsTheFirst(BrokenBackend):
    """Renews the first of many leases and says the same of all."""

    caught_by = ("test_many_leases_are_renewed_together_and_answered_in_their_order",)

    def renew_many(self, renewals: Sequence[Renewal]) -> Sequence[Script[Renewed]]:
        return [self._renew_first(renewals)] if renewals else []

    def _renew_first(self, renewals: Sequence[Renewal]) -> Script[Renewed]:
        answers = yield from self.renew_alone(renewals[0])
        return [*answers] * len(renewals)


class LeaseIsLife(BrokenBackend):
    """Lets a held record expire with its lease, so that a takeover looks like a first try."""

    caught_by = ("test_held_record_outlives_its_lease_so_that_a_takeover_finds_it",)

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        return super().claim(replace(request, retain_for=request.lease_for))


class SetIfAbsent(BrokenBackend):
    """Tells an attempt whose reply was lost that somebody else has its claim."""

    caught_by = ("test_same_attempt_claims_again_and_keeps_its_fence",)

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        record = self._record(request.identity.digest)
        if record is not None and record.state is State.HELD and record.attempt_id == request.attempt_id:
            return Busy(request.lease_for)
        return (yield from super().claim(request))


class OneCompleteOnly(BrokenBackend):
    """Tells an attempt whose reply was lost that its result was refused."""

    caught_by = ("test_repeated_complete_of_the_same_attempt_is_accepted_again",)

    def complete(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        record = self._record(lease.identity.digest)
        if record is not None and record.state is State.DONE:
            return LOST
        return (yield from super().complete(lease, outcome, retain_for))


class LastWriteWins(BrokenBackend):
    """Lets a failure replace a result."""

    caught_by = ("test_done_record_does_not_become_failed",)

    def fail(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        record = self._record(lease.identity.digest)
        if record is not None:
            self._records[lease.identity.digest] = replace(record, state=State.HELD)
        return (yield from super().fail(lease, outcome, retain_for))


class NeverExpires(BrokenBackend):
    """Serves results past their time."""

    caught_by = ("test_expired_record_is_claimed_as_new_with_a_higher_fence", "test_expired_record_is_not_read")

    def complete(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        return super().complete(lease, outcome, retain_for * 1_000)


class FoldsCase(BrokenBackend):
    """Indexes by a collation that takes A for a, and blanks at the end for nothing."""

    caught_by = ("test_tenants_scopes_and_keys_are_independent",)

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        identity = request.identity
        digest = record_digest(identity.tenant, identity.scope, identity.key.lower().rstrip())
        folded = Identity(digest, identity.tenant, identity.scope, identity.key)
        return super().claim(replace(request, identity=folded))


class TextColumn(BrokenBackend):
    """Keeps bytes in a text column."""

    caught_by = ("test_bytes_come_back_as_they_were",)

    def complete(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        lossy = outcome.data.decode("utf-8", "replace").encode()
        return super().complete(lease, replace(outcome, data=lossy), retain_for)


class EmptyIsMissing(BrokenBackend):
    """Takes an empty result for none."""

    caught_by = ("test_empty_result_is_a_result",)

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        record = self._record(request.identity.digest)
        if record is not None and record.outcome is not None and not record.outcome.data:
            yield partial(_drop, request.identity.digest)
        return (yield from super().claim(request))


class TagPrefix(BrokenBackend):
    """Forgets every tag that begins like the one that was named."""

    caught_by = ("test_forget_by_scope_tenant_and_tag",)

    def forget_where(self, selection: Selection) -> Script[int]:
        count = 0
        for record in list(self._records.values()):
            for tag in record.about.tags:
                if selection.tag is not None and tag.startswith(selection.tag):
                    yield partial(_drop, record.identity.digest)
                    count += 1
                    break
        return count if selection.tag is not None else (yield from super().forget_where(selection))


class OverlappingPages(BrokenBackend):
    """Begins a page with the last record of the one before."""

    caught_by = ("test_pages_hold_every_record_once_newest_first",)

    def find(self, query: Query) -> Script[Page]:
        page = yield from super().find(query)
        if query.after is None or page.next is None:
            return page
        return Page([page.records[0], *page.records], page.next)


class PrunesTheLiving(BrokenBackend):
    """Deletes whatever was there first."""

    caught_by = ("test_prune_deletes_expired_records_in_batches_and_nothing_else",)

    def prune(self, limit: int) -> Script[int]:
        gone: int = yield lambda records, now: len([records.pop(digest) for digest in list(records)[:limit]])
        return gone


class OpenForEver(BrokenBackend):
    """Goes on after it was closed."""

    caught_by = ("test_a_closed_store_answers_nobody_and_can_be_closed_again",)

    def close(self) -> None:
        pass


def _put(record: Record, records: dict[bytes, Record], now: int) -> None:
    records[record.identity.digest] = record


def _drop(digest: bytes, records: dict[bytes, Record], now: int) -> None:
    records.pop(digest, None)


def _claim_at(records: dict[bytes, Record], request: ClaimRequest, now: int) -> Claim:
    after, claim = protocol.claim(records.get(request.identity.digest), request, now)
    if after is not None:
        records[request.identity.digest] = after
    return claim


BROKEN: tuple[type[BrokenBackend], ...] = tuple(BrokenBackend.__subclasses__())


def suite_for(backend: type[MemoryBackend]) -> type[StoreConformance]:
    """The conformance suite over a memory back end."""

    class Suite(StoreConformance):
        capabilities = Capabilities(movable_clock=True)

        def open(self) -> Store:
            self.clock = MovableClock()
            return Store(backend(self.clock))

        def advance(self, seconds: float) -> None:
            self.clock.advance(seconds)

    return Suite
