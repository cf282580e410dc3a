"""Objects that must be made anew in a forked child: a thread is not inherited, a lock or a connection must not be."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """Something with a state that a child process must not share."""

    def after_fork(self) -> None: ...


_LIVE: WeakSet[Forked] = WeakSet()
_process = object()


def this_process() -> object:
    """A mark of this process; a forked child has another."""
    return _process


def renew_after_fork(forked: Forked) -> None:
    """Have `after_fork` called in every child, for as long as the object lives."""
    _LIVE.add(forked)


def _in_child() -> None:
    global _process  # noqa: PLW0603 - the one thing that must differ between parent and child
    _process = object()
    for forked in list(_LIVE):
        forked.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
