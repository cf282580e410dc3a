"""`sameas keys`: the records of the configured store: who holds what, what is done, what to forget."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec
import typer

from sameas.cli.errors import CliError, ExitCode
from sameas.cli.tables import print_table
from sameas.connections import open_store
from sameas.once.record import NEVER, Accepted, Lease, Record, State
from sameas.once.store import Query, Selection, Store
from sameas.settings import hide_password, load_settings

app = typer.Typer(help="Records of the configured store: list, explain, release, forget, prune.", no_args_is_help=True)
Key = Annotated[str, typer.Argument(help="A key, or the beginning of one.")]
Scope = Annotated[str | None, typer.Option(help="Only this scope, such as extraction.")]
Tenant = Annotated[str | None, typer.Option(help="Only this tenant.")]
Tag = Annotated[str | None, typer.Option(help="Only records with this tag.")]


@app.command("list")
def list_keys(
    *,
    scope: Scope = None,
    tenant: Tenant = None,
    tag: Tag = None,
    state: Annotated[Literal["held", "done", "failed"] | None, typer.Option(help="Only this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
    after: Annotated[str | None, typer.Option(help="The cursor that the page before ended with.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """The records, newest first."""
    query = Query(scope=scope, tenant=tenant, tag=tag, state=State(state) if state else None, limit=limit, after=after)
    with _store() as store:
        try:
            page = store.find(query)
        except ValueError as error:
            raise CliError(str(error), todo="Take it from the end of the page before", code=ExitCode.USAGE) from error
    if json:
        for record in page.records:
            print(msgspec.json.encode(_facts(record)).decode())
    else:
        rows = [
            [
                one.identity.key,
                one.identity.scope,
                one.state,
                str(one.attempt),
                _time(one.created_at),
                _time(one.expires_at),
            ]
            for one in page.records
        ]
        print_table(("key", "scope", "state", "attempt", "created (UTC)", "expires (UTC)"), rows, to=sys.stdout)
    if page.next is not None:
        print(f"more: --after {page.next}", file=sys.stderr)


@app.command()
def explain(
    key: Key,
    *,
    scope: Scope = None,
    tenant: Tenant = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Everything that is known of one record, and what the next caller will get."""
    with _store() as store:
        record = _find(store, key, scope=scope, tenant=tenant)
    if json:
        print(msgspec.json.encode(_facts(record)).decode())
        return
    for name, value in _facts(record).items():
        print(f"{name:<14} {value}")
    print(f"{'next caller':<14} {_next(record)}")


@app.command()
def release(key: Key, *, scope: Scope = None, tenant: Tenant = None) -> None:
    """Give back the claim of a worker that is known to be dead, without waiting for its lease."""
    with _store() as store:
        record = _find(store, key, scope=scope, tenant=tenant)
        if record.state is not State.HELD:
            raise CliError(f"{record.identity.key} is {record.state}, not held", todo="Only a held key can be released")
        answer = store.release(Lease(record.identity, record.fence, record.attempt_id))
    if not isinstance(answer, Accepted):
        raise CliError(f"{record.identity.key} changed meanwhile", todo="Look again", code=ExitCode.FAILED)
    print(f"released {record.identity.key}: the next caller runs it", file=sys.stderr)


@app.command()
def forget(
    key: Annotated[str | None, typer.Argument(help="A key, or the beginning of one.")] = None,
    *,
    scope: Scope = None,
    tenant: Tenant = None,
    tag: Tag = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before many are forgotten.")] = False,
) -> None:
    """Forget one record, or all of a scope, tenant or tag: the work is then done again. Its worker is fenced."""
    with _store() as store:
        if key is not None:
            record = _find(store, key, scope=scope, tenant=tenant)
            store.forget(record.identity)
            print(f"forgot {record.identity.key}", file=sys.stderr)
            return
        if scope is None and tenant is None and tag is None:
            raise CliError("nothing is named", todo="Give a key, --scope, --tenant or --tag", code=ExitCode.USAGE)
        if not yes and not typer.confirm("Forget all of these records?", err=True):
            raise typer.Exit(ExitCode.FAILED)
        count = store.forget_where(Selection(tenant=tenant, scope=scope, tag=tag))
        print(f"forgot {count} records", file=sys.stderr)


@app.command()
def prune(*, batch: Annotated[int, typer.Option(min=1, help="Records deleted in one go.")] = 1000) -> None:
    """Delete the records whose time is over."""
    total = 0
    with _store() as store:
        while count := store.prune(batch):
            total += count
    print(f"pruned {total} records", file=sys.stderr)


@contextmanager
def _store() -> Iterator[Store]:
    settings = load_settings()
    try:
        store = open_store(settings.store_url)
    except ValueError as error:
        where = hide_password(settings.store_url)
        raise CliError(f"SAMEAS_STORE: {where} cannot be opened", todo=str(error), code=ExitCode.USAGE) from error
    with store:
        yield store


def _find(store: Store, key: str, *, scope: str | None, tenant: str | None) -> Record:
    """The one record whose key begins so."""
    found: dict[bytes, Record] = {}
    for prefix in (key, f"sha256-{key}"):
        page = store.find(Query(key_prefix=prefix, scope=scope, tenant=tenant, limit=10))
        found.update((record.identity.digest, record) for record in page.records)
    exact = [record for record in found.values() if record.identity.key == key]
    records = exact or list(found.values())
    if not records:
        raise CliError(f"no record has a key that begins with {key!r}", todo="`sameas keys list` shows them")
    if len(records) > 1:
        places = ", ".join(f"{record.identity.key} in {record.identity.scope}" for record in records)
        raise CliError(f"{key!r} fits several records: {places}", todo="Type more of it, or give --scope")
    return records[0]


def _facts(record: Record) -> dict[str, object]:
    return {
        "key": record.identity.key,
        "scope": record.identity.scope,
        "tenant": record.identity.tenant,
        "state": str(record.state),
        "attempt": record.attempt,
        "fence": record.fence,
        "owner": record.about.owner,
        "created": _time(record.created_at),
        "lease until": _time(record.lease_until),
        "completed": _time(record.completed_at) if record.completed_at is not None else "",
        "expires": _time(record.expires_at),
        "tags": ", ".join(record.about.tags),
        "route": f"{record.about.method} {record.about.route}".strip(),
        "fingerprint": record.fingerprint,
    }


def _next(record: Record) -> str:
    match record.state:
        case State.DONE:
            return "gets this result again, nothing is run"
        case State.FAILED:
            return "gets this failure again until it expires"
        case State.HELD:
            return f"waits for the holder, and takes over when its lease ends at {_time(record.lease_until)}"


def _time(micros: int) -> str:
    if micros >= NEVER:
        return "never"
    return datetime.fromtimestamp(micros / 1_000_000, UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
