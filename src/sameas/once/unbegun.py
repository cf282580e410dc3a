"""Work that was handed over and not begun: a coroutine that nobody awaited, a generator that nobody asked for anything.

Rule: it is no result. Nothing of it has happened, so it is not taken for done: its caller is told, and the next one may
run it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

_WHAT_TO_DO: Final = {
    "coroutine": "use AsyncEngine or AsyncIdempotentProcessor, which await it",
    "generator": "return a list of what it gives",
    "async generator": "return a list of what it gives",
}


def refuse_async(function: Callable[..., Any], instead: str) -> None:
    """Refuse an async function where nobody would await it."""
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"{getattr(function, '__qualname__', function)} is async: {instead}")


def refuse_unbegun(result: Any) -> None:
    """Refuse what the work gave, if it is work that has yet to be done."""
    kind = _kind_of(result)
    if not kind:
        return
    if kind != "async generator":
        # Nobody will ever await it, and Python need not say so once more.
        result.close()
    article = "an" if kind.startswith("a") else "a"
    raise TypeError(
        f"the work gave {article} {kind} that was not begun, so nothing was done and nothing is kept:"
        f" {_WHAT_TO_DO[kind]}"
    )


def _kind_of(result: Any) -> str:
    if inspect.iscoroutine(result) and inspect.getcoroutinestate(result) == inspect.CORO_CREATED:
        return "coroutine"
    if inspect.isgenerator(result) and inspect.getgeneratorstate(result) == inspect.GEN_CREATED:
        return "generator"
    return "async generator" if inspect.isasyncgen(result) else ""
