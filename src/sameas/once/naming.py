"""The default scope of a function, which is where it is defined; a name that does not tell it from others is refused.

Two programs have a `__main__`, each call of a function makes its inner functions anew, a lambda has no name, a method's
does not say of which object it is, and of two functions with one name in a module only one can be meant.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

_SAY = "say scope=, a stable name for this kind of work"
# Of other values only the objects are compared: their own idea of what is equal may be anything.
_PLAIN = (str, bytes, int, float, CodeType)


class _Names:
    """Which function each name was given to, in this process."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[object, list[list[object]]]] = {}

    def give(self, name: str, function: Any) -> None:
        """Refuse a name that another function has; a module that is loaded again defines its functions again."""
        loaded = getattr(sys.modules.get(function.__module__), "__spec__", None)
        made_of = _layers(function)
        known = self._given.get(name)
        if known is not None and known[0] is loaded and not _are_one(known[1], made_of):
            raise ValueError(f"{name} is the name of two functions, and their results would be mixed up: {_SAY}")
        self._given[name] = (loaded, made_of)


def _layers(function: Any) -> list[list[object]]:
    """What tells a function from another of its name: what it is made of, and what every decorator around it is."""
    layers: list[Any] = []

    def note(layer: Any) -> bool:
        layers.append(layer)
        return False

    layers.append(inspect.unwrap(function, stop=note))
    return [_parts(layer) for layer in layers]


def _parts(layer: Any) -> list[object]:
    """The code of a function, and the values that were put into it when it was made: a decorator makes another function
    of the same code each time."""
    if not isinstance(layer, FunctionType):
        return [layer]
    parts: list[object] = [layer.__code__, *(layer.__defaults__ or ()), *(layer.__kwdefaults__ or {}).values()]
    for cell in layer.__closure__ or ():
        # One that is not filled yet has no contents.
        with suppress(ValueError):
            parts.append(cell.cell_contents)
    return parts


def _are_one(known: list[list[object]], made_of: list[list[object]]) -> bool:
    """Whether two functions are made of the same: the same objects, or texts and numbers that are equal."""
    return len(known) == len(made_of) and all(
        len(theirs) == len(ours) and all(map(_is_same, theirs, ours))
        for theirs, ours in zip(known, made_of, strict=True)
    )


def _is_same(left: object, right: object) -> bool:
    return left is right or (type(left) is type(right) and isinstance(left, _PLAIN) and left == right)


_NAMES = _Names()


def scope_of(function: Callable[..., Any]) -> str:
    """The default scope of a function: where it is defined."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if not module or not name or name.endswith("<lambda>"):
        raise ValueError(f"{function!r} has no name of its own: {_SAY}")
    scope = f"{module}.{name}"
    why = ""
    if module in ("__main__", "__mp_main__"):
        why = "every program has a __main__"
    elif "<locals>" in name:
        why = "it is made anew by each call of the function around it"
    elif inspect.ismethod(function):
        why = "it does not say which object the method belongs to"
    if why:
        raise ValueError(f"the name {scope} identifies nothing: {why}; {_SAY} ({scope!r} finds the records it has)")
    _NAMES.give(scope, function)
    return scope
