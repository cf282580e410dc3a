"""The versions of ontologies that were replaced: kept to be looked at and compared, never to be extracted with.

Rule: the last twenty of each ontology are kept, apart for each owner, and go with the ontology.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import msgspec

from sameas.extraction.runs.metadata import instant
from sameas.once.async_engine import AsyncEngine
from sameas.once.codec import PLAIN, unpack
from sameas.once.record import State
from sameas.once.store import Query
from sameas.server.schemas import OntologyEntry

KEPT = 20
_SCOPE = "sameas.ontology-versions"


class Former(NamedTuple):
    """A version that was replaced, and when."""

    entry: OntologyEntry
    replaced_at: str


class FormerVersions:
    """Former versions in the store, of one owner whose place there is named. In the background loop."""

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
