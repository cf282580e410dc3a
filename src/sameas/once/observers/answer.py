"""How a call was answered, in the words that logs, metrics and traces share."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from sameas.once.errors import StoredFailure
from sameas.once.observe import CallEnded


class Answered(Struct, frozen=True):
    """`replay` is whether the answer was a kept one; `error` is the name of the error's type, if there was one.

    Only the type: an error's message is the handler's own and may hold anything, also a payload or a password.
    """

    how: Literal["fresh", "replay", "shared", "error"]
    replay: bool
    error: str = ""


def answered(ended: CallEnded) -> Answered:
    """How this call was answered. A kept failure is a replay too: nothing was run."""
    if ended.error is not None:
        return Answered("error", isinstance(ended.error, StoredFailure), type(ended.error).__name__)
    if ended.how == "replay":
        return Answered("replay", replay=True)
    if ended.how == "shared":
        return Answered("shared", replay=True)
    return Answered("fresh", replay=False)
