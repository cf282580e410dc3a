"""The Idempotency-Key header for any ASGI application: `IdempotencyMiddleware(app, engine=...)`.

Rule: what it does not act on (other methods, WebSockets, requests without a key where none is required) goes to the
application untouched. Authentication runs before any replay. When the store does not answer, the handler does not run.

It reads `Set-Cookie`, credentials and bodies only to pass them on; it logs none of them, and no key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, Literal

from sameas.identity.normalize import Hop, begin_hop, idempotency_key_header, normalize_unproved
from sameas.identity.scope import Case, Principal, ScopeContext, check_tenant, current_scope
from sameas.once.async_engine import AsyncEngine
from sameas.once.context import WORKING
from sameas.once.pruning import keep_pruned
from sameas.tenancy.authenticator import Authenticator
from sameas.web.caller import PrincipalOf, TenantOf, credential_names, refuse_async_tenant_of, tenant_named
from sameas.web.capture import Message, Receive
from sameas.web.fingerprint import Fingerprints
from sameas.web.frameworks import mount_of, owner_of
from sameas.web.handler_run import respond
from sameas.web.openapi import RoutePlace, publish_once
from sameas.web.problem import Send
from sameas.web.request_claim import RequestClaim
from sameas.web.route import RoutePolicy, UnseenMark
from sameas.web.shadow import ShadowLedger, shadow
from sameas.web.table import RouteTable, Rule

_LOG = logging.getLogger("sameas")

App = Callable[[Any, Any, Any], Awaitable[Any]]
Mode = Literal["enforce", "shadow", "off"]
CaseOf = Callable[[Principal, Mapping[str, Any]], Awaitable[Case | None] | Case | None]

# What a server gives a request at shutdown, more or less.
GRACE_SECONDS: Final = 10.0
# Where a request carries the ids that were made for it, and its scope once somebody asked for it.
HOP: Final = "sameas.hop"
UNPROVED: Final = "sameas.unproved"
PRUNE_EVERY_SECONDS: Final = 600.0


class IdempotencyMiddleware:
    """Pure ASGI. Routes are set by `@idempotent`, by `routes`, and by `defaults`; see `RoutePolicy`.

    Callers are told apart by `authenticator`; else by what `principal_of` makes of the scope, text or None; else by
    `scope["user"]`; else a request with another credential (Authorization, X-API-Key, `credential_headers`) under the
    same key is refused. `tenant_of`, which is not async, routes a request to a tenant, by its host or path; `case_of`
    finds the case that a principal asks for, as `TenantDirectory.resolve_case` does; `any_tenant` allows ids that are
    no UUIDv7. Expired records are removed every `prune_every` seconds, about, from startup to shutdown of a server that
    tells of them (ASGI's lifespan); None leaves it to something else.

    Raises ValueError for options that cannot be, and TypeError for an async `tenant_of`. What goes wrong with a request
    is told to its client, as a problem.
    """

    def __init__(
        self,
        app: App,
        *,
        engine: AsyncEngine,
        authenticator: Authenticator | None = None,
        routes: Mapping[str, RoutePolicy] | None = None,
        defaults: RoutePolicy | None = None,
        mode: Mode = "enforce",
        tenant_of: TenantOf | None = None,
        principal_of: PrincipalOf | None = None,
        credential_headers: Iterable[str] = (),
        case_of: CaseOf | None = None,
        any_tenant: bool = True,
        shadow: ShadowLedger | None = None,
        grace_seconds: float = GRACE_SECONDS,
        prune_every: float | None = PRUNE_EVERY_SECONDS,
    ) -> None:
        if mode not in ("enforce", "shadow", "off"):
            raise ValueError(f"mode must be 'enforce', 'shadow' or 'off', not {mode!r}")
        if prune_every is not None and not prune_every > 0:
            raise ValueError("prune_every must be positive, or None where something else prunes")
        if authenticator is not None and principal_of is not None:
            raise ValueError("give authenticator= or principal_of=, not both: one of them says who asks")
        if authenticator is None and case_of is not None:
            raise ValueError("case_of= needs an authenticator=: a case is seen by a principal")
        refuse_async_tenant_of(tenant_of)
        self.app = app
        self.engine = engine
        self.authenticator = authenticator
        self.mode = mode
        self.tenant_of = tenant_of
        self.principal_of = principal_of
        self.credential_names = credential_names(credential_headers)
        self.case_of = case_of
        self.any_tenant = any_tenant
        self.table = RouteTable(app, routes or {}, defaults or RoutePolicy(), engine=engine)
        self.fingerprints = Fingerprints(engine.secret)
        self.shadow = shadow or ShadowLedger()
        # The handlers that are at work: they are held here, and may outlive their requests.
        self.running: set[asyncio.Task[None]] = set()
        self._grace_seconds = grace_seconds
        self._prune_every = prune_every
        self._published = mode != "enforce"

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if not self._published:
            place = RoutePlace(mount_of(scope), scope.get("root_path", ""))
            published = publish_once(owner_of(self.app, scope), self.table, place=place)
            self._published = published or kind == "http"
        if kind == "lifespan":
            await self._live(scope, receive, send)
            return
        if kind != "http":
            await self.app(scope, receive, send)
            return
        if type(scope["headers"]) is not list:
            # ASGI lets them be read once; here they are read again and again, and by the application after that.
            scope["headers"] = list(scope["headers"])
        try:
            rule = self.table.find(scope)
        except UnseenMark as error:
            if self.mode == "enforce":
                raise
            if self.mode == "shadow":
                _LOG.error("shadow: %s", error)
            rule = None
        if rule is None:
            await self._pass(scope, receive, send)
            return
        keys = idempotency_key_header(scope)
        if not keys and rule.policy.key == "optional":
            await self._pass(scope, receive, send)
        elif self.mode == "off":
            await self._pass_keyed(rule, scope, receive, send, keys)
        elif self.mode == "shadow":
            await shadow(self, rule, scope, receive, send, keys)
        else:
            await respond(self, rule, scope, receive, send, keys)

    async def _pass(self, scope: Any, receive: Receive, send: Send, *named: str | None) -> None:
        """To the application as it is; what it sends out goes on with the request's trace, and with its key."""
        entered = current_scope.set(partial(self.unproved, scope, *named))
        try:
            await self.app(scope, receive, send)
        finally:
            current_scope.reset(entered)

    async def _pass_keyed(self, rule: Rule, scope: Any, receive: Receive, send: Send, keys: tuple[bytes, ...]) -> None:
        """The same for a handler that may ask for its context, which it has although nothing is claimed."""
        request_claim = RequestClaim(self, rule, scope)
        try:
            request_claim.read_key(keys)
            await request_claim.recognise()
        except Exception as error:
            # Off is off: what would refuse the request does not.
            _LOG.warning("off: a request has no key of its own: %s", type(error).__name__)
        before = WORKING.get()
        WORKING.set((*before, request_claim.unclaimed()))
        try:
            await self._pass(scope, receive, send, rule.scope_name, request_claim.key)
        finally:
            WORKING.set(before)

    def hop(self, scope: Any) -> Hop:
        """The ids of a request's hop, the same each time they are asked for."""
        hop: Hop | None = scope.get(HOP)
        if hop is None:
            hop = scope[HOP] = begin_hop(scope)
        return hop

    def unproved(self, scope: Any, scope_name: str | None = None, key: str | None = None) -> ScopeContext | None:
        """The scope of a request that nobody authenticated, the same each time it is asked for; None if not even
        its tenant is known.

        Raises ScopeError if the tenant cannot be told.
        """
        if UNPROVED not in scope:
            tenant = tenant_named(self.tenant_of, scope)
            if tenant is None and not self.any_tenant:
                return None
            scope[UNPROVED] = normalize_unproved(
                scope,
                tenant_id=tenant or "",
                hop=self.hop(scope),
                idempotency_scope_name=scope_name,
                idempotency_key=key,
                allow_any_tenant=self.any_tenant,
            )
        return scope[UNPROVED]  # type: ignore[no-any-return]

    def routed_tenant(self, scope: Mapping[str, Any]) -> str:
        """The tenant that a request was routed to. Raises ScopeError if it must have one and has none."""
        tenant = tenant_named(self.tenant_of, scope) or ""
        check_tenant(tenant, any_tenant=self.any_tenant)
        return tenant

    async def drain(self) -> None:
        """Let the handlers that outlived their requests finish, within the grace time; then end them. Their claims are
        given back.

        Raises nothing.
        """
        if self.running:
            _, late = await asyncio.wait(set(self.running), timeout=self._grace_seconds)
            for task in late:
                task.cancel()
        # Twice: what was ended before it began gives its claim back in a task of its own. Nobody can end a handler that
        # will not hear of it.
        for _ in range(2):
            if self.running:
                await asyncio.wait(set(self.running), timeout=self._grace_seconds)

    async def _live(self, scope: Any, receive: Receive, send: Send) -> None:
        """From the start of the server to its end: what has expired is removed, and at last handlers are waited for."""
        pruning: list[asyncio.Task[None]] = []
        if self.mode == "enforce":
            try:
                self.table.refuse_all_unseen(scope.get("app"))
            except UnseenMark as error:
                # Servers take an exception here for an application that knows no lifespan, and start it.
                await receive()
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                raise

        async def watched() -> Message:
            message = await receive()
            if message["type"] == "lifespan.startup" and self.mode != "off" and self._prune_every is not None:
                pruning.append(asyncio.create_task(keep_pruned(self.engine, every=self._prune_every)))
            elif message["type"] == "lifespan.shutdown":
                await _end(pruning)
                await self.drain()
            return message

        try:
            await self.app(scope, watched, send)
        finally:
            await _end(pruning)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    tasks.clear()
