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
from typing import Any, Literal, get_args

from sameas.identity.canonical import (
    Exclusions,
    canonical_json,
    compile_exclusions,
    join,
    quick_form_of_plain,
    sha256_hex,
    to_json,
    told_of,
)
from sameas.identity.errors import NotCanonical
from sameas.identity.form import form_of, forms_of_fields

Namespace = Literal["client", "content"]
_NAMESPACES = frozenset(get_args(Namespace))

# Settings that say how fast the work is done, not what comes out.
PARAMS_WITHOUT_EFFECT = frozenset({"concurrency"})
# Beyond this a payload is a table rather than a record: one digest for all of it.
MAX_NAMED_FIELDS = 64

# What the columns of every database hold, in characters.
MAX_NAME = 255
MAX_KEY = 1_024
# Of longer texts, in bytes.
MAX_COLUMN = 65_535

# Enough to tell that a field changed; the digest of the whole decides.
_FIELD_BYTES = 8
# Beyond this OpenSSL is quicker than the interpreter's own SHA-256.
_SHORT = 1_024

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
    """The one identity of an extraction, in the client, the service, the queue, the caches and the run folder.

    Raises ValueError without an ontology's id and version, and NotCanonical for parameters that have no certain form.
    """
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
    return IdempotencyKey(_key_of(canonical_json(identity)), components)


# A function of the key that a payload had before types had tags; it had none where that answers None.
Former = Callable[[], str | None]


def content_key(payload: object, *, exclude_fields: Iterable[str] | Exclusions = ()) -> str:
    """The key of a payload by its content alone: `sha256-` and 64 hex digits."""
    return content_keys(payload, exclude_fields)[0]


def content_keys(payload: object, exclude_fields: Iterable[str] | Exclusions = ()) -> tuple[str, Former | None]:
    """`content_key`, and with it the payload's former key where that is another: all that is JSON has one key."""
    exclusions = compile_exclusions(exclude_fields)
    form = form_of(payload, exclude_fields=exclusions)
    return _key_of(form.data), None if form.is_json else lambda: _former_key(payload, exclusions)


def content_keys_of_plain(payload: object, told: bytes) -> tuple[str, Former | None, bool]:
    """`content_keys`, of a payload that `told_apart` tells so, and whether whatever is told so has that key and no
    other: a number of numpy is told like its bytes, and is JSON."""
    quick = quick_form_of_plain(payload)
    if quick is not None:
        return _key_of(quick), None, True
    key, former = content_keys(payload)
    return key, former, former is None and content_key(told_of(told)) == key


def _former_key(payload: object, exclude_fields: Exclusions) -> str | None:
    """The key before types had tags; None for what had none."""
    try:
        return _key_of(canonical_json(payload, exclude_fields=exclude_fields))
    except NotCanonical:
        return None


def _key_of(form: bytes) -> str:
    return "sha256-" + (short_sha256 if len(form) <= _SHORT else hashlib.sha256)(form).hexdigest()


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
        if type(key) is not str or len(key) > MAX_KEY or "\0" in key:
            check_text("key", key, longest=MAX_KEY)
        if around is not None and key.isascii() and type(key) is str:
            return short_sha256(f"{around[0]}{len(key)}:{key}{around[1]}".encode()).digest()
        return short_sha256(join(tenant, scope, key, namespace)).digest()
    except TypeError:
        for name, value in (("tenant", tenant), ("scope", scope)):
            check_text(name, value, longest=MAX_NAME)
        raise
    except UnicodeEncodeError:
        raise NotCanonical("tenant, scope and key must not hold lone surrogates", "key") from None


def check_text(name: str, value: object, *, longest: int | None = None) -> None:
    """The same rules for every store: each of them can hold what passes here."""
    if not isinstance(value, str):
        raise NotCanonical(f"it must be text, not {type(value).__name__}", name)
    if longest is not None and len(value) > longest:
        raise NotCanonical(f"it has {len(value)} characters and must not have more than {longest}", name)
    if "\0" in value:
        raise NotCanonical("it must not hold a zero byte", name)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise NotCanonical("it must not hold lone surrogates", name) from None


@lru_cache(maxsize=1_024)
def _around(tenant: str, scope: str, namespace: Namespace) -> tuple[str, str] | None:
    """What is joined before and after a key, where characters and bytes are the same."""
    check_text("tenant", tenant, longest=MAX_NAME)
    check_text("scope", scope, longest=MAX_NAME)
    if namespace not in _NAMESPACES:
        raise ValueError(f"namespace must be 'client' or 'content', not {namespace!r}")
    before, after = join(tenant, scope), join(namespace)
    return (before.decode(), after.decode()) if before.isascii() else None


def fingerprint(payload: object, *, secret: bytes = b"", exclude_fields: Iterable[str] | Exclusions = ()) -> str:
    """A request's fingerprint: equal strings for equal requests, `digest` or `digest {"field": "digest", ...}`."""
    exclusions = compile_exclusions(exclude_fields)
    named = forms_of_fields(payload, exclude_fields=exclusions)
    if named is None or not 0 < len(named[1]) <= MAX_NAMED_FIELDS:
        return _mac(secret, form_of(payload, exclude_fields=exclusions).data).hex()
    kind, forms = named
    print_ = _named_fingerprint(secret, forms, b"" if not kind else b"!" + join(kind))
    # With names so long that not every store could hold them, none is named.
    return print_ if len(print_) <= MAX_COLUMN else print_.partition(" ")[0]


def former_fingerprint(payload: object, *, secret: bytes, exclude_fields: Iterable[str] | Exclusions) -> str | None:
    """The fingerprint before types had tags; None for what had none."""
    try:
        plain = to_json(payload, exclude_fields=exclude_fields)
        if not isinstance(plain, dict) or not 0 < len(plain) <= MAX_NAMED_FIELDS:
            return _mac(secret, canonical_json(plain)).hex()
        return _named_fingerprint(secret, {name: canonical_json([name, plain[name]]) for name in plain})
    except NotCanonical:
        return None


def _named_fingerprint(secret: bytes, forms: Mapping[str, bytes], kind: bytes = b"") -> str:
    fields = {name: _mac(secret, forms[name]) for name in sorted(forms)}
    # Field digests are of one length and in one order: joined, they stand for the whole.
    whole = _mac(secret, kind + b"".join(fields.values())).hex()
    named = {name: digest[:_FIELD_BYTES].hex() for name, digest in fields.items()}
    return f"{whole} {json.dumps(named, separators=(',', ':'))}"


def differing_fields(ours: str, theirs: str) -> list[str]:
    """The top-level fields in which two fingerprints differ; empty if they were not kept by field."""
    first, second = _fields(ours), _fields(theirs)
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def _fields(fingerprint: str) -> dict[str, str]:
    _, _, fields = fingerprint.partition(" ")
    return json.loads(fields) if fields else {}


def _mac(secret: bytes, data: bytes) -> bytes:
    return hmac.digest(secret, data, "sha256")
