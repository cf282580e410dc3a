"""One value, one byte string: RFC 8785 canonical JSON, digests, and joins that cannot be forged.

Equal values give equal bytes in every process, Python version and machine. What JSON cannot carry exactly (NaN,
integers beyond 2^53, lone surrogates, sets, unknown types, cycles) is refused with the path to it. What JSON has no
type for becomes a string or an object, and so may equal one: `sameas.identity.form` is for identities.

| type | canonical form |
|---|---|
| Decimal | string: the digits without leading or trailing zeros, `E`, the exponent (`1.50` and `1.5` are `"15E-1"`) |
| datetime | string: RFC 3339 in UTC with six decimals and `Z`; without a zone the same, without `Z` |
| date | string: `YYYY-MM-DD` |
| UUID | string: lower case with hyphens |
| Enum | the form of its value |
| bytes, bytearray, memoryview | string: standard base64 with padding |
| dataclass, pydantic model, msgspec struct | object of its fields, by field name |
| tuple | as a list |

There is a quick way for what most payloads are: bytes that are provably those of RFC 8785, or no answer. Three C
functions prove it. `marshal` takes no subclass of a JSON type. What `msgspec` wrote and reads back as an equal value
holds nothing but JSON's own types, each with a text that stands for it alone. Its text differs from RFC 8785's only in
numbers with an exponent, a fraction of zero or sixteen digits, and in the order of names beyond U+D7FF; those are
looked for and left to the strict way. So is a tuple, which is read back as a list.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import marshal
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any, Final
from uuid import UUID

import msgspec
import rfc8785

from sameas.identity.errors import NotCanonical

# Python's own stack allows about 1,000 frames; real payloads stay far below this.
MAX_DEPTH = 200
MAX_SAFE_INTEGER = 2**53 - 1

Json = None | bool | int | float | str | list[Any] | dict[str, Any]
# Excluded paths as a tree: a value of None ends a path, the name None stands for every element of a list.
Exclusions = dict[Any, Any]


def canonical_json(value: object, *, exclude_fields: Iterable[str] | Exclusions = ()) -> bytes:
    """The RFC 8785 form of a value, without the fields at the dotted paths of `exclude_fields`."""
    quick = None if exclude_fields else quick_form(value)
    if quick is not None:
        return quick
    walk = Walk()
    return walk.encode(walk.start(value, exclude_fields))


def to_json(value: object, *, exclude_fields: Iterable[str] | Exclusions = ()) -> Json:
    """The value as plain JSON types, every part checked."""
    return Walk().start(value, exclude_fields)


def parse_json(data: bytes | str) -> Json:
    """Parse JSON strictly: duplicate members, NaN, bad UTF-8 and trailing text are refused with the place."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotCanonical(f"is not UTF-8 at byte {error.start}") from None
    is_odd = False

    def members(pairs: list[tuple[str, Any]]) -> Any:
        nonlocal is_odd
        unique = dict(pairs)
        if len(unique) == len(pairs):
            return unique
        is_odd = True
        return _Duplicate(pairs)

    def constant(name: str) -> Any:
        nonlocal is_odd
        is_odd = True
        return _Constant(name)

    try:
        value = json.loads(text, object_pairs_hook=members, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise NotCanonical(f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise NotCanonical("is JSON nested too deeply") from None
    except ValueError as error:
        raise NotCanonical(f"is JSON with a number that cannot be read: {error}") from None
    if is_odd:
        to_json(value)  # finds the place and raises
    return value  # type: ignore[no-any-return]


def sha256_hex(data: bytes) -> str:
    """The SHA-256 of some bytes, as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def join(*parts: str) -> bytes:
    """Parts joined with their lengths in bytes, so that ("a:b", "c") and ("a", "b:c") never meet."""
    # A str subclass, such as a member of a str Enum, is its text and not what it would print.
    joined = "".join([f"{len(part)}:" + (part if type(part) is str else str.__str__(part)) for part in parts])
    if joined.isascii():
        return joined.encode()
    return b"".join([b"%d:%b" % (len(raw), raw) for raw in [part.encode() for part in parts]])


def compile_exclusions(paths: Iterable[str] | Exclusions) -> Exclusions:
    """Dotted paths as a tree: `sent_at`, `meta.trace`, `items[].added_at`; a backslash escapes a character."""
    if isinstance(paths, dict):
        return paths
    if isinstance(paths, str):
        raise TypeError("exclude_fields takes a collection of paths, not one string")
    tree: Exclusions = {}
    for path in paths:
        if not _PATH.fullmatch(path):
            raise ValueError(f"{path!r} is not a path such as sent_at, meta.trace or items[].added_at")
        steps = [None if step == "[]" else _ESCAPE.sub(r"\1", step) for step in _STEP.findall(path)]
        node: Any = tree
        for step in steps[:-1]:
            node = node.setdefault(step, {})
            if node is None:
                break  # the whole of it is excluded already
        else:
            node[steps[-1]] = None
    return tree


_NAME = r"(?:\\.|[^\\.\[\]])+"
_PATH = re.compile(rf"(?:{_NAME}|\[\])(?:\.{_NAME}|\[\])*", re.DOTALL)
_STEP = re.compile(rf"{_NAME}|\[\]", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_NOTHING: Exclusions = {}
_PLAIN_STEP = re.compile(r"[\w-]+")

# Agrees with RFC 8785 where `Walk.standard` holds, at a tenth of the cost.
_STANDARD = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), check_circular=False, allow_nan=False
)


# Each opens an object or a list; the strict way knows how deep is too deep.
_MAX_BRACKETS: Final = 200
_ODD_NUMBER: Final = re.compile(rb"[0-9](?:e|\.0(?![0-9])|[0-9]{15})").search
# Every digit as a zero: a search for a few bytes is many times as quick as a pattern.
_ZEROS: Final = bytes.maketrans(b"123456789", b"000000000")
_LONG: Final = b"0" * 16
# All that may follow a number as a comma.
_ENDS: Final = bytes.maketrans(b"]}", b",,")
# What three searches add up to that found nothing.
_NOWHERE: Final = -3
# The first bytes of characters from U+E000 on: UTF-16 sorts those among them that it writes as pairs below the others.
_HIGH: Final = re.compile(rb"[\xee-\xf4]").search

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder(order="sorted").encode


class _Duplicate:
    """An object in parsed text that names a member twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        seen: set[str] = set()
        self.name = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]


class _Constant:
    """NaN or Infinity in parsed text."""

    def __init__(self, name: str) -> None:
        self.name = name


class Walk:
    """One pass over a value: checks every part, makes it plain, and notes whether Python's own encoder will do."""

    __slots__ = ("ancestors", "standard")

    def __init__(self) -> None:
        self.ancestors: set[int] = set()
        self.standard = True

    def start(self, value: object, exclude_fields: Iterable[str] | Exclusions) -> Json:
        exclusions = compile_exclusions(exclude_fields) if exclude_fields else _NOTHING
        try:
            return self.plain(value, exclusions)
        except RecursionError:
            raise NotCanonical("is nested too deeply for the stack that is left") from None

    def encode(self, plain: Json) -> bytes:
        return _STANDARD.encode(plain).encode() if self.standard else rfc8785.dumps(plain)

    def plain(self, value: Any, exclusions: Exclusions) -> Json:
        kind = type(value)
        if kind is str:
            return value if value.isascii() else self.text(value)
        if value is None or kind is bool:
            return value  # type: ignore[no-any-return]
        if kind is int:
            return self.integer(value)
        if kind is dict:
            return self.members(value, value, exclusions)
        if kind is list or kind is tuple:
            return self.elements(value, exclusions)
        if kind is float:
            return self.number(value)
        return self.other(value, exclusions)

    def other(self, value: Any, exclusions: Exclusions) -> Json:
        """Everything that JSON has no type for, most special first: a datetime is also a date, an IntEnum an int."""
        match value:
            case Enum():
                return self.plain(value.value, exclusions)
            case str():
                return self.text(str.__str__(value))
            case int():
                return self.integer(int(value))
            case float():
                return self.number(float(value))
            case Decimal():
                return self.decimal(value)
            case datetime():
                return instant(value)
            case date():
                return value.isoformat()
            case UUID():
                return str(value)
            case bytes() | bytearray() | memoryview():
                return b64encode(value).decode()
            case Mapping():
                return self.members(value, value, exclusions)
            case list() | tuple():
                return self.elements(value, exclusions)
            case _Duplicate():
                raise NotCanonical(f"names the member {value.name!r} twice")
            case _Constant():
                raise NotCanonical(f"is {value.name}, which is not JSON")
        fields = field_names(value)
        if fields is not None:
            return self.members(value, {name: getattr(value, name) for name in fields}, exclusions)
        raise no_form(value)

    def members(self, owner: object, members: Mapping[Any, Any], exclusions: Exclusions) -> Json:
        self.enter(owner)
        plain: dict[str, Any] = {}
        name: Any = ""
        try:
            for name, item in members.items():
                if exclusions and name in exclusions:
                    inner = exclusions[name]
                    if inner is None:
                        continue
                else:
                    inner = _NOTHING
                plain[name if type(name) is str and name.isascii() else self.name(name)] = self.plain(item, inner)
        except NotCanonical as error:
            raise error.inside(path_step(name)) from None
        self.ancestors.discard(id(owner))
        return plain

    def elements(self, items: list[Any] | tuple[Any, ...], exclusions: Exclusions) -> Json:
        self.enter(items)
        inner = exclusions.get(None, _NOTHING)
        kept = () if inner is None else items
        plain: list[Any] = []
        try:
            plain.extend(self.plain(item, inner or _NOTHING) for item in kept)
        except NotCanonical as error:
            raise error.inside(f"[{len(plain)}]") from None
        self.ancestors.discard(id(items))
        return plain

    def enter(self, container: object) -> None:
        if id(container) in self.ancestors:
            raise NotCanonical("contains itself")
        if len(self.ancestors) >= MAX_DEPTH:
            raise NotCanonical(f"is nested more than {MAX_DEPTH} deep")
        self.ancestors.add(id(container))

    def name(self, name: object) -> str:
        if not isinstance(name, str):
            raise NotCanonical(f"is a member name of type {type(name).__qualname__}; JSON has only strings")
        text = self.text(str.__str__(name))
        # RFC 8785 sorts by UTF-16 units, Python by code points: they agree below the surrogates.
        if text and max(text) >= "\ud800":
            self.standard = False
        return text

    def text(self, text: str) -> str:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise NotCanonical(f"has a lone surrogate at character {error.start}") from None
        return text

    def integer(self, number: int) -> int:
        if not -MAX_SAFE_INTEGER <= number <= MAX_SAFE_INTEGER:
            raise NotCanonical("is an integer beyond 2^53, which JSON readers round; send it as a string")
        return number

    def number(self, number: float) -> float | int:
        if not isfinite(number):
            raise NotCanonical(f"is {number}, which JSON cannot carry")
        if number.is_integer() and -MAX_SAFE_INTEGER <= number <= MAX_SAFE_INTEGER:
            return int(number)
        # Python and ECMAScript write the same digits only where neither uses an exponent and there is a fraction.
        if not 1e-4 <= abs(number) < MAX_SAFE_INTEGER:
            self.standard = False
        return number

    def decimal(self, number: Decimal) -> str:
        sign, digits, exponent = number.as_tuple()
        if not isinstance(exponent, int):
            raise NotCanonical(f"is the Decimal {number}, which is not a number")
        text = "".join(map(str, digits)).lstrip("0")
        short = text.rstrip("0")
        if not short:
            return "0E0"
        return f"{'-' * sign}{short}E{exponent + len(text) - len(short)}"


def path_step(name: object) -> str:
    """A member's name as a step of a path that people read."""
    return str(name) if _PLAIN_STEP.fullmatch(str(name)) else f"[{name!r}]"


def instant(moment: datetime) -> str:
    """RFC 3339 with six decimals, in UTC if the moment has a zone."""
    if moment.tzinfo is None:
        return moment.isoformat(timespec="microseconds")
    try:
        return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    except OverflowError:
        raise NotCanonical(f"is {moment}, which has no place in UTC's calendar") from None


def no_form(value: object) -> NotCanonical:
    return NotCanonical(f"has type {type(value).__qualname__}, which has no canonical form; convert or exclude it")


def field_names(value: Any) -> Iterable[str] | None:
    """The fields of a dataclass, pydantic model or msgspec struct; None for anything else."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    if hasattr(kind, "__pydantic_validator__"):
        return [*kind.model_fields, *(value.model_extra or ())]
    return getattr(kind, "__struct_fields__", None)


def _has_odd_number(form: bytes) -> bool:
    """Whether a number that is written in more than one way is there, and not only in a string."""
    # What is between the strings: every second piece, once no quote is left inside of one.
    bare = form if b"\\" not in form else form.replace(b"\\\\", b"").replace(b'\\"', b"")
    return _ODD_NUMBER(b"".join(bare.split(b'"')[::2])) is not None


def told_apart(value: Any) -> bytes | None:
    """Bytes that no other value has, of a value of Python's own types; None for most others. An equal value may have
    other bytes, and they mean nothing in another process. What has a buffer, such as a number of numpy, is told as
    bytes: `told_of` gives those back."""
    try:
        return marshal.dumps(value)
    except ValueError:
        return None


def told_of(told: bytes) -> Any:
    """The value of Python's own types that these bytes of `told_apart` stand for."""
    return marshal.loads(told)  # noqa: S302  (this process wrote them itself)


def quick_form(value: Any) -> bytes | None:
    """The RFC 8785 form of a value; None if it takes the strict way to make it, or to refuse the value."""
    return None if told_apart(value) is None else quick_form_of_plain(value)


def quick_form_of_plain(value: Any) -> bytes | None:
    """`quick_form`, of a value that `told_apart` has proved to be of Python's own types."""
    if type(value) is float:
        return None
    try:
        form = _encode(value)
        zeros = form.translate(_ZEROS).find
        seems_odd = zeros(b"0e") + zeros(_LONG) + form.translate(_ENDS).find(b".0,") > _NOWHERE
        if seems_odd and _has_odd_number(form):
            return None
        if not form.isascii() and _HIGH(form) is not None:
            return None
        if len(form) > 2 * _MAX_BRACKETS and form.count(b"{") + form.count(b"[") > _MAX_BRACKETS:
            return None
        return form if _decode(form) == value else None
    except (ValueError, TypeError, OverflowError, RecursionError, BytesWarning, msgspec.MsgspecError):
        return None
