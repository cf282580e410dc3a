"""Objects that must be made anew in a forked child: a thread is not inherited, a lock or a connection must not be."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """Something with a state that a child process must not share."""

    def after_fork(self) -> None: ...


class HeldAcrossForks(Protocol):
    """Something that a fork must not catch in the middle of its work."""

    def before_fork(self) -> None: ...

    def after_fork_in_parent(self) -> None: ...


_LIVE: WeakSet[Forked] = WeakSet()
_HELD: WeakSet[HeldAcrossForks] = WeakSet()
_process = object()


def this_process() -> object:
    """A mark of this process; a forked child has another."""
    return _process


def renew_after_fork(forked: Forked) -> None:
    """Have `after_fork` called in every child, for as long as the object lives."""
    _LIVE.add(forked)


def hold_across_forks(held: HeldAcrossForks) -> None:
    """Have nothing going on there at the moment of a fork, for as long as the object lives."""
    _HELD.add(held)


def _before() -> None:
    # In one order, so that two threads that fork at once do not wait for each other.
    for held in sorted(_HELD, key=id):
        held.before_fork()


def _in_parent() -> None:
    for held in list(_HELD):
        held.after_fork_in_parent()


def _in_child() -> None:
    global _process  # noqa: PLW0603 - the one thing that must differ between parent and child
    _process = object()
    for forked in list(_LIVE):
        forked.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
