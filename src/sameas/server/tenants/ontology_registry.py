"""What the changes of one registry add up to: ontologies by their one id, and the names that stand for them.

Rule: an ontology's id is its own IRI, or comes from its content where it has none, and its results belong to that. A
name stands for one ontology; an ontology goes with the last of its names. Its id may be put like a name. Versions that
were replaced are kept apart, to be compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sameas.extraction.runs.metadata import instant
from sameas.extraction.runs.service import results_id
from sameas.identity.errors import SameasError
from sameas.once.async_engine import AsyncEngine
from sameas.once.codec import PLAIN, unpack
from sameas.once.record import State
from sameas.once.store import Query
from sameas.server.schemas import OntologyEntry


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a registry: an ontology was put under a name, or a name or a whole ontology was deleted."""

    id: str
    entry: OntologyEntry | None
    digest: str = ""
    audit: Mapping[str, Any] = {}
    nonce: str = ""
    whole: bool = False
    """The ontology with this id goes, whatever its names."""


class Registered(NamedTuple):
    """An ontology that can be used: its entry, whose it is, and where its bytes are."""

    entry: OntologyEntry
    tenant: str
    digest: str
    file: Path | None = None


class NameTaken(SameasError, LookupError):
    """A name is the id of another ontology, or the other way round."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} stands for another ontology already; choose another name, or delete that one first")


class Registry:
    """The ontologies of one owner. A copy is changed and then takes the place of the one that others read."""

    def __init__(self, other: Registry | None = None) -> None:
        self.ids: dict[str, Registered] = {} if other is None else dict(other.ids)
        self._names: dict[str, str] = {} if other is None else dict(other._names)
        # By id; the id itself is among them where it was put.
        self._names_of: dict[str, frozenset[str]] = {} if other is None else dict(other._names_of)

    def id_of(self, named: str) -> str | None:
        """The id that a name or an id stands for."""
        found = self._names.get(named, named)
        return found if found in self.ids else None

    def find(self, named: str) -> Registered | None:
        return self.ids.get(self._names.get(named, named))

    def is_named(self, name: str, ontology_id: str) -> bool:
        return self._names.get(name) == ontology_id

    def check(self, name: str, ontology_id: str) -> None:
        """Raise where a name and an id could be told from each other no more."""
        if name != ontology_id and self._names_of.get(name, frozenset()) - {name}:
            raise NameTaken(name)
        if self._names.get(ontology_id, ontology_id) != ontology_id:
            raise NameTaken(ontology_id)

    def apply(self, change: Change, *, owner: str) -> None:
        if change.entry is not None:
            ontology_id = results_id(change.entry.iri, change.entry.version)
            if not self.is_named(change.id, ontology_id):
                self._unname(change.id)
            self._names[change.id] = ontology_id
            self.ids[ontology_id] = Registered(change.entry, owner, change.digest)
            self._settle(ontology_id, self._names_of.get(ontology_id, frozenset()) | {change.id})
        elif change.whole:
            for name in self._names_of.get(change.id, frozenset()):
                self._unname(name)
        else:
            self._unname(change.id)

    def _unname(self, name: str) -> None:
        ontology_id = self._names.pop(name, None)
        if ontology_id is not None:
            self._settle(ontology_id, self._names_of[ontology_id] - {name})

    def _settle(self, ontology_id: str, names: frozenset[str]) -> None:
        if not names:
            del self._names_of[ontology_id], self.ids[ontology_id]
            return
        self._names_of[ontology_id] = names
        found, shown = self.ids[ontology_id], tuple(sorted(names - {ontology_id}))
        entry = msgspec.structs.replace(found.entry, id=ontology_id, names=shown)
        self.ids[ontology_id] = found._replace(entry=entry)


KEPT = 20
_SCOPE = "sameas.ontology-versions"


class Former(NamedTuple):
    """A version that was replaced, and when."""

    entry: OntologyEntry
    replaced_at: str


class FormerVersions:
    """Former versions in the store, of one owner whose place there is named: kept to be compared, never to be extracted
    with. The last twenty of each ontology are kept, and go with the ontology. Lives in the background loop.
    """

    def __init__(self, engine: AsyncEngine, place: str) -> None:
        self._engine = engine
        self._place = place

    async def keep(self, entry: OntologyEntry, data: bytes) -> None:
        """Keep a version that is about to be replaced; the oldest go when there are many."""
        await self._engine.run(
            lambda _: data,
            scope=_SCOPE,
            key=_key(entry.id, entry.version),
            tenant=self._place,
            namespace="content",
            retention=None,
            tags=(entry.id,),
            # The label is content, and goes with it.
            audit={"entry": msgspec.to_builtins(msgspec.structs.replace(entry, label=""))},
        )
        page = await self._engine.store.find(self._query(entry.id, 2 * KEPT))
        for record in page.records[KEPT:]:
            await self._engine.store.forget(record.identity)

    async def list(self, ontology_id: str) -> list[Former]:
        """The latest first."""
        page = await self._engine.store.find(self._query(ontology_id, KEPT))
        return [
            Former(msgspec.convert(record.about.audit["entry"], OntologyEntry), instant(record.created_at / 1_000_000))
            for record in page.records
        ]

    async def content(self, ontology_id: str, version: str) -> bytes | None:
        """The bytes as they were put; None where they are not kept."""
        record = await self._engine.read(_SCOPE, _key(ontology_id, version), tenant=self._place, namespace="content")
        if record is None or record.state is not State.DONE or record.outcome is None:
            return None
        data: bytes = unpack(record.outcome, PLAIN)
        return data

    async def drop(self, ontology_id: str) -> None:
        """Forget every version of an ontology that is gone."""
        await self._engine.forget_where(tenant=self._place, scope=_SCOPE, tag=ontology_id)

    def _query(self, ontology_id: str, limit: int) -> Query:
        return Query(tenant=self._place, scope=_SCOPE, tag=ontology_id, limit=limit)


def _key(ontology_id: str, version: str) -> str:
    return hashlib.sha256(f"{len(ontology_id)}:{ontology_id}{version}".encode()).hexdigest()
