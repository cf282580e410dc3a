"""What a caller is given: a result and where it came from."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class ProcessingRecord(Struct, frozen=True):
    """A result and where it came from. `stored` is False where the store could not be reached to keep it.

    `completed_at` and `expires_at` are microseconds since 1970, by the store's clock.
    """

    result: Any
    was_replay: bool
    key: str
    scope: str
    tenant: str
    attempt: int
    fence: int
    completed_at: int
    expires_at: int
    stored: bool = True
