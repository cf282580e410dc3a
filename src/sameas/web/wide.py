"""Integers in JSON that are too wide for its readers: 64-bit ids and amounts, which many send as numbers.

RFC 8785 has no form for them, for a reader that takes numbers for doubles rounds them. Here they are told apart by all
of their digits: as texts, beside a tree of the same shape that says where they stand.
"""

from __future__ import annotations

from typing import Any, Final

from sameas.identity.canonical import MAX_DEPTH, MAX_SAFE_INTEGER
from sameas.identity.errors import NotCanonical

_HERE: Final = 1
_NOT_HERE: Final = 0


def has_wide(value: Any) -> bool:
    """Whether parsed JSON has such an integer anywhere."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if type(each) is dict:
            waiting.extend(each.values())
        elif type(each) is list:
            waiting.extend(each)
        elif _is_wide(each):
            return True
    return False


def in_digits(value: Any, depth: int = 0) -> Any:
    """Parsed JSON with the digits of such integers in their place."""
    if type(value) is dict:
        return {name: in_digits(item, _deeper(depth)) for name, item in value.items()}
    if type(value) is list:
        return [in_digits(item, _deeper(depth)) for item in value]
    return str(value) if _is_wide(value) else value


def places_of(value: Any) -> Any:
    """The same shape, with 1 where such an integer stands and 0 elsewhere."""
    if type(value) is dict:
        return {name: places_of(item) for name, item in value.items()}
    if type(value) is list:
        return [places_of(item) for item in value]
    return _HERE if _is_wide(value) else _NOT_HERE


def has_wide_place(places: Any) -> bool:
    """Whether a tree of places names any."""
    if type(places) is dict:
        return any(map(has_wide_place, places.values()))
    if type(places) is list:
        return any(map(has_wide_place, places))
    return bool(places == _HERE)


def _is_wide(value: Any) -> bool:
    return type(value) is int and not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER


def _deeper(depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise NotCanonical(f"is nested more than {MAX_DEPTH} deep")
    return depth + 1
