"""The life of one call, from the first look to the answer, as a script that threads and tasks share.

It yields a back end's own commands and two of its own, `Work` and `Pause`. Whatever interrupts it, `abandon` leaves
no claim behind.
"""

from __future__ import annotations

from collections.abc import Callable
from random import uniform
from time import monotonic
from typing import assert_never

import msgspec
from msgspec.structs import replace

from sameas.identity.key import Former, differing_fields
from sameas.once.call_state import DONE, FAILED, HELD, CallState
from sameas.once.codec import (
    JSON,
    frame,
)
from sameas.once.context import Context
from sameas.once.errors import (
    InProgress,
    KeyReused,
    OutcomeUnknown,
    StoreClosed,
    StoreError,
    StoreUnavailable,
    Superseded,
    TransactionEnded,
)
from sameas.once.forks import this_process
from sameas.once.former import is_mark, look_back, take_away
from sameas.once.in_flight import InFlightCall
from sameas.once.observe import CallEnded, CallStarted, Emit
from sameas.once.record import (
    Accepted,
    Acquired,
    Answer,
    Busy,
    Claim,
    Lost,
    Mismatch,
    Outcome,
    ProcessingRecord,
    Record,
    Replay,
)
from sameas.once.script import Script
from sameas.once.steps import Listener, Pause, Work

# The first looks of a waiter come soon, later ones less often, up to the back end's bound.
_FIRST_POLL = 0.002
# A row that was locked for longer than the store waits is tried again after this.
_LOCKED_POLL = 0.01
# A lease that ends is looked at a moment later, by the store's clock.
_AFTER_LEASE = 0.002
# Beyond this a result may be what a store cannot take, and not the store what is down.
_LARGE = 65_536
# The times of a result that the store never saw.
_NOT_STORED = Accepted(at=0, expires_at=0)


class Call(CallState):
    """One caller's wish, and its life."""

    def script(self) -> Script[ProcessingRecord]:
        """The whole call."""
        self.refuse_reentry()
        while (in_flight := self.join_or_lead()) is not self.in_flight:
            shared = yield from self._follow(in_flight)
            if shared is not None:
                return shared
        self.begin_claim()
        claim = yield from self.backend.claim(self.request)
        self.claiming = type(claim) is Acquired
        if type(claim) is not Replay:
            if type(claim) is Busy:
                self._waited_for_row()
            return (yield from self.lead(claim))
        # Most calls end here.
        self.kept = claim.record
        self.finish()
        return self.replayed(claim.record)

    def in_transaction(self) -> Script[ProcessingRecord]:
        """The whole call inside the caller's transaction: its row lock is the claim, its commit is the completion."""
        self.refuse_reentry()
        self.joined = True
        self.begin_claim()
        claim = yield from self._claim_row()
        while isinstance(claim, Mismatch) and (yield from self._asks_again(claim.fingerprint)):
            claim = yield from self._claim_row()
        if isinstance(claim, Acquired) and self.former_key is not None:
            claim = yield from self._looked_back(claim, self.former_key)
        match claim:
            case Replay(record=record):
                return self.replayed(record)
            case Mismatch(fingerprint=theirs):
                raise KeyReused(fields=differing_fields(self.request.fingerprint, theirs))
            case Busy(time_left=time_left):
                raise InProgress(retry_after=max(time_left / 1e6, 0.1))
            case Acquired():
                context = self.context or self.acquired(claim)
            case _:
                assert_never(claim)
        result = yield Work(self.work, context, self.policy, leased=False)
        if context.process is not this_process():
            raise _forked()
        self.outcome, result = self._packed(result)
        answer = yield from self.backend.complete(context.lease, self.outcome, self.policy.retention_micros)
        if isinstance(answer, Lost):
            # Nobody else could have taken it: the row was locked.
            raise TransactionEnded
        return self._fresh(context, answer, result)

    def _claim_row(self) -> Script[Claim]:
        """Claim in the caller's transaction, and wait for another one that holds the row."""
        claim = yield from self.backend.claim(self.request)
        if type(claim) is Busy:
            self._waited_for_row()
        # Who holds a lease is not waited for: it may need what is locked here.
        while isinstance(claim, Busy) and not claim.attempt and self._wait_left() > 0 and self.policy.on_busy == "wait":
            yield from self._pause(min(_LOCKED_POLL, self._wait_left()), None)
            self._be_patient()
            claim = yield from self.backend.claim(self.request)
        return claim

    def lead(self, claim: Claim | None = None) -> Script[ProcessingRecord]:
        """Claim and, where it is ours, do the work; `claim` is the answer if the claim was made already."""
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
                    case Acquired():
                        if self.context is not None and monotonic() >= self.context.safe_until:
                            claim = yield from self._still_ours(claim, self.context)
                        elif self.former_key is not None:
                            claim = yield from self._looked_back(claim, self.former_key)
                        else:
                            return (yield from self._work(claim))
                        continue
                    case Replay(record=record):
                        self.kept = record
                        return self.replayed(record)
                    case Mismatch(fingerprint=theirs):
                        if (yield from self._asks_again(theirs)):
                            claim = None
                            continue
                        raise KeyReused(fields=differing_fields(self.request.fingerprint, theirs))
                    case Busy():
                        pass
                    case _:
                        assert_never(claim)
                time_left = claim.time_left / 1e6
                wait_left = self._wait_left()
                if self.policy.on_busy == "refuse" or wait_left <= 0:
                    raise InProgress(retry_after=max(time_left, 0.1))
                if listener is None:
                    listener = self.new_listener()
                    if self.backend.waker is not None:
                        stop_listening = self.backend.waker.listen(self.request.identity.digest, listener.wake)
                else:
                    seconds = min(poll, time_left + _AFTER_LEASE, wait_left)
                    yield from self._pause(seconds if stop_listening else seconds * uniform(0.75, 1), listener)
                    poll = min(poll * 2, self.backend.poll_at_most)
                    listener.clear()
                # With the listener in place before the next look, no change is missed.
                claim = None
                self._be_patient()
        finally:
            if stop_listening is not None:
                stop_listening()
            self.finish()

    def _still_ours(self, claim: Acquired, context: Context) -> Script[Claim]:
        """A claim that waited for its turn in a batch while nobody answered its renewals: ask before the work."""
        self.begin_claim()
        again = yield from self.backend.claim(self.request)
        self.claiming = isinstance(again, Acquired)
        if isinstance(again, Acquired) and again.fence == claim.fence:
            self.claiming = False
            context.safe_until = self.claimed_from + self.policy.lease
        else:
            # Its renewals are refused from now on, and so they end.
            self.context = None
        return again

    def _looked_back(self, claim: Acquired, former: Former) -> Script[Claim]:
        """What a claim that is ours comes to, with what there is under the former key."""
        context = self.context or self.acquired(claim)
        key = former()
        if key is not None:
            past = yield from look_back(self.backend, self.request, key)
            if past.answer is not None:
                yield from self.backend.release(context.lease)
                self.context = None
                return Replay(past.answer) if isinstance(past.answer, Record) else past.answer
            self.mark = past.mark
            if past.identity is not None:
                context.formerly, context.attempt = past.identity, past.attempts + 1
        self.former_key = None
        return claim

    def _asks_again(self, theirs: str) -> Script[bool]:
        """Whether a record of another fingerprint stands in the way only because types had no tags before."""
        if is_mark(theirs):
            yield from take_away(self.backend, self.request, theirs)
            return True
        former, self.former_print = self.former_print, None
        if former is None or former() != theirs:
            return False
        self.request = replace(self.request, fingerprint=theirs)
        return True

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

    def _follow(self, in_flight: InFlightCall) -> Script[ProcessingRecord | None]:
        """Wait for somebody in this process; None if they had nothing to share."""
        listener = self.new_listener()
        if not self.in_flight_calls.follow(in_flight, listener.wake, at_most=self.policy.max_waiters):
            return None
        try:
            while not in_flight.landed:
                if in_flight.working:
                    if in_flight.fingerprint != self.request.fingerprint:
                        raise KeyReused(fields=differing_fields(self.request.fingerprint, in_flight.fingerprint))
                    if self.policy.on_busy == "refuse":
                        raise InProgress
                wait_left = self._wait_left()
                if wait_left <= 0:
                    raise InProgress
                yield from self._pause(wait_left, listener)
                listener.clear()
        finally:
            self.in_flight_calls.leave(in_flight, listener.wake)
        if in_flight.record is None or in_flight.fingerprint != self.request.fingerprint:
            return None
        return self.replayed(in_flight.record, stored=in_flight.stored)

    def _pause(self, seconds: float, listener: Listener | None) -> Script[None]:
        began = monotonic()
        yield Pause(seconds, listener)
        self.waited += monotonic() - began

    def _work(self, claim: Acquired) -> Script[ProcessingRecord]:
        """Do the work and hand in its result."""
        in_flight = self.in_flight
        if in_flight is not None:
            in_flight.working = True
            if in_flight.followers:
                self.in_flight_calls.wake_followers(in_flight)
        context = self.context or self.acquired(claim)
        try:
            result = yield Work(self.work, context, self.policy)
        except Exception as error:
            return (yield from self._failed(context, error))
        if context.process is not this_process():
            raise _forked()
        self.outcome, result = self._packed(result)
        answer: Answer | None
        try:
            answer = yield from self.backend.complete(context.lease, self.outcome, self.policy.retention_micros)
        except Exception as error:
            answer = yield from self._hand_in_late(context, self.outcome, error)
        self.context = None
        if isinstance(answer, Lost):
            return (yield from self._accepted_instead())
        if in_flight is not None and in_flight.followers:
            self._share(DONE, context, self.outcome, answer or _NOT_STORED)
        if answer is None and self.policy.on_unstored == "raise":
            raise OutcomeUnknown(result=result) from self.trouble
        return self._fresh(context, answer or _NOT_STORED, result)

    def _failed(self, context: Context, error: Exception) -> Script[ProcessingRecord]:
        """The work's own error, unless somebody else's result was accepted meanwhile."""
        if context.process is not this_process() or (yield from self._gave_back(context, error)):
            raise error
        try:
            return (yield from self._accepted_instead())
        except Superseded as superseded:
            raise superseded from error

    def _gave_back(self, context: Context, error: Exception) -> Script[bool]:
        """Give the claim back, or keep the failure if the policy says so; False if it was another's already."""
        answer: Answer | None = None
        try:
            if isinstance(error, self.policy.keep_errors):
                outcome = _failure(error)
                answer = yield from self.backend.fail(context.lease, outcome, self.policy.retry_window_micros)
                if isinstance(answer, Accepted):
                    self._share(FAILED, context, outcome, answer)
            else:
                answer = yield from self.backend.release(context.lease)
                if self.mark is not None:
                    yield from self.backend.release(self.mark)
        except StoreError as trouble:
            error.add_note(f"sameas could not give the claim back ({trouble}); it ends with its lease")
        self.context = None
        return not isinstance(answer, Lost)

    def _hand_in_late(self, context: Context, outcome: Outcome, error: Exception) -> Script[Answer | None]:
        """Complete, again and again where the store does not answer; a repeated complete is harmless. None if it
        was in vain."""
        hand_in_for = self.policy.hand_in_for
        began = monotonic()
        deadline, delay = context.safe_until if hand_in_for is None else began + hand_in_for, 0.01
        # Some stores close the connection on what is too large for them, or have no memory for it, and sound as if
        # they were down. The word that it is done is short, and has the last quarter of the time.
        is_large = len(outcome.data) > _LARGE
        whole_until = deadline - (deadline - began) / 4 if is_large else deadline
        while True:
            if isinstance(error, StoreUnavailable):
                left = deadline - monotonic()
                if is_large and not self.not_kept and monotonic() >= whole_until:
                    outcome = self.outcome = self._nothing_kept(error)
                elif left > 0 and not isinstance(error, StoreClosed):
                    yield Pause(min(delay * uniform(0.5, 1), left))
                    delay = min(delay * 2, 0.5)
                elif error.maybe_applied or self.not_kept:
                    break
                else:
                    # It says that it cannot take this: a full disk may still have room for the word that it is done.
                    outcome = self.outcome = self._nothing_kept(error)
            elif self.not_kept:
                break
            else:
                outcome = self.outcome = self._nothing_kept(error)
            try:
                return (yield from self.backend.complete(context.lease, outcome, self.policy.retention_micros))
            except Exception as again:
                error = again
        self.stored, self.trouble = False, error
        return None

    def _accepted_instead(self) -> Script[ProcessingRecord]:
        """This worker was replaced while it worked; its caller gets what was accepted, never its own result."""
        poll = _FIRST_POLL
        while True:
            record = yield from self.backend.read(self.request.identity)
            if record is None or record.fingerprint != self.request.fingerprint:
                raise Superseded
            if record.state is not HELD:
                self.kept = record
                return self.replayed(record)
            if self._wait_left() <= 0 or self.policy.on_busy == "refuse":
                raise Superseded
            yield from self._pause(poll, None)
            poll = min(poll * 2, 0.1)


def _forked() -> Superseded:
    return Superseded("This process was forked inside the work; the record belongs to its parent.")


def _failure(error: Exception) -> Outcome:
    message = str(error).encode("utf-8", "backslashreplace").decode()
    described = {"type": type(error).__qualname__, "message": message}
    return Outcome(frame(msgspec.json.encode(described)), JSON)


def observed(script: Script[ProcessingRecord], call: Call, emit: Emit) -> Script[ProcessingRecord]:
    """A call whose beginning and end are told. What observers note at its beginning is stored with the record."""
    started = CallStarted(call.request.identity, {})
    emit(started)
    if started.audit and not call.claiming and call.context is None:
        call.note(started.audit)
    began = monotonic()
    try:
        record = yield from script
    except BaseException as error:
        emit(CallEnded(started, type(error).__name__, monotonic() - began, call.waited, 0, error, stored=call.stored))
        raise
    how = "fresh" if not record.was_replay else "shared" if call.waited else "replay"
    emit(
        CallEnded(
            started,
            how,
            monotonic() - began,
            call.waited,
            record.attempt,
            stored=record.stored,
            kept=not record.not_kept,
        )
    )
    return record
