"""Tenants, their users, services and cases, and who is a member of which case.

Rule: whoever acts is named by a ScopeContext, and everything is done in that context's tenant: there is no way to say
another one. A tenant's schema is derived from its id and never looked up. Each tenant has exactly one system case, made
with the tenant; it is not among the cases that people can name, being in it makes nobody an admin, and external counsel
are never in it. Rows keep `audit_meta`; who created a row is written once.

The tables are in SQLite or PostgreSQL; statements are in `sql/tenancy.sql`. Blocking: asyncio code calls it in a
thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from sameas.connections import open_database
from sameas.databases import Database, Row, RowRefused, Session, Statements
from sameas.identity.canonical import instant
from sameas.identity.ids import is_uuid7, uuid7
from sameas.identity.normalize import Credentials, normalize_context
from sameas.identity.scope import MAX_ID, AuditMeta, Case, Principal, ScopeContext, ScopeError, check_id, check_text
from sameas.tenancy.authenticator import Authenticator, Unauthorized

UserKind: TypeAlias = Literal["internal", "external_counsel"]
CaseRole: TypeAlias = Literal["owner", "member", "viewer"]

# What people read; no address, no lookup.
SYSTEM_CASE_NAME = "general"
ADMIN_ROLE = "tenant-admin"
# Whoever has it works in their cases and nowhere else; it is given by the directory, and no credential takes it away.
EXTERNAL_COUNSEL = "external_counsel"


class Tenant(msgspec.Struct, frozen=True):
    tenant_id: str
    tenant_schema: str
    name: str
    created_at: str
    suspended_at: str | None


class User(msgspec.Struct, frozen=True):
    user_id: str
    kind: UserKind
    name: str
    created_at: str
    disabled_at: str | None


class Service(msgspec.Struct, frozen=True):
    service_id: str
    created_at: str
    disabled_at: str | None


class CaseEntry(msgspec.Struct, frozen=True):
    case_id: str
    name: str
    created_at: str


class Member(msgspec.Struct, frozen=True):
    user_id: str
    role: CaseRole
    created_at: str


def open_tables(url: str) -> Database:
    """The database of tenants; its tables are made where they are not there. Raises StoreMisconfigured for a URL of no
    database or one that cannot be used, StoreUnavailable if it cannot be reached."""
    return open_database(url, Statements.of("sameas.tenancy", "tenancy"))


def utc_now() -> datetime:
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """A time as the tables have it: UTC, so that earlier sorts before later."""
    if moment.tzinfo is None:
        raise ValueError("a time needs its zone")
    return instant(moment)


class TenantDirectory:
    """The directory in a database of `open_tables`. Every call raises StoreUnavailable or StoreMisconfigured if the
    database cannot be asked, and those that get a hop ScopeError if its tenant is not here."""

    def __init__(self, database: Database, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._clock = clock

    def bootstrap(self, name: str, *, service_id: str) -> Tenant:
        """A new tenant and its system case. Raises ScopeError for a name that cannot be."""
        check_text("name", name)
        ctx = normalize_context(service_id=service_id, tenant_id=str(uuid7()))
        system_case_id, row = str(uuid7()), self._new_row(ctx)
        schema = tenant_schema(ctx.tenant_id)
        with self._database.transaction() as session:
            session.run("add_tenant", tenant_schema=schema, name=name, system_case_id=system_case_id, **row)
            session.run("add_case", case_id=system_case_id, kind="system", name=SYSTEM_CASE_NAME, **row)
        return Tenant(ctx.tenant_id, schema, name, row["now"], None)

    def tenants(self) -> list[Tenant]:
        """All tenants."""
        with self._database.reading() as session:
            return [Tenant(*row) for row in session.run("tenants")]

    def tenant(self, tenant_id: str) -> Tenant:
        """A tenant by its id. Raises ScopeError if there is none."""
        _check_known(tenant=tenant_id)
        with self._database.reading() as session:
            return Tenant(*_found(session.one("tenant", tenant_id=tenant_id), "tenant"))

    def suspend(self, ctx: ScopeContext) -> None:
        """From now on every credential of the tenant is refused. Raises ScopeError if there is none."""
        self._change(ctx, "tenant_audit", "suspend_tenant", now=stamp(self._clock()))

    def resume(self, ctx: ScopeContext) -> None:
        """Credentials of the tenant are accepted again. Raises ScopeError if there is none."""
        self._change(ctx, "tenant_audit", "resume_tenant")

    def system_case(self, ctx: ScopeContext) -> Case:
        """The case of tenant-wide work inside the house. No request can name it. Raises ScopeError if there is no such
        tenant."""
        with self._database.reading() as session:
            (case_id,) = _found(session.one("system_case_id", tenant_id=ctx.tenant_id), "tenant")
        return Case(case_id=case_id, tenant_id=ctx.tenant_id, is_system=True)

    def add_user(
        self, ctx: ScopeContext, name: str, *, user_id: str | None = None, kind: UserKind = "internal"
    ) -> User:
        """A new user. Internal ones become members of the system case, external counsel never do. Raises ScopeError if
        there is one with this id, and for a name or id that cannot be."""
        check_text("name", name)
        check_id("user_id", user_id)
        made, row = user_id or str(uuid7()), self._new_row(ctx)
        with self._adding(ctx, "user") as session:
            session.run("add_user", user_id=made, kind=kind, name=name, **row)
            if kind == "internal":
                (system_case_id,) = _found(session.one("system_case_id", tenant_id=ctx.tenant_id), "tenant")
                self._put_member(session, ctx, system_case_id, "system", made, kind, "member")
        return User(made, kind, name, row["now"], None)

    def users(self, ctx: ScopeContext) -> list[User]:
        """The users of the hop's tenant."""
        with self._database.reading() as session:
            return [User(*row) for row in session.run("users", tenant_id=ctx.tenant_id)]

    def disable_user(self, ctx: ScopeContext, user_id: str) -> None:
        """From now on the user is refused, with whatever credential. Raises ScopeError if there is none."""
        self._change(ctx, "user", "disable_user", user_id=user_id, now=stamp(self._clock()))

    def add_service(self, ctx: ScopeContext, service_id: str) -> Service:
        """A new service. Raises ScopeError if there is one of this name, and for a name that cannot be."""
        check_text("service_id", service_id)
        row = self._new_row(ctx)
        with self._adding(ctx, "service") as session:
            session.run("add_service", service_id=service_id, **row)
        return Service(service_id, row["now"], None)

    def services(self, ctx: ScopeContext) -> list[Service]:
        """The services of the hop's tenant."""
        with self._database.reading() as session:
            return [Service(*row) for row in session.run("services", tenant_id=ctx.tenant_id)]

    def disable_service(self, ctx: ScopeContext, service_id: str) -> None:
        """From now on the service is refused, with whatever credential. Raises ScopeError if there is none."""
        self._change(ctx, "service", "disable_service", service_id=service_id, now=stamp(self._clock()))

    def create_case(self, ctx: ScopeContext, name: str) -> CaseEntry:
        """A new case, which its user owns, if a user makes it. Its name is free: another case may have the same. Raises
        ScopeError for a name that cannot be, and if the hop's user is not known."""
        check_text("name", name)
        case_id, row = str(uuid7()), self._new_row(ctx)
        with self._adding(ctx, "case") as session:
            session.run("add_case", case_id=case_id, kind="business", name=name, **row)
            if ctx.user_id is not None:
                kind = _found(session.one("user", tenant_id=ctx.tenant_id, user_id=ctx.user_id), "user")[1]
                self._put_member(session, ctx, case_id, "business", ctx.user_id, kind, "owner")
        return CaseEntry(case_id, name, row["now"])

    def cases(self, ctx: ScopeContext) -> list[CaseEntry]:
        """The cases of the hop's user; to a service, all of the tenant's."""
        with self._database.reading() as session:
            if ctx.user_id is None:
                rows = session.run("cases", tenant_id=ctx.tenant_id)
            else:
                rows = session.run("cases_of_user", tenant_id=ctx.tenant_id, user_id=ctx.user_id)
            return [CaseEntry(*row) for row in rows]

    def resolve_case(self, principal: Principal, case_id: str) -> Case:
        """The case that a request names, for a principal who may work in it: a member, or a service of the tenant.

        A case of another tenant, the system case, a case without the user and one that never was are refused alike; so
        is everybody whose user, service or tenant was ended, though the credential may live on.

        Raises ScopeError for all of them.
        """
        tenant_id = principal.tenant_id
        with self._database.reading() as session:
            known = is_uuid7(case_id) and session.one("case", tenant_id=tenant_id, case_id=case_id)
            if known and principal.user_id is not None:
                known = session.one("member", tenant_id=tenant_id, case_id=case_id, user_id=principal.user_id)
            ended = was_ended(session, principal)
        if not known or ended:
            raise ScopeError("there is no such case", code="case-unknown", status=403)
        return Case(case_id=case_id, tenant_id=tenant_id)

    def put_member(self, ctx: ScopeContext, case_id: str, user_id: str, *, role: CaseRole = "member") -> None:
        """Make a user a member of a case, or change the role. Raises ScopeError if there is no such user or case."""
        _check_known(user=user_id, case=case_id)
        with self._database.transaction() as session:
            kind = _found(session.one("user", tenant_id=ctx.tenant_id, user_id=user_id), "user")[1]
            _found(session.one("case", tenant_id=ctx.tenant_id, case_id=case_id), "case")
            self._put_member(session, ctx, case_id, "business", user_id, kind, role)

    def put_member_of_system_case(self, ctx: ScopeContext, user_id: str, *, role: CaseRole = "member") -> None:
        """Make an internal user a member of the system case. External counsel are refused here and by the table. Raises
        ScopeError for them, and if there is no such user."""
        _check_known(user=user_id)
        with self._database.transaction() as session:
            kind = _found(session.one("user", tenant_id=ctx.tenant_id, user_id=user_id), "user")[1]
            if kind != "internal":
                raise ScopeError(
                    "external counsel are never members of the system case", code="external-counsel", status=403
                )
            (case_id,) = _found(session.one("system_case_id", tenant_id=ctx.tenant_id), "tenant")
            self._put_member(session, ctx, case_id, "system", user_id, kind, role)

    def remove_member(self, ctx: ScopeContext, case_id: str, user_id: str) -> None:
        """Take a user out of a case. Raises ScopeError if it is not a member."""
        _check_known(case=case_id, user=user_id)
        with self._database.transaction() as session:
            session.run("remove_member", tenant_id=ctx.tenant_id, case_id=case_id, user_id=user_id)
            if not session.changed:
                raise _unknown("member")

    def members(self, ctx: ScopeContext, case: Case) -> list[Member]:
        """Who is in a case that was resolved, or in the system case. Raises ScopeError if it is another tenant's."""
        if case.tenant_id != ctx.tenant_id or not is_uuid7(case.case_id):
            raise _unknown("case")
        with self._database.reading() as session:
            return [Member(*row) for row in session.run("members", tenant_id=ctx.tenant_id, case_id=case.case_id)]

    @contextmanager
    def _adding(self, ctx: ScopeContext, what: str) -> Iterator[Session]:
        try:
            with self._database.transaction() as session:
                _found(session.one("tenant", tenant_id=ctx.tenant_id), "tenant")
                yield session
        except RowRefused:
            raise ScopeError(f"there is such a {what} already", code=f"{what}-exists", status=409) from None

    def _put_member(
        self, session: Session, ctx: ScopeContext, case_id: str, case_kind: str, user_id: str, user_kind: str, role: str
    ) -> None:
        row = self._new_row(ctx)
        known = session.one("member", tenant_id=ctx.tenant_id, case_id=case_id, user_id=user_id)
        if known is not None:
            row["audit_meta"] = AuditMeta.from_json(known[-1]).written_by(ctx).to_json()
        session.run(
            "put_member", case_id=case_id, case_kind=case_kind, user_id=user_id, user_kind=user_kind, role=role, **row
        )

    def _change(self, ctx: ScopeContext, read: str, write: str, **values: str) -> None:
        """Change a row and its audit_meta, which is the last column that `read` gives."""
        what = {name: value for name, value in values.items() if name != "now"}
        _check_known(**{name.removesuffix("_id"): value for name, value in what.items()})
        with self._database.transaction() as session:
            known = _found(session.one(read, tenant_id=ctx.tenant_id, **what), read.partition("_")[0])
            audit = AuditMeta.from_json(known[-1]).written_by(ctx).to_json()
            session.run(write, tenant_id=ctx.tenant_id, audit_meta=audit, **values)

    def _new_row(self, ctx: ScopeContext) -> dict[str, str]:
        return {
            "tenant_id": ctx.tenant_id,
            "now": stamp(self._clock()),
            "audit_meta": AuditMeta.created_in(ctx).to_json(),
        }


def tenant_schema(tenant_id: str) -> str:
    """The name of a tenant's schema: derived from the id, and no way back."""
    check_id("tenant_id", tenant_id)
    return "t_" + tenant_id.replace("-", "")


def require_admin(principal: Principal) -> None:
    """Refuse whoever's credential has no admin role. Membership in a case, the system case too, is not asked. Raises
    ScopeError."""
    if ADMIN_ROLE not in principal.roles:
        raise ScopeError(f"this needs a credential with the role {ADMIN_ROLE}", code="admin-required", status=403)


def was_ended(session: Session, principal: Principal) -> bool:
    """Whether the directory knows the principal's user, service or tenant as disabled or suspended."""
    kind = "user" if principal.user_id is not None else "service"
    ended = session.one(
        f"{kind}_ended", tenant_id=principal.tenant_id, **{f"{kind}_id": getattr(principal, f"{kind}_id")}
    )
    if ended is not None:
        return ended[0] is not None
    tenant = session.one("tenant", tenant_id=principal.tenant_id)
    return tenant is not None and tenant[-1] is not None


def _check_known(**named: str) -> None:
    """Refuse a name that nothing can have, as unknown: drivers have errors of their own for NUL and lone surrogates."""
    for what, value in named.items():
        if len(value) > MAX_ID or not value.isprintable():
            raise _unknown(what)


def _found(row: Row | None, what: str) -> Row:
    if row is None:
        raise _unknown(what)
    return row


def _unknown(what: str) -> ScopeError:
    return ScopeError(f"there is no such {what}", code=f"{what}-unknown", status=403)


def roles_with_kind(roles: tuple[str, ...], kind: str | None) -> tuple[str, ...]:
    """The roles of a credential, with what its user is."""
    return (*roles, EXTERNAL_COUNSEL) if kind == EXTERNAL_COUNSEL and EXTERNAL_COUNSEL not in roles else roles


class EnrolledAuthenticator:
    """An authenticator, and after it the tables of `open_tables`: for tokens that somebody else issues and nobody here
    can take back.

    Rule: a token says who it is; the directory says whether they still may come in. Asked at every request, so that a
    user who was disabled, or a tenant that was suspended, is out at the next one although the token is good for another
    hour.
    """

    def __init__(self, authenticator: Authenticator, *, database: Database) -> None:
        self._authenticator = authenticator
        self._database = database

    async def authenticate(self, credentials: Credentials | None) -> Principal | None:
        """The principal, if the directory knows it too; None if nothing was shown. Raises Unauthorized,
        StoreUnavailable, and what the other authenticator raises."""
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
