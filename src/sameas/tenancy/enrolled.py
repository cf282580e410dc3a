"""Principals that the directory knows: for tokens that somebody else issues and nobody here can take back.

Rule: a token says who it is; the directory says whether they still may come in. Asked at every request, so that a user
who was disabled, or a tenant that was suspended, is out at the next one although the token is good for another hour.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from sameas.databases import Database, Row
from sameas.identity.normalize import Credentials
from sameas.identity.scope import Principal
from sameas.tenancy.authenticator import Authenticator, Unauthorized
from sameas.tenancy.directory import roles_with_kind


class EnrolledAuthenticator:
    """An authenticator, and after it the tables of `open_tables`."""

    def __init__(self, authenticator: Authenticator, *, database: Database) -> None:
        self._authenticator = authenticator
        self._database = database

    async def authenticate(self, credentials: Credentials | None) -> Principal | None:
        principal = await self._authenticator.authenticate(credentials)
        if principal is None:
            return None
        ended_at, kind = await asyncio.to_thread(self._standing, principal) or ("unknown", None)
        if ended_at is not None:
            raise Unauthorized(
                "the tenant or its user or service is not enrolled here, or no longer", code="not-enrolled"
            )
        return replace(principal, roles=roles_with_kind(principal.roles, kind))

    def _standing(self, principal: Principal) -> Row | None:
        kind = "user" if principal.user_id is not None else "service"
        named = {f"{kind}_id": getattr(principal, f"{kind}_id"), "tenant_id": principal.tenant_id}
        with self._database.reading() as session:
            return session.one(f"{kind}_ended", **named)
