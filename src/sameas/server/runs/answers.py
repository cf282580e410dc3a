"""Answers as bytes, kept for those who ask the same again: a replay from here costs no parsing and no round trip.

Rule: an answer is given for at most `TTL` seconds after the store said that its record stands, and only while the
ontology has the version that it was made with; what this process or a notice says to be gone is gone at once. Bounded
by size; the least recently used go first. Used from the serving loop alone.

Answers under clients' own keys are in the store and name their run by a tag, so that deleting the run finds them. A
tombstone without content stands before such an answer goes, and as long as one does: whoever comes back with the key is
told that it is gone, and nothing is run for it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, NamedTuple

import msgspec

from sameas.extraction.extractors.confidence import least_confidence, sure_part
from sameas.extraction.graph.model import Entity, Graph, Relation, in_memory
from sameas.extraction.runs.metadata import RunMetadata
from sameas.extraction.runs.record import SCOPE, RunSummary
from sameas.extraction.runs.service import Extraction
from sameas.identity.key import record_digest
from sameas.once.async_engine import AsyncEngine
from sameas.once.observe import CallEnded, CallStarted
from sameas.once.policy import DAY
from sameas.once.record import Identity, Record, State
from sameas.once.store import Query
from sameas.server.problems import Problem
from sameas.server.tenants.workspaces import Workspaces

# Seconds for which a record that another process forgot may still be answered, at the worst.
TTL = 1.0
_LARGEST_PART = 8
_OVERHEAD = 512

_encode = msgspec.json.Encoder().encode


class Done(NamedTuple):
    """A finished extraction as its answers: everything but whether it was a hit."""

    key: str
    status: str
    cache_hit: bool
    head: bytes
    tail: bytes
    stored: bool = True
    """Whether the store has it too."""
    shared: bool = False
    """Somebody else was at it, in whichever process."""
    computed_at: str = ""
    entities: int = 0
    relations: int = 0

    def named(self, names: tuple[str, ...]) -> Done:
        """With the names of the ontology beside its id."""
        return self._replace(tail=b'%s,"ontologyNames":%s}' % (self.tail[:-1], _encode(names)))

    def without_confidence(self) -> Done:
        """Entities and relations alone, for those who do not want to know how sure they are. One after the other, so
        that of a large graph no single step takes long.
        """
        graph = _graph.decode(self.head + b"null}")
        entities, relations = (b",".join(map(_unsure, found)) for found in (graph.entities, graph.relations))
        return self._replace(head=_HEAD % (_encode(self.key), b"[%s]" % entities, b"[%s]" % relations))

    def body(self, *, cache_hit: bool) -> bytes:
        return b"%s%s%s" % (self.head, b"true" if cache_hit else b"false", self.tail)


class _Graph(msgspec.Struct):
    """The parts of an answer, not looked into."""

    entities: list[msgspec.Raw]
    relations: list[msgspec.Raw]


_HEAD = b'{"idempotencyKey":%s,"entities":%s,"relations":%s,"cacheHit":'
_COMPUTED = b',"computedAt":"'
_graph = msgspec.json.Decoder(_Graph)


def _unsure(raw: msgspec.Raw) -> bytes:
    """An entity or a relation without how sure it is."""
    one = msgspec.json.decode(raw)
    one.pop("confidence", None)
    one.pop("confidenceFrom", None)
    return _encode(one)


def computed_at_of(body: bytes) -> str:
    """When the result of an answer was made. In a text quotes are escaped, so that none looks like this member."""
    found = body.rfind(_COMPUTED)
    start = found + len(_COMPUTED)
    return "" if found < 0 else body[start : body.index(b'"', start)].decode()


class KeptAnswer(msgspec.Struct):
    """An answer, of what it depends, and until when it may be given without asking."""

    key: str
    body: bytes
    ontology_id: str
    version: str
    fence: int
    until: float
    computed_at: str = ""
    asked_for: Mapping[str, Any] = {}


def done_of(extraction: Extraction, *, min_confidence: float | None = None) -> Done:
    """The answer to an extraction (source document 000, part 2.1), encoded once for everybody."""
    metadata, graph = extraction.metadata, extraction.sure(min_confidence).graph
    head, tail = parts(metadata, graph.entities, graph.relations, notes=graph.notes)
    # Who waited for somebody's run, in whichever process, did not find a result: it was made meanwhile.
    return Done(
        extraction.key.key,
        metadata.status,
        extraction.replayed and not extraction.shared,
        head,
        tail,
        extraction.stored,
        extraction.shared,
        metadata.completed_at or "",
        metadata.entity_count,
        metadata.relation_count,
    )


def done_of_run(metadata: RunMetadata, graph: Graph, *, min_confidence: float | None, cache_hit: bool = False) -> Done:
    """The answer to a request whose run has ended, as it lies in its folder."""
    sure = in_memory(sure_part(graph, least_confidence(metadata.extractor.name, min_confidence)))
    head, tail = parts(metadata, sure.entities, sure.relations, notes=sure.notes)
    return Done(
        metadata.idempotency_key,
        metadata.status,
        cache_hit,
        head,
        tail,
        computed_at=metadata.completed_at or "",
        entities=metadata.entity_count,
        relations=metadata.relation_count,
    )


def parts(
    metadata: RunMetadata,
    entities: tuple[Entity, ...],
    relations: tuple[Relation, ...],
    *,
    notes: tuple[str, ...],
) -> tuple[bytes, bytes]:
    """What comes before and after the value of `cacheHit`."""
    about = {
        "computedAt": metadata.completed_at,
        "status": metadata.status,
        "outcome": metadata.outcome,
        "ontologyId": metadata.ontology_id,
        "ontologyVersion": metadata.ontology_version,
        "notes": notes,
    }
    head = _HEAD % (_encode(metadata.idempotency_key), _encode(entities), _encode(relations))
    return head, b"," + _encode(about)[1:]


def replayed(space: str, key: str, seconds: float, *, waited: float = 0.0) -> CallEnded:
    """What observers are told of a result that came from this process's memory, or from a run that was joined."""
    return CallEnded(CallStarted(identity_of(space, key), {}), "shared" if waited else "replay", seconds, waited)


def identity_of(space: str, key: str) -> Identity:
    """Under what the record of a run is kept."""
    return Identity(record_digest(space, SCOPE, key, "content"), space, SCOPE, key)


class EndedRuns:
    """Runs that workers elsewhere have ended, as they lie in their folders; blocking."""

    def __init__(self, workspaces: Workspaces, *, min_confidence: float | None) -> None:
        self._workspaces = workspaces
        self._min_confidence = min_confidence

    def whole(self, space: str, key: str, summary: RunSummary) -> Done:
        """A whole result, whose own worker has counted it as work: this is no replay."""
        stored = self._workspaces.get(space).read(key, summary)
        return done_of_run(stored.metadata, stored.graph, min_confidence=self._min_confidence)

    def in_part(self, space: str, key: str) -> Done | None:
        """What is there of a run that has ended elsewhere without a whole result; None if it has not begun."""
        runs = self._workspaces.get(space).runs
        runs.refresh(key)
        metadata = runs.at(key).peek()
        if metadata is None or metadata.is_under_way:
            return None
        if metadata.outcome == "CANCELLED":
            raise cancelled()
        if metadata.status == "failed":
            said = metadata.errors[-1].message if metadata.errors else "the run failed"
            raise Problem(500, "run-failed", said)
        return done_of_run(metadata, runs.at(key).graph(metadata), min_confidence=self._min_confidence)


def cancelled() -> Problem:
    """What those are told who wait for a run that was cancelled."""
    return Problem(409, "run-cancelled", "the run was cancelled; extract again to go on with it")


class Answers:
    """A bounded memory of answers by who asked and what the request's bytes were."""

    def __init__(self, *, size_bytes: int = 64 << 20, timer: Callable[[], float] = monotonic) -> None:
        self._size_bytes = size_bytes
        self._timer = timer
        self._kept: OrderedDict[tuple[str, bytes], KeptAnswer] = OrderedDict()
        self._bytes = 0
        # Counts what was dropped: an answer that was under way meanwhile is not kept.
        self.drops = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, space: str, digest: bytes) -> KeptAnswer | None:
        kept = self._kept.get((space, digest))
        if kept is not None:
            self._kept.move_to_end((space, digest))
        return kept

    def is_fresh(self, kept: KeptAnswer) -> bool:
        return self._timer() < kept.until

    def renew(self, kept: KeptAnswer) -> None:
        """The store says that the record stands."""
        kept.until = self._timer() + TTL

    def keep(self, space: str, digest: bytes, kept: KeptAnswer, *, drops: int) -> None:
        size = len(kept.body) + _OVERHEAD
        if self.drops != drops or size * _LARGEST_PART > self._size_bytes:
            return
        self.forget(space, digest)
        self._kept[space, digest] = kept
        self._bytes += size
        while self._bytes > self._size_bytes:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest.body) + _OVERHEAD

    def forget(self, space: str, digest: bytes) -> None:
        gone = self._kept.pop((space, digest), None)
        if gone is not None:
            self._bytes -= len(gone.body) + _OVERHEAD

    def drop(self) -> None:
        """Something was forgotten or updated: have everything asked for again."""
        self.drops += 1
        self._kept.clear()
        self._bytes = 0

    def time(self) -> float:
        return self._timer()


CLIENT_SCOPE = "extract"
_DELETED_SCOPE = "extract.deleted"
_PAGE = 500


def run_tag(key: str) -> str:
    """The tag of the answers that come from a run."""
    return f"run:{key}"


class ClientKeys:
    """Clients' keys in the store. Lives in the background loop."""

    def __init__(self, engine: AsyncEngine, *, lease: float, retention: float = DAY) -> None:
        self._engine = engine
        self._lease = lease
        self._retention = retention

    async def check(self, space: str, key: str) -> None:
        """Refuse a key whose answer was deleted."""
        if await self._engine.read(_DELETED_SCOPE, key, tenant=space, namespace="client") is not None:
            raise Problem(
                410, "result-deleted", "the result under this key was deleted; take a new key to have it redone"
            )

    async def delete(self, space: str, run: str) -> None:
        """Put a tombstone in the place of every answer of a run, also of those that are still waited for."""
        await self._bury_all(Query(tenant=space, scope=CLIENT_SCOPE, tag=run_tag(run), limit=_PAGE))

    async def delete_all(self, space: str) -> None:
        """Put a tombstone in the place of every answer in the space; a key whose run goes on is left alone."""
        for state in (State.DONE, State.FAILED):
            await self._bury_all(Query(tenant=space, scope=CLIENT_SCOPE, state=state, limit=_PAGE))

    async def _bury_all(self, query: Query) -> None:
        while (page := await self._engine.store.find(query)).records:
            for record in page.records:
                await self._bury(record)

    async def _bury(self, record: Record) -> None:
        identity = record.identity
        await self._engine.run(
            lambda _: "",
            scope=_DELETED_SCOPE,
            key=identity.key,
            tenant=identity.tenant,
            lease=self._lease,
            retention=self._retention,
        )
        await self._engine.store.forget(identity)
