"""The form of any value, for identities: bytes that are equal for equal values and differ wherever the values do.

JSON's own types have their RFC 8785 bytes. Every other type stands behind a tag, as in `!decimal"15E-1"`. No JSON has a
`!` outside of its strings, so no JSON value has the form of a value of another type, at whatever depth.

| type | form |
|---|---|
| None, bool, str, int up to 2^53, float, list, dict, their subclasses; any Mapping | RFC 8785: 1 and 1.0 are one |
| tuple | as a list, which is what it is after any queue |
| int beyond 2^53 | `!int`, its hex digits; equal to no float |
| Decimal | `!decimal`: digits without zeros at their ends, `E`, exponent: 1.50 and 1.5 are one |
| bytes, bytearray, memoryview | `!bytes`, base64 |
| datetime | `!datetime`: in UTC with six decimals and `Z`; without a zone the same, without `Z` |
| date, time, timedelta, UUID | `!date`, `!time`, `!timedelta`, `!uuid` |
| set, frozenset | `!set`: its elements' forms, in order |
| Enum | `!enum`: its class and its name, also where it is a str or an int |
| dataclass, named tuple, pydantic model, msgspec struct | `!class`: module, name, and an object of its fields |
| one that is also one of the above, as a dict with fields | the same, and then its form as that |

Refused, with the path to it: NaN, lone surrogates, member names that are no strings, cycles, classes made inside of a
function, and every other type.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from json.encoder import encode_basestring
from typing import Any, Final, NamedTuple
from uuid import UUID

import rfc8785

from sameas.identity.canonical import (
    MAX_SAFE_INTEGER,
    Exclusions,
    Walk,
    compile_exclusions,
    field_names,
    instant,
    no_form,
    path_step,
    quick_form,
)
from sameas.identity.errors import NotCanonical

_NOTHING: Final[Exclusions] = {}
# What has a form by itself, whatever fields its class declares beside it.
_KINDS: Final = (str, int, float, Decimal, date, time, timedelta, UUID, bytes, bytearray, Mapping, set, frozenset, list)
_EXACT: Final = frozenset({*_KINDS, datetime, memoryview})


class Form(NamedTuple):
    """The form, and whether it is JSON throughout: then it is the RFC 8785 form of the value."""

    data: bytes
    is_json: bool


def form_of(value: Any, *, exclude_fields: Iterable[str] | Exclusions = ()) -> Form:
    """The form of a value, without the fields at the dotted paths of `exclude_fields`."""
    exclusions = compile_exclusions(exclude_fields) if exclude_fields else _NOTHING
    if not exclusions:
        data = quick_form(value)
    elif type(value) is dict and all(exclusions[name] is None for name in exclusions if name in value):
        data = quick_form({name: item for name, item in value.items() if name not in exclusions})
    else:
        data = None
    return _Writer().form(value, exclusions) if data is None else Form(data, is_json=True)


def forms_of_fields(
    value: Any, *, exclude_fields: Iterable[str] | Exclusions = ()
) -> tuple[str, dict[str, bytes]] | None:
    """The class of a value that has named fields, empty for an object of JSON, and the form of `[name, value]` by
    name; None for a value that has none."""
    exclusions = compile_exclusions(exclude_fields) if exclude_fields else _NOTHING
    if type(value) is not dict and isinstance(value, _KINDS) and _names_of(value) is not None:
        # It has more than fields.
        return None
    if isinstance(value, Mapping):
        kind, members = "", value
    elif (names := _names_of(value)) is not None:
        kind, members = class_name(type(value)), {name: getattr(value, name) for name in names}
    else:
        return None
    forms = {}
    for name, item in members.items():
        inner = exclusions.get(name, _NOTHING)
        if inner is None:
            continue
        try:
            text = Walk().name(name)
            data = form_of(item, exclude_fields=inner).data
        except NotCanonical as error:
            raise error.inside(path_step(name)) from None
        forms[text] = b"[%b,%b]" % (encode_basestring(text).encode(), data)
    return kind, forms


def class_name(kind: type) -> str:
    """What tells a class from every other one: where it is defined, and its name there."""
    if "<locals>" in kind.__qualname__:
        raise NotCanonical(
            f"is of the class {kind.__qualname__}, made inside of a function, whose name identifies nothing: define it"
            " at the top of a module, or say key="
        )
    # A process that multiprocessing spawns has its parent's __main__ under another name.
    module = "__main__" if kind.__module__ == "__mp_main__" else kind.__module__
    return f"{module}:{kind.__qualname__}"


def _names_of(value: Any) -> Iterable[str] | None:
    """The names of a value's fields, where its class has some."""
    if isinstance(value, tuple):
        return getattr(type(value), "_fields", None)
    return None if isinstance(value, type) else field_names(value)


class _Writer(Walk):
    """One pass over a value that writes its form, and notes whether it is JSON."""

    __slots__ = ("is_json",)

    def __init__(self) -> None:
        super().__init__()
        self.is_json = True

    def form(self, value: Any, exclusions: Exclusions) -> Form:
        try:
            return Form(self.write(value, exclusions).encode(), self.is_json)
        except RecursionError:
            raise NotCanonical("is nested too deeply for the stack that is left") from None

    def write(self, value: Any, exclusions: Exclusions) -> str:
        kind = type(value)
        if kind is str:
            return encode_basestring(value if value.isascii() else self.text(value))
        if value is None:
            return "null"
        if kind is bool:
            return "true" if value else "false"
        if kind is int:
            return self.write_integer(value)
        if kind is dict:
            return self.write_members(value, value, exclusions)
        if kind is list or kind is tuple:
            return self.write_elements(value, exclusions)
        if kind is float:
            return self.write_number(value)
        return self.write_other(value, exclusions)

    def write_other(self, value: Any, exclusions: Exclusions) -> str:
        """Subclasses, and what JSON has no type for; most special first: a datetime is also a date."""
        if isinstance(value, Enum):
            return self.write_enum(value)
        names = None if type(value) in _EXACT else _names_of(value)
        if names is None:
            return self.write_kind(value, exclusions)
        self.is_json = False
        fields = self.write_members(value, {name: getattr(value, name) for name in names}, exclusions)
        content = f",{self.write_kind(value, exclusions)}" if isinstance(value, _KINDS) else ""
        return f"!class[{encode_basestring(class_name(type(value)))},{fields}{content}]"

    def write_kind(self, value: Any, exclusions: Exclusions) -> str:
        match value:
            case str():
                return encode_basestring(self.text(str.__str__(value)))
            case int():
                return self.write_integer(int(value))
            case float():
                return self.write_number(float(value))
            case Decimal():
                return self.tagged("decimal", self.decimal(value))
            case datetime():
                return self.tagged("datetime", instant(value))
            case date():
                return self.tagged("date", value.isoformat())
            case time():
                return self.tagged("time", _time_of_day(value))
            case timedelta():
                return self.tagged("timedelta", str(value // timedelta(microseconds=1)))
            case UUID():
                return self.tagged("uuid", str(value))
            case bytes() | bytearray() | memoryview():
                return self.tagged("bytes", b64encode(value).decode())
            case Mapping():
                return self.write_members(value, value, exclusions)
            case set() | frozenset():
                return self.write_set(value)
            case list() | tuple():
                return self.write_elements(value, exclusions)
        raise no_form(value)

    def tagged(self, tag: str, text: str) -> str:
        self.is_json = False
        return f"!{tag}{encode_basestring(text)}"

    def write_enum(self, member: Enum) -> str:
        self.is_json = False
        # A combination of flags may have no name; what it has then is its number.
        name = self.write(member.name if member.name is not None else member.value, _NOTHING)
        return f"!enum[{encode_basestring(class_name(type(member)))},{name}]"

    def write_set(self, elements: set[Any] | frozenset[Any]) -> str:
        self.is_json = False
        try:
            return f"!set[{','.join(sorted(self.write(element, _NOTHING) for element in elements))}]"
        except NotCanonical as error:
            raise error.inside("{}") from None

    def write_members(self, owner: object, members: Mapping[Any, Any], exclusions: Exclusions) -> str:
        self.enter(owner)
        forms: dict[str, str] = {}
        name: Any = ""
        try:
            for name, item in members.items():
                inner = exclusions.get(name, _NOTHING) if exclusions else _NOTHING
                if inner is not None:
                    text = name if type(name) is str and name.isascii() else self.name(name)
                    forms[text] = self.write(item, inner)
        except NotCanonical as error:
            raise error.inside(path_step(name)) from None
        self.ancestors.discard(id(owner))
        # Names beyond the surrogates sort by their UTF-16 units.
        names = sorted(forms) if self.standard else sorted(forms, key=lambda text: text.encode("utf-16-be"))
        return "{" + ",".join([f"{encode_basestring(text)}:{forms[text]}" for text in names]) + "}"

    def write_elements(self, items: list[Any] | tuple[Any, ...], exclusions: Exclusions) -> str:
        self.enter(items)
        inner = exclusions.get(None, _NOTHING)
        forms: list[str] = []
        try:
            forms.extend(self.write(item, inner or _NOTHING) for item in (() if inner is None else items))
        except NotCanonical as error:
            raise error.inside(f"[{len(forms)}]") from None
        self.ancestors.discard(id(items))
        return f"[{','.join(forms)}]"

    def write_integer(self, number: int) -> str:
        # In hex: Python writes no decimal number of more than a few thousand digits.
        return str(number) if -MAX_SAFE_INTEGER <= number <= MAX_SAFE_INTEGER else self.tagged("int", f"{number:x}")

    def write_number(self, number: float) -> str:
        plain = self.number(number)
        if isinstance(plain, int) or 1e-4 <= abs(plain) < MAX_SAFE_INTEGER:
            return repr(plain)
        return rfc8785.dumps(plain).decode()


def _time_of_day(moment: time) -> str:
    if moment.tzinfo is not None and moment.utcoffset() is None:
        raise NotCanonical("is a time of day in a zone that needs a date: give a datetime")
    return moment.isoformat(timespec="microseconds")
