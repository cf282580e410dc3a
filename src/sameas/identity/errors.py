"""The root of every error of sameas, and the errors of identity: a value without one certain canonical form is refused,
never guessed at. `sameas.errors` has the whole tree.
"""

from __future__ import annotations

import re
from typing import Any

# A message of a driver that ends with a full stop of its own, inside of one of ours. Three are an ellipsis.
_TWO_STOPS = re.compile(r"(?<!\.)\.\.(?=\s|$)")


class Picklable:
    """An error that goes through pickle whole, whatever it is made from: a pool of processes sends errors so."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args), self.__dict__  # type: ignore[attr-defined]


def _rebuilt(kind: Any, arguments: tuple[Any, ...]) -> Any:
    return kind.__new__(kind, *arguments)


class SameasError(Picklable, Exception):
    """Something went wrong in sameas."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(said_by(type(self)) if message is None else one_stop(message))


def said_by(kind: type[SameasError]) -> str:
    """What an error says when it is raised without a message: its docstring."""
    return " ".join((kind.__doc__ or "").split())


def one_stop(message: str) -> str:
    """A message that ends each of its sentences once."""
    return _TWO_STOPS.sub(".", message)


class NotCanonical(SameasError, ValueError):
    """A value has no certain canonical form; `path` is the place inside it, such as `order.items[2].price`."""

    def __init__(self, reason: str, path: str = "") -> None:
        self.reason = reason
        self.path = path
        super().__init__(reason)
        self.args = (reason, path)

    def inside(self, step: str) -> NotCanonical:
        """The same error seen from one level further out."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        return type(self)(self.reason, f"{step}{joint}{self.path}")

    def __str__(self) -> str:
        return f"{self.path or 'the value'}: {self.reason}"
