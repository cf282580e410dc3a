"""The scope of a hop: who does what for whom, as source document 004 has it.

Rule: a scope is built by `sameas.identity.normalize` and by nothing else, and checks itself when it is made. A hop is
a user's (user_id, no service_id), a service's (service_id, no user_id), or belongs to an endpoint that says it is
public (neither). What breaks a rule is a `ScopeError`; no id is ever made up, corrected or taken from another one.

Ids are UUIDv7 in their one spelling. With `any_tenant`, which is how the engine is used as a library, business ids may
be any printable text, and the tenant may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar, Token
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec.structs import astuple, replace

from sameas.identity.canonical import join, sha256_hex
from sameas.identity.errors import SameasError
from sameas.identity.ids import TraceContext, is_trace_id, is_uuid7

MAX_ID = 255
MAX_SCOPE_NAME = 255
# Headers that carry a key allow less; keys of tasks and of content have to fit as well.
MAX_KEY = 1_024

_BUSINESS_IDS = ("user_id", "case_id", "collection_id", "workflow_id")
_RUN_IDS = ("workflow_run_id", "ingestion_run_id")


class ScopeError(SameasError, ValueError):
    """A request or task does not fit the scope contract; `status` is HTTP's number for it, `code` its stable name, and
    `challenge` what WWW-Authenticate says, which no 401 may be without."""

    def __init__(
        self, message: str, *, code: str = "scope-refused", status: int = 400, challenge: str = "Bearer"
    ) -> None:
        self.code = code
        self.status = status
        self.challenge = challenge if status == 401 else ""
        super().__init__(message)


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who was authenticated: a user or a service of a tenant. `credential_id` names the credential, never holds it."""

    tenant_id: str
    user_id: str | None = None
    service_id: str | None = None
    credential_id: str = ""
    roles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.user_id is None) == (self.service_id is None):
            raise ScopeError(
                "a principal is either a user or a service: give exactly one of user_id and service_id",
                code="principal-invalid",
                status=401,
            )
        for name in ("user_id", "service_id"):
            check_text(name, getattr(self, name))
        # Both come out of tokens, and go into logs and tables.
        check_text("credential_id", self.credential_id or None)
        for role in self.roles:
            check_text("role", role)

    @property
    def digest(self) -> str:
        """What keeps the keys of this principal apart from those of others in the same tenant and scope."""
        kind, who = ("user", self.user_id) if self.user_id is not None else ("service", self.service_id)
        return sha256_hex(join(kind, who or ""))


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A case as the directory resolved it. Nothing outside gets to name the system case."""

    case_id: str
    tenant_id: str
    is_system: bool = False


class ScopeContext(msgspec.Struct, frozen=True, kw_only=True):
    """The ids of one hop. Every rule of the contract holds for as long as the object lives."""

    tenant_id: str
    trace_id: str
    invocation_id: str
    trace: TraceContext
    user_id: str | None = None
    service_id: str | None = None
    case_id: str | None = None
    collection_id: str | None = None
    workflow_id: str | None = None
    workflow_run_id: str | None = None
    ingestion_run_id: str | None = None
    idempotency_scope_name: str | None = None
    idempotency_key: str | None = None
    is_public: bool = False
    any_tenant: bool = False

    def __post_init__(self) -> None:
        check_tenant(self.tenant_id, any_tenant=self.any_tenant)
        # Most hops have few of them, and every request is a hop.
        for name in _BUSINESS_IDS:
            if (value := getattr(self, name)) is not None:
                check_id(name, value, any_text=self.any_tenant)
        for name in _RUN_IDS:
            if (value := getattr(self, name)) is not None:
                check_id(name, value)
        check_id("invocation_id", self.invocation_id or "")
        check_text("service_id", self.service_id)
        if self.trace.trace_id != self.trace_id or not is_trace_id(self.trace_id or ""):
            raise ScopeError("trace_id must be the W3C trace id of the hop's trace", code="trace-id-invalid")
        if self.user_id is not None and self.service_id is not None:
            raise ScopeError(
                "a hop is a user's or a service's: service_id must be absent where user_id is given; name the user who "
                "started it all as initiated_by_user_id in audit_meta",
                code="principal-ambiguous",
            )
        if self.user_id is None and self.service_id is None and not self.is_public:
            raise ScopeError(
                "nobody is authenticated and the endpoint does not say that it is public",
                code="unauthenticated",
                status=401,
            )
        self._check_idempotency()

    def _check_idempotency(self) -> None:
        name, key = self.idempotency_scope_name, self.idempotency_key
        if name is not None:
            check_scope_name(name)
        if key is not None:
            check_text("idempotency_key", key, longest=MAX_KEY)
            if name is None:
                raise ScopeError("an idempotency key needs the name of its scope", code="idempotency-scope-required")

    def __repr__(self) -> str:
        return _without_key(self)

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [*_shown(self)]

    def with_key(self, *, scope_name: str, key: str | None = None) -> ScopeContext:
        """The same hop, with the name of its idempotency scope and its key."""
        return replace(self, idempotency_scope_name=scope_name, idempotency_key=key)

    def trace_headers(self) -> dict[str, str]:
        """The headers of one call to another service; ask for them anew for each call."""
        return self.trace.headers()


class AuditMeta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The `audit_meta` of a stored thing: a JSON column. Owner and trigger are two things and never stand in."""

    trace_id: str
    invocation_id: str
    workflow_run_id: str | None = None
    ingestion_run_id: str | None = None
    idempotency_key: str | None = None
    created_by_user_id: str | None = None
    initiated_by_user_id: str | None = None
    last_hop_service_id: str | None = None

    @classmethod
    def created_in(
        cls, ctx: ScopeContext, *, created_by_user_id: str | None = None, initiated_by_user_id: str | None = None
    ) -> AuditMeta:
        """For a thing made in this hop. In a user's hop the owner is that user unless another is named, and the cause
        is that user; in a service's hop both are what the caller knows of them."""
        return _written(ctx, created_by_user_id or ctx.user_id, initiated_by_user_id)

    def written_by(self, ctx: ScopeContext, *, initiated_by_user_id: str | None = None) -> AuditMeta:
        """After this hop wrote the thing: all is the hop's, the owner stays who it was."""
        return _written(ctx, self.created_by_user_id, initiated_by_user_id)

    def __repr__(self) -> str:
        return _without_key(self)

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [*_shown(self)]

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> AuditMeta:
        """What was stored; members that a later version added are passed over."""
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ScopeError(f"this is no audit_meta: {error}", code="audit-meta-invalid") from None


class CurrentScope:
    """The scope of the hop that runs here, set by the middleware and by the task; what runs inside the hop shares it,
    invocation_id and all. It may be set as a function that makes it: what nobody asks for costs nothing."""

    def __init__(self) -> None:
        self._set: ContextVar[ScopeContext | Callable[[], ScopeContext | None] | None] = ContextVar(
            "sameas_scope", default=None
        )

    def get(self) -> ScopeContext | None:
        scope = self._set.get()
        return scope if scope is None or isinstance(scope, ScopeContext) else scope()

    def set(self, scope: ScopeContext | Callable[[], ScopeContext | None]) -> Token[Any]:
        return self._set.set(scope)

    def reset(self, token: Token[Any]) -> None:
        self._set.reset(token)


current_scope: Final = CurrentScope()
# Who was authenticated at the door of this hop, for those who ask the directory; None if nobody was.
current_principal: ContextVar[Principal | None] = ContextVar("sameas_principal", default=None)


def check_tenant(tenant_id: str, *, any_tenant: bool = False) -> None:
    """Refuse what is not a tenant id. For the library any text is one, and no text stands for the one tenant."""
    if any_tenant:
        check_text("tenant_id", tenant_id or None)
    elif not tenant_id:
        raise ScopeError("tenant_id is required", code="tenant-required")
    else:
        check_id("tenant_id", tenant_id)


def check_id(name: str, value: str | None, *, any_text: bool = False) -> None:
    """Refuse an id that is there and is not a UUIDv7, or where any text may be, is not text to be printed."""
    if any_text:
        check_text(name, value)
    elif value is not None and not is_uuid7(value):
        raise ScopeError(f"{name} must be a UUIDv7 in lower case with hyphens", code=f"{_dashed(name)}-invalid")


def check_text(name: str, value: str | None, *, longest: int = MAX_ID) -> None:
    """Refuse an id that is no text, empty, over-long, or has characters that do not print."""
    if value is not None and not (isinstance(value, str) and 0 < len(value) <= longest and value.isprintable()):
        raise ScopeError(
            f"{name} must be 1 to {longest} characters that can be printed", code=f"{_dashed(name)}-invalid"
        )


@lru_cache(maxsize=1_024)
def check_scope_name(name: str) -> None:
    """Refuse a scope name that is no stable name: a URL or a path changes with the deployment."""
    check_text("idempotency_scope_name", name, longest=MAX_SCOPE_NAME)
    if name.startswith("/") or "://" in name or "?" in name:
        raise ScopeError(
            "idempotency_scope_name must be a stable name such as create_document, not a URL",
            code="idempotency-scope-name-invalid",
        )


def _written(ctx: ScopeContext, owner: str | None, initiated_by_user_id: str | None) -> AuditMeta:
    return AuditMeta(
        trace_id=ctx.trace_id,
        invocation_id=ctx.invocation_id,
        workflow_run_id=ctx.workflow_run_id,
        ingestion_run_id=ctx.ingestion_run_id,
        idempotency_key=ctx.idempotency_key,
        created_by_user_id=owner,
        initiated_by_user_id=_cause(ctx, initiated_by_user_id),
        last_hop_service_id=ctx.service_id,
    )


def _cause(ctx: ScopeContext, given: str | None) -> str | None:
    if ctx.user_id is not None and given is not None and given != ctx.user_id:
        raise ScopeError(
            "in a user's hop initiated_by_user_id is that user and cannot be another",
            code="initiated-by-user-id-mismatch",
        )
    return ctx.user_id or given


def _without_key(struct: msgspec.Struct) -> str:
    return f"{type(struct).__name__}({', '.join(f'{name}={value!r}' for name, value in _shown(struct))})"


def _shown(struct: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    # Keys that clients choose may say more than they should: they are for the store, not for a log.
    for name, value in zip(struct.__struct_fields__, astuple(struct), strict=True):
        if value is not None and value is not False:
            yield name, "***" if name == "idempotency_key" else value


def _dashed(name: str) -> str:
    return name.replace("_", "-")
