"""A record as the one string that Redis keeps; `redis.lua` says how it is laid out.

What cannot be read is an error, never a miss: a string of another version, a check that fails, sizes that do
not fit. The scripts check the numbers of a record, which they reckon with; its names and its outcome are checked here.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from sameas.once.errors import RecordDamaged
from sameas.once.record import About, ClaimRequest, Identity, Outcome, Record, State

VERSION: Final = 3
# Version, check, state, five times and fences, attempt: `HEAD` of redis.lua.
HEAD: Final = struct.Struct(">BIBQQQQQI")
DONE: Final = b"d"
FAILED: Final = b"f"

_STATES: Final = {b"h"[0]: State.HELD, DONE[0]: State.DONE, FAILED[0]: State.FAILED}
_SIZES: Final = struct.Struct(">III")
_NUMBER: Final = struct.Struct(">I")
_NAMES_AT: Final = HEAD.size + _SIZES.size + _NUMBER.size
# The size of `told` and its check.
_TOLD: Final = struct.Struct(">II")

Said = tuple[str, str, str, str, tuple[str, ...], str, str, dict[str, Any]]
_encode = msgspec.json.Encoder().encode
_decode_said = msgspec.json.Decoder(Said).decode
_decode_told = msgspec.json.Decoder(tuple[str, dict[str, Any]]).decode


def names_of(request: ClaimRequest) -> bytes:
    """Whose the record is and what people want to know of it."""
    identity, about = request.identity, request.about
    attempt_id, fingerprint = request.attempt_id.encode(), request.fingerprint.encode()
    said = _encode(
        (
            identity.tenant,
            identity.scope,
            identity.key,
            about.owner,
            about.tags,
            about.route,
            about.method,
            about.audit,
        )
    )
    sizes = _SIZES.pack(len(attempt_id), len(fingerprint), len(said))
    names = attempt_id + fingerprint + said
    return sizes + _check(sizes, names) + names


def _check(sizes: bytes, names: bytes) -> bytes:
    return _NUMBER.pack(zlib.crc32(names, zlib.crc32(sizes)))


def outcome_of(outcome: Outcome) -> bytes:
    """An outcome, and what there is to know of it."""
    told = _told(outcome.media_type, outcome.meta) if outcome.meta else _told_of_type(outcome.media_type)
    return told + outcome.data


@lru_cache(maxsize=256)
def _told_of_type(media_type: str) -> bytes:
    return _told(media_type, {})


def _told(media_type: str, meta: Mapping[str, Any]) -> bytes:
    told = _encode((media_type, meta))
    return _TOLD.pack(len(told), zlib.crc32(told)) + told


def record_of(value: bytes, identity: Identity | None = None, *, digest: bytes = b"") -> Record:
    """The record in a string, or in the beginning of one that ends where the outcome's bytes begin.

    If the identity is not known, it is read from the record; the digest is in the name of the key.
    """
    try:
        version, _, state, expires_at, fence, lease_until, created_at, completed_at, attempt = HEAD.unpack_from(value)
        if version != VERSION:
            raise RecordDamaged(f"A stored record has version {version}, which this release does not know.")
        sizes = value[HEAD.size : HEAD.size + _SIZES.size]
        id_size, print_size, said_size = _SIZES.unpack(sizes)
        print_at = _NAMES_AT + id_size
        said_at = print_at + print_size
        end = said_at + said_size
        _check_names(sizes, value[_NAMES_AT:end], value[_NAMES_AT - _NUMBER.size : _NAMES_AT])
        tenant, scope, key, owner, tags, route, method, audit = _decode_said(value[said_at:end])
        return Record(
            identity or Identity(digest, tenant, scope, key),
            value[print_at:said_at].decode(),
            _STATES[state],
            fence,
            attempt,
            value[_NAMES_AT:print_at].decode(),
            lease_until,
            created_at,
            expires_at,
            completed_at or None,
            _outcome(value, end) if completed_at else None,
            About(owner, tags, route, method, audit),
        )
    except (ValueError, KeyError, struct.error, msgspec.MsgspecError) as error:
        raise RecordDamaged(
            f"A stored record cannot be read ({error}); forget it to have the work done again."
        ) from error


def _check_names(sizes: bytes, names: bytes, check: bytes) -> None:
    if _check(sizes, names) != check:
        raise ValueError("what it stands for does not match its checksum")


def head_size(value: bytes) -> int:
    """How much of a string is not the outcome's bytes, as far as it is told here."""
    if len(value) < _NAMES_AT:
        return len(value)
    told_at: int = _NAMES_AT + sum(_SIZES.unpack_from(value, HEAD.size))
    if len(value) < told_at + _TOLD.size:
        return told_at + _TOLD.size
    return told_at + int(_TOLD.size + _TOLD.unpack_from(value, told_at)[0])


def _outcome(value: bytes, at: int) -> Outcome:
    told_size, check = _TOLD.unpack_from(value, at)
    data_at = at + _TOLD.size + told_size
    told = value[at + _TOLD.size : data_at]
    if zlib.crc32(told) != check:
        raise ValueError("the description of the outcome does not match its checksum")
    media_type, meta = _decode_told(told)
    return Outcome(value[data_at:], media_type, meta)
