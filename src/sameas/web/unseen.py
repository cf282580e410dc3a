"""Marks that nobody would follow: functions marked with `@idempotent` in an application whose routes cannot be seen.

Nobody can say which request leads there, so the application is searched for them once, through what its objects hold,
and is refused by their names. A line of the route table for the path says what to do instead of the mark.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final

from sameas.identity.errors import SameasError
from sameas.web.route import MARK, RoutePolicy

_LOG = logging.getLogger("sameas")

# Far more than the objects of any application's routes.
_MOST: Final = 100_000
_PLAIN: Final = (str, bytes, bytearray, int, float, complex, type(None), ModuleType, RoutePolicy)


class UnseenMark(SameasError, RuntimeError):
    """A marked function is mounted where the middleware cannot see its routes."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        super().__init__(
            f"{', '.join(names)}: marked with @idempotent where IdempotencyMiddleware cannot see the routes; it "
            "would do nothing; take the mark away and give the middleware routes={'POST /the/path': RoutePolicy(...)}"
        )


def marked_within(app: Any) -> list[str]:
    """The names of the marked functions and classes that an application holds."""
    names: dict[str, None] = {}
    seen: dict[int, Any] = {}
    waiting = deque([app])
    while waiting:
        value = waiting.popleft()
        if issubclass(type(value), _PLAIN) or id(value) in seen:
            continue
        # Held, so that no other object takes its place and number.
        seen[id(value)] = value
        if len(seen) > _MOST:
            _LOG.warning("an application is too large to be searched for functions marked with @idempotent")
            break
        try:
            if isinstance(getattr(value, "__dict__", {}).get(MARK), RoutePolicy):
                names[f"{value.__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"] = None
            waiting.extend(list(_held(value)))
        except Exception as error:
            # A stand-in for something that is only there during a request, such as Flask's: it holds no routes.
            _LOG.debug("an object of type %s cannot be searched: %s", type(value).__qualname__, type(error).__name__)
    return list(names)


def _held(value: Any) -> Iterator[Any]:
    """What an object holds; not what its module or its class does. Its own type decides, whatever it stands for."""
    kind = type(value)
    if issubclass(kind, dict):
        yield from list(dict.values(value))
    elif issubclass(kind, (list, tuple, set, frozenset, deque)):
        yield from list(value)
    elif issubclass(kind, partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif issubclass(kind, MethodType):
        yield from (value.__self__, value.__func__)
    elif issubclass(kind, FunctionType):
        yield from value.__dict__.values()
        for cell in value.__closure__ or ():
            # One that is not filled yet has no contents.
            with suppress(ValueError):
                yield cell.cell_contents
    elif issubclass(kind, type):
        yield from [each for each in vars(value).values() if isinstance(each, FunctionType)]
    else:
        yield from list(getattr(value, "__dict__", {}).values())
        for each in kind.__mro__:
            for name in getattr(each, "__slots__", ()):
                yield getattr(value, name, None)
