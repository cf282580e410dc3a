"""Where records live, as the engine sees it: `Store` for threads, `AsyncStore` for tasks, each a thin driver of
scripts.

A back end says how each operation is done, as scripts, and how one command is performed. It answers by
`sameas.once.protocol` and nothing else; the conformance kit in `sameas.testing` is its contract.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from heapq import nlargest
from itertools import chain
from typing import Any, ClassVar, Protocol, Self

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from sameas.identity.key import check_text
from sameas.once.errors import StoreError
from sameas.once.record import (
    Answer,
    Claim,
    ClaimRequest,
    Identity,
    Lease,
    Outcome,
    Record,
    Renewal,
    Replay,
    State,
    check_tags,
)
from sameas.once.script import Command, Script, arun, arun_together, run, run_together

# One more than is asked for is still an integer that every database holds.
_MAX_NUMBER = 2**63 - 2
# A time, which no database takes for a negative one, and a digest.
_CURSOR = re.compile("[0-7][0-9a-f]{15}[0-9a-f]{64}")


class Query(Struct, frozen=True, kw_only=True):
    """Which records to list: every field that is set must fit. `after` is the cursor of the page before; `expired` asks
    for those whose time is over and which nobody has pruned, instead of those that stand.
    """

    tenant: str | None = None
    scope: str | None = None
    key_prefix: str | None = None
    state: State | None = None
    tag: str | None = None
    route: str | None = None
    method: str | None = None
    status: int | None = None
    created_from: int | None = None
    created_before: int | None = None
    limit: int = 50
    after: str | None = None
    expired: bool = False

    def __post_init__(self) -> None:
        _check_words(self, "tenant", "scope", "key_prefix", "route", "method")
        # Its text is as good as the state.
        force_setattr(self, "state", None if self.state is None else State(self.state))
        for name in ("status", "created_from", "created_before", "limit"):
            number = getattr(self, name)
            if number is not None and not (isinstance(number, int) and abs(number) <= _MAX_NUMBER):
                raise ValueError(f"{name} must be an integer that a database can hold, not {number!r}")
        if self.limit < 0:
            raise ValueError("limit must not be negative")
        if self.after is not None:
            cursor_position(self.after)


class Page(Struct, frozen=True):
    """Records, newest first, without their outcomes' bytes; `next` is the cursor of the page that follows, if any."""

    records: Sequence[Record]
    next: str | None


def cursor(record: Record) -> str:
    """A record's place in a listing, newest first; it sorts as text."""
    return f"{record.created_at:016x}{record.identity.digest.hex()}"


def cursor_position(cursor: str) -> tuple[int, bytes]:
    """The creation time and digest in a cursor."""
    if not _CURSOR.fullmatch(cursor):
        raise ValueError(f"{cursor!r} is not the cursor of a page")
    return int(cursor[:16], 16), bytes.fromhex(cursor[16:])


class Selection(Struct, frozen=True, kw_only=True):
    """Which records to forget. At least one field must be set; all that are set must fit."""

    tenant: str | None = None
    scope: str | None = None
    tag: str | None = None

    def __post_init__(self) -> None:
        if self.tenant is None and self.scope is None and self.tag is None:
            raise ValueError("say what to forget: a tenant, a scope or a tag")
        _check_words(self, "tenant", "scope")


def _check_words(of: Query | Selection, *names: str) -> None:
    """The rules for names, which are the same on every store."""
    for name in names:
        if (word := getattr(of, name)) is not None:
            check_text(name, word)
    if of.tag is not None:
        check_tags((of.tag,))


# The answers to some renewals; that of one which the store could not make is its error.
Renewed = Sequence[Answer | StoreError]


class Waker(Protocol):
    """Tells waiters that something happened to a record. It may be late or silent: waiters poll beneath it."""

    def listen(self, digest: bytes, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake`, from any thread, when the record changes; returns what ends the listening."""
        ...


class Backend(ABC):
    """How one kind of store does each operation. Scripts hold the logic; `perform` and `aperform` do the I/O."""

    waker: Waker | None = None
    # How long a waiter sleeps at most before it looks again by itself.
    poll_at_most: float = 1.0
    # Whether some answers are at hand in this process: then `recall` is asked before anything else is done.
    recalls: ClassVar[bool] = False

    def recall(self, request: ClaimRequest) -> Replay | None:
        """What a claim would be answered with, if the store need not be asked for it."""
        return None

    @property
    def place(self) -> object:
        """Where the records really are: the same object for every way to reach them in this process."""
        return self

    @abstractmethod
    def claim(self, request: ClaimRequest) -> Script[Claim]: ...
    @abstractmethod
    def renew(self, lease: Lease, lease_for: int, retain_for: int) -> Script[Answer]: ...
    @abstractmethod
    def complete(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]: ...
    @abstractmethod
    def fail(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]: ...
    @abstractmethod
    def release(self, lease: Lease) -> Script[Answer]: ...
    @abstractmethod
    def forget(self, identity: Identity) -> Script[Answer]: ...
    @abstractmethod
    def read(self, identity: Identity) -> Script[Record | None]: ...
    @abstractmethod
    def forget_where(self, selection: Selection) -> Script[int]: ...
    @abstractmethod
    def find(self, query: Query) -> Script[Page]: ...
    @abstractmethod
    def prune(self, limit: int) -> Script[int]: ...

    @abstractmethod
    def perform(self, command: Command) -> Any: ...
    @abstractmethod
    async def aperform(self, command: Command) -> Any: ...

    def renew_many(self, renewals: Sequence[Renewal]) -> Sequence[Script[Renewed]]:
        """The scripts that renew many leases, driven together; their answers, one after the other, are the leases'."""
        return [self.renew_alone(renewal) for renewal in renewals]

    def renew_alone(self, renewal: Renewal) -> Script[Renewed]:
        """Renew one of many leases: what keeps it from being renewed must not keep the others."""
        try:
            return [(yield from self.renew(renewal.lease, renewal.lease_for, renewal.retain_for))]
        except StoreError as error:
            return [error]

    def perform_many(self, commands: Sequence[Command]) -> Sequence[Any]:
        """Many commands in one go; the reply of a command that failed is its exception."""
        return [_reply(self.perform, command) for command in commands]

    async def aperform_many(self, commands: Sequence[Command]) -> Sequence[Any]:
        replies: list[Any] = []
        for command in commands:
            try:
                replies.append(await self.aperform(command))
            except Exception as error:
                replies.append(error)
        return replies

    def join(self, connection: Any) -> AbstractContextManager[Backend]:
        """This back end inside the caller's open transaction, until the context ends; an error undoes its writes."""
        raise TypeError(f"{type(self).__name__} has no transactions to join: use a SQL store")

    def ajoin(self, connection: Any) -> AbstractAsyncContextManager[Backend]:
        raise TypeError(f"{type(self).__name__} has no transactions to join: use a SQL store")

    def close(self) -> None:
        """Free what is held open."""

    async def aclose(self) -> None:
        self.close()


def _reply(perform: Callable[[Command], Any], command: Command) -> Any:
    try:
        return perform(command)
    except Exception as error:
        return error


def _refuse_no_batch(limit: int) -> None:
    if not 1 <= limit <= _MAX_NUMBER:
        raise ValueError(f"a batch has at least one record, not {limit!r}")


class WrappedBackend(Backend):
    """A back end around another, which does the I/O."""

    def __init__(self, inner: Backend) -> None:
        self.inner = inner
        self.waker = inner.waker
        self.poll_at_most = inner.poll_at_most

    @property
    def place(self) -> object:
        return self.inner.place

    def perform(self, command: Command) -> Any:
        return self.inner.perform(command)

    async def aperform(self, command: Command) -> Any:
        return await self.inner.aperform(command)

    def perform_many(self, commands: Sequence[Command]) -> Sequence[Any]:
        return self.inner.perform_many(commands)

    async def aperform_many(self, commands: Sequence[Command]) -> Sequence[Any]:
        return await self.inner.aperform_many(commands)


class Store:
    """A store for threads."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def claim(self, request: ClaimRequest) -> Claim:
        return run(self.backend.claim(request), self.backend.perform)

    def claim_many(self, requests: Sequence[ClaimRequest]) -> list[Claim]:
        return run_together([self.backend.claim(request) for request in requests], self.backend.perform_many)

    def renew(self, lease: Lease, *, lease_for: int, retain_for: int) -> Answer:
        return run(self.backend.renew(lease, lease_for, retain_for), self.backend.perform)

    def renew_many(self, renewals: Sequence[Renewal]) -> list[Answer | StoreError]:
        """Keep many leases, in as few round trips as the store can; the answer where it could not is its error."""
        answers = run_together(self.backend.renew_many(renewals), self.backend.perform_many)
        return list(chain.from_iterable(answers))

    def complete(self, lease: Lease, *, outcome: Outcome, retain_for: int) -> Answer:
        return run(self.backend.complete(lease, outcome, retain_for), self.backend.perform)

    def fail(self, lease: Lease, *, outcome: Outcome, retain_for: int) -> Answer:
        return run(self.backend.fail(lease, outcome, retain_for), self.backend.perform)

    def release(self, lease: Lease) -> Answer:
        return run(self.backend.release(lease), self.backend.perform)

    def forget(self, identity: Identity) -> Answer:
        return run(self.backend.forget(identity), self.backend.perform)

    def read(self, identity: Identity) -> Record | None:
        """The live record, whatever its state; reading changes nothing."""
        return run(self.backend.read(identity), self.backend.perform)

    def forget_where(self, selection: Selection) -> int:
        return run(self.backend.forget_where(selection), self.backend.perform)

    def find(self, query: Query) -> Page:
        return run(self.backend.find(query), self.backend.perform)

    def prune(self, limit: int = 1_000) -> int:
        """Delete expired records, one batch of at most `limit`; returns how many went."""
        _refuse_no_batch(limit)
        return run(self.backend.prune(limit), self.backend.perform)

    def close(self) -> None:
        self.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncStore:
    """A store for tasks."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    async def claim(self, request: ClaimRequest) -> Claim:
        return await arun(self.backend.claim(request), self.backend.aperform)

    async def claim_many(self, requests: Sequence[ClaimRequest]) -> list[Claim]:
        return await arun_together([self.backend.claim(request) for request in requests], self.backend.aperform_many)

    async def renew(self, lease: Lease, *, lease_for: int, retain_for: int) -> Answer:
        return await arun(self.backend.renew(lease, lease_for, retain_for), self.backend.aperform)

    async def renew_many(self, renewals: Sequence[Renewal]) -> list[Answer | StoreError]:
        """Keep many leases, in as few round trips as the store can; the answer where it could not is its error."""
        answers = await arun_together(self.backend.renew_many(renewals), self.backend.aperform_many)
        return list(chain.from_iterable(answers))

    async def complete(self, lease: Lease, *, outcome: Outcome, retain_for: int) -> Answer:
        return await arun(self.backend.complete(lease, outcome, retain_for), self.backend.aperform)

    async def fail(self, lease: Lease, *, outcome: Outcome, retain_for: int) -> Answer:
        return await arun(self.backend.fail(lease, outcome, retain_for), self.backend.aperform)

    async def release(self, lease: Lease) -> Answer:
        return await arun(self.backend.release(lease), self.backend.aperform)

    async def forget(self, identity: Identity) -> Answer:
        return await arun(self.backend.forget(identity), self.backend.aperform)

    async def read(self, identity: Identity) -> Record | None:
        """The live record, whatever its state; reading changes nothing."""
        return await arun(self.backend.read(identity), self.backend.aperform)

    async def forget_where(self, selection: Selection) -> int:
        return await arun(self.backend.forget_where(selection), self.backend.aperform)

    async def find(self, query: Query) -> Page:
        return await arun(self.backend.find(query), self.backend.aperform)

    async def prune(self, limit: int = 1_000) -> int:
        """Delete expired records, one batch of at most `limit`; returns how many went."""
        _refuse_no_batch(limit)
        return await arun(self.backend.prune(limit), self.backend.aperform)

    async def close(self) -> None:
        await self.backend.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def fits(record: Record, query: Query) -> bool:
    """Whether a record is one that the query asks for."""
    status = record.outcome.meta.get("status") if record.outcome else None
    return (
        query.tenant in (None, record.identity.tenant)
        and query.scope in (None, record.identity.scope)
        and query.state in (None, record.state)
        and query.route in (None, record.about.route)
        and query.method in (None, record.about.method)
        and query.status in (None, status)
        and (query.key_prefix is None or record.identity.key.startswith(query.key_prefix))
        and (query.tag is None or query.tag in record.about.tags)
        and (query.created_from is None or record.created_at >= query.created_from)
        and (query.created_before is None or record.created_at < query.created_before)
        and (query.after is None or cursor(record) < query.after)
    )


def first_of(records: Iterable[Record], query: Query) -> list[Record]:
    """The newest that belong on the page, and one more if there is one."""
    return nlargest(query.limit + 1, records, key=lambda record: (record.created_at, record.identity.digest))


def page_of(found: list[Record], query: Query) -> Page:
    """The page of what `first_of` found, without the outcomes' bytes."""
    page = [
        replace(record, outcome=record.outcome and replace(record.outcome, data=b"")) for record in found[: query.limit]
    ]
    return Page(page, cursor(page[-1]) if len(found) > query.limit else None)
