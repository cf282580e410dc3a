"""How one scope behaves: how long a lease and a result last, what a busy key means, which errors are kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from sameas.once.record import NEVER

OnBusy = Literal["wait", "refuse"]

MINUTE: Final = 60.0
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR


def micros(seconds: float) -> int:
    """Seconds as the whole microseconds that stores count in."""
    return round(seconds * 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The settings of a scope, checked when they are made. Durations are in seconds."""

    lease: float = 30.0
    # Source document 004, point 7: 24 hours unless the scope says otherwise. None keeps it until it is forgotten.
    retention: float | None = DAY
    on_busy: OnBusy = "wait"
    wait_for: float = 60.0
    max_waiters: int = 16_384
    keep_errors: tuple[type[Exception], ...] = ()
    # Source document 000, part 4.3: a failed handle is kept for five minutes.
    retry_window: float = 5 * MINUTE
    # How long a finished call tries to hand its result in to a store that does not answer.
    patience: float = 5.0

    lease_micros: int = field(init=False, repr=False, compare=False)
    retention_micros: int = field(init=False, repr=False, compare=False)
    retry_window_micros: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.lease >= 0.001:
            raise ValueError("lease must be at least a millisecond")
        if self.retention is not None and not self.retention >= self.lease:
            raise ValueError("retention must not be shorter than the lease: a takeover has to find the record")
        if self.on_busy not in ("wait", "refuse"):
            raise ValueError(f"on_busy must be 'wait' or 'refuse', not {self.on_busy!r}")
        if self.wait_for < 0 or self.retry_window <= 0 or self.patience < 0:
            raise ValueError("wait_for and patience must not be negative, and retry_window must be positive")
        if self.max_waiters < 1:
            raise ValueError("max_waiters must be at least 1")
        retention = NEVER // 2 if self.retention is None else min(micros(self.retention), NEVER // 2)
        object.__setattr__(self, "lease_micros", micros(self.lease))
        object.__setattr__(self, "retention_micros", retention)
        object.__setattr__(self, "retry_window_micros", micros(self.retry_window))
