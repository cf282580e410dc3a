"""The life of one call, from the first look to the answer, as a script that threads and tasks share.

It yields a back end's own commands and two of its own, `Work` and `Pause`. Whatever interrupts it, `abandon` leaves
no claim behind.
"""

from __future__ import annotations

from collections.abc import Callable
from random import uniform
from time import monotonic
from typing import Any, assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sameas.identity.key import differing_fields
from sameas.once.codec import JSON, Codec, OutcomeCodec, frame, pack, unframe, unpack
from sameas.once.context import WORKING, Context
from sameas.once.errors import (
    InProgress,
    KeyReused,
    OutcomeUnknown,
    Reentered,
    StoredFailure,
    StoreError,
    StoreUnavailable,
    Superseded,
)
from sameas.once.flight import Flight, Flights
from sameas.once.forks import this_process
from sameas.once.listener import Listener
from sameas.once.observe import CallEnded, CallStarted, Tell
from sameas.once.policy import Policy
from sameas.once.processing_record import ProcessingRecord
from sameas.once.record import (
    Accepted,
    Acquired,
    Answer,
    Busy,
    Claim,
    ClaimRequest,
    Lease,
    Lost,
    Mismatch,
    Outcome,
    Record,
    Replay,
    State,
)
from sameas.once.script import Script
from sameas.once.steps import Pause, Work
from sameas.once.store import Backend

# The first looks of a waiter come soon, later ones less often, up to the back end's bound.
_FIRST_POLL = 0.002
# A lease that ends is looked at a moment later, by the store's clock.
_AFTER_LEASE = 0.002
# The times of a result that the store never saw.
_NOT_STORED = Accepted(at=0, expires_at=0)


class Call(Struct, eq=False):
    """One caller's wish, and how far it has come."""

    request: ClaimRequest
    work: Callable[[Context], Any]
    policy: Policy
    codec: Codec | OutcomeCodec
    backend: Backend
    flights: Flights
    new_listener: Callable[[], Listener]
    # Where it stands, for `abandon`: a claim may be under way (until `acquired` says that it is ours), a lease held,
    # a result in hand.
    claiming: bool = False
    claimed_from: float = 0.0
    context: Context | None = None
    outcome: Outcome | None = None
    # In the caller's transaction nothing is given back: it rolls back.
    joined: bool = False
    # The flight that this call leads, and what those who follow it share.
    flight: Flight | None = None
    kept: Record | None = None
    stored: bool = True
    # Until when it waits for others, over all of them, and how many seconds it did.
    deadline: float = 0.0
    waited: float = 0.0

    def script(self) -> Script[ProcessingRecord]:
        """The whole call."""
        self.refuse_reentry()
        while (flight := self.board()) is not self.flight:
            shared = yield from self._follow(flight)
            if shared is not None:
                return shared
        return (yield from self.lead())

    def recalled(self) -> ProcessingRecord | None:
        """The answer, where it is at hand in this process."""
        if WORKING.get():
            self.refuse_reentry()
        known = self.backend.recall(self.request)
        return None if known is None else self.replayed(known.record)

    def takes_off(self) -> bool:
        """Whether nobody in this process is at this key: then the claim is this call's to make, now."""
        if WORKING.get():
            self.refuse_reentry()
        request = self.request
        self.flight = flight = Flight(request.fingerprint)
        if self.flights.board(request.identity.digest, flight) is not flight:
            return False
        self.claimed_from = monotonic()
        self.claiming = True
        return True

    def lands(self, replay: Replay) -> ProcessingRecord:
        """The end of a call that took off and found the work done."""
        self.claiming = False
        record = self.kept = replay.record
        if self.flight is not None:
            self.flights.land(record.identity.digest, self.flight, record)
        return self.replayed(record)

    def goes_on(self, claim: Claim) -> Script[ProcessingRecord]:
        """The rest of a call that took off and has something to do."""
        if type(claim) is Acquired:
            return self._work(claim)
        self.claiming = False
        return self.lead(claim)

    def board(self) -> Flight:
        """The key's flight: our own, which we then lead, or somebody else's."""
        # Ours is known before the table has it, so that an interruption between the two can be cleaned up.
        self.flight = Flight(self.request.fingerprint)
        return self.flights.board(self.request.identity.digest, self.flight)

    def land(self) -> None:
        """Let those who follow go on, with what there is to share."""
        if self.flight is not None:
            self.flights.land(self.request.identity.digest, self.flight, self.kept, stored=self.stored)

    def in_transaction(self) -> Script[ProcessingRecord]:
        """The whole call inside the caller's transaction: its row lock is the claim, its commit is the completion."""
        self.refuse_reentry()
        self.joined = True
        self.begin_claim()
        claim = yield from self.backend.claim(self.request)
        match claim:
            case Replay(record=record):
                return self.replayed(record)
            case Mismatch(fingerprint=theirs):
                raise KeyReused(fields=differing_fields(self.request.fingerprint, theirs))
            case Busy(time_left=time_left):
                raise InProgress(retry_after=max(time_left / 1e6, 0.1))
            case Acquired():
                context = self.acquired(claim)
            case _:
                assert_never(claim)
        result = yield Work(self.work, context, self.policy, leased=False)
        if context.process is not this_process():
            raise _forked()
        outcome, result = pack(result, self.codec)
        answer = yield from self.backend.complete(context.lease, outcome, self.policy.retention_micros)
        if isinstance(answer, Lost):
            raise Superseded
        return self._fresh(context, answer, result)

    def lead(self, claim: Claim | None = None) -> Script[ProcessingRecord]:
        """Claim and, where it is ours, do the work; `claim` is the answer where the claim was made already."""
        listener: Listener | None = None
        stop_listening: Callable[[], None] | None = None
        poll = _FIRST_POLL
        try:
            while True:
                if claim is None:
                    self.begin_claim()
                    claim = yield from self.backend.claim(self.request)
                    self.claiming = isinstance(claim, Acquired)
                match claim:
                    case Replay(record=record):
                        self.kept = record
                        return self.replayed(record)
                    case Acquired():
                        return (yield from self._work(claim))
                    case Mismatch(fingerprint=theirs):
                        raise KeyReused(fields=differing_fields(self.request.fingerprint, theirs))
                    case Busy():
                        pass
                    case _:
                        assert_never(claim)
                time_left = claim.time_left / 1e6
                patience = self._patience()
                if self.policy.on_busy == "refuse" or patience <= 0:
                    raise InProgress(retry_after=max(time_left, 0.1))
                if listener is None:
                    listener = self.new_listener()
                    if self.backend.waker is not None:
                        stop_listening = self.backend.waker.listen(self.request.identity.digest, listener.wake)
                else:
                    seconds = min(poll, time_left + _AFTER_LEASE, patience)
                    yield from self._pause(seconds if stop_listening else seconds * uniform(0.75, 1), listener)
                    poll = min(poll * 2, self.backend.poll_at_most)
                    listener.clear()
                # With the listener in place before the next look, no change is missed.
                claim = None
        finally:
            if stop_listening is not None:
                stop_listening()
            self.land()

    def acquired(self, claim: Acquired) -> Context:
        """The lease is ours."""
        lease = Lease(self.request.identity, claim.fence, self.request.attempt_id)
        safe_until = self.claimed_from + self.policy.lease
        self.context = Context(lease, claim.attempt, safe_until, self.backend.place)
        self.claiming = False
        return self.context

    def must_abandon(self, interruption: BaseException) -> bool:
        """Whether a claim may be left behind."""
        if self.joined:
            return False
        if self.context is not None:
            return self.context.process is this_process()
        unapplied = isinstance(interruption, StoreUnavailable) and not interruption.maybe_applied
        return self.claiming and not unapplied

    def abandon(self) -> Script[None]:
        """After an interruption: hand in the result if there is one, else give the claim back."""
        if self.claiming:
            # The claim may have been made without our hearing of it; the same attempt asks again and is told.
            claim = yield from self.backend.claim(self.request)
            if isinstance(claim, Acquired):
                self.acquired(claim)
        if self.context is None:
            return
        lease, self.context = self.context.lease, None
        if self.outcome is not None:
            yield from self.backend.complete(lease, self.outcome, self.policy.retention_micros)
        else:
            yield from self.backend.release(lease)

    def refuse_reentry(self) -> None:
        """Work that asks for its own result would wait for itself."""
        for context in WORKING.get():
            same_key = context.lease.identity.digest == self.request.identity.digest
            if same_key and context.place is self.backend.place and not context.ended:
                raise Reentered

    def _patience(self) -> float:
        """The seconds that are left to wait for others; one budget, however often the one in front changes."""
        now = monotonic()
        self.deadline = self.deadline or now + self.policy.wait_for
        return self.deadline - now

    def _follow(self, flight: Flight) -> Script[ProcessingRecord | None]:
        """Wait for somebody in this process; None where they had nothing to share."""
        listener = self.new_listener()
        if not self.flights.follow(flight, listener.wake, at_most=self.policy.max_waiters):
            return None
        try:
            while not flight.landed:
                if flight.working:
                    if flight.fingerprint != self.request.fingerprint:
                        raise KeyReused(fields=differing_fields(self.request.fingerprint, flight.fingerprint))
                    if self.policy.on_busy == "refuse":
                        raise InProgress
                patience = self._patience()
                if patience <= 0:
                    raise InProgress
                yield from self._pause(patience, listener)
                listener.clear()
        finally:
            self.flights.leave(flight, listener.wake)
        if flight.record is None or flight.fingerprint != self.request.fingerprint:
            return None
        return self.replayed(flight.record, stored=flight.stored)

    def _pause(self, seconds: float, listener: Listener | None) -> Script[None]:
        began = monotonic()
        yield Pause(seconds, listener)
        self.waited += monotonic() - began

    def begin_claim(self) -> None:
        """From now on a claim may be in the store without our knowing; the lease runs from here at the earliest."""
        self.claimed_from = monotonic()
        self.claiming = True

    def _work(self, claim: Acquired) -> Script[ProcessingRecord]:
        """Do the work, hand in its result, and land."""
        try:
            flight = self.flight
            if flight is not None:
                flight.working = True
                if flight.followers:
                    self.flights.tell(flight)
            context = self.context or self.acquired(claim)
            try:
                result = yield Work(self.work, context, self.policy)
                outcome, result = pack(result, self.codec)
            except Exception as error:
                return (yield from self._failed(context, error))
            if context.process is not this_process():
                raise _forked()
            self.outcome = outcome
            try:
                answer = yield from self.backend.complete(context.lease, outcome, self.policy.retention_micros)
            except StoreUnavailable as error:
                answer = yield from self._hand_in_late(context, outcome, result, error)
            self.context = None
            if type(answer) is not Accepted:
                return (yield from self._accepted_instead())
            if flight is not None and flight.followers:
                self._share(State.DONE, context, outcome, answer)
            return self._fresh(context, answer, result)
        finally:
            self.land()

    def _failed(self, context: Context, error: Exception) -> Script[ProcessingRecord]:
        """The work's own error, unless somebody else's result was accepted meanwhile."""
        if context.process is not this_process() or (yield from self._gave_back(context, error)):
            raise error
        try:
            return (yield from self._accepted_instead())
        except Superseded as superseded:
            raise superseded from error

    def _gave_back(self, context: Context, error: Exception) -> Script[bool]:
        """Give the claim back, or keep the failure where the policy says so; False where it was another's already."""
        answer: Answer | None = None
        try:
            if isinstance(error, self.policy.keep_errors):
                outcome = _failure(error)
                answer = yield from self.backend.fail(context.lease, outcome, self.policy.retry_window_micros)
                if isinstance(answer, Accepted):
                    self._share(State.FAILED, context, outcome, answer)
            else:
                answer = yield from self.backend.release(context.lease)
        except StoreError as trouble:
            error.add_note(f"sameas could not give the claim back ({trouble}); it ends with its lease")
        self.context = None
        return not isinstance(answer, Lost)

    def _hand_in_late(self, context: Context, outcome: Outcome, result: Any, error: StoreUnavailable) -> Script[Answer]:
        """Complete, with patience for a store that does not answer; a repeated complete is harmless."""
        deadline, delay = monotonic() + self.policy.patience, 0.01
        while monotonic() + delay < deadline:
            yield Pause(delay * uniform(0.5, 1))
            delay = min(delay * 2, 0.5)
            try:
                return (yield from self.backend.complete(context.lease, outcome, self.policy.retention_micros))
            except StoreUnavailable as again:
                error = again
        self.context = None
        if monotonic() >= context.safe_until:
            raise OutcomeUnknown(result=result) from error
        self.stored = False
        return _NOT_STORED

    def _accepted_instead(self) -> Script[ProcessingRecord]:
        """This worker was replaced while it worked; its caller gets what was accepted, never its own result."""
        poll = _FIRST_POLL
        while True:
            record = yield from self.backend.read(self.request.identity)
            if record is None or record.fingerprint != self.request.fingerprint:
                raise Superseded
            if record.state is not State.HELD:
                self.kept = record
                return self.replayed(record)
            if self._patience() <= 0 or self.policy.on_busy == "refuse":
                raise Superseded
            yield from self._pause(poll, None)
            poll = min(poll * 2, 0.1)

    def _share(self, state: State, context: Context, outcome: Outcome, answer: Accepted) -> None:
        """Have what was accepted ready for those who follow; who comes too late for it finds it in the store."""
        if self.flight is None or not self.flight.followers:
            return
        self.kept = Record(
            self.request.identity,
            self.request.fingerprint,
            state,
            context.fence,
            context.attempt,
            self.request.attempt_id,
            lease_until=0,
            created_at=0,
            expires_at=answer.expires_at,
            completed_at=answer.at,
            outcome=outcome,
        )

    def _fresh(self, context: Context, answer: Accepted, result: Any) -> ProcessingRecord:
        identity = self.request.identity
        return ProcessingRecord(
            result,
            False,
            identity.key,
            identity.scope,
            identity.tenant,
            context.attempt,
            context.lease.fence,
            answer.at,
            answer.expires_at,
            self.stored,
        )

    def replayed(self, record: Record, *, stored: bool = True) -> ProcessingRecord:
        """A record as the answer to this call."""
        assert record.outcome is not None
        if record.state is State.FAILED:
            failure = msgspec.json.decode(unframe(record.outcome.data))
            raise StoredFailure(failure["type"], failure["message"], expires_at=record.expires_at)
        identity = self.request.identity
        return ProcessingRecord(
            unpack(record.outcome, self.codec),
            True,
            identity.key,
            identity.scope,
            identity.tenant,
            record.attempt,
            record.fence,
            record.completed_at or 0,
            record.expires_at,
            stored,
        )


def _forked() -> Superseded:
    return Superseded("This process was forked inside the work; the record belongs to its parent.")


def _failure(error: Exception) -> Outcome:
    message = str(error).encode("utf-8", "backslashreplace").decode()
    described = {"type": type(error).__qualname__, "message": message}
    return Outcome(frame(msgspec.json.encode(described)), JSON)


def observed(script: Script[ProcessingRecord], call: Call, tell: Tell) -> Script[ProcessingRecord]:
    """A call whose beginning and end are told. What observers note at its beginning is stored with the record."""
    started = CallStarted(call.request.identity, {})
    tell(started)
    if started.audit and not call.claiming and call.context is None:
        about = replace(call.request.about, audit={**call.request.about.audit, **started.audit})
        call.request = replace(call.request, about=about)
    began = monotonic()
    try:
        record = yield from script
    except BaseException as error:
        tell(CallEnded(started, type(error).__name__, monotonic() - began, call.waited, error=error))
        raise
    how = "fresh" if not record.was_replay else "shared" if call.waited else "replay"
    tell(CallEnded(started, how, monotonic() - began, call.waited, record.attempt))
    return record
