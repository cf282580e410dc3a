"""What a request asks for: its key, whose it is, its body and its fingerprint; and the claim that follows from them.

The body is read and held before anything is claimed, and a request that cannot be compared with another is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from sameas.identity.normalize import credentials, normalize_request
from sameas.identity.scope import AuditMeta, Principal, ScopeContext, ScopeError
from sameas.once.errors import SameasError
from sameas.once.held import AsyncHeld
from sameas.once.processing_record import ProcessingRecord
from sameas.web.capture import Receive, Spool, TooLarge, read_body
from sameas.web.fingerprint import NotComparable
from sameas.web.frameworks import host_of
from sameas.web.header import MalformedKey, parse_key
from sameas.web.problem import Problem, problem_of
from sameas.web.route import MAX_KEY
from sameas.web.table import Rule

if TYPE_CHECKING:
    from sameas.web.asgi import IdempotencyMiddleware


class Hop(NamedTuple):
    """What a handler finds as `current_scope` and `current_principal`; `ctx` is the scope of one who was
    authenticated."""

    ctx: ScopeContext | None
    scope: ScopeContext | Callable[[], ScopeContext | None]
    principal: Principal | None = None


class Asking:
    """One request, up to its claim. What refuses it is a `Problem`."""

    __slots__ = ("_home", "_owner", "_rule", "_scope", "body", "key")

    def __init__(self, home: IdempotencyMiddleware, rule: Rule, scope: Mapping[str, Any]) -> None:
        self._home = home
        self._rule = rule
        self._scope = scope
        # Whose key it is, as the first part of the stored one.
        self._owner = ""
        self.key: str | None = None
        self.body = Spool()

    def read_key(self, values: tuple[bytes, ...]) -> None:
        """Find the client's key; there is none where the content is the key."""
        policy = self._rule.policy
        if policy.key == "content":
            return
        if not values:
            raise Problem(400, "key-required", "This request needs the header Idempotency-Key.")
        try:
            key = parse_key(values)
        except MalformedKey as error:
            raise Problem(400, "key-malformed", str(error)) from None
        if len(key) > MAX_KEY or not policy.pattern.fullmatch(key):
            raise Problem(400, "key-malformed", f"Idempotency-Key must fit the pattern {policy.pattern.pattern}")
        self.key = key

    async def hop(self) -> Hop:
        """Who asks, in which scope. Where nobody authenticates the scope is made when somebody asks for it."""
        if self._home.authenticator is None:
            return Hop(None, partial(self._home.unproved, self._scope, self._rule.scope_name, self.key))
        ctx, principal = await self._authenticate()
        return Hop(ctx, ctx, principal)

    async def _authenticate(self) -> tuple[ScopeContext, Principal | None]:
        home, policy = self._home, self._rule.policy
        assert home.authenticator is not None
        try:
            principal = await home.authenticator.authenticate(credentials(self._scope))
            routed = home.tenant_of(self._scope) if home.tenant_of is not None else None
            if routed is None and principal is None and home.any_tenant:
                routed = ""
            case = None
            if home.case_of is not None and principal is not None:
                case = await home.case_of(principal, self._scope)
            ctx = normalize_request(
                self._scope,
                principal=principal,
                public=policy.public and principal is None,
                routed_tenant=routed,
                case=case,
                case_required=policy.case_required,
                starts=policy.starts,
                allow_any_tenant=home.any_tenant,
            )
            ctx = ctx.with_key(scope_name=self._rule.scope_name, key=self.key)
        except (ScopeError, SameasError) as error:
            raise problem_of(error) from error
        # What is left of the dot cannot be typed right of it.
        if policy.shared:
            self._owner = "tenant."
        else:
            self._owner = "public." if principal is None else f"{principal.digest}."
        return ctx, principal

    async def begin(
        self, receive: Receive, ctx: ScopeContext | None, options: dict[str, Any]
    ) -> ProcessingRecord | AsyncHeld:
        """What is kept for this request, or the claim to run it."""
        scope, rule, body = self._scope, self._rule, self.body
        tenant = "" if ctx is None else ctx.tenant_id
        content_type = encoding = declared = chunked = b""
        for name, value in scope["headers"]:
            if name == b"content-type":
                if content_type:
                    raise Problem(400, "body-ambiguous", "Content-Type was sent more than once; send it once.")
                content_type = value
            elif name == b"content-length":
                declared = value
            elif name == b"content-encoding":
                encoding = value.strip().lower()
            elif name == b"transfer-encoding":
                chunked = value
        if declared and chunked:
            # RFC 9112, 6.3: where two say how long it is, two may disagree about what was asked.
            raise Problem(400, "body-ambiguous", "Send Content-Length or Transfer-Encoding, not both.")
        try:
            await read_body(body, receive, limit=rule.policy.body_limit, declared=declared)
            path = f"//{host_of(scope).lower()}{scope['path']}" if rule.host else scope["path"]
            print_ = await self._home.fingerprints.of(
                (scope["method"], path, scope["query_string"], content_type),
                b"" if encoding == b"identity" else encoding,
                body,
                rule.policy,
                whose=(tenant, self._owner),
            )
        except TooLarge as error:
            raise Problem(413, "body-too-large", f"The body has more than {error.limit} bytes.") from None
        except NotComparable as error:
            raise Problem(400, "body-malformed", str(error)) from None
        audit = {} if ctx is None else msgspec.to_builtins(AuditMeta.created_in(ctx))
        engine = self._home.engine
        try:
            if self.key is None:
                # The fingerprint's digest of the whole is keyed with the secret, and as good a key as any.
                content = f"{self._owner}content-{print_.partition(' ')[0]}"
                return await engine.begin(key=content, namespace="content", tenant=tenant, audit=audit, **options)
            key = self._owner + self.key
            return await engine.begin(key=key, tenant=tenant, request_fingerprint=print_, audit=audit, **options)
        except SameasError as error:
            raise problem_of(error) from error
