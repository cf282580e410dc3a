"""Whether a result that was read again from its bytes is the one that was written.

Python's own values may come back as what a declared type asks for: a list as a tuple, a dict as a model. What has a
class of its own has to come back as one of that class, with equal parts, wherever in the result it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

# Read again from JSON, a set that nobody asked for is a list.
_SETS = (set, frozenset)


def is_equal(found: Any, result: Any) -> bool:
    """Whether two values say that they are equal."""
    try:
        return bool(found == result)
    except Exception:
        # Some types, such as arrays, have no answer to that.
        return False


def tells_equals(result: Any) -> bool:
    """Whether two values of this type can be told apart, and not only by which object it is."""
    kind: Any = type(result)
    return kind.__eq__ is not object.__eq__ and is_equal(result, result)


def is_changed(found: Any, result: Any) -> bool:
    """Whether a value came back as one of another class, or a part of it did."""
    kind = type(result)
    if type(found) is not kind:
        return isinstance(result, (*_SETS, Enum)) or field_names(kind) is not None
    if isinstance(result, Enum):
        return found is not result
    if isinstance(result, dict):
        return _are_changed(found.items(), result.items())
    names = field_names(kind)
    if names is not None:
        return _are_changed(_values(found, names), _values(result, names))
    if isinstance(result, list | tuple):
        return _are_changed(found, result)
    # Which element was which, nobody can say.
    return isinstance(result, _SETS) and Counter(map(type, found)) != Counter(map(type, result))


def field_names(kind: Any) -> Iterable[str] | None:
    """The fields of a class that has some: a dataclass, struct, model, named tuple or one of attrs."""
    if is_dataclass(kind):
        return [field.name for field in fields(kind)]
    if hasattr(kind, "__pydantic_validator__"):
        return list(kind.model_fields) if hasattr(kind, "model_fields") else ()
    if hasattr(kind, "__attrs_attrs__"):
        return [attribute.name for attribute in kind.__attrs_attrs__]
    named: Iterable[str] | None = getattr(kind, "__struct_fields__", None)
    return getattr(kind, "_fields", None) if issubclass(kind, tuple) else named


def _values(owner: Any, names: Iterable[str]) -> list[Any]:
    # A field may have been deleted since.
    return [getattr(owner, name, None) for name in names]


def _are_changed(found: Iterable[Any], results: Iterable[Any]) -> bool:
    left, right = list(found), list(results)
    return len(left) != len(right) or any(map(is_changed, left, right))
