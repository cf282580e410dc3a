"""A gate before the JSON-LD parser: well-formed, not too deep, few contexts, and none from elsewhere.

A context is remote if it is an address, or imports one; it is refused before any parser sees it, in
whatever object, list or term definition it hides. An escaped key (`"\\u0040context"`) is the same key and is
found too.
"""

import json
import re
from typing import Any, NamedTuple

import msgspec

from sameas.ontology.errors import OntologyRefusedError, OntologySyntaxError, OntologyTooLargeError
from sameas.ontology.limits import Limits

_BYTE = re.compile(r"\(byte (\d+)\)")
_INLINE = "Copy the context's content into the file; nothing is ever fetched"


def position(data: bytes, offset: int) -> tuple[int, int]:
    """Line and column, from 1, of a byte."""
    before = data[:offset]
    start = before.rfind(b"\n") + 1
    return before.count(b"\n") + 1, len(before[start:].decode("utf-8", "replace")) + 1


def decode_json(data: bytes, *, limits: Limits, file: str | None) -> Any:
    """The JSON value; an error carries line and column."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        found = _BYTE.search(str(error))
        line, column = position(data, int(found.group(1)) if found else len(data))
        what = _BYTE.sub("", str(error)).strip()
        raise OntologySyntaxError(what, file=file, line=line, column=column, todo="Correct the JSON there") from error
    except UnicodeDecodeError as error:
        # The error counts from the start of the string that it is in.
        line, column = position(data, _bad_byte(data))
        raise OntologySyntaxError(
            what="not UTF-8", file=file, line=line, column=column, todo="Save the file as UTF-8"
        ) from error
    except RecursionError as error:
        raise _too_deep(limits, file) from error


def guard_jsonld(data: bytes, *, limits: Limits, file: str | None) -> bytes:
    """The same document without a byte-order mark, or an error."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    level = [_Place(decode_json(data, limits=limits, file=file), terms=0, is_scoped=False)]
    depth = work = 0
    while level:
        depth += 1
        if depth > limits.nesting:
            raise _too_deep(limits, file)
        below: list[_Place] = []
        for place in level:
            found = _enter(place, data, file)
            # A parser copies the context in force wherever a new one begins.
            work += found.terms if found is not place else place.terms * place.is_scoped
            if work > limits.context_steps:
                raise OntologyTooLargeError(
                    what=f"the contexts take more than {limits.context_steps} steps",
                    file=file,
                    todo="Use one context at the top of the file",
                )
            value = found.value
            inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            below.extend(_Place(one, found.terms, found.is_scoped) for one in inner)
        level = below
    return data


def _bad_byte(data: bytes) -> int:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return 0


class _Place(NamedTuple):
    """A value, how many terms the contexts around it have, and whether terms bring contexts of their own."""

    value: Any
    terms: int
    is_scoped: bool


def _enter(place: _Place, data: bytes, file: str | None) -> _Place:
    """The same place with the context that begins there, if one does."""
    value, terms, is_scoped = place
    if not isinstance(value, dict) or "@context" not in value:
        return place
    stack = [value["@context"]]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            raise _remote(one, data, file)
        if isinstance(one, list):
            stack.extend(one)
        elif isinstance(one, dict):
            if isinstance(one.get("@import"), str):
                raise _remote(one["@import"], data, file)
            terms += len(one)
            is_scoped = is_scoped or any(isinstance(term, dict) and "@context" in term for term in one.values())
    return _Place(value, terms, is_scoped)


def _remote(address: str, data: bytes, file: str | None) -> OntologyRefusedError:
    offset = data.find(json.dumps(address, ensure_ascii=False).encode("utf-8", "replace"))
    line, column = position(data, offset) if offset >= 0 else (1, 1)
    return OntologyRefusedError(
        f"the context {address} is not in the file", file=file, line=line, column=column, todo=_INLINE
    )


def _too_deep(limits: Limits, file: str | None) -> OntologyTooLargeError:
    return OntologyTooLargeError(
        f"values are nested more than {limits.nesting} deep",
        file=file,
        todo="Flatten the file, for instance by converting it to Turtle",
    )
