"""What can go wrong with a call. A docstring is the default message; data hangs on the error as attributes.

SameasError
|-- InProgress              somebody else is at it, and this caller does not wait (any longer)
|   `-- TooManyWaiters
|-- KeyReused               the key stands for another request
|-- Superseded              the lease went to another, and there is no accepted result to give
|-- StoredFailure           the work failed before, in a way that is kept
|-- OutcomeUnknown          the work was done, but the store may not have the result
|-- ResultNotKept           the work was done; its result could not be kept, and is not to be had any more
|-- ResultDoesNotFit        a result is not of the type that was declared for it
|-- Reentered               the work asks for its own result
|-- NestedInTransaction     a lease-mode call inside a transaction that already holds the database
|-- TransactionRefused      the connection is not one that record and effects can share
|   `-- TransactionEnded    the work ended the transaction that it was given
|-- NotEncodable            a codec has no bytes for a result
|-- BatchFailed             some calls of run_many failed
`-- StoreError
    |-- StoreUnavailable    it cannot answer now
    |   `-- StoreClosed     nor will it: it was closed here
    |-- RecordDamaged       what it answered is not what was stored
    `-- StoreMisconfigured  it would not keep the promise
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sameas.identity.errors import SameasError, said_by

__all__ = [
    "BatchFailed",
    "InProgress",
    "KeyReused",
    "NestedInTransaction",
    "NotEncodable",
    "OutcomeUnknown",
    "RecordDamaged",
    "Reentered",
    "ResultDoesNotFit",
    "ResultNotKept",
    "SameasError",
    "StoreClosed",
    "StoreError",
    "StoreFull",
    "StoreMisconfigured",
    "StoreUnavailable",
    "StoredFailure",
    "Superseded",
    "TooManyWaiters",
    "TransactionEnded",
    "TransactionRefused",
]


class InProgress(SameasError):
    """The same work is in progress; ask again later."""

    def __init__(self, message: str | None = None, *, retry_after: float = 1.0) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class TooManyWaiters(InProgress):
    """Too many callers wait for this work already; ask again later."""


class KeyReused(SameasError):
    """This key was used before for a different request; use a new key for a new request."""

    def __init__(self, message: str | None = None, *, fields: Sequence[str] = ()) -> None:
        self.fields = tuple(fields)
        if message is None and fields:
            message = f"{said_by(type(self))} These fields differ: {', '.join(fields)}."
        super().__init__(message)


class Superseded(SameasError):
    """This worker lost its lease and its result was not accepted; nobody else has handed one in yet."""


class StoredFailure(SameasError):
    """The work failed before and the failure is kept; it is tried again after the retry window."""

    def __init__(self, type_name: str, detail: str, *, expires_at: int = 0) -> None:
        self.type = type_name
        self.message = detail
        self.expires_at = expires_at
        super().__init__()
        # What it can be made from again: Celery's results carry no more of an error.
        self.args = (type_name, detail)

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"


class OutcomeUnknown(SameasError):
    """The work was done, but the store could not be brought to keep its result, which is in `result`. The next caller
    may do the work again once the lease is over: check its effect before you repeat it by hand."""

    def __init__(self, message: str | None = None, *, result: Any = None) -> None:
        self.result = result
        super().__init__(message)


class ResultNotKept(SameasError):
    """The work was done before and is not done again; its result could not be kept. Return what can be kept, name its
    type with result_type, or ask with `record`, which does not need the result."""

    def __init__(self, message: str | None = None, *, reason: str = "") -> None:
        self.reason = reason
        if message is None and reason:
            message = f"{said_by(type(self))} The reason: {reason}"
        super().__init__(message)


class ResultDoesNotFit(SameasError):
    """The result is not of the type that was declared for it: correct the annotation, or say result_type."""


class Reentered(SameasError):
    """The work asks for its own result and would wait for itself; give the inner call a scope or key of its own."""


class NestedInTransaction(SameasError):
    """A transaction of this thread or task already holds this database, so a lease-mode call would wait for itself;
    pass the same connection, or call it outside the transaction."""


class TransactionRefused(SameasError):
    """The connection is not one that the record and the effects of the work can share."""


class TransactionEnded(TransactionRefused):
    """The work ended the transaction that it was given, so that its effects and its record are no longer one. Leave
    commit and rollback to the caller of the engine, or call the engine without connection=."""


class NotEncodable(SameasError):
    """The result cannot be kept: return scalars, containers, dates, text or bytes, or name the type with
    result_type."""


class BatchFailed(SameasError):
    """Some calls of the batch failed; `results` has a record or an exception for each, in order."""

    def __init__(self, results: Sequence[Any]) -> None:
        self.results = list(results)
        failed = [result for result in self.results if isinstance(result, BaseException)]
        super().__init__(f"{len(failed)} of {len(self.results)} calls failed; the first: {failed[0]!r}")


class StoreError(SameasError):
    """The store has a problem."""


class StoreUnavailable(StoreError):
    """The store cannot answer now, so nothing was run; try again later."""

    def __init__(self, message: str | None = None, *, retry_after: float = 1.0, maybe_applied: bool = True) -> None:
        self.retry_after = retry_after
        # Whether what was asked may have been done although no answer came.
        self.maybe_applied = maybe_applied
        super().__init__(message)


class StoreFull(StoreUnavailable):
    """The disk of the store is full, so nothing was run; make room."""

    def __init__(self, message: str | None = None) -> None:
        # Nobody makes room within a second; and what found none was not applied.
        super().__init__(message, retry_after=30.0, maybe_applied=False)


class StoreClosed(StoreUnavailable):
    """The store was closed."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message, maybe_applied=False)


class RecordDamaged(StoreError):
    """A stored record is damaged or of an unknown version; forget it to have the work done again."""


class StoreMisconfigured(StoreError):
    """The store's settings would not keep the promise."""
