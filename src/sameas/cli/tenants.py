"""`sameas tenants`: tenants, their users, services, cases and API keys, in the configured database.

Whoever can open the database may do everything here: it is the operator's tool, and rows say that it wrote them. Keys
are made with the secret in SAMEAS_API_KEY_SECRET, where the service has one; it is never an argument, which others see.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec
import typer

from sameas.cli.errors import CliError
from sameas.cli.tables import print_table
from sameas.databases import Database
from sameas.identity.normalize import normalize_context
from sameas.identity.scope import ScopeContext, ScopeError
from sameas.settings import api_key_secret, load_settings
from sameas.tenancy.api_keys import ApiKeys
from sameas.tenancy.directory import CaseRole, TenantDirectory, UserKind, open_tables

SERVICE_ID = "sameas-cli"

app = typer.Typer(help="Tenants, their users, services, cases and API keys.", no_args_is_help=True)
users = typer.Typer(help="Users of a tenant: add, list, disable.", no_args_is_help=True)
services = typer.Typer(help="Services that act in a tenant: add, list, disable.", no_args_is_help=True)
cases = typer.Typer(help="Cases of a tenant: create, list, put and remove members.", no_args_is_help=True)
keys = typer.Typer(help="API keys of a tenant: create, list, revoke.", no_args_is_help=True)
for group, its_name in ((users, "users"), (services, "services"), (cases, "cases"), (keys, "keys")):
    app.add_typer(group, name=its_name)

TenantId = Annotated[str, typer.Argument(metavar="TENANT", help="The id of a tenant.")]
UserId = Annotated[str, typer.Argument(metavar="USER", help="The id of a user.")]
ServiceId = Annotated[str, typer.Argument(metavar="SERVICE", help="The name of a service, such as celery-worker.")]
CaseId = Annotated[str, typer.Argument(metavar="CASE", help="The id of a case.")]
KeyId = Annotated[str, typer.Argument(metavar="KEY", help="The id of a key: what follows sameas_ in it.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="What people call it.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


@app.command("create")
def create_tenant(name: Name) -> None:
    """A new tenant and its system case; prints the tenant's id."""
    with _directory() as directory:
        print(directory.bootstrap(name, service_id=SERVICE_ID).tenant_id)


@app.command("list")
def list_tenants(*, json: Json = False) -> None:
    """All tenants, oldest first."""
    with _directory() as directory:
        _print(("tenant_id", "name", "tenant_schema", "created_at", "suspended_at"), directory.tenants(), json=json)


@app.command()
def suspend(tenant: TenantId) -> None:
    """Refuse every credential of a tenant from its next request on."""
    with _directory() as directory:
        directory.suspend(_scope(tenant))


@app.command()
def resume(tenant: TenantId) -> None:
    """Accept the credentials of a tenant again."""
    with _directory() as directory:
        directory.resume(_scope(tenant))


@users.command("add")
def add_user(
    tenant: TenantId,
    name: Name,
    *,
    external_counsel: Annotated[bool, typer.Option("--external-counsel", help="Never in the system case.")] = False,
    user: Annotated[str | None, typer.Option(help="The id that tokens have for the user.")] = None,
) -> None:
    """A new user of a tenant; prints the user's id."""
    kind: UserKind = "external_counsel" if external_counsel else "internal"
    with _directory() as directory:
        print(directory.add_user(_scope(tenant), name, user_id=user, kind=kind).user_id)


@users.command("list")
def list_users(tenant: TenantId, *, json: Json = False) -> None:
    """The users of a tenant, oldest first."""
    with _directory() as directory:
        _print(("user_id", "name", "kind", "created_at", "disabled_at"), directory.users(_scope(tenant)), json=json)


@users.command("disable")
def disable_user(tenant: TenantId, user: UserId) -> None:
    """Refuse a user from the next request on."""
    with _directory() as directory:
        directory.disable_user(_scope(tenant), user)


@services.command("add")
def add_service(tenant: TenantId, service: ServiceId) -> None:
    """Let a service act in a tenant."""
    with _directory() as directory:
        directory.add_service(_scope(tenant), service)


@services.command("list")
def list_services(tenant: TenantId, *, json: Json = False) -> None:
    """The services of a tenant, by name."""
    with _directory() as directory:
        _print(("service_id", "created_at", "disabled_at"), directory.services(_scope(tenant)), json=json)


@services.command("disable")
def disable_service(tenant: TenantId, service: ServiceId) -> None:
    """Refuse a service from the next request on."""
    with _directory() as directory:
        directory.disable_service(_scope(tenant), service)


@cases.command("create")
def create_case(tenant: TenantId, name: Name) -> None:
    """A new case, without members; prints its id."""
    with _directory() as directory:
        print(directory.create_case(_scope(tenant), name).case_id)


@cases.command("list")
def list_cases(tenant: TenantId, *, json: Json = False) -> None:
    """The cases of a tenant, oldest first."""
    with _directory() as directory:
        _print(("case_id", "name", "created_at"), directory.cases(_scope(tenant)), json=json)


@cases.command("put")
def put_member(
    tenant: TenantId,
    case: CaseId,
    user: UserId,
    *,
    role: Annotated[CaseRole, typer.Option(help="What the user may do.")] = "member",
) -> None:
    """Make a user a member of a case, or change the role."""
    with _directory() as directory:
        directory.put_member(_scope(tenant), case, user, role=role)


@cases.command("remove")
def remove_member(tenant: TenantId, case: CaseId, user: UserId) -> None:
    """Take a user out of a case."""
    with _directory() as directory:
        directory.remove_member(_scope(tenant), case, user)


@keys.command("create")
def create_key(
    tenant: TenantId,
    name: Name,
    *,
    user: Annotated[str | None, typer.Option(help="The user whose key it is.")] = None,
    service: Annotated[str | None, typer.Option(help="Or the service.")] = None,
    role: Annotated[list[str] | None, typer.Option(help="A role, such as tenant-admin; may be repeated.")] = None,
    days: Annotated[int | None, typer.Option(min=1, max=3650, help="For how long; for ever without it.")] = None,
) -> None:
    """A new API key; it is printed now and never again."""
    expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
    secret = api_key_secret()
    with _database() as database:
        made = ApiKeys(database, secret=secret).create(
            _scope(tenant), name, user_id=user, service_id=service, roles=tuple(role or ()), expires_at=expires_at
        )
    print(made.token)
    print(f"the id of this key is {made.key_id}; the key itself is not kept: store it now", file=sys.stderr)


@keys.command("list")
def list_keys(tenant: TenantId, *, json: Json = False) -> None:
    """The keys of a tenant, oldest first."""
    shown = ("key_id", "name", "user_id", "service_id", "roles", "expires_at", "revoked_at", "last_used_at")
    with _database() as database:
        _print(shown, ApiKeys(database).keys(_scope(tenant)), json=json)


@keys.command("revoke")
def revoke_key(tenant: TenantId, key: KeyId) -> None:
    """End a key: the next request that shows it is refused."""
    with _database() as database:
        ApiKeys(database).revoke(_scope(tenant), key)


@contextmanager
def _database() -> Iterator[Database]:
    database = open_tables(load_settings().tenants_url)
    try:
        yield database
    except ScopeError as error:
        raise CliError(str(error), todo="`sameas tenants list` and its sisters show what there is") from error
    finally:
        database.close()


@contextmanager
def _directory() -> Iterator[TenantDirectory]:
    with _database() as database:
        yield TenantDirectory(database)


def _scope(tenant: str) -> ScopeContext:
    return normalize_context(service_id=SERVICE_ID, tenant_id=tenant)


def _print(head: Sequence[str], entries: Sequence[msgspec.Struct], *, json: bool) -> None:
    if json:
        for entry in entries:
            print(msgspec.json.encode(entry).decode())
        return
    print_table(head, [[_cell(getattr(entry, name)) for name in head] for entry in entries], to=sys.stdout)


def _cell(value: object) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value or "")
