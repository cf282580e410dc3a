"""The way into the service: who asks, for which tenant and case, and whether they may.

Rule: every request goes through here, before anything of it is believed or replayed. Nobody but `normalize_request`
makes a scope. A case that is asked for is resolved by the directory for that principal, or the request is refused. A
browser that has signed in shows a cookie, which opens an encrypted credential in the store: that is judged like any
other, at every request.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Coroutine, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, NamedTuple, Protocol

import msgspec
from starlette.types import Scope

from sameas.identity.normalize import credentials, normalize_request, requested_case_id
from sameas.identity.scope import AuditMeta, Case, Principal, ScopeContext, ScopeError
from sameas.once.async_engine import AsyncEngine
from sameas.once.codec import TypedCodec, unpack
from sameas.once.record import State
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
        return self.has(ADMIN_ROLE, AUDITOR)

    @property
    def actor(self) -> str:
        """Who is written down for what this hop does."""
        return self.ctx.user_id or self.ctx.service_id or "nobody"

    @property
    def is_internal(self) -> bool:
        return EXTERNAL_COUNSEL not in self.principal.roles

    def has(self, *roles: str) -> bool:
        """Whether the caller has one of the roles; what somebody gave to external counsel's key does not count."""
        return self.is_internal and not set(roles).isdisjoint(self.principal.roles)

    def must_be_internal(self, *, to: str) -> None:
        """Refuse external counsel something that concerns more than their cases."""
        if not self.is_internal:
            raise ScopeError(f"{to} is not for external counsel", code="internal-only", status=403)

    def must_be(self, role: str, *, to: str) -> None:
        """Refuse whoever has not the role for something."""
        self.must_be_internal(to=to)
        if not self.has(role):
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


COOKIE = "sameas_session"
LASTS = 12 * 3600
PAGE_HEADER = b"x-sameas-page"
_SCOPE = "web.session"
_API = "/api/"
_HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})
_CREDENTIALS = frozenset({b"authorization", b"x-api-key"})
_NUMBER_BYTES = 32
_NONCE_BYTES = 12
_LET_IN_BY = "sameas.session"
_codec = TypedCodec(bytes)

Do = Callable[[Coroutine[Any, Any, Any]], Coroutine[Any, Any, Any]]


class WebSessions:
    """Signed-in browsers, in the store that all servers share; `do` runs work where that lives. A cookie stands for a
    credential, because an EventSource cannot send a header.

    The cookie is a random number; the store has its digest, with the credential encrypted under the number itself, so
    that neither a cookie jar nor a store alone gives a credential away. A cookie counts for requests that change
    something only where the page says that the request is its own, which a page of another origin cannot say.
    """

    def __init__(self, engine: Callable[[], AsyncEngine], do: Do) -> None:
        self._engine = engine
        self._do = do

    async def open(self, header: tuple[bytes, bytes]) -> str:
        """The cookie of a new session that stands for a header that was accepted."""
        number = secrets.token_bytes(_NUMBER_BYTES)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = nonce + _cipher(number).encrypt(nonce, header[0] + b"\0" + header[1], None)
        await self._do(
            self._engine().run(lambda _: sealed, scope=_SCOPE, key=_digest(number), retention=LASTS, result_type=bytes)
        )
        return number.hex()

    async def end(self, scope: Scope) -> None:
        """Forget the session of a request, if it has one."""
        number = _number(scope)
        if number is not None:
            await self._do(self._engine().forget(_SCOPE, _digest(number)))

    async def admit(self, scope: Scope) -> None:
        """Put the credential in the place of the cookie, unless the request shows one of its own."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if not scope["path"].startswith(_API):
            return
        if any(name in _CREDENTIALS for name, _ in headers):
            return
        if scope["method"] not in _HARMLESS and not any(name == PAGE_HEADER for name, _ in headers):
            return
        number = _number(scope)
        if number is None:
            return
        sealed = await self._sealed(number)
        if sealed is None:
            return
        plain = _cipher(number).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        name, _, value = plain.partition(b"\0")
        scope["headers"] = [*headers, (name, value)]
        scope[_LET_IN_BY] = number

    async def stands(self, scope: Mapping[str, Any]) -> bool:
        """Whether nobody has signed out of the session that let a request in; True where none did."""
        number = session_of(scope)
        return number is None or await self._sealed(number) is not None

    async def _sealed(self, number: bytes) -> bytes | None:
        """The encrypted credential of a session."""
        record = await self._do(self._engine().read(_SCOPE, _digest(number)))
        if record is None or record.state is not State.DONE or record.outcome is None:
            return None
        sealed: bytes = unpack(record.outcome, _codec)
        return sealed


def session_of(scope: Mapping[str, Any]) -> bytes | None:
    """The session that let a request in, if one did."""
    number: bytes | None = scope.get(_LET_IN_BY)
    return number


def set_cookie(value: str, *, is_secure: bool, lasts: int = LASTS) -> str:
    """The header that gives a browser its cookie; with `lasts=0` the one that takes it away."""
    secure = "; Secure" if is_secure else ""
    return f"{COOKIE}={value}; Path=/; Max-Age={lasts}; HttpOnly; SameSite=Strict{secure}"


def _number(scope: Scope) -> bytes | None:
    for name, value in scope["headers"]:
        if name == b"cookie" and COOKIE.encode() in value:
            cookies: SimpleCookie = SimpleCookie()
            try:
                cookies.load(value.decode("latin-1"))
                number = bytes.fromhex(cookies[COOKIE].value)
            except (CookieError, KeyError, ValueError):
                continue
            if len(number) == _NUMBER_BYTES:
                return number
    return None


def _digest(number: bytes) -> str:
    return hashlib.sha256(b"sameas.web.session.id:" + number).hexdigest()


def _cipher(number: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(hashlib.sha256(b"sameas.web.session.key:" + number).digest())
