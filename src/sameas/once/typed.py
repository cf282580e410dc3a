"""Results of a declared type: an Enum, a dataclass, a msgspec struct, a pydantic model, or something made of them.

They are kept as the JSON of msgspec or pydantic. If that would not come back as it was (a NaN becomes null), the
values are tagged instead. A result that is not of its type is told so; it is not called a damaged record.

What is read again is compared with what was written. Python's own values may come back as what the declared type asks
for: a list as a tuple, a dict as a model. What has a class of its own has to come back as one of that class, with equal
parts, wherever in the result it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from inspect import signature
from typing import Any, Final, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec

from sameas.once import values
from sameas.once.errors import NotEncodable, ResultDoesNotFit

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
BYTES: Final = "application/octet-stream"
# JSON that only the declared type can read: an earlier release took such results for plain ones.
TYPED: Final = "application/vnd.sameas.typed+json"

# Read again from JSON, a set that nobody asked for is a list.
_SETS = (set, frozenset)
_BUILTINS: Final = (bytes, bytearray, memoryview, datetime, date, time, timedelta, Decimal, UUID)


class TypedCodec:
    """Results of one declared type."""

    def __init__(self, result_type: Any) -> None:
        self.result_type = result_type
        self._media_type = JSON if _is_plain_class(result_type) else TYPED
        self._form = _form_of(result_type)

    def encode(self, result: Any) -> tuple[bytes, str]:
        data, media_type, _ = self.both_ways(result)
        return data, media_type

    def both_ways(self, result: Any) -> tuple[bytes, str, Any]:
        """The bytes and their media type, and the result as it is read from them again."""
        form = self._form
        try:
            data = form.to_json(result)
            found = form.from_json(data)
        except Exception as error:
            return self._tagged(result, error)
        if is_equal(found, result):
            return data, self._media_type, found
        try:
            if is_changed(found, result) or self._to_values(found) != self._to_values(result):
                return self._tagged(result, None)
        except ResultDoesNotFit:
            raise
        except Exception as error:
            # It has no form but this one: what is read from it is what everybody gets, if nothing says that it is not
            # the result. A secret is written as asterisks.
            if type(found) is type(result) and tells_equals(result):
                raise self._changed() from error
        return data, self._media_type, found

    def decode(self, data: bytes, media_type: str) -> Any:
        form = self._form
        try:
            if media_type == values.MEDIA_TYPE:
                return form.from_python(values.decode(data))
            if media_type == TEXT:
                return form.from_python(data.decode())
            if media_type == BYTES:
                return form.from_python(data)
            return form.from_json(data)
        except Exception as error:
            raise ResultDoesNotFit(
                f"A stored result no longer fits {self.result_type!r}: {_why(error)}. Forget it, or read it by its old"
                " type."
            ) from error

    def _tagged(self, result: Any, error: Exception | None) -> tuple[bytes, str, Any]:
        try:
            data = self._to_values(result)
            found = self._form.from_python(values.decode(data))
        except Exception as trouble:
            cause = error or trouble
            raise ResultDoesNotFit(
                f"The result does not fit its declared type {self.result_type!r}: {_why(cause)}. Correct the"
                " annotation, or say result_type."
            ) from cause
        if is_changed(found, result) or (type(found) is type(result) and self._to_values(found) != data):
            raise self._changed()
        return data, values.MEDIA_TYPE, found

    def _changed(self) -> ResultDoesNotFit:
        return ResultDoesNotFit(
            f"The result does not fit its declared type {self.result_type!r}: it would come back as another. Return"
            " what this type writes and reads again, or say another result_type."
        )

    def _to_values(self, result: Any) -> bytes:
        return values.Tagging(_value_of_enum).encode(self._form.to_python(result))


class _Form:
    """How one library writes and reads a type."""

    to_json: Callable[[Any], bytes]
    from_json: Callable[[bytes], Any]
    to_python: Callable[[Any], Any]
    from_python: Callable[[Any], Any]


class _EnumForm(_Form):
    """Members by their values, which may be anything that can be kept."""

    def __init__(self, declared: Any) -> None:
        self.from_python = declared
        self.to_json = msgspec.json.Encoder().encode

    def from_json(self, data: bytes) -> Any:
        return self.from_python(msgspec.json.decode(data))

    def to_python(self, result: Any) -> Any:
        return result.value if isinstance(result, Enum) else result


class _MsgspecForm(_Form):
    def __init__(self, declared: Any) -> None:
        self.to_json = msgspec.json.Encoder(decimal_format="string").encode
        self.from_json = msgspec.json.Decoder(declared).decode
        self._declared = declared
        if not (is_dataclass(declared) or _is_struct(declared)):
            # It has no schema for types that it could not read either.
            msgspec.json.schema(declared)

    def to_python(self, result: Any) -> Any:
        return _opened(result)

    def from_python(self, value: Any) -> Any:
        return msgspec.convert(value, self._declared)


class _PydanticForm(_Form):
    def __init__(self, declared: Any) -> None:
        from pydantic import PydanticUserError, TypeAdapter

        self._adapter: TypeAdapter[Any]
        try:
            # By itself pydantic reads no Decimal that is not a number.
            self._adapter = TypeAdapter(declared, config={"allow_inf_nan": True})
        except PydanticUserError:
            # A model has a configuration of its own.
            self._adapter = TypeAdapter(declared)
        # Fields are written by their names. Before its 2.11, pydantic reads them by their aliases alone.
        knows_names = "by_name" in signature(TypeAdapter.validate_json).parameters
        self._by_name: dict[str, Any] = {"by_alias": False, "by_name": True} if knows_names else {}

    def from_json(self, data: bytes) -> Any:
        return self._read(self._adapter.validate_json, data)

    def from_python(self, value: Any) -> Any:
        return self._read(self._adapter.validate_python, value)

    def _read(self, validate: Callable[..., Any], value: Any) -> Any:
        try:
            return validate(value, **self._by_name)
        except ValueError as error:
            try:
                # A dict that the work made itself may have the aliases.
                return validate(value)
            except ValueError:
                raise error from None

    def to_json(self, result: Any) -> bytes:
        # What does not fit is found when it is read again.
        return self._adapter.dump_json(result, warnings="none")

    def to_python(self, result: Any) -> Any:
        return self._adapter.dump_python(result, warnings="none")


def declared_result(function: Callable[..., Any]) -> Any:
    """What a function says it returns, where that has to be rebuilt from bytes by its type; else None."""
    try:
        declared = get_type_hints(function).get("return")
    except (NameError, TypeError, AttributeError):
        return None
    if get_origin(declared) in (Awaitable, Coroutine):
        declared = get_args(declared)[-1]
    if not _has_rebuilt(declared):
        return None
    try:
        hash(declared)
        _form_of(declared)
    except (NotEncodable, TypeError):
        # What only looks like a declaration must not stop the work.
        return None
    return declared


def _form_of(declared: Any) -> _Form:
    if _is_enum(declared):
        return _EnumForm(declared)
    # pydantic's own bytes for types that are no class: records of earlier releases have them.
    orders: list[type[_Form]] = [_MsgspecForm, _PydanticForm]
    if not (is_dataclass(declared) or _is_struct(declared)):
        orders.reverse()
    trouble: Exception | None = None
    for form in orders:
        try:
            return form(declared)  # type: ignore[call-arg]
        except Exception as error:
            # If both refuse, what the one says that would be asked first is of use.
            if trouble is None or isinstance(trouble, ImportError):
                trouble = error
    raise NotEncodable(
        f"Results of {declared!r} cannot be kept by their type: {trouble}. Types that are neither an Enum, a dataclass"
        " nor a msgspec struct may need pydantic: pip install 'sameas[pydantic]'."
    ) from trouble


def _has_rebuilt(declared: Any) -> bool:
    return _is_rebuilt(declared) or _is_rebuilt(get_origin(declared)) or any(map(_has_rebuilt, get_args(declared)))


def _is_plain_class(declared: Any) -> bool:
    """Whether every release has rebuilt results of this class from JSON."""
    return isinstance(declared, type) and (
        is_dataclass(declared) or _is_struct(declared) or hasattr(declared, "__pydantic_validator__")
    )


def _is_rebuilt(declared: Any) -> bool:
    return _is_plain_class(declared) or (
        isinstance(declared, type)
        and (
            hasattr(declared, "__attrs_attrs__")
            or _is_enum(declared)
            or (issubclass(declared, tuple) and hasattr(declared, "_fields"))
        )
    )


def _is_enum(declared: Any) -> bool:
    return isinstance(declared, type) and issubclass(declared, Enum)


def _is_struct(declared: Any) -> bool:
    return isinstance(declared, type) and issubclass(declared, msgspec.Struct)


def _opened(value: Any) -> Any:
    """What is inside of a value, as msgspec writes it, save that a set stays one."""
    kind = type(value)
    if kind is dict:
        return {_opened(name): _opened(item) for name, item in value.items()}
    if kind in (list, tuple, set, frozenset):
        return kind(map(_opened, value))
    if is_dataclass(kind):
        return {field.name: _opened(getattr(value, field.name)) for field in fields(kind)}
    if _is_struct(kind) and not (kind.__struct_config__.array_like or kind.__struct_config__.tag):
        return {field.encode_name: _opened(getattr(value, field.name)) for field in msgspec.structs.fields(kind)}
    return msgspec.to_builtins(value, builtin_types=_BUILTINS)


def _value_of_enum(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"a {type(value).__qualname__} cannot be kept as it is")


def _why(error: Exception) -> str:
    """What is wrong, without the values themselves: they may be secrets."""
    errors: Any = getattr(error, "errors", None)
    if callable(errors):
        told: Any = errors(include_input=False)
        places = [f"{'.'.join(map(str, each['loc'])) or 'the whole'}: {each['type']}" for each in told]
        return ", ".join(places[:3])
    if isinstance(error, msgspec.MsgspecError):
        return str(error)
    return type(error).__name__


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
