"""Python's own values as JSON and back: what JSON has no type for is tagged, `{"$": ["date", "2026-01-02"]}`.

What comes back is equal to what went in, NaN included. A subclass of one of these types comes back as the type that it
extends, if the two are equal; everything else is refused. Nothing is ever imported or called by a name in the data.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

MEDIA_TYPE: Final = "application/vnd.sameas.value+json"

_TAG: Final = "$"
# Beyond this an integer is written in base 16: Python bounds the digits that it reads in base 10.
_LONG_INTEGER = 1_024

Instead = Callable[[Any], Any]


class Tagging:
    """One value on its way to JSON. `instead` may give another value for one that has no form here."""

    def __init__(self, instead: Instead | None = None) -> None:
        self.is_tagged = False
        self._instead = instead

    def encode(self, value: Any) -> bytes:
        """The JSON of a value; `is_tagged` then says whether it is more than plain JSON."""
        tree = self._of(value)
        # A lone surrogate has no UTF-8, but an escape.
        return _DUMPS(tree).encode()

    def _of(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is str:
            if not value.isascii() and _has_surrogate(value):
                self.is_tagged = True
            return value
        form = _FORMS.get(kind)
        if form is not None:
            return form(self, value)
        for base, form in _FORMS.items():
            if isinstance(value, base):
                plain = base(value) if base not in _BY_PARTS else _BY_PARTS[base](value)
                if base in _CONTAINERS or plain == value:
                    return form(self, plain)
        if self._instead is not None:
            return self._of(self._instead(value))
        raise TypeError(f"a {kind.__qualname__} cannot be kept as it is")

    def _tag(self, name: str, data: Any) -> dict[str, Any]:
        self.is_tagged = True
        return {_TAG: [name, data]}

    def _text(self, value: str) -> Any:
        return self._of(value)

    def _integer(self, value: int) -> Any:
        return value if value.bit_length() <= _LONG_INTEGER else self._tag("int", hex(value))

    def _float(self, value: float) -> Any:
        return value if isfinite(value) else self._tag("float", repr(value))

    def _complex(self, value: complex) -> Any:
        return self._tag("complex", [repr(value.real), repr(value.imag)])

    def _bytes(self, value: bytes) -> Any:
        return self._tag("bytes", b64encode(value).decode())

    def _list(self, value: list[Any]) -> Any:
        return [self._of(each) for each in value]

    def _tuple(self, value: tuple[Any, ...]) -> Any:
        return self._tag("tuple", [self._of(each) for each in value])

    def _set(self, value: set[Any]) -> Any:
        return self._tag("set", self._members(value))

    def _frozenset(self, value: frozenset[Any]) -> Any:
        return self._tag("frozenset", self._members(value))

    def _members(self, value: set[Any] | frozenset[Any]) -> list[Any]:
        """In an order of their own: equal sets have equal bytes."""
        return sorted((self._of(each) for each in value), key=_DUMPS)

    def _dict(self, value: dict[Any, Any]) -> Any:
        if _TAG not in value and all(type(name) is str for name in value):
            return {self._of(name): self._of(item) for name, item in value.items()}
        return self._tag("dict", [[self._of(name), self._of(item)] for name, item in value.items()])

    def _datetime(self, value: datetime) -> Any:
        return self._tag("datetime", _in_zone(value))

    def _date(self, value: date) -> Any:
        return self._tag("date", value.isoformat())

    def _time(self, value: time) -> Any:
        return self._tag("time", _in_zone(value))

    def _timedelta(self, value: timedelta) -> Any:
        return self._tag("timedelta", [value.days, value.seconds, value.microseconds])

    def _decimal(self, value: Decimal) -> Any:
        return self._tag("decimal", str(value))

    def _uuid(self, value: UUID) -> Any:
        return self._tag("uuid", value.hex)


def decode(data: bytes) -> Any:
    """The value of what `Tagging` wrote; a ValueError if it is none."""
    return json.loads(data, object_hook=_untagged)


# In this order for subclasses: a datetime is a date, and would come back as one.
_FORMS: Final[dict[type, Callable[[Tagging, Any], Any]]] = {
    int: Tagging._integer,
    float: Tagging._float,
    dict: Tagging._dict,
    list: Tagging._list,
    tuple: Tagging._tuple,
    str: Tagging._text,
    bytes: Tagging._bytes,
    bytearray: Tagging._bytes,
    memoryview: Tagging._bytes,
    datetime: Tagging._datetime,
    date: Tagging._date,
    time: Tagging._time,
    timedelta: Tagging._timedelta,
    Decimal: Tagging._decimal,
    UUID: Tagging._uuid,
    set: Tagging._set,
    frozenset: Tagging._frozenset,
    complex: Tagging._complex,
}
_CONTAINERS: Final = frozenset({dict, list, tuple, set, frozenset})
# Where the type itself does not take one of its subclass.
_BY_PARTS: Final[dict[type, Callable[[Any], Any]]] = {
    int: int.__int__,
    str: str.__str__,
    datetime: lambda value: datetime.combine(date(value.year, value.month, value.day), value.timetz()),
    date: lambda value: date(value.year, value.month, value.day),
    time: lambda value: time(value.hour, value.minute, value.second, value.microsecond, value.tzinfo, fold=value.fold),
    timedelta: lambda value: timedelta(value.days, value.seconds, value.microseconds),
    UUID: lambda value: UUID(int=value.int),
}


def _in_zone(value: datetime | time) -> list[Any]:
    """A time as it is on the wall, its zone by name if it has one, else by its offset."""
    key = value.tzinfo.key if isinstance(value.tzinfo, ZoneInfo) else None
    text = value.replace(tzinfo=None).isoformat() if key else value.isoformat()
    return [text, key, value.fold]


def _of_zone(kind: type[datetime | time], data: list[Any]) -> Any:
    text, key, fold = data
    value = kind.fromisoformat(text)
    if key is not None:
        try:
            value = value.replace(tzinfo=ZoneInfo(key))
        except ZoneInfoNotFoundError as error:
            raise ValueError(f"the time zone {key!r} is not known here: pip install tzdata") from error
    return value.replace(fold=fold) if fold else value


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "int": lambda data: int(data, 16),
    "float": float,
    "complex": lambda data: complex(float(data[0]), float(data[1])),
    "bytes": lambda data: b64decode(data, validate=True),
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "dict": dict,
    "datetime": lambda data: _of_zone(datetime, data),
    "date": date.fromisoformat,
    "time": lambda data: _of_zone(time, data),
    "timedelta": lambda data: timedelta(*data),
    "decimal": Decimal,
    "uuid": lambda data: UUID(hex=data),
}


def _untagged(found: dict[str, Any]) -> Any:
    if _TAG not in found:
        return found
    try:
        name, data = found[_TAG]
        return _READERS[name](data)
    except (KeyError, TypeError, ArithmeticError) as error:
        raise ValueError("a tag that this release does not know") from error


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


_DUMPS: Final = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode
