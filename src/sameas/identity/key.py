"""What makes two pieces of work the same: the extraction key, content keys, and fingerprints of requests.

A key names the work. A fingerprint tells whether two requests under one key ask for the same thing; it is an HMAC, so
that a small body cannot be guessed from it, and it is kept per top-level field, so that a mismatch can name the fields.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, Literal

from sameas.identity.canonical import Exclusions, canonical_json, join, sha256_hex, to_json
from sameas.identity.errors import NotCanonical

Namespace = Literal["client", "content"]

# Settings that say how fast the work is done, not what comes out.
PARAMS_WITHOUT_EFFECT = frozenset({"concurrency"})
# Beyond this a payload is a table rather than a record: one digest for all of it.
MAX_NAMED_FIELDS = 64

# Enough to tell that a field changed; the digest of the whole decides.
_FIELD_BYTES = 8

# Looking behind starts each run of blanks once: without it a long run costs the square of its length.
_TRAILING_BLANKS = re.compile(r"(?<![ \t])[ \t]++(?=\n|$)")
_PREFIX = re.compile(r"(?:sha256-)?([0-9a-f]{8,64})")


def normalize_text(text: str) -> str:
    """The text that is extracted from: LF line ends, no blanks at their ends, trimmed; paragraphs stay."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # Most texts have none, and looking at every blank takes longer than all the rest.
    if " \n" in text or "\t\n" in text:
        text = _TRAILING_BLANKS.sub("", text)
    return text.strip()


@dataclass(frozen=True, slots=True)
class KeyComponents:
    """What went into an extraction key; the hashes are SHA-256 in hex."""

    text: str
    text_hash: str
    ontology_id: str
    ontology_version: str
    extraction_params_hash: str


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """An extraction key, `sha256-` and 64 hex digits, with its components."""

    key: str
    components: KeyComponents

    def __str__(self) -> str:
        return self.key


def compute_idempotency_key(
    text: str, *, ontology_id: str, ontology_version: str, extraction_params: Mapping[str, Any] | None = None
) -> IdempotencyKey:
    """The one identity of an extraction, in the client, the service, the queue, the caches and the run folder."""
    if not ontology_id or not ontology_version:
        raise ValueError("an extraction key needs an ontology id and an ontology version")
    params = {name: value for name, value in (extraction_params or {}).items() if name not in PARAMS_WITHOUT_EFFECT}
    normal = normalize_text(text)
    identity = {
        "text": normal,
        "ontology_id": ontology_id,
        "ontology_version": ontology_version,
        "params": params,
    }
    components = KeyComponents(
        text=normal,
        text_hash=sha256_hex(normal.encode("utf-8", "surrogatepass")),
        ontology_id=ontology_id,
        ontology_version=ontology_version,
        extraction_params_hash=sha256_hex(canonical_json(params)),
    )
    return IdempotencyKey(content_key(identity), components)


def content_key(payload: object, *, exclude_fields: Iterable[str] | Exclusions = ()) -> str:
    """The key of a payload by its content alone: `sha256-` and 64 hex digits."""
    return "sha256-" + sha256_hex(canonical_json(payload, exclude_fields=exclude_fields))


def key_prefix(typed: str) -> str:
    """The hex digits of a key that a person typed in part: at least eight, with or without `sha256-`."""
    match = _PREFIX.fullmatch(typed.strip().lower())
    if match is None:
        raise ValueError(f"{typed!r} is not a key or the start of one: type at least 8 of its hex digits")
    return match[1]


def _own_sha256() -> Callable[[bytes], hashlib._Hash]:
    """The interpreter's own SHA-256: OpenSSL takes longer to begin than to digest a few bytes."""
    for module in ("_sha2", "_sha256"):
        with suppress(ImportError):
            return import_module(module).sha256  # type: ignore[no-any-return]
    return hashlib.sha256


short_sha256 = _own_sha256()


def record_digest(tenant: str, scope: str, key: str, namespace: Namespace = "client") -> bytes:
    """The identity under which a record is stored: 32 bytes that no delimiter trick or collation can merge.

    Keys that callers choose and keys computed from content live apart, so that nobody can name somebody's content key.
    """
    try:
        # What nearly all calls share is joined once.
        around = _around(tenant, scope, namespace)
        if around is not None and key.isascii() and type(key) is str:
            return short_sha256(f"{around[0]}{len(key)}:{key}{around[1]}".encode()).digest()
        return short_sha256(join(tenant, scope, key, namespace)).digest()
    except UnicodeEncodeError:
        raise NotCanonical("tenant, scope and key must not hold lone surrogates", "key") from None


@lru_cache(maxsize=1_024)
def _around(tenant: str, scope: str, namespace: Namespace) -> tuple[str, str] | None:
    """What is joined before and after a key, where characters and bytes are the same."""
    before, after = join(tenant, scope), join(namespace)
    return (before.decode(), after.decode()) if before.isascii() else None


def fingerprint(payload: object, *, secret: bytes = b"", exclude_fields: Iterable[str] | Exclusions = ()) -> str:
    """A request's fingerprint: equal strings for equal requests, `digest` or `digest {"field": "digest", ...}`."""
    plain = to_json(payload, exclude_fields=exclude_fields)
    if not isinstance(plain, dict) or not 0 < len(plain) <= MAX_NAMED_FIELDS:
        return _mac(secret, canonical_json(plain)).hex()
    fields = {name: _mac(secret, canonical_json([name, plain[name]])) for name in sorted(plain)}
    # Field digests are of one length and in one order: joined, they stand for the whole.
    whole = _mac(secret, b"".join(fields.values())).hex()
    named = {name: digest[:_FIELD_BYTES].hex() for name, digest in fields.items()}
    return f"{whole} {json.dumps(named, separators=(',', ':'))}"


def differing_fields(ours: str, theirs: str) -> list[str]:
    """The top-level fields in which two fingerprints differ; empty where they were not kept by field."""
    first, second = _fields(ours), _fields(theirs)
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def _fields(fingerprint: str) -> dict[str, str]:
    _, _, fields = fingerprint.partition(" ")
    return json.loads(fields) if fields else {}


def _mac(secret: bytes, data: bytes) -> bytes:
    return hmac.digest(secret, data, "sha256")
