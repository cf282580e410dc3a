"""What is known of a call on its way: whose it is, how far it has come, and what it answers.

`sameas.once.call` says what it does next. Whatever interrupts it, this says whether a claim may be left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sameas.identity.key import Former
from sameas.once.codec import (
    NOT_KEPT,
    Codec,
    OutcomeCodec,
    nothing_kept,
    opened,
    pack,
    unframe,
    unpack,
    why_not_kept,
)
from sameas.once.context import WORKING, Context
from sameas.once.errors import (
    OutcomeUnknown,
    Reentered,
    StoredFailure,
    StoreUnavailable,
)
from sameas.once.forks import this_process
from sameas.once.in_flight import InFlightCall, InFlightCalls
from sameas.once.policy import Policy, micros
from sameas.once.record import (
    Accepted,
    Acquired,
    ClaimRequest,
    Lease,
    Outcome,
    ProcessingRecord,
    Record,
    State,
)
from sameas.once.steps import Listener, refuse_unbegun
from sameas.once.store import Backend

# By names of their own: until Python 3.12 it takes long to look a member up on its class.
HELD, DONE, FAILED = State


class CallState(Struct, eq=False):
    """One caller's wish, and how far it has come."""

    request: ClaimRequest
    work: Callable[[Context], Any]
    policy: Policy
    codec: Codec | OutcomeCodec
    backend: Backend
    in_flight_calls: InFlightCalls
    new_listener: Callable[[], Listener]
    # Where it stands, for `abandon`: a claim may be under way (until `acquired` says that it is ours), a lease held,
    # a result in hand.
    claiming: bool = False
    claimed_from: float = 0.0
    context: Context | None = None
    outcome: Outcome | None = None
    # The key and the fingerprint before types had tags, where they may be others, and what was left under that key.
    former_key: Former | None = None
    former_print: Callable[[], str | None] | None = None
    mark: Lease | None = None
    # In the caller's transaction nothing is given back: it rolls back.
    joined: bool = False
    # The call in flight that this one leads, and what those who follow it share.
    in_flight: InFlightCall | None = None
    kept: Record | None = None
    stored: bool = True
    trouble: Exception | None = None
    # Why the result of the work could not be kept.
    not_kept: str = ""
    # Until when it waits for others, over all of them, and how many seconds it did.
    deadline: float = 0.0
    waited: float = 0.0

    def note(self, audit: Mapping[str, Any]) -> None:
        """Have this stored with the record, too."""
        about = replace(self.request.about, audit={**self.request.about.audit, **audit})
        self.request = replace(self.request, about=about)

    def recalled(self) -> ProcessingRecord | None:
        """The answer, if it is at hand in this process: it needs no script."""
        self.refuse_reentry()
        known = self.backend.recall(self.request)
        return None if known is None else self.replayed(known.record)

    def join_or_lead(self) -> InFlightCall:
        """The call in flight for the key: our own, which we then lead, or another one."""
        # Ours is known before the table has it, so that an interruption between the two can be cleaned up.
        self.in_flight = InFlightCall(self.request.fingerprint)
        return self.in_flight_calls.join_or_lead(self.request.identity.digest, self.in_flight)

    def finish(self) -> None:
        """Let those who follow go on, with what there is to share."""
        if self.in_flight is not None:
            self.in_flight_calls.finish(self.request.identity.digest, self.in_flight, self.kept, stored=self.stored)

    def refuse_reentry(self) -> None:
        """Work that asks for its own result would wait for itself."""
        for context in WORKING.get():
            same_key = context.lease.identity.digest == self.request.identity.digest
            if same_key and context.place is self.backend.place and not context.ended:
                raise Reentered

    def begin_claim(self) -> None:
        """From now on a claim may be in the store without our knowing; the lease runs from here at the earliest."""
        self.claimed_from = monotonic()
        self.claiming = True

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

    def _be_patient(self) -> None:
        """Have the next claim wait for a locked row for no longer than this call still waits for others."""
        self.request = replace(self.request, lock_wait=micros(max(self._wait_left(), 0)))

    def _waited_for_row(self) -> None:
        """Count what the store has waited since it was asked, too."""
        self.deadline = self.deadline or self.claimed_from + self.policy.wait_for

    def _wait_left(self) -> float:
        """The seconds that are left to wait for others; one budget, however often the one in front changes."""
        now = monotonic()
        self.deadline = self.deadline or now + self.policy.wait_for
        return self.deadline - now

    def _packed(self, result: Any) -> tuple[Outcome, Any]:
        """The result as it is kept, and as this caller gets it. Its effect has happened: nothing here may undo that."""
        try:
            return pack(result, self.codec)
        except Exception as error:
            refuse_unbegun(result)
            return self._nothing_kept(error), result

    def _nothing_kept(self, error: Exception) -> Outcome:
        outcome = nothing_kept(error)
        self.not_kept = why_not_kept(outcome)
        return outcome

    def _share(self, state: State, context: Context, outcome: Outcome, answer: Accepted) -> None:
        """Have what was accepted ready for those who follow; who comes too late for it finds it in the store."""
        if self.in_flight is None or not self.in_flight.followers:
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
            outcome=opened(outcome),
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
            self.not_kept,
            self.waited,
        )

    def replayed(self, record: Record, *, stored: bool = True) -> ProcessingRecord:
        """A record as the answer to this call."""
        assert record.outcome is not None
        if record.state is FAILED:
            failure = msgspec.json.decode(unframe(record.outcome.data))
            raise StoredFailure(failure["type"], failure["message"], expires_at=record.expires_at)
        if record.outcome.media_type == NOT_KEPT:
            self.not_kept = why_not_kept(record.outcome)
        result = None if self.not_kept else unpack(record.outcome, self.codec)
        if not stored:
            self.stored = False
            if self.policy.on_unstored == "raise":
                raise OutcomeUnknown(result=result)
        identity = self.request.identity
        return ProcessingRecord(
            result,
            True,
            identity.key,
            identity.scope,
            identity.tenant,
            record.attempt,
            record.fence,
            record.completed_at or 0,
            record.expires_at,
            stored,
            self.not_kept,
            self.waited,
        )
