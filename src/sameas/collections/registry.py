"""The collections of a tenant: created, listed, opened for whoever may, removed.

Rule: a collection is a boundary of permissions. Whoever has no role in it is told that it is not there; whoever has
too small a role is refused. `everything` stands for a caller who owns all collections of the tenant: its admin, or the
person at a command line.

Blocking: asyncio code calls it in a thread.
"""

from __future__ import annotations

import builtins
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from sameas.collections.collection import Collection
from sameas.collections.errors import CollectionError, CollectionExistsError, CollectionNotFoundError, RoleRequiredError
from sameas.collections.model import CollectionInfo, Role
from sameas.collections.views import info_of
from sameas.connections import open_database
from sameas.databases import Database, Row, RowRefused, Statements
from sameas.extraction.outputs import DEFAULT_BASE, OutputContext
from sameas.extraction.runs.service import results_id
from sameas.identity.canonical import instant
from sameas.identity.ids import is_uuid7, uuid7
from sameas.identity.scope import check_text
from sameas.ontology.model import Ontology

ROLES: tuple[Role, ...] = ("reader", "contributor", "curator", "owner")
_STATEMENTS = ("sameas.collections", "collections")
_OF_A_COLLECTION = (
    "documents", "sources", "nodes", "claims", "atoms", "names", "types", "keys", "namesakes", "pairs", "entities",
    "decisions", "anchors", "changes", "erased", "audit",
)  # fmt: skip


class Caller(msgspec.Struct, frozen=True):
    """Who asks: the tenant (or the space of a case), the id of a user or service, and whether they own everything."""

    tenant: str = ""
    principal: str = ""
    everything: bool = False


def local_caller(tenant: str = "") -> Caller:
    """The person at a command line or in a notebook."""
    import getpass

    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = "unknown"
    return Caller(tenant, f"local:{name}", everything=True)


def open_tables(url: str) -> Database:
    """The database of collections; its tables are made where they are not there."""
    return open_database(url, Statements.of(*_STATEMENTS))


def collections_url(home: Path, database: str = "") -> str:
    """Where collections are: the database that is set, or a SQLite file in the home folder."""
    return database or f"sqlite:///{home / 'collections.db'}"


class Collections:
    """All collections of a database, as far as a caller may see them."""

    def __init__(self, database: Database, *, clock: Callable[[], datetime] | None = None) -> None:
        self._database = database
        self._clock = clock or (lambda: datetime.now(UTC))

    @property
    def database(self) -> Database:
        return self._database

    def create(
        self, name: str, *, ontology: Ontology, caller: Caller, base: str = DEFAULT_BASE, source: str = ""
    ) -> Collection:
        """A new collection, which the caller owns. `source` is where the ontology was read from."""
        check_text("name", name)
        # A dot in an address is a folder, and blanks at the ends are lost where it is typed.
        if "/" in name or is_uuid7(name) or name in (".", "..") or name != name.strip():
            raise CollectionError(f"{name!r} cannot be the name of a collection. Use a word such as press, without /")
        OutputContext(key="", base=base)
        try:
            with self._database.transaction() as session:
                row = session.one(
                    "add_collection", collection_id=str(uuid7()), tenant=caller.tenant, name=name, base=base,
                    ontology_id=results_id(ontology.iri, ontology.version), ontology_version=ontology.version,
                    ontology=msgspec.msgpack.encode(ontology), ontology_source=source, salt=secrets.token_bytes(32),
                    now=instant(self._clock()), created_by=caller.principal,
                )  # fmt: skip
                assert row is not None
                session.run("put_member", collection=row[0], principal=caller.principal, role="owner")
        except RowRefused:
            raise CollectionExistsError(
                f"there is a collection {name!r} already. Choose another name, or remove it first"
            ) from None
        return self.open(name, caller=caller)

    def list(self, caller: Caller, *, after: str = "") -> builtins.list[CollectionInfo]:
        """Those that the caller may read, by name."""
        with self._database.reading() as session:
            rows = session.run("collections", tenant=caller.tenant, principal=caller.principal, after=after)
        found = [info_of(row, role=_role(row, caller)) for row in rows]
        return [info for info in found if info.role is not None]

    def open(self, named: str, *, caller: Caller, role: Role = "reader") -> Collection:
        """One, by its name or id, for a caller who has at least this role in it."""
        with self._database.reading() as session:
            row = session.one("collection", tenant=caller.tenant, principal=caller.principal, named=named)
        info = None if row is None else info_of(row, role=_role(row, caller))
        if row is None or info is None or info.role is None:
            raise CollectionNotFoundError(f"there is no collection {named!r}. List them to see their names")
        if ROLES.index(info.role) < ROLES.index(role):
            raise RoleRequiredError(f"this needs the role {role} in the collection {info.name!r}; yours is {info.role}")
        return Collection(self._database, row[0], info, by=caller.principal, clock=self._clock)

    def remove(self, named: str, *, caller: Caller) -> CollectionInfo:
        """Remove one and all that is in it."""
        collection = self.open(named, caller=caller, role="owner")
        with self._database.transaction() as session:
            if session.one("lock_collection", collection=collection.number, id=collection.id) is None:
                raise CollectionNotFoundError(f"there is no collection {named!r}")
            for table in _OF_A_COLLECTION:
                session.run(f"clear_{table}", collection=collection.number)
            session.run("remove_collection", collection=collection.number)
        return collection.opened_as

    def waiting(self) -> builtins.list[tuple[str, str]]:
        """Tenant and id of the collections in which texts wait to be read."""
        with self._database.reading() as session:
            return [(tenant, id_) for _, tenant, id_ in session.run("waiting_collections")]

    def close(self) -> None:
        self._database.close()


def _role(row: Row, caller: Caller) -> Role | None:
    role: Role | None = row[-1]
    return "owner" if caller.everything else role
