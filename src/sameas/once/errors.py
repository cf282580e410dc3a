"""What can go wrong, as one tree. A docstring is the default message; data hangs on the error as attributes.

SameasError
|-- InProgress              somebody else is at it, and this caller does not wait (any longer)
|   `-- TooManyWaiters
|-- KeyReused               the key stands for another request
|-- Superseded              the lease went to another, and there is no accepted result to give
|-- StoredFailure           the work failed before, in a way that is kept
|-- OutcomeUnknown          the work was done, but the store may not have the result
|-- Reentered               the work asks for its own result
|-- NestedInTransaction     a lease-mode call inside a transaction that already holds the database
|-- NotEncodable            the result cannot be kept
|-- BatchFailed             some calls of run_many failed
`-- StoreError
    |-- StoreUnavailable    it cannot answer now
    |-- RecordDamaged       what it answered is not what was stored
    `-- StoreMisconfigured  it would not keep the promise
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import cleandoc
from typing import Any


class SameasError(Exception):
    """Something went wrong in sameas."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or cleandoc(type(self).__doc__ or ""))


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
            message = f"{type(self).__doc__} These fields differ: {', '.join(fields)}."
        super().__init__(message)


class Superseded(SameasError):
    """This worker lost its lease and its result was not accepted; nobody else has handed one in yet."""


class StoredFailure(SameasError):
    """The work failed before and the failure is kept; it is tried again after the retry window."""

    def __init__(self, type_name: str, detail: str, *, expires_at: int = 0) -> None:
        self.type = type_name
        self.message = detail
        self.expires_at = expires_at
        super().__init__(f"{type_name}: {detail}")


class OutcomeUnknown(SameasError):
    """The work was done, but the store could not be reached to keep the result before the lease may have ended.
    It may be done again by the next caller; check its effect before you repeat it by hand."""

    def __init__(self, message: str | None = None, *, result: Any = None) -> None:
        self.result = result
        super().__init__(message)


class Reentered(SameasError):
    """The work asks for its own result and would wait for itself; give the inner call a scope or key of its own."""


class NestedInTransaction(SameasError):
    """A transaction of this thread or task already holds this database, so a lease-mode call would wait for itself;
    pass the same connection, or call it outside the transaction."""


class NotEncodable(SameasError):
    """The result cannot be kept: return JSON types, text or bytes, or name the type with result_type."""


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


class RecordDamaged(StoreError):
    """A stored record is damaged or of an unknown version; forget it to have the work done again."""


class StoreMisconfigured(StoreError):
    """The store's settings would not keep the promise."""
