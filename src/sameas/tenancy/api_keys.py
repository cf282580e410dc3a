"""API keys: made here, shown once, kept as digests, ended at once.

A key is `sameas_`, 16 characters that name it, and 52 that are its secret: 256 random bits. So a fast hash is enough,
salted for each key and keyed with the deployment's own secret if it has one: a copy of the table lets nobody in.

Rule: the table is asked at every request, in one statement that also knows of the tenant, user and service, so that a
revocation is in force at the next one. Refusals do not tell an unknown key from a wrong, revoked or expired one. When a
key was last used is noted once an hour at most.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import secrets
from base64 import b32encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from sameas.databases import Database, Row
from sameas.identity.normalize import Credentials
from sameas.identity.scope import AuditMeta, Principal, ScopeContext, ScopeError, check_text
from sameas.once.errors import StoreError
from sameas.tenancy.authenticator import Unauthorized, unknown_scheme
from sameas.tenancy.directory import roles_with_kind, stamp, utc_now

PREFIX = "sameas_"
_TOKEN = re.compile(rf"{PREFIX}([a-z2-7]{{16}})_([a-z2-7]{{52}})")
_NOTED_EVERY = timedelta(hours=1)
_LOG = logging.getLogger("sameas.tenancy")
# Compared with where no key has the name, so that this takes as long.
_NOBODY = ("0" * 32, "0" * 64)


@dataclass(frozen=True, slots=True, repr=False)
class NewApiKey:
    """A key that was just made; `token` is shown to its owner and kept nowhere."""

    key_id: str
    token: str

    def __repr__(self) -> str:
        return f"NewApiKey(key_id={self.key_id!r}, token=***)"


class ApiKey(msgspec.Struct, frozen=True):
    """A key as the table has it."""

    key_id: str
    name: str
    user_id: str | None
    service_id: str | None
    roles: tuple[str, ...]
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None


class ApiKeys:
    """The keys of all tenants, in a database of `open_tables`. Blocking. Every call raises StoreUnavailable or
    StoreMisconfigured if the database cannot be asked."""

    def __init__(self, database: Database, *, secret: bytes = b"", clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._secret = secret
        self._clock = clock

    def create(
        self,
        ctx: ScopeContext,
        name: str,
        *,
        user_id: str | None = None,
        service_id: str | None = None,
        roles: tuple[str, ...] = (),
        expires_at: datetime | None = None,
    ) -> NewApiKey:
        """A new key for a user or a service of the hop's tenant. Raises ScopeError if there is no such user or service,
        for not exactly one of both, and for a name that cannot be; ValueError for a time without its zone."""
        check_text("name", name)
        owner = Principal(tenant_id=ctx.tenant_id, user_id=user_id, service_id=service_id, roles=roles)
        key_id, secret, salt = _letters(10), _letters(32), secrets.token_hex(16)
        with self._database.transaction() as session:
            kind, named = ("user", {"user_id": user_id}) if user_id else ("service", {"service_id": service_id})
            if session.one(kind, tenant_id=ctx.tenant_id, **named) is None:
                raise ScopeError(f"there is no such {kind}", code=f"{kind}-unknown", status=403)
            session.run(
                "add_key",
                key_id=key_id,
                tenant_id=ctx.tenant_id,
                user_id=owner.user_id,
                service_id=owner.service_id,
                name=name,
                salt=salt,
                digest=self._digest(salt, secret),
                roles=msgspec.json.encode(owner.roles).decode(),
                now=stamp(self._clock()),
                expires_at=expires_at and stamp(expires_at),
                audit_meta=AuditMeta.created_in(ctx).to_json(),
            )
        return NewApiKey(key_id, f"{PREFIX}{key_id}_{secret}")

    def revoke(self, ctx: ScopeContext, key_id: str) -> None:
        """End a key of the hop's tenant; the next request that shows it is refused. Raises ScopeError if there is no
        such key."""
        with self._database.transaction() as session:
            known = key_id.isprintable() and session.one("key_audit", tenant_id=ctx.tenant_id, key_id=key_id)
            if not known:
                raise ScopeError("there is no such key", code="key-unknown", status=403)
            audit = AuditMeta.from_json(known[0]).written_by(ctx).to_json()
            session.run(
                "revoke_key", tenant_id=ctx.tenant_id, key_id=key_id, now=stamp(self._clock()), audit_meta=audit
            )

    def keys(self, ctx: ScopeContext) -> list[ApiKey]:
        """The keys of the hop's tenant, without their secrets."""
        with self._database.reading() as session:
            rows = session.run("keys", tenant_id=ctx.tenant_id)
        return [_key(row) for row in rows]

    def check(self, token: str) -> Principal | None:
        """Whose key this is; None if it is not, or no longer, a key."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            return None
        key_id, secret = match.groups()
        with self._database.reading() as session:
            row = session.one("check_key", key_id=key_id)
        salt, digest = row[:2] if row else _NOBODY
        fits = hmac.compare_digest(self._digest(salt, secret), digest)
        now = self._clock()
        if row is None or not fits:
            return None
        tenant_id, user_id, service_id, roles, expires_at, last_used_at, ended_at, kind = row[2:]
        if ended_at is not None or (expires_at is not None and expires_at <= stamp(now)):
            return None
        if last_used_at is None or last_used_at < stamp(now - _NOTED_EVERY):
            self._note_use(key_id, now)
        return Principal(
            tenant_id=tenant_id,
            user_id=user_id,
            service_id=service_id,
            credential_id=key_id,
            roles=roles_with_kind(_roles(roles), kind),
        )

    def _digest(self, salt: str, secret: str) -> str:
        return hmac.new(self._secret + bytes.fromhex(salt), secret.encode(), "sha256").hexdigest()

    def _note_use(self, key_id: str, now: datetime) -> None:
        try:
            with self._database.transaction(durable=False) as session:
                session.run("note_use", key_id=key_id, now=stamp(now))
        except StoreError as error:
            # A note for people is no reason to refuse a good key.
            _LOG.warning("could not note the use of the API key %s: %s", key_id, type(error).__name__)


class ApiKeyAuthenticator:
    """Accepts `X-API-Key: ...` and `Authorization: ApiKey ...` or `Bearer ...` with a key of ours.

    Its call raises Unauthorized for a key that is not, or no longer, one and for another scheme, and StoreUnavailable
    if the database cannot be asked.
    """

    def __init__(self, database: Database, *, secret: bytes = b"", clock: Callable[[], datetime] = utc_now) -> None:
        self._keys = ApiKeys(database, secret=secret, clock=clock)

    async def authenticate(self, credentials: Credentials | None) -> Principal | None:
        """The owner of the key; None if nothing was shown. Raises Unauthorized and StoreUnavailable."""
        if credentials is None:
            return None
        if credentials.scheme not in {"apikey", "bearer"}:
            raise unknown_scheme("apikey")
        principal = await asyncio.to_thread(self._keys.check, credentials.token)
        if principal is None:
            raise Unauthorized("the API key is not valid, or no longer", code="api-key-invalid", challenge="ApiKey")
        return principal


def _key(row: Row) -> ApiKey:
    key_id, name, user_id, service_id, roles, *times = row
    return ApiKey(key_id, name, user_id, service_id, _roles(roles), *times)


def _roles(text: str) -> tuple[str, ...]:
    return msgspec.json.decode(text, type=tuple[str, ...])


def _letters(size: int) -> str:
    """That many random bytes as lower-case letters and digits."""
    return b32encode(secrets.token_bytes(size)).decode().rstrip("=").lower()
