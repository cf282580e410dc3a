"""The key that a payload had before types had tags (`sameas.identity.form`), for as long as records under it may live.

Rule: what a program of before did or does under the former key is not done again, by neither. So a claim to a payload
that had another key looks under that one too, before the work: what is there is the answer, is waited for, or is taken
over where its holder died. If nothing is there, it leaves a mark, a record that is held under a fingerprint which
programs of before do not have: they are refused.

The former key may be the key of other work: `b"abc"` had that of `"YWJj"`. What a program of today wrote there is told
by its attempt id and left alone; a mark that is in the way of the work whose key it is today is taken away. Nothing is
ever taken from anybody but by a claim, so that who came first decides.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sameas.identity.ids import is_attempt_of_before
from sameas.identity.key import record_digest
from sameas.once.record import Acquired, Busy, ClaimRequest, Identity, Lease, Mismatch, Record, State
from sameas.once.script import Script
from sameas.once.store import Backend

# The fingerprint of work whose key is its content.
_CONTENT: Final = ""
# What the fingerprint of a mark begins with; its new key follows. No fingerprint of a request begins so.
_MARK: Final = "!"
# A mark needs no lease: the fingerprint keeps others away until the record expires.
_NO_TIME: Final = 1


class Past(Struct, frozen=True):
    """What there is under a former key: an answer, somebody at work, or nothing that stands in the way."""

    answer: Record | Busy | None = None
    # The mark that was left there, to be taken away should the work fail.
    mark: Lease | None = None
    # Whose attempt was taken over, and how many there were.
    identity: Identity | None = None
    attempts: int = 0


def look_back(backend: Backend, request: ClaimRequest, key: str) -> Script[Past]:
    """What programs of before left under the former key of a request that is ours to work on."""
    today = request.identity
    identity = replace(today, digest=record_digest(today.tenant, today.scope, key, "content"), key=key)
    mark = replace(request, identity=identity, fingerprint=_MARK + today.key, lease_for=_NO_TIME)
    as_before = replace(mark, fingerprint=_CONTENT)
    attempts = 0
    while True:
        claim = yield from backend.claim(mark)
        if isinstance(claim, Acquired):
            taken_over = identity if attempts else None
            return Past(None, Lease(identity, claim.fence, mark.attempt_id), taken_over, attempts)
        if not isinstance(claim, Mismatch) or claim.fingerprint != _CONTENT:
            return Past()
        record = yield from backend.read(identity)
        if record is None or record.fingerprint != _CONTENT:
            continue
        if not is_attempt_of_before(record.attempt_id):
            return Past()
        if record.state is not State.HELD:
            return Past(record)
        claim = yield from backend.claim(as_before)
        if isinstance(claim, Busy):
            return Past(claim)
        if isinstance(claim, Acquired):
            # Its holder died. Given back, it can be marked, unless another program of before is quicker.
            attempts = claim.attempt - 1
            yield from backend.release(Lease(identity, claim.fence, as_before.attempt_id))


def is_mark(fingerprint: str) -> bool:
    """Whether a record is the mark of work that had this key before."""
    return fingerprint.startswith(_MARK)


def take_away(backend: Backend, request: ClaimRequest, mark: str) -> Script[None]:
    """Take a mark away that is where a request's own record belongs."""
    claim = yield from backend.claim(replace(request, fingerprint=mark, lease_for=_NO_TIME))
    if isinstance(claim, Acquired):
        yield from backend.release(Lease(request.identity, claim.fence, request.attempt_id))
