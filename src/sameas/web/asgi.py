"""The Idempotency-Key header for any ASGI application: `IdempotencyMiddleware(app, engine=...)`.

Rule: what it does not act on (other methods, WebSockets, requests without a key where none is required) goes to the
application untouched. Authentication runs before any replay. When the store does not answer, the handler does not run.

It reads `Set-Cookie`, credentials and bodies only to pass them on; it logs none of them, and no key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal

from sameas.identity.normalize import idempotency_key_header
from sameas.once.async_engine import AsyncEngine
from sameas.tenancy.authenticator import Authenticator
from sameas.web.capture import Message, Receive
from sameas.web.fingerprint import Fingerprints
from sameas.web.frameworks import mount_of
from sameas.web.openapi import publish_once
from sameas.web.problem import Send
from sameas.web.responder import Responder
from sameas.web.route import RoutePolicy
from sameas.web.shadow import ShadowLedger, ShadowResponder
from sameas.web.table import RouteTable

App = Callable[[Any, Any, Any], Awaitable[Any]]
Mode = Literal["enforce", "shadow", "off"]

# What a server gives a request at shutdown, more or less.
GRACE_SECONDS: Final = 10.0


class IdempotencyMiddleware:
    """Pure ASGI. Routes are set by `@idempotent`, by `routes`, and by `defaults`; see `RoutePolicy`.

    `tenant_of` routes a request to a tenant, by its host or path; `any_tenant` allows ids that are no UUIDv7.
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
        tenant_of: Callable[[Mapping[str, Any]], str | None] | None = None,
        any_tenant: bool = True,
        shadow: ShadowLedger | None = None,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        if mode not in ("enforce", "shadow", "off"):
            raise ValueError(f"mode must be 'enforce', 'shadow' or 'off', not {mode!r}")
        self.app = app
        self.engine = engine
        self.authenticator = authenticator
        self.mode = mode
        self.tenant_of = tenant_of
        self.any_tenant = any_tenant
        self.table = RouteTable(app, routes or {}, defaults or RoutePolicy())
        self.fingerprints = Fingerprints(engine.secret)
        self.shadow = shadow or ShadowLedger()
        # The handlers that are at work: they are held here, and may outlive their requests.
        self.running: set[asyncio.Task[None]] = set()
        self._grace_seconds = grace_seconds
        self._published = mode != "enforce"

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if not self._published:
            published = publish_once(scope.get("app"), self.table, mount=mount_of(scope))
            self._published = published or kind == "http"
        if kind == "lifespan":
            await self.app(scope, self._drained_before_shutdown(receive), send)
            return
        if kind != "http" or self.mode == "off":
            await self.app(scope, receive, send)
            return
        rule = self.table.find(scope)
        if rule is None:
            await self.app(scope, receive, send)
            return
        keys = idempotency_key_header(scope)
        if not keys and rule.policy.key == "optional":
            await self.app(scope, receive, send)
        elif self.mode == "shadow":
            await ShadowResponder(self, rule, scope, receive, send).respond(keys)
        else:
            await Responder(self, rule, scope, receive, send).respond(keys)

    async def drain(self) -> None:
        """Let the handlers that outlived their requests finish, within the grace time; then end them. Their claims are
        given back."""
        if self.running:
            _, late = await asyncio.wait(set(self.running), timeout=self._grace_seconds)
            for task in late:
                task.cancel()
        # Twice: what was ended before it began gives its claim back in a task of its own. Nobody can end a handler that
        # will not hear of it.
        for _ in range(2):
            if self.running:
                await asyncio.wait(set(self.running), timeout=self._grace_seconds)

    def _drained_before_shutdown(self, receive: Receive) -> Receive:
        async def receive_drained() -> Message:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.drain()
            return message

        return receive_drained
