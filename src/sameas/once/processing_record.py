"""What a caller is given: a result and where it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from msgspec import Struct

from sameas.once.errors import ResultNotKept

if TYPE_CHECKING:
    # Python has defaults of type variables from 3.13 on; type checkers know them in every version.
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")


class ProcessingRecord(Struct, Generic[T], frozen=True):
    """A result and where it came from.

    `completed_at` and `expires_at` are microseconds since 1970, by the store's clock. `stored` is False where the store
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
