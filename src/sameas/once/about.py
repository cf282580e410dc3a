"""What may be said about a record beside whose and which it is: tags, a route and a method, an audit, a fingerprint.

The rules are those of source document 003 and of what the columns of every database hold. They are the same whatever
the store, and they are kept before the work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from sameas.identity.errors import NotCanonical
from sameas.identity.key import MAX_COLUMN, MAX_KEY, check_text

METHODS: Final = frozenset({"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"})
MAX_ROUTE: Final = 256

_BREAK: Final = re.compile(r"[\r\n]")


def check_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags as they are stored: each is one line, so that it is found whole or not at all."""
    if isinstance(tags, str):
        raise TypeError("tags takes a collection of words, not one string")
    checked = tuple(tags)
    for tag in checked:
        check_text("tag", tag, longest=MAX_KEY)
        if not tag or _BREAK.search(tag):
            raise NotCanonical("it must be one line of text", "tag")
    _check_size("tags", "\n".join(checked))
    return checked


@lru_cache(maxsize=1_024)
def check_route(route: str, method: str) -> None:
    """Refuse a route or a method that no table of records may hold."""
    check_text("route", route)
    if route and (not route.startswith("/") or "?" in route or len(route) > MAX_ROUTE):
        raise ValueError(
            f"{route!r} is not a route: it must start with '/', carry no query string and have at most"
            f" {MAX_ROUTE} characters"
        )
    if method and method not in METHODS:
        raise ValueError(f"{method!r} is not a method that is kept: use one of {', '.join(sorted(METHODS))}")


def check_audit(audit: Mapping[str, Any]) -> None:
    """Refuse what would not be the audit of a record: an object of what JSON can hold."""
    if not isinstance(audit, Mapping):
        raise TypeError(f"audit takes an object of what JSON can hold, not a {type(audit).__qualname__}")
    try:
        msgspec.json.encode(audit)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise TypeError(f"audit takes an object of what JSON can hold: {error}") from error


def check_fingerprint(fingerprint: str) -> None:
    """Refuse a fingerprint that not every store could hold."""
    check_text("request_fingerprint", fingerprint)
    _check_size("request_fingerprint", fingerprint)


def _check_size(name: str, text: str) -> None:
    # A character has four bytes at most.
    if len(text) > MAX_COLUMN // 4 and (size := len(text.encode())) > MAX_COLUMN:
        raise NotCanonical(f"it has {size} bytes and must not have more than {MAX_COLUMN}", name)
