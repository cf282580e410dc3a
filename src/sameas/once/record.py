"""What is known about one piece of work, and what a store answers. All times are the store's, in microseconds."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

# What holds nothing that could hold it again (`gc=False`) is of no interest to the collector of cycles.
#
# The year 2255: beyond any retention, and still exact in a double, which is all that Lua has.
NEVER = 9_000_000_000_000_000
# How long a record is kept that does not expire; added to any present time it is before NEVER.
FOR_EVER = NEVER // 2


class State(StrEnum):
    """The states that are stored; a record that is not stored is absent."""

    HELD = "held"
    DONE = "done"
    FAILED = "failed"


class Identity(Struct, frozen=True, gc=False):
    """Whose work, of which kind, under which key; `digest` is what stores index by."""

    digest: bytes
    tenant: str
    scope: str
    key: str


class Outcome(Struct, frozen=True, gc=False):
    """A result as bytes, the way to read them, and a little about them (an HTTP status, the headers that were kept)."""

    data: bytes
    media_type: str
    meta: Mapping[str, Any] = {}


class Unframed(Outcome, frozen=True, gc=False):
    """An outcome whose frame was checked already, with the bytes that are inside."""

    inside: bytes = b""


class About(Struct, frozen=True, gc=False):
    """What people and audits want to know of a record; it never decides anything."""

    owner: str = ""
    tags: tuple[str, ...] = ()
    route: str = ""
    method: str = ""
    audit: Mapping[str, Any] = {}


NOBODY = About()


class Record(Struct, frozen=True, gc=False):
    """One stored record."""

    identity: Identity
    fingerprint: str
    state: State
    fence: int
    attempt: int
    attempt_id: str
    lease_until: int
    created_at: int
    expires_at: int
    completed_at: int | None = None
    outcome: Outcome | None = None
    about: About = NOBODY

    @property
    def status_code(self) -> int | None:
        """Of an HTTP answer that is kept."""
        return None if self.outcome is None else self.outcome.meta.get("status")


class ClaimRequest(Struct, frozen=True, gc=False):
    """A wish to do the work: who asks, for what, and for how long. Durations are in microseconds."""

    identity: Identity
    fingerprint: str
    attempt_id: str
    lease_for: int
    retain_for: int
    about: About = NOBODY
    # How long the claim may wait for a row that another transaction holds; None leaves it to the store.
    patience: int | None = None


class Lease(Struct, frozen=True, gc=False):
    """The right to finish the work. Every write shows fence and attempt id; both must be the record's own."""

    identity: Identity
    fence: int
    attempt_id: str


class Renewal(Struct, frozen=True, gc=False):
    """A wish to keep a lease. Durations are in microseconds."""

    lease: Lease
    lease_for: int
    retain_for: int


class Acquired(Struct, frozen=True, gc=False):
    """The caller holds the lease and does the work; `attempt` counts the tries, from 1."""

    fence: int
    attempt: int


class Replay(Struct, frozen=True, gc=False):
    """The work was done, or failed in a way that is kept: here is the record."""

    record: Record


class Busy(Struct, frozen=True, gc=False):
    """Somebody else is at it; `time_left` of their lease in microseconds."""

    time_left: int
    attempt: int = 0


class Mismatch(Struct, frozen=True, gc=False):
    """The key stands for another request; `fingerprint` is that request's."""

    fingerprint: str


class Accepted(Struct, frozen=True, gc=False):
    """The write was taken, at the store's time `at`. A finished record is kept until `expires_at`."""

    at: int
    expires_at: int


class Lost(Struct, frozen=True, gc=False):
    """The write changed nothing: the lease has gone to another, or the record was forgotten."""


Claim = Acquired | Replay | Busy | Mismatch
Answer = Accepted | Lost
LOST = Lost()
