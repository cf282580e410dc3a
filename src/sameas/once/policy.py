"""How one scope behaves: how long a lease and a result last, what a busy key means, which errors are kept."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import wraps
from math import inf
from typing import Any, Final, Literal

from sameas.once.record import FOR_EVER

OnBusy = Literal["wait", "refuse"]
OnUnstored = Literal["raise", "return"]

MINUTE: Final = 60.0
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR


def micros(seconds: float) -> int:
    """Seconds as the whole microseconds that stores count in; more than a century of them is for ever."""
    return FOR_EVER if seconds * 1_000_000 >= FOR_EVER else round(seconds * 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The settings of a scope, in seconds where they are times. Raises ValueError for one that cannot be.

    lease: after so long without a word from it, a worker is replaced. 30; it is renewed while the work goes on.
    retention: for so long a result is kept. 24 hours; None keeps it until it is forgotten.
    on_busy: "wait" (the default) for another who is at it, or "refuse".
    wait_for: for so long in all. 60.
    max_waiters: more than so many callers of one process do not wait for one key. 16,384.
    keep_errors: errors of these types are kept like results: StoredFailure is raised for others. None by default.
    retry_window: for so long. 5 minutes.
    hand_in_for: for so long a result is handed in to a store that does not answer. None: as long as the lease is ours.
    on_unstored: "raise" (the default) OutcomeUnknown after that, or "return" the result.
    former_keys: look for work under the key it had before types had tags. True.

    A result that cannot be stored is handed in again for as long as the lease is certainly ours (or for
    `hand_in_for` seconds). After that the call raises OutcomeUnknown, which has the result; with
    `on_unstored="return"` it returns the result, and only `record(...).stored` and the observers say that a later
    caller may run the work again.
    """

    lease: float = 30.0
    # Source document 004, point 7: 24 hours unless the scope says otherwise. None keeps it until it is forgotten.
    retention: float | None = DAY
    on_busy: OnBusy = "wait"
    wait_for: float = 60.0
    max_waiters: int = 16_384
    keep_errors: tuple[type[Exception], ...] = ()
    # Source document 000, part 4.3: a failed handle is kept for five minutes.
    retry_window: float = 5 * MINUTE
    # How long a finished call tries to hand its result in to a store that does not answer. None: as long as its lease.
    hand_in_for: float | None = None
    on_unstored: OnUnstored = "raise"
    # Whether work without a key, on more than JSON's types, is looked for under the key that it had before types had
    # tags. Needed until the longest retention has passed since the upgrade.
    former_keys: bool = True

    lease_micros: int = field(init=False, repr=False, compare=False)
    retention_micros: int = field(init=False, repr=False, compare=False)
    retry_window_micros: int = field(init=False, repr=False, compare=False)
    # For a row that another transaction holds, as for anybody else who is at the work.
    wait_micros: int = field(init=False, repr=False, compare=False)

    @property
    def patience(self) -> float | None:
        """What `hand_in_for` was called before."""
        warnings.warn("Policy.patience is called hand_in_for now", DeprecationWarning, stacklevel=2)
        return self.hand_in_for

    def __post_init__(self) -> None:
        if not 0.001 <= self.lease < inf:
            raise ValueError("lease must be at least a millisecond, and must end")
        if self.retention is not None and not self.retention >= self.lease:
            raise ValueError("retention must not be shorter than the lease: a takeover has to find the record")
        if self.on_busy not in ("wait", "refuse"):
            raise ValueError(f"on_busy must be 'wait' or 'refuse', not {self.on_busy!r}")
        if self.on_unstored not in ("raise", "return"):
            raise ValueError(f"on_unstored must be 'raise' or 'return', not {self.on_unstored!r}")
        if not (self.wait_for >= 0 and self.retry_window > 0 and (self.hand_in_for is None or self.hand_in_for >= 0)):
            raise ValueError("wait_for and hand_in_for must not be negative, and retry_window must be positive")
        if self.max_waiters < 1:
            raise ValueError("max_waiters must be at least 1")
        retention = inf if self.retention is None else self.retention
        object.__setattr__(self, "lease_micros", micros(self.lease))
        object.__setattr__(self, "retention_micros", micros(retention))
        object.__setattr__(self, "retry_window_micros", micros(self.retry_window))
        waits = 0.0 if self.on_busy == "refuse" else min(self.wait_for, DAY)
        object.__setattr__(self, "wait_micros", micros(waits))


_init = Policy.__init__


@wraps(_init)
def _init_by_former_name(self: Policy, **settings: Any) -> None:
    if "patience" in settings:
        warnings.warn("Policy(patience=) is called hand_in_for= now", DeprecationWarning, stacklevel=2)
        settings["hand_in_for"] = settings.pop("patience")
    _init(self, **settings)


Policy.__init__ = _init_by_former_name  # type: ignore[method-assign]
