"""What a call asks of its driver, beside the commands of its back end: to run the work, and to wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from sameas.once.context import Context
from sameas.once.listener import Listener
from sameas.once.policy import Policy


class Work(Struct, frozen=True):
    """Run the caller's function under this context."""

    function: Callable[[Context], Any]
    context: Context
    policy: Policy
    # Whether there is a lease to renew; in the caller's transaction the row lock holds instead.
    leased: bool = True


class Pause(Struct, frozen=True):
    """Wait until the listener is woken, for at most `seconds`."""

    seconds: float
    listener: Listener | None = None
