"""What is known about one piece of work, what a store answers, and what a caller is given. All times are the store's,
in microseconds.

What may be said about a record beside whose and which it is (tags, a route and a method, an audit, a fingerprint)
follows source document 003 and what the columns of every database hold: the same rules on every store, kept before the
work. Where callers are told apart, a stored key begins with a digest of whose it is: the stored key decides, and what a
client typed is what people look for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Generic

import msgspec
from msgspec import Struct

from sameas.identity.errors import NotCanonical
from sameas.identity.key import MAX_COLUMN, MAX_KEY, check_text
from sameas.once.errors import ResultNotKept

if TYPE_CHECKING:
    # Python has defaults of type variables from 3.13 on; type checkers know them in every version.
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")

# What holds nothing that could hold it again (`gc=False`) is of no interest to the collector of cycles.
#
# The year 2255: beyond any retention, and still exact in a double, which is all that Lua has.
NEVER = 9_000_000_000_000_000
# How long a record is kept that does not expire; added to any present time it is before NEVER.
FOR_EVER = NEVER // 2

METHODS: Final = frozenset({"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"})
MAX_ROUTE: Final = 256

_BREAK: Final = re.compile(r"[\r\n]")
# A principal's digest and a separator, as the service and the HTTP middleware write them; nobody's; a tenant's own.
_OWNER = re.compile(r"(?:[0-9a-f]{64}[.:]|public\.|tenant\.)")


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
    lock_wait: int | None = None


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


def check_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags as they are stored: each is one line, so that it is found whole or not at all."""
    if isinstance(tags, str):
        raise TypeError("tags takes a collection of words, not one string")
    checked = tuple(tags)
    for tag in checked:
        check_text("tag", tag, longest=MAX_KEY)
        if not tag or _BREAK.search(tag):
            raise NotCanonical("it must be one line of text", "tag")
    _check_size("tags", "\n".join(checked))
    return checked


@lru_cache(maxsize=1_024)
def check_route(route: str, method: str) -> None:
    """Refuse a route or a method that no table of records may hold."""
    check_text("route", route)
    if route and (not route.startswith("/") or "?" in route or len(route) > MAX_ROUTE):
        raise ValueError(
            f"{route!r} is not a route: it must start with '/', carry no query string and have at most"
            f" {MAX_ROUTE} characters"
        )
    if method and method not in METHODS:
        raise ValueError(f"{method!r} is not a method that is kept: use one of {', '.join(sorted(METHODS))}")


def check_audit(audit: Mapping[str, Any]) -> None:
    """Refuse what would not be the audit of a record: an object of what JSON can hold."""
    if not isinstance(audit, Mapping):
        raise TypeError(f"audit takes an object of what JSON can hold, not a {type(audit).__qualname__}")
    try:
        msgspec.json.encode(audit)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise TypeError(f"audit takes an object of what JSON can hold: {error}") from error


def check_fingerprint(fingerprint: str) -> None:
    """Refuse a fingerprint that not every store could hold."""
    check_text("request_fingerprint", fingerprint)
    _check_size("request_fingerprint", fingerprint)


def _check_size(name: str, text: str) -> None:
    # A character has four bytes at most.
    if len(text) > MAX_COLUMN // 4 and (size := len(text.encode())) > MAX_COLUMN:
        raise NotCanonical(f"it has {size} bytes and must not have more than {MAX_COLUMN}", name)


def client_key(stored: str) -> str:
    """The key as its client chose it."""
    owner = _OWNER.match(stored)
    return stored if owner is None else stored[owner.end() :]


class ProcessingRecord(Struct, Generic[T], frozen=True):
    """A result and where it came from.

    `completed_at` and `expires_at` are microseconds since 1970, by the store's clock. `stored` is False if the store
    could not be reached to keep the record. `not_kept` says why the work is done and its result could not be kept; then
    `result` is there for the caller whose work it was and None for everybody after. `waited` is for how many seconds
    the caller waited for the same work of somebody else: of a replay 0.0 says that the result was there.
    """

    result: T
    was_replay: bool
    key: str
    scope: str
    tenant: str
    attempt: int
    fence: int
    completed_at: int
    expires_at: int
    stored: bool = True
    not_kept: str = ""
    waited: float = 0.0

    def answer(self) -> T:
        """The result. Raises ResultNotKept if it is not to be had any more."""
        if self.not_kept and self.was_replay:
            raise ResultNotKept(reason=self.not_kept)
        return self.result
