"""Whether a call that failed is made once more, and how long it waits before that.

Rule: nothing here waits, or reads a clock. A call has so many retries of its own. It does not use them up where it was
refused for being one too many, nor where the server is down for everybody: nobody was answered since this call failed
the last time, others fail now too, and the failure cost nothing. Of these it bears `unserved_retries` in a row, and as
many in all where the server says that it has too much to do, which some say to one call while they answer others. How
long that takes is for the limiter and its circuit to say, and no work of the stage.
"""

from random import Random

import msgspec

from sameas.llm.models import ModelError


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait before another try: doubling from the first, up to the longest, less up to half at random."""

    first: float = 1.0
    longest: float = 20.0

    def __post_init__(self) -> None:
        if not 0 < self.first <= self.longest:
            raise ValueError("a backoff needs 0 < first <= longest, in seconds")

    def wait(self, failures: int, random: Random) -> float:
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 30)) * (0.5 + random.random() / 2)


class Retry(msgspec.Struct, frozen=True):
    """Try again after `wait` seconds; `is_work` if these are the stage's own time."""

    wait: float
    is_work: bool


class Tries:
    """The failures of one call. `answers` is how many calls of the account were answered when it began."""

    def __init__(self, *, retries: int, unserved_retries: int, backoff: Backoff, random: Random, answers: int) -> None:
        self._retries = retries
        self._unserved_retries = unserved_retries
        self._backoff = backoff
        self._random = random
        self._answers = answers
        self._failures = self._unserved = self._overloads = 0
        self.count = 0

    def after(self, error: ModelError, *, answers: int, others_fail: bool) -> Retry | None:
        """What follows from a failure; None if there is no other try."""
        nobody_was_answered, self._answers = answers == self._answers, answers
        self.count += 1
        is_one_too_many = error.code == "rate_limited"
        is_down = (
            error.counts_for_circuit
            and error.usage is None
            and self._failures + self._overloads > 0
            and nobody_was_answered
            and others_fail
        )
        is_busy = error.code == "overloaded" and error.usage is None
        if is_one_too_many or is_down:
            self._unserved = self._unserved + 1 if nobody_was_answered else 1
        elif is_busy:
            self._overloads += 1
        else:
            self._failures += 1
        unserved = max(self._unserved, self._overloads)
        if not error.is_retryable or self._failures > self._retries or unserved > self._unserved_retries:
            return None
        # What the server asked for is waited for at the limiter, together with everybody else.
        at_limiter = is_one_too_many or bool(error.retry_after)
        waits = self._failures + self._unserved + self._overloads
        wait = 0.0 if at_limiter else self._backoff.wait(waits, self._random)
        return Retry(wait, is_work=not (is_down or is_busy))
