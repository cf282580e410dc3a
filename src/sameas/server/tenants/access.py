"""The way into the service: who asks, for which tenant and case, and whether they may.

Rule: every request goes through here, before anything of it is believed or replayed. Nobody but `normalize_request`
makes a scope. A case that is asked for is resolved by the directory for that principal, or the request is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from sameas.identity.normalize import credentials, normalize_request, requested_case_id
from sameas.identity.scope import AuditMeta, Case, Principal, ScopeContext, ScopeError
from sameas.server.tenants.workspaces import workspace_of
from sameas.tenancy.authenticator import Authenticator
from sameas.tenancy.directory import ADMIN_ROLE, EXTERNAL_COUNSEL

# Who has this role, or the admin's, sees the keys of others.
AUDITOR = "auditor"
# Who has this role may share ontologies with every tenant; the admin of a tenant may change its records.
OPERATOR = "operator"


class CaseDirectory(Protocol):
    """Knows who is a member of which case."""

    def resolve_case(self, principal: Principal, case_id: str) -> Case:
        """The case, for a member of it; ScopeError for everybody else. Blocking."""
        ...


class Caller(NamedTuple):
    """Who came in: the hop's scope, its principal, and the space it works in."""

    ctx: ScopeContext
    principal: Principal
    space: str

    @property
    def audit(self) -> Mapping[str, Any]:
        """The `audit_meta` of what this hop makes."""
        meta: Mapping[str, Any] = msgspec.to_builtins(AuditMeta.created_in(self.ctx))
        return meta

    @property
    def sees_all_keys(self) -> bool:
        """Whether the keys of others are shown."""
        return not {ADMIN_ROLE, AUDITOR}.isdisjoint(self.principal.roles)

    @property
    def actor(self) -> str:
        """Who is written down for what this hop does."""
        return self.ctx.user_id or self.ctx.service_id or "nobody"

    def must_be_internal(self, *, to: str) -> None:
        """Refuse external counsel something that concerns more than their cases."""
        if EXTERNAL_COUNSEL in self.principal.roles:
            raise ScopeError(f"{to} is not for external counsel", code="internal-only", status=403)

    def must_be(self, role: str, *, to: str) -> None:
        """Refuse whoever has not the role for something."""
        self.must_be_internal(to=to)
        if role not in self.principal.roles:
            raise ScopeError(f"{to} needs the role {role}", code="role-required", status=403)


class AccessControl:
    """Lets requests in. `any_tenant` is for a deployment of one tenant, whose ids need not be UUIDs."""

    def __init__(
        self, authenticator: Authenticator, *, any_tenant: bool, directory: CaseDirectory | None = None
    ) -> None:
        self._authenticator = authenticator
        self._any_tenant = any_tenant
        self._directory = directory

    async def enter(self, asgi_scope: Mapping[str, Any]) -> Caller:
        """The caller of a request or of a WebSocket's handshake; ScopeError where it is refused."""
        principal = await self._authenticator.authenticate(credentials(asgi_scope))
        case = await self._case(asgi_scope, principal)
        ctx = normalize_request(asgi_scope, principal=principal, case=case, allow_any_tenant=self._any_tenant)
        if principal is None:
            raise ScopeError("this endpoint needs a credential", code="unauthenticated", status=401)
        if case is None and EXTERNAL_COUNSEL in principal.roles:
            raise ScopeError("external counsel works in a case: name it in X-Case-ID", code="case-required", status=403)
        return Caller(ctx, principal, workspace_of(ctx))

    async def _case(self, asgi_scope: Mapping[str, Any], principal: Principal | None) -> Case | None:
        wanted = requested_case_id(asgi_scope)
        if wanted is None or principal is None:
            return None
        if self._directory is None:
            raise ScopeError("there is no such case", code="case-unknown", status=403)
        return await asyncio.to_thread(self._directory.resolve_case, principal, wanted)
