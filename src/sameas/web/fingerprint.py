"""What a request asks for, as a string that is equal for equal requests: method, path, query, type and body.

JSON counts by its content, whatever the order and the blanks; a multipart body by its parts; everything else by its
bytes. A gzip or deflate body counts by what is inside, unpacked up to the route's limit and no further. An integer that
JSON readers would round counts by its digits. What cannot be compared safely (NaN, a member named twice, a lone
surrogate, nesting without end) is refused.

The fields are told apart: those of the request line begin with a colon, those of the body are its members or parts.
Only keyed digests of them are kept, so that a mismatch can name the fields that differ.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from sameas.identity.canonical import Exclusions, canonical_json, parse_json, to_json
from sameas.identity.errors import NotCanonical
from sameas.identity.key import short_sha256
from sameas.web.bodies import (
    MalformedMultipart,
    Naming,
    boundary_of,
    has_wide,
    has_wide_place,
    in_digits,
    may_be_named,
    naming,
    parts_of,
    places_of,
    usual_members,
)
from sameas.web.capture import CHUNK, Spool
from sameas.web.encoding import AT_ONCE, WINDOWS, NotPacked, unpack
from sameas.web.route import RoutePolicy

_LOG = logging.getLogger("sameas")

# Requests that came before, so that an equal retry is not parsed again: a short body itself, others by their digests.
REMEMBERED: Final = 1_024
SHORT_BODY: Final = 512
# A request line that is longer is not remembered: what a client makes up must not fill memory.
MAX_LINE: Final = 1_024

_JSON: Final = b"application/json"
# Beyond this OpenSSL is quicker than the interpreter's own, and lets other threads run meanwhile.
_SHORT: Final = 1_024
# The field of a fingerprint that is no part of the request line or the body.
CREDENTIAL: Final = ":credential"
# Enough to tell that a field changed; the digest of the whole decides.
_FIELD_HEX: Final = 8

Fields = dict[str, bytes]
RequestLine = tuple[str, str, bytes, bytes]


class NotComparable(ValueError):
    """The body cannot be compared with another; the message says why."""


class Fingerprints:
    """The fingerprints of one deployment: `secret` keys them."""

    def __init__(self, secret: bytes) -> None:
        self._key = secret if len(secret) <= hashlib.blake2b.MAX_KEY_SIZE else hashlib.sha256(secret).digest()
        # A field's digest names it and decides nothing: it is cut short, and has a key of its own, of a length that
        # leaves most fields one block of the hash.
        self._field_key = hmac.digest(secret, b"field", "sha256")[:16]
        self._is_warned = False
        # All of it is dropped when it is full: that costs less than to keep it in order.
        self._seen: dict[tuple[Any, ...], str] = {}
        self._line = lru_cache(maxsize=REMEMBERED)(self._of_line)

    async def of(
        self, line: RequestLine, encoding: bytes, body: Spool, policy: RoutePolicy, *, whose: tuple[Any, ...] = ()
    ) -> str:
        """The fingerprint of a request: `line` is its method, path, query and Content-Type. What is remembered is
        remembered for `whose` it is, so that nobody can tell by the time it takes what others sent."""
        at_once = body.size <= AT_ONCE and not encoding
        if body.size <= SHORT_BODY:
            told: bytes = body.view()[:]
        else:
            told = body.digest() if at_once else await asyncio.to_thread(body.digest)
        known = (whose, line, encoding, told, policy.exclude_fields)
        seen = self._seen.get(known)
        if seen is not None:
            return seen
        is_short = len(line[1]) + len(line[2]) + len(line[3]) <= MAX_LINE
        told_of_line = (self._line if is_short else self._of_line)(*line)
        compute = self._compute
        print_ = (
            compute(told_of_line, line[3], encoding, body, policy)
            if at_once
            else await asyncio.to_thread(compute, told_of_line, line[3], encoding, body, policy)
        )
        if is_short:
            if len(self._seen) >= REMEMBERED:
                self._seen.clear()
            self._seen[known] = print_
        return print_

    def of_credential(self, shown: Iterable[tuple[bytes, bytes]]) -> bytes:
        """A keyed digest of the headers that are a credential, in whichever order they came."""
        if not self._key and not self._is_warned:
            self._is_warned = True
            _LOG.warning(
                "digests of credentials are stored that anybody can compute: who reads the store can try passwords on "
                "them; give the engine a secret"
            )
        said = b"".join(sorted(_labelled(name) + _labelled(value.strip(b" \t")) for name, value in shown))
        return hashlib.blake2b(said, digest_size=32, key=self._key, person=b"credential").digest()

    def with_credential(self, print_: str, credential: bytes) -> str:
        """A request's fingerprint, of which the credential is a part."""
        whole, _, said = print_.partition(" ")
        both = hashlib.blake2b(bytes.fromhex(whole) + credential, digest_size=32, key=self._key).hexdigest()
        more = f",{said[1:-1]}" if said else ""
        return f'{both} {{"{CREDENTIAL}":"{credential[:4].hex()}"{more}}}'

    def _compute(
        self, line: tuple[bytes, str], content_type: bytes, encoding: bytes, body: Spool, policy: RoutePolicy
    ) -> str:
        whole, said = line
        if body.size:
            usual = None
            if content_type == _JSON and not encoding and not policy.exclusions:
                usual = usual_members(body.view()[:])
            named, values = usual or _in_order(self._of_body(content_type, encoding, body, policy))
            whole += b"".join(values)
            key, digest = self._field_key, short_sha256 if len(whole) <= _SHORT else hashlib.sha256
            said = named.form % (said, *[digest(key + value).hexdigest()[:_FIELD_HEX] for value in values])
        return f"{hashlib.blake2b(whole, digest_size=32, key=self._key).hexdigest()} {{{said}}}"

    def _of_line(self, method: str, path: str, query: bytes, content_type: bytes) -> tuple[bytes, str]:
        """The request line's own part: what goes into the whole, and its digests by name."""
        kind = essence(content_type)
        fields = {":method": method, ":path": path, ":query": query.decode("latin-1"), ":type": kind.decode("latin-1")}
        values = {name: _labelled(value.encode("utf-8", "surrogatepass")) for name, value in fields.items()}
        key = self._field_key
        named = [
            f'"{name}":"{short_sha256(key + value).hexdigest()[:_FIELD_HEX]}"'
            for name, value in values.items()
            if fields[name]
        ]
        return b"".join(values.values()), ",".join(named)

    def _of_body(self, content_type: bytes, encoding: bytes, body: Spool, policy: RoutePolicy) -> Fields:
        if encoding in WINDOWS:
            try:
                unpacked = unpack(body, WINDOWS[encoding], policy.body_limit)
            except NotPacked as error:
                raise NotComparable(str(error)) from None
            try:
                return self._of_body(content_type, b"", unpacked, policy) if unpacked.size else {}
            finally:
                unpacked.close()
        kind = essence(content_type)
        if not encoding and (kind == b"application/json" or kind.endswith(b"+json")):
            return self._of_json(body, policy.exclusions)
        if not encoding and kind.startswith(b"multipart/"):
            return self._of_parts(content_type, body)
        return {":body": b"bytes" + _labelled(encoding) + body.digest()}

    def _of_json(self, body: Spool, exclusions: Exclusions) -> Fields:
        data = body.view()[:]
        usual = None if exclusions else usual_members(data)
        if usual is not None:
            return dict(zip(usual[0].order, usual[1], strict=True))
        try:
            data.decode()
        except UnicodeDecodeError:
            return {":body": b"bytes" + body.digest()}
        try:
            value = parse_json(data)
            if has_wide(value):
                return self._of_wide(value, exclusions)
            if exclusions:
                value = to_json(value, exclude_fields=exclusions)
            if not isinstance(value, dict) or not may_be_named(value):
                return {":body": b"json" + canonical_json(value)}
            return {_shown(name): _pair(name, item) for name, item in value.items()}
        except NotCanonical as error:
            raise NotComparable(f"The JSON body cannot be compared: {error}") from None

    def _of_wide(self, value: Any, exclusions: Exclusions) -> Fields:
        """The same where integers are too wide for canonical JSON: with their digits, and with where they stand, so
        that they are not the texts of these digits."""
        digits = to_json(in_digits(value), exclude_fields=exclusions)
        places = to_json(places_of(value), exclude_fields=exclusions)
        if not isinstance(digits, dict) or not isinstance(places, dict) or not may_be_named(digits):
            if has_wide_place(places):
                return {":body": b"wide" + canonical_json([digits, places])}
            return {":body": b"json" + canonical_json(digits)}
        return {
            _shown(name): b"wide" + _pair(name, [item, places[name]])
            if has_wide_place(places[name])
            else _pair(name, item)
            for name, item in digits.items()
        }

    def _of_parts(self, content_type: bytes, body: Spool) -> Fields:
        view = body.view()
        by_name: dict[str, Any] = {}
        try:
            for part in parts_of(view, boundary_of(content_type)):
                digest = hashlib.sha256()
                for at in range(part.start, part.end, CHUNK):
                    digest.update(view[at : min(at + CHUNK, part.end)])
                of_name = by_name.setdefault(part.name, hashlib.sha256())
                of_name.update(hashlib.sha256(part.head).digest() + digest.digest())
        except MalformedMultipart as error:
            raise NotComparable(str(error)) from None
        if by_name and not may_be_named(by_name):
            return {":body": b"parts" + b"".join(_part(name, each.digest()) for name, each in by_name.items())}
        return {_shown(name): _part(name, each.digest()) for name, each in by_name.items()}


def essence(content_type: bytes) -> bytes:
    """A media type without its parameters."""
    return content_type.partition(b";")[0].strip().lower()


def _labelled(value: bytes) -> bytes:
    return b"%d:%b" % (len(value), value)


def _part(name: str, digest: bytes) -> bytes:
    return b"part" + _labelled(name.encode("utf-8", "surrogatepass")) + digest


def _in_order(fields: Fields) -> tuple[Naming, list[bytes]]:
    named = naming(tuple(fields))
    return named, [fields[name] for name in named.order]


def _pair(name: str, item: Any) -> bytes:
    try:
        return canonical_json([name, item])
    except NotCanonical as error:
        # As those know it who sent it, not as the second of two.
        raise NotCanonical(error.reason, error.path.replace("[1]", name, 1)) from None


def _shown(name: str) -> str:
    """A member's name, apart from those of the request line."""
    return f":{name}" if name.startswith(":") else name
