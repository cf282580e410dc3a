"""What each setting may be, as tables: a value that can never work is refused before anything is opened.

Rule: a refusal names the setting, says what is wanted and shows what was found, never a password. What only opening
shows (a file, a server, a name that nobody has) is refused by who opens it, with the same three.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin
from urllib.parse import urlsplit

SINGLE = "single-tenant"
AUTH = (SINGLE, "jwt", "api-key")

_CENTURY = 36_525 * 86_400.0
# More than anybody counts, and a number that every database can hold.
_MANY = 1e15
# The least, the most, and what belongs to it.
NUMBERS: Mapping[str, tuple[float, float, str]] = {
    "concurrency": (1, 1000, ""),
    "min_confidence": (0, 1, ""),
    "port": (0, 65_535, "; 0 takes a free one"),
    "metrics_port": (0, 65_535, "; 0 shows no metrics of workers"),
    "lease": (0.1, 3_600, " seconds"),
    "grace": (0, 3_600, " seconds"),
    "max_body": (1_024, _MANY, " bytes"),
    "max_bodies": (1_024, _MANY, " bytes"),
    "max_requests": (1, _MANY, ""),
    "max_runs": (1, _MANY, ""),
    "chunks_per_task": (0, _MANY, "; 0 divides no run"),
    "max_streams": (1, _MANY, ""),
    "model_requests_per_minute": (1, _MANY, ""),
    "model_tokens_per_minute": (1, _MANY, ""),
    "model_concurrency": (1, _MANY, ""),
    "request_tokens": (1, _MANY, ""),
    "request_cost": (0, 1e12, " US dollars; 0 is no limit"),
    "tenant_tokens_per_day": (1, _MANY, ""),
    "tenant_cost_per_day": (0, 1e12, " US dollars; 0 is no limit"),
    "deadline": (0, _CENTURY, " seconds; 0 is none"),
    "result_ttl": (1, _CENTURY, " seconds"),
    "key_ttl": (1, _CENTURY, " seconds"),
    "query_seconds": (0.1, 3_600, " seconds"),
    "query_rows": (1, _MANY, ""),
}
# The schemes of a URL, without its driver, and an example.
URLS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "store": (
        ("memory", "sqlite", "redis", "rediss", "postgresql", "postgres", "mysql", "mariadb", "mssql"),
        "sqlite:///sameas.db, redis://localhost:6379/0 or postgresql+psycopg://localhost/sameas",
    ),
    "database": (
        ("sqlite", "postgresql", "postgres"),
        "sqlite:///sameas.db or postgresql+psycopg://localhost/sameas",
    ),
    "objects": (
        ("file", "s3", "s3a", "gs", "az", "abfs", "abfss", "azure", "memory"),
        "file:///folder or s3://bucket/prefix",
    ),
    "broker": (("amqp", "amqps", "redis", "rediss", "memory"), "amqp://localhost// (RabbitMQ) or redis://localhost/1"),
    "events": (("redis", "rediss"), "redis://localhost:6379/0"),
}
# They name nothing on the network.
_WITHOUT_HOST = ("memory", "sqlite", "file")
_IRI = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*:[^\s<>"{}|\\^`]*')
_TIMEOUT = re.compile(r"(?P<stage>[a-z_]+)\s*=\s*(?P<soft>\d{1,6}(?:\.\d+)?)/(?P<hard>\d{1,6}(?:\.\d+)?)")
_HOST = re.compile(r"[^\s/@]+")
_WORKER = re.compile(r"[^\s@/]{1,100}")
_LONGEST_TENANT = 255


def wanted(name: str, kind: Any) -> str:
    """What a setting may be, for a value that is not even of its type."""
    if name in NUMBERS:
        low, high, more = NUMBERS[name]
        what = "" if float in _kinds(kind) else "a whole number "
        return f"{what}{_range(low, high)}{more}"
    if name in URLS:
        return f"a URL, such as {URLS[name][1]}"
    if bool in _kinds(kind):
        return "true or false"
    if get_origin(kind) is Literal:
        return " or ".join(str(one) or "empty" for one in get_args(kind))
    return "the path of a folder" if Path in _kinds(kind) else "text"


def fault(name: str, value: Any) -> str | None:
    """What a value of the right type should have been; None where it may be that."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return "text in UTF-8"
        if not value.isprintable():
            return "one line of text without control characters"
    if name in NUMBERS and isinstance(value, int | float):
        low, high, more = NUMBERS[name]
        # A value that is no number at all is in no range.
        return None if low <= value <= high else f"{_range(low, high)}{more}"
    if name in URLS and value:
        return None if _is_url(value, URLS[name][0]) else f"a URL, such as {URLS[name][1]}"
    rule = _TEXTS.get(name)
    return None if rule is None or not value else rule(value)


def read_timeouts(text: str) -> dict[str, tuple[int, int]] | None:
    """The soft and hard limits of stages in milliseconds; None where the text is none."""
    # Few settings say something of stages, and every command reads settings.
    from sameas.llm.timeouts import STAGES

    found: dict[str, tuple[int, int]] = {}
    for part in _parts(text):
        limits = _TIMEOUT.fullmatch(part)
        if limits is None or limits["stage"] not in STAGES or limits["stage"] in found:
            return None
        soft, hard = float(limits["soft"]), float(limits["hard"])
        if not 0 < soft <= hard:
            return None
        found[limits["stage"]] = (round(soft * 1000), round(hard * 1000))
    return found or None


def _range(low: float, high: float) -> str:
    return f"from {low:g} to {high:,.0f}" if high >= 1_000_000 else f"from {low:g} to {high:g}"


def _kinds(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _parts(text: str) -> Iterable[str]:
    return filter(None, (one.strip() for one in text.split(",")))


def _is_url(value: str, schemes: tuple[str, ...]) -> bool:
    scheme, separator, _ = value.partition("://")
    kind = scheme.partition("+")[0]
    if not separator or kind not in schemes or any(character.isspace() for character in value):
        return False
    try:
        parts = urlsplit(value)
        return kind in _WITHOUT_HOST or (bool(parts.netloc) and parts.port != 0)
    except ValueError:
        return False


def _auth(value: str) -> str | None:
    chosen = value.split(",")
    is_one = (
        not set(chosen) - set(AUTH) and len(set(chosen)) == len(chosen) and (SINGLE not in chosen or len(chosen) == 1)
    )
    return None if is_one else f"{SINGLE}, jwt, api-key or jwt,api-key"


def _timeouts(value: str) -> str | None:
    if read_timeouts(value) is not None:
        return None
    from sameas.llm.timeouts import STAGES

    return (
        "STAGE=SOFT/HARD in seconds, such as entity_extraction=45/60, separated by commas and each stage once; the "
        f"stages are {', '.join(STAGES)}"
    )


def _mode(value: str) -> str | None:
    from sameas.once.rollout import parse_rollout

    try:
        parse_rollout(value)
    except ValueError as error:
        return str(error).removeprefix("mode must be ")
    return None


def _models(value: str) -> str | None:
    from sameas.llm.address import parse_address

    names = set()
    for address in _parts(value):
        try:
            name = parse_address(address).name
        except ValueError as error:
            return f"addresses of models, separated by commas: {error}"
        if name in names:
            return f"addresses of different models: {name} is named twice"
        names.add(name)
    return None


def _origins(value: str) -> str | None:
    for origin in _parts(value):
        try:
            parts = urlsplit(origin)
            is_bare = f"{parts.scheme}://{parts.netloc}" == origin and not any(map(str.isspace, origin))
            is_origin = parts.scheme in ("http", "https") and parts.hostname and is_bare and parts.port != 0
        except ValueError:
            is_origin = False
        if not is_origin:
            return "origins such as https://app.example.org, without a path, separated by commas"
    return None


def _keys(value: str) -> str | None:
    if "://" not in value:
        return None
    parts = urlsplit(value)
    is_local = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
    return None if (parts.scheme == "https" and parts.hostname) or is_local else "a file, or an address with https://"


def _fits(pattern: re.Pattern[str], said: str) -> Callable[[str], str | None]:
    return lambda value: None if pattern.fullmatch(value) else said


_TEXTS: Mapping[str, Callable[[str], str | None]] = {
    "auth": _auth,
    "base": _fits(_IRI, "the beginning of IRIs, such as https://example.org/id/ or urn:sameas:"),
    "cors_origins": _origins,
    "host": _fits(_HOST, "a name or an address to listen on, such as 127.0.0.1"),
    "jwt_keys": _keys,
    "mode": _mode,
    "models": _models,
    "stage_timeouts": _timeouts,
    "tenant": lambda value: None if len(value) <= _LONGEST_TENANT else f"at most {_LONGEST_TENANT} characters",
    "worker_name": _fits(_WORKER, "a name without blanks, / and @"),
}
