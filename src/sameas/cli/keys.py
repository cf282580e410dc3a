"""`sameas keys`: the records of the configured store: who holds what, what is done, what to forget."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from sameas.cli.errors import CliError, ExitCode
from sameas.cli.tables import print_table
from sameas.connections import open_async_store, open_store
from sameas.once.async_engine import AsyncEngine
from sameas.once.pruning import next_caller, prune_into, record_facts, time_of
from sameas.once.record import Accepted, Lease, Record, State, client_key
from sameas.once.store import Query, Selection, Store
from sameas.settings import hide_password, load_settings

_ID_SHOWN = 12
_PAGE = 500

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
    try:
        query = Query(
            scope=scope, tenant=tenant, tag=tag, state=State(state) if state else None, limit=limit, after=after
        )
    except ValueError as error:
        raise CliError(str(error), todo="Take it from the end of the page before", code=ExitCode.USAGE) from error
    with _store() as store:
        page = store.find(query)
    if json:
        for record in page.records:
            print(msgspec.json.encode(record_facts(record)).decode())
    else:
        rows = [
            [
                one.identity.key,
                one.identity.scope,
                one.state,
                str(one.status_code or ""),
                str(one.attempt),
                time_of(one.created_at),
                time_of(one.expires_at),
                one.identity.digest.hex()[:_ID_SHOWN],
            ]
            for one in page.records
        ]
        head = ("key", "scope", "state", "status", "attempt", "created (UTC)", "expires (UTC)", "id")
        print_table(head, rows, to=sys.stdout)
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
        print(msgspec.json.encode(record_facts(record)).decode())
        return
    for name, value in record_facts(record).items():
        print(f"{name:<14} {value}")
    print(f"{'next caller':<14} {next_caller(record, time_of)}")


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
def prune(
    *,
    batch: Annotated[int, typer.Option(min=1, help="Records deleted in one go.")] = 1000,
    archive: Annotated[
        Path | None, typer.Option(help="First append what is deleted to this file, one JSON object a line.")
    ] = None,
) -> None:
    """Delete the records whose time is over."""
    total = 0
    with _store() as store:
        if archive is not None:
            total = asyncio.run(_archive(archive, batch))
        else:
            while count := store.prune(batch):
                total += count
    print(f"pruned {total} records", file=sys.stderr)


async def _archive(archive: Path, batch: int) -> int:
    async with open_async_store(load_settings().store_url) as store:
        return await prune_into(archive, AsyncEngine(store), batch=batch)


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
    if not found:
        found = _find_client_key(store, key, scope=scope, tenant=tenant)
    exact = [record for record in found.values() if record.identity.key == key]
    records = exact or list(found.values())
    if not records:
        raise CliError(f"no record has a key that begins with {key!r}", todo="`sameas keys list` shows them")
    if len(records) > 1:
        places = ", ".join(f"{record.identity.key} in {record.identity.scope}" for record in records)
        raise CliError(f"{key!r} fits several records: {places}", todo="Type more of it, or give --scope")
    return records[0]


def _find_client_key(store: Store, key: str, *, scope: str | None, tenant: str | None) -> dict[bytes, Record]:
    """The records of a key that a client chose, whoever it was: stored keys begin with a digest of that."""
    found: dict[bytes, Record] = {}
    after = None
    while True:
        page = store.find(Query(scope=scope, tenant=tenant, limit=_PAGE, after=after))
        fitting = [record for record in page.records if client_key(record.identity.key) == key]
        found.update((record.identity.digest, record) for record in fitting)
        after = page.next
        if after is None:
            return found
