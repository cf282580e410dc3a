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

VERSION: Final = 2
# Version, check, state, five times and fences, attempt, four sizes and the check of the names: `HEAD` and `NUMBERS` of
# redis.lua.
HEAD: Final = struct.Struct(">B8sBQQQQQIIIIII")
DONE: Final = b"d"
FAILED: Final = b"f"

_STATES: Final = {b"h"[0]: State.HELD, DONE[0]: State.DONE, FAILED[0]: State.FAILED}
_CRC_SIZE: Final = 4

Said = tuple[str, str, str, str, tuple[str, ...], str, str, dict[str, Any]]
_encode = msgspec.json.Encoder().encode
_decode_said = msgspec.json.Decoder(Said).decode
_decode_told = msgspec.json.Decoder(tuple[str, dict[str, Any]]).decode


def said_of(request: ClaimRequest) -> bytes:
    """Identity, and what people want to know of the record."""
    identity, about = request.identity, request.about
    return _encode(
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


def check_of(request: ClaimRequest, said: bytes) -> int:
    """The check of the names of a record."""
    return zlib.crc32((request.fingerprint + request.attempt_id).encode() + said)


def told_of(outcome: Outcome) -> bytes:
    """What there is to know of an outcome besides its bytes, with a checksum."""
    return _told(outcome.media_type, outcome.meta) if outcome.meta else _told_of_type(outcome.media_type)


@lru_cache(maxsize=256)
def _told_of_type(media_type: str) -> bytes:
    return _told(media_type, {})


def _told(media_type: str, meta: Mapping[str, Any]) -> bytes:
    described = _encode((media_type, meta))
    return zlib.crc32(described).to_bytes(_CRC_SIZE, "big") + described


def record_of(value: bytes, identity: Identity | None = None, *, digest: bytes = b"") -> Record:
    """The record in a string, or in the beginning of one that ends where the outcome's bytes begin.

    Where the identity is not known, it is read from the record; the digest is in the name of the key.
    """
    try:
        (
            version,
            _,
            state,
            expires_at,
            fence,
            lease_until,
            created_at,
            completed_at,
            attempt,
            print_size,
            id_size,
            said_size,
            told_size,
            names_check,
        ) = HEAD.unpack_from(value)
        if version != VERSION:
            raise RecordDamaged(f"A stored record has version {version}, which this release does not know.")
        id_at = HEAD.size + print_size
        said_at = id_at + id_size
        told_at = said_at + said_size
        data_at = told_at + told_size
        _check_names(value[HEAD.size : told_at], names_check)
        tenant, scope, key, owner, tags, route, method, audit = _decode_said(value[said_at:told_at])
        return Record(
            identity or Identity(digest, tenant, scope, key),
            value[HEAD.size : id_at].decode(),
            _STATES[state],
            fence,
            attempt,
            value[id_at:said_at].decode(),
            lease_until,
            created_at,
            expires_at,
            completed_at or None,
            _outcome(value[told_at:data_at], value[data_at:]) if told_size else None,
            About(owner, tags, route, method, audit),
        )
    except (ValueError, KeyError, struct.error, msgspec.MsgspecError) as error:
        raise RecordDamaged(
            f"A stored record cannot be read ({error}); forget it to have the work done again."
        ) from error


def _check_names(names: bytes, check: int) -> None:
    if zlib.crc32(names) != check:
        raise ValueError("what it stands for does not match its checksum")


def head_size(value: bytes) -> int:
    """How much of a string is not the outcome's bytes; all of it where that cannot be told."""
    if len(value) < HEAD.size:
        return len(value)
    *_, print_size, id_size, said_size, told_size, _ = HEAD.unpack_from(value)
    return int(HEAD.size + print_size + id_size + said_size + told_size)


def _outcome(told: bytes, data: bytes) -> Outcome:
    described = told[_CRC_SIZE:]
    if zlib.crc32(described) != int.from_bytes(told[:_CRC_SIZE], "big"):
        raise ValueError("the description of the outcome does not match its checksum")
    media_type, meta = _decode_told(described)
    return Outcome(data, media_type, meta)
