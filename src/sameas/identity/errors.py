"""Errors of identity. A value without one certain canonical form is refused, never guessed at."""

from __future__ import annotations


class NotCanonical(ValueError):
    """A value has no certain canonical form; `path` is the place inside it, such as `order.items[2].price`."""

    def __init__(self, reason: str, path: str = "") -> None:
        self.reason = reason
        self.path = path
        super().__init__(reason, path)

    def inside(self, step: str) -> NotCanonical:
        """The same error seen from one level further out."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        return type(self)(self.reason, f"{step}{joint}{self.path}")

    def __str__(self) -> str:
        return f"{self.path or 'the value'}: {self.reason}"
