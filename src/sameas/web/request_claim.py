"""What a request asks for: its key, whose it is, its body and its fingerprint; and the claim that follows from them.

Tenant and caller come from the authenticator, or if there is none from `tenant_of` and `sameas.web.caller`. The body
is read and held before anything is claimed, and a request that cannot be compared with another is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from inspect import isawaitable
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from sameas.identity.canonical import join, sha256_hex
from sameas.identity.ids import uuid7
from sameas.identity.key import Namespace
from sameas.identity.normalize import credentials, normalize_request
from sameas.identity.scope import AuditMeta, Principal, ScopeContext, ScopeError
from sameas.once.call_builder import identity_of
from sameas.once.claim_handle import AsyncClaimHandle
from sameas.once.context import Context
from sameas.once.errors import KeyReused, SameasError
from sameas.once.record import Lease, ProcessingRecord
from sameas.web.caller import WHERE_TO_PUT_IT, anonymous_owner, knows_a_user, name_caller, tenant_named
from sameas.web.capture import Receive, Spool, TooLarge, read_body
from sameas.web.fingerprint import CREDENTIAL, NotComparable
from sameas.web.frameworks import host_of
from sameas.web.header import MalformedKey, parse_key
from sameas.web.problem import Problem, problem_of
from sameas.web.route import MAX_KEY, USUAL_KEY
from sameas.web.table import Rule

if TYPE_CHECKING:
    from sameas.web.asgi import IdempotencyMiddleware

_LOG = logging.getLogger("sameas")

_OF_BODY: Final = frozenset({b"content-type", b"content-length", b"content-encoding", b"transfer-encoding"})


class RequestContext(NamedTuple):
    """What a handler finds as `current_scope` and `current_principal`; `ctx` is the scope of one who was
    authenticated. An anonymous caller is one who may be anybody: many may share a credential, each with a cookie."""

    ctx: ScopeContext | None
    scope: ScopeContext | Callable[[], ScopeContext | None]
    principal: Principal | None = None
    is_anonymous: bool = False

    def nobodys(self, scope: Mapping[str, Any]) -> str:
        """Why an answer cannot be kept for anybody, once it is there: the caller was recognised too late. It is done,
        and must not be done again; whose it is, the next request cannot say."""
        if not self.is_anonymous or not knows_a_user(scope):
            return ""
        _LOG.error("an answer is not kept: %s", WHERE_TO_PUT_IT)
        return WHERE_TO_PUT_IT


class RequestClaim:
    """One request, up to its claim. What refuses it is a `Problem`."""

    __slots__ = ("_credential", "_home", "_known", "_owner", "_rule", "_scope", "_tenant", "body", "content", "key")

    def __init__(self, home: IdempotencyMiddleware, rule: Rule, scope: Mapping[str, Any]) -> None:
        self._home = home
        self._rule = rule
        self._scope = scope
        self._tenant = ""
        # Whether it is known whose it is.
        self._known = False
        # Whose key it is, as the first part of the stored one.
        self._owner = ""
        # A digest of what the caller shows, if nobody says who it is.
        self._credential = b""
        self.key: str | None = None
        # The digest that is the key, if the content is.
        self.content = ""
        self.body = Spool()

    def read_key(self, values: tuple[bytes, ...]) -> None:
        """Find the client's key; there is none if the content is the key."""
        policy = self._rule.policy
        if policy.key == "content":
            return
        if not values:
            raise Problem(400, "key-required", "This request needs the header Idempotency-Key.")
        try:
            key = parse_key(values)
        except MalformedKey as error:
            raise Problem(400, "key-malformed", str(error)) from None
        if not 0 < len(key) <= MAX_KEY:
            raise Problem(400, "key-malformed", f"Idempotency-Key must have 1 to {MAX_KEY} characters.")
        # The usual pattern wants no more of what a header may be.
        if " " in key if policy.key_pattern is USUAL_KEY else not policy.pattern.fullmatch(key):
            raise Problem(400, "key-malformed", f"Idempotency-Key must fit the pattern {policy.pattern.pattern}")
        self.key = key

    async def recognise(self) -> None:
        """Find tenant and caller without asking anybody; a credential stands for whom an authenticator would name."""
        self._route()
        is_named = self._rule.policy.shared or await self._is_named()
        if not is_named and not self._shows_nothing() and self._home.authenticator is not None:
            self._owner = f"{self._credential.hex()}."
        self._known = True

    async def request_context(self) -> RequestContext:
        """Who asks, in which scope. If nobody authenticates the scope is made when somebody asks for it."""
        home = self._home
        if home.authenticator is None:
            self._route()
            may_be_named = home.principal_of is not None or "user" in self._scope
            is_named = self._rule.policy.shared or (may_be_named and await self._is_named())
            anonymous = not is_named and (self._shows_nothing() or self._has_cookie())
            self._known = True
            scope = partial(home.unproved, self._scope, self._rule.scope_name, self.key)
            return RequestContext(None, scope, None, anonymous)
        ctx, principal = await self._authenticate()
        self._known = True
        return RequestContext(ctx, ctx, principal)

    def _route(self) -> None:
        """The tenant, and whose key it is as long as nobody is named."""
        home, policy = self._home, self._rule.policy
        if home.authenticator is None and (policy.case_required or policy.starts is not None):
            raise RuntimeError(
                f"{self._rule.scope_name} needs a case or a run: give IdempotencyMiddleware authenticator="
            )
        if home.tenant_of is not None or not home.any_tenant:
            try:
                self._tenant = home.routed_tenant(self._scope)
            except ScopeError as error:
                raise problem_of(error) from error
        self._owner = "" if self.key is None else anonymous_owner(self.key)

    async def _is_named(self) -> bool:
        """Whether somebody says who asks."""
        caller = await name_caller(self._scope, self._home.principal_of)
        if caller:
            self._owner = f"{caller}."
        return bool(caller)

    def _shows_nothing(self) -> bool:
        """Whether there is not even a credential."""
        names = self._home.credential_names
        shown = [pair for pair in self._scope["headers"] if pair[0] in names]
        if shown:
            self._credential = self._home.fingerprints.of_credential(shown)
        return not shown

    def _has_cookie(self) -> bool:
        """Whether the caller may be known by a cookie, and the credential be that of an application."""
        return any(name == b"cookie" for name, _ in self._scope["headers"])

    async def _authenticate(self) -> tuple[ScopeContext, Principal | None]:
        home, policy = self._home, self._rule.policy
        assert home.authenticator is not None
        try:
            principal = await home.authenticator.authenticate(credentials(self._scope))
            routed = tenant_named(home.tenant_of, self._scope)
            if routed is None and principal is None and home.any_tenant:
                routed = ""
            case = None
            if home.case_of is not None and principal is not None:
                found = home.case_of(principal, self._scope)
                case = await found if isawaitable(found) else found
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
        except SameasError as error:
            raise problem_of(error) from error
        self._tenant = ctx.tenant_id
        # What is left of the dot cannot be typed right of it.
        if policy.shared:
            self._owner = "tenant."
        else:
            self._owner = "public." if principal is None else f"{principal.digest}."
        return ctx, principal

    def named(self) -> tuple[str, Namespace]:
        """The key under which this is kept, and its namespace; one of its own if nobody knows its key or whose it
        is."""
        if not self._known or (self.key is None and not self.content):
            return f"unclaimed-{uuid7.text()}", "client"
        if self.key is not None:
            return self._owner + self.key, "client"
        return f"{self._owner}content-{self.content}", "content"

    def unclaimed(self) -> Context:
        """What work is told about itself that is done without a claim: under the key that it would have had, so that
        its child keys are the same; under one of its own where its key is another request's."""
        key, namespace = self.named()
        identity = identity_of(self._rule.scope_name, key, tenant=self._tenant, namespace=namespace)
        # Nobody waits for it, and it asks for nothing that it has itself.
        place = self._home.engine.store.backend.place
        apart = self._credential.hex()
        return Context(Lease(identity, 0, ""), attempt=1, safe_until=inf, place=place, apart=apart, ended=True)

    async def begin(
        self, receive: Receive, request_context: RequestContext, options: dict[str, Any]
    ) -> ProcessingRecord | AsyncClaimHandle:
        """What is kept for this request, or the claim to run it."""
        scope, rule, body = self._scope, self._rule, self.body
        tenant, credential = self._tenant, self._credential
        content_type = encoding = declared = chunked = b""
        for name, value in scope["headers"]:
            if name not in _OF_BODY:
                continue
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
            # RFC 9112, 6.3: if two say how long it is, two may disagree about what was asked.
            raise Problem(400, "body-ambiguous", "Send Content-Length or Transfer-Encoding, not both.")
        try:
            await read_body(body, receive, limit=rule.policy.body_limit, declared=declared)
            path = f"//{host_of(scope).lower()}{scope['path']}" if rule.host else scope["path"]
            print_ = await self._home.fingerprints.of(
                (scope["method"], path, scope["query_string"], content_type),
                b"" if encoding == b"identity" else encoding,
                body,
                rule.policy,
                whose=(tenant, self._owner, credential),
            )
        except TooLarge as error:
            raise Problem(413, "body-too-large", f"The body has more than {error.limit} bytes.") from None
        except NotComparable as error:
            raise Problem(400, "body-malformed", str(error)) from None
        engine, prints = self._home.engine, self._home.fingerprints
        try:
            if self.key is None:
                # The fingerprint's digest of the whole is keyed with the secret, and as good a key as any. What is
                # compared is then the credential alone.
                self.content = print_.partition(" ")[0]
                print_ = prints.with_credential(self.content, credential) if credential else ""
            elif credential:
                print_ = prints.with_credential(print_, credential)
            key, namespace = self.named()
            begun = await engine.begin(
                key=key,
                namespace=namespace,
                tenant=tenant,
                request_fingerprint=print_,
                audit_of=partial(self._audit, request_context.ctx),
                **options,
            )
            if credential and isinstance(begun, AsyncClaimHandle):
                # When the record has expired, the key may come with another credential.
                begun.context.apart = credential.hex()
            return begun
        except KeyReused as error:
            # Shadow mode runs it all the same: what it does downstream is not the other request's.
            self._owner = sha256_hex(join(self._owner, print_)) + "."
            # What else differs is between another and the server.
            raise (_anothers() if CREDENTIAL in error.fields else problem_of(error)) from error
        except SameasError as error:
            raise problem_of(error) from error

    def _audit(self, ctx: ScopeContext | None) -> dict[str, Any]:
        """What a record says of where it was made: of a caller whom nobody authenticated, trace, invocation and
        key."""
        if ctx is not None:
            return msgspec.to_builtins(AuditMeta.created_in(ctx))  # type: ignore[no-any-return]
        hop = self._home.hop(self._scope)
        audit = {"trace_id": hop.trace.trace_id, "invocation_id": hop.invocation_id}
        if self.key is not None:
            audit["idempotency_key"] = self.key
        return audit


def _anothers() -> Problem:
    return Problem(
        422,
        "key-reused",
        "This key was used before with another credential, or with none, and nobody here knows whether it was the same "
        "caller; nothing was run. Use the credential of then to hear the answer, or a new key for a new request.",
        fields=[CREDENTIAL],
    )
