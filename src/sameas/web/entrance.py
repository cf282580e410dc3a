"""Whether a request got as far as its handler: what a framework refuses before that was not done, and is not kept.

A handler is watched where its framework keeps it, by a function around it that notes each entry and changes nothing
else. What cannot be watched (a generator, a framework that nobody knows) counts as entered.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any, Final

from msgspec import Struct

_WATCHED: Final = "__sameas_watched__"


class Entrance(Struct):
    """One request's way to its handler."""

    is_entered: bool = False


ENTRANCE: ContextVar[Entrance | None] = ContextVar("sameas_entrance", default=None)


def watch(holder: Any, name: str) -> bool:
    """Note from now on whether what `holder` has under a name is entered; False where that cannot be."""
    handler = getattr(holder, name, None)
    if getattr(handler, _WATCHED, False):
        return True
    if not callable(handler) or isgeneratorfunction(handler) or isasyncgenfunction(handler):
        return False
    try:
        # An ASGI application is awaited, whatever it is; of anything else a framework may ask whether it is to be.
        setattr(holder, name, _watched(handler, is_async=name != "app" and iscoroutinefunction(handler)))
    except (AttributeError, TypeError):
        return False
    return True


def _watched(handler: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
    if is_async:

        @wraps(handler)
        async def entered_async(*args: Any, **kwargs: Any) -> Any:
            _note()
            return await handler(*args, **kwargs)

        return _marked(entered_async)

    @wraps(handler)
    def entered(*args: Any, **kwargs: Any) -> Any:
        _note()
        return handler(*args, **kwargs)

    return _marked(entered)


def _marked(handler: Callable[..., Any]) -> Callable[..., Any]:
    setattr(handler, _WATCHED, True)
    return handler


def _note() -> None:
    entrance = ENTRANCE.get()
    if entrance is not None:
        entrance.is_entered = True
