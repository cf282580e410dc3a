"""Collections of the service: `client.collections`, for threads and for tasks; both send the same requests.

client.collections.create("press", ontology="company")
client.collections.add("press", {"note.txt": "Alice Stone works for Acme."})
client.collections.wait("press")
client.collections.sync("press", "inbox")
for pair in client.collections.pairs("press"):
    print(pair.probability, pair.a.name, pair.b.name)
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from sameas.client.calls import (
    API,
    Ask,
    AsyncDo,
    Do,
    Pause,
    Send,
    ServiceError,
    ServiceUnreachable,
    decode,
    documented_as,
)
from sameas.client.folder_sync import Look, Sending, SyncPlan, summary_of
from sameas.collections.additions import Summary
from sameas.collections.erasure import Erasure
from sameas.collections.model import (
    Change,
    CollectionInfo,
    Contradiction,
    Decision,
    DocumentInfo,
    EntityInfo,
    EntityPage,
    Pair,
    Role,
    Statement,
    SyncState,
    Verdict,
)
from sameas.collections.sync import FolderError
from sameas.once.script import Script
from sameas.questions.paths import Connection
from sameas.server.collection_schemas import (
    Accepted,
    CollectionPage,
    ContradictionPage,
    DecisionPage,
    DocumentPage,
    EntityList,
    FoundPath,
    PairPage,
    StatementPage,
)

T = TypeVar("T")
RESULTS = "application/sparql-results+json, text/turtle"
_JSON = {"content-type": "application/json"}
_LOOK_EVERY = 0.2
_GONE = 404
_TOO_LARGE = 413


class CollectionCalls:
    """What is asked of the service about collections, as scripts."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def create(self, name: str, *, ontology: str, base: str | None = None) -> Script[CollectionInfo]:
        """A new collection."""
        wish = {"name": name, "ontologyId": ontology} | ({"base": base} if base else {})
        return decode((yield from self._ask(Send("POST", _PATH, msgspec.json.encode(wish), _JSON))), CollectionInfo)

    def list(self) -> Script[tuple[CollectionInfo, ...]]:
        """Those that the caller may read."""
        return (yield from self._pages("", CollectionPage, lambda page: page.collections))

    def show(self, name: str) -> Script[CollectionInfo]:
        """How much is in one."""
        return decode((yield from self._ask(Send("GET", _of(name)))), CollectionInfo)

    def remove(self, name: str) -> Script[None]:
        """Remove one and all that is in it."""
        yield from self._ask(Send("DELETE", _of(name)))

    def add(
        self, name: str, texts: Mapping[str, str], *, extractor: str | None = None, model: str | None = None
    ) -> Script[Accepted]:
        """Have texts read, by their names; `wait` waits until they are."""
        wish: dict[str, Any] = {"documents": [{"name": one, "text": text} for one, text in texts.items()]}
        wish |= {key: value for key, value in (("extractor", extractor), ("model", model)) if value is not None}
        send = Send("POST", _of(name, "documents"), msgspec.json.encode(wish), _JSON)
        return decode((yield from self._ask(send)), Accepted)

    def documents(self, name: str) -> Script[tuple[DocumentInfo, ...]]:
        """The names of documents, with their status."""
        return (yield from self._pages(_sub(name, "documents"), DocumentPage, lambda page: page.documents))

    def remove_document(self, name: str, document: str) -> Script[Change]:
        """Take a name away; its document goes with the last one."""
        send = Send("DELETE", _of(name, "documents"), query={"name": document})
        return decode((yield from self._ask(send)), Change)

    def retry_failed(self, name: str) -> Script[Accepted]:
        """Have what failed read again."""
        return decode((yield from self._ask(Send("POST", _of(name, "retry")))), Accepted)

    def sync_state(self, name: str) -> Script[SyncState]:
        """How far the work is."""
        return decode((yield from self._ask(Send("GET", _of(name, "sync")))), SyncState)

    def wait(self, name: str, *, within: float = 600.0) -> Script[SyncState]:
        """How the work stands when nothing waits any more."""
        ends_at = time.monotonic() + within
        while True:
            state = yield from self.sync_state(name)
            if state.waiting == 0:
                return state
            if time.monotonic() > ends_at:
                raise ServiceUnreachable(f"{state.waiting} documents still wait after {within:g} s")
            yield Pause(_LOOK_EVERY)

    def sync(
        self,
        name: str,
        look: Look,
        *,
        extractor: str | None,
        model: str | None,
        retry_failed: bool,
        allow_empty: bool,
        within: float,
    ) -> Script[Summary]:
        """Bring a collection in step with a folder that was looked through."""
        there = yield from self.documents(name)
        plan = SyncPlan.of(look, there, retry_failed=retry_failed, allow_empty=allow_empty)
        sending = Sending(look, plan.to_send)
        how = {key: value for key, value in (("extractor", extractor), ("model", model)) if value is not None}
        refused: dict[str, str] = {}
        for batch in sending.batches():
            body = msgspec.json.encode({"documents": batch, **how})
            try:
                yield from self._ask(Send("POST", _of(name, "documents"), body, _JSON))
            except ServiceError as error:
                # One file that is too large is told; with several it is not the files' fault.
                if error.status != _TOO_LARGE or len(batch) > 1:
                    raise
                refused[batch[0]["name"]] = str(error)
        yield from self.wait(name, within=within)
        if not look.folder.is_dir():
            raise FolderError(f"{look.folder} went away while it was sent. Nothing was taken out of the collection")
        removed = 0
        for gone in (*plan.gone, *(one for one in sending.vanished if one in plan.known)):
            removed += yield from self._take_out(name, gone, stood_for=gone in plan.documents)
        there = yield from self.documents(name)
        return summary_of(plan, sending, there, refused, removed=removed)

    def _take_out(self, name: str, document: str, *, stood_for: bool) -> Script[int]:
        try:
            yield from self.remove_document(name, document)
        except ServiceError as error:
            # Somebody else was quicker.
            if error.status != _GONE:
                raise
            return 0
        return int(stood_for)

    def entities(self, name: str) -> Script[tuple[EntityInfo, ...]]:
        """Every thing."""
        return (yield from self._pages(_sub(name, "entities"), EntityList, lambda page: page.entities))

    def find(self, name: str, text: str) -> Script[tuple[EntityInfo, ...]]:
        """Things whose name is, or may be, this one."""
        send = Send("GET", _of(name, "entities"), query={"q": text})
        return decode((yield from self._ask(send)), EntityList).entities

    def entity(self, name: str, entity: str) -> Script[EntityPage]:
        """All that is known of one thing."""
        return decode((yield from self._ask(Send("GET", _of(name, "entities", entity)))), EntityPage)

    def erase(self, name: str, entity: str, *, reason: str = "") -> Script[Erasure]:
        """Erase a person or thing for good."""
        body = msgspec.json.encode({"reason": reason})
        return decode((yield from self._ask(Send("DELETE", _of(name, "entities", entity), body, _JSON))), Erasure)

    def statements(self, name: str) -> Script[tuple[Statement, ...]]:
        """Every statement, each with its evidence."""
        return (yield from self._pages(_sub(name, "statements"), StatementPage, lambda page: page.statements))

    def pairs(self, name: str) -> Script[tuple[Pair, ...]]:
        """Things that may be one, likeliest first."""
        return (yield from self._pages(_sub(name, "pairs"), PairPage, lambda page: page.pairs))

    def contradictions(self, name: str) -> Script[tuple[Contradiction, ...]]:
        """What cannot all be true."""
        kind = ContradictionPage
        return (yield from self._pages(_sub(name, "contradictions"), kind, lambda page: page.contradictions))

    def decide(self, name: str, verdict: Verdict, a: str, b: str, *, reason: str = "") -> Script[Decision]:
        """Two things are the same, or different."""
        body = msgspec.json.encode({"verdict": verdict, "a": a, "b": b, "reason": reason})
        return decode((yield from self._ask(Send("POST", _of(name, "decisions"), body, _JSON))), Decision)

    def decisions(self, name: str) -> Script[tuple[Decision, ...]]:
        """What was decided and is in force, newest first."""
        return (yield from self._pages(_sub(name, "decisions"), DecisionPage, lambda page: page.decisions))

    def undo(self, name: str, decision: str) -> Script[Decision]:
        """Take a decision back."""
        return decode((yield from self._ask(Send("DELETE", _of(name, "decisions", decision)))), Decision)

    def link_known(self, name: str, file: str, data: bytes) -> Script[Change]:
        """Link a list of known things."""
        headers = {"content-type": "application/octet-stream"}
        return decode((yield from self._ask(Send("PUT", _of(name, "known"), data, headers, {"name": file}))), Change)

    def put_member(self, name: str, principal: str, role: Role) -> Script[None]:
        """Give somebody a role."""
        body = msgspec.json.encode({"role": role})
        yield from self._ask(Send("PUT", _of(name, "members", principal), body, _JSON))

    def export(self, name: str, *, output: str = "nquads") -> Script[bytes]:
        """The whole collection: nquads, turtle, jsonl or csv."""
        return (yield from self._ask(Send("GET", _of(name, "export"), query={"format": output})))

    def query(self, name: str, sparql: str, *, accept: str = RESULTS) -> Script[bytes]:
        """The answer to a SPARQL query, in the notation of `accept`."""
        headers = {"content-type": "application/sparql-query", "accept": accept}
        return (yield from self._ask(Send("POST", _of(name, "sparql"), sparql.encode(), headers)))

    def path(self, name: str, a: str, b: str) -> Script[tuple[Connection, ...]]:
        """How two things are connected, by their names or ids."""
        return decode((yield from self._ask(Send("GET", _of(name, "path"), query={"a": a, "b": b}))), FoundPath).path

    def _pages(self, path: str, kind: type[Any], items: Callable[[Any], tuple[T, ...]]) -> Script[tuple[T, ...]]:
        found: list[T] = []
        after = ""
        while True:
            query = {"limit": "500"} | ({"after": after} if after else {})
            page = decode((yield from self._ask(Send("GET", f"{_PATH}{path}", query=query))), kind)
            found.extend(items(page))
            if not page.next:
                return tuple(found)
            after = page.next


class Collections:
    """`client.collections`, for threads.

    Methods raise what those of the client raise, and FolderError if a folder to be synchronised cannot be read.
    """

    def __init__(self, calls: CollectionCalls, do: Do) -> None:
        self._calls = calls
        self._do = do

    def create(self, name: str, *, ontology: str, base: str | None = None) -> CollectionInfo:
        """A new collection."""
        return self._do(self._calls.create(name, ontology=ontology, base=base))

    def list(self) -> tuple[CollectionInfo, ...]:
        """Those that the caller may read."""
        return self._do(self._calls.list())

    def show(self, name: str) -> CollectionInfo:
        """How much is in one."""
        return self._do(self._calls.show(name))

    def remove(self, name: str) -> None:
        """Remove one and all that is in it."""
        self._do(self._calls.remove(name))

    def add(
        self, name: str, texts: Mapping[str, str], *, extractor: str | None = None, model: str | None = None
    ) -> Accepted:
        """Have texts read, by their names; `wait` waits until they are."""
        return self._do(self._calls.add(name, texts, extractor=extractor, model=model))

    def documents(self, name: str) -> tuple[DocumentInfo, ...]:
        """The names of documents, with their status."""
        return self._do(self._calls.documents(name))

    def remove_document(self, name: str, document: str) -> Change:
        """Take a name away; its document goes with the last one."""
        return self._do(self._calls.remove_document(name, document))

    def retry_failed(self, name: str) -> Accepted:
        """Have what failed read again."""
        return self._do(self._calls.retry_failed(name))

    def sync_state(self, name: str) -> SyncState:
        """How far the work is."""
        return self._do(self._calls.sync_state(name))

    def wait(self, name: str, *, within: float = 600.0) -> SyncState:
        """How the work stands when nothing waits any more."""
        return self._do(self._calls.wait(name, within=within))

    def sync(
        self,
        name: str,
        folder: str | Path,
        *,
        named: str = "",
        extractor: str | None = None,
        model: str | None = None,
        retry_failed: bool = False,
        allow_empty: bool = False,
        within: float = 600.0,
    ) -> Summary:
        """Bring a collection in step with a folder of this machine, and wait until all of it is read. Names of
        documents begin with `named`, or with what the folder is called.
        """
        look = Look.at(Path(folder), named=named)
        return self._do(
            self._calls.sync(
                name, look, extractor=extractor, model=model, retry_failed=retry_failed, allow_empty=allow_empty,
                within=within,
            )
        )  # fmt: skip

    def entities(self, name: str) -> tuple[EntityInfo, ...]:
        """Every thing."""
        return self._do(self._calls.entities(name))

    def find(self, name: str, text: str) -> tuple[EntityInfo, ...]:
        """Things whose name is, or may be, this one."""
        return self._do(self._calls.find(name, text))

    def entity(self, name: str, entity: str) -> EntityPage:
        """All that is known of one thing."""
        return self._do(self._calls.entity(name, entity))

    def erase(self, name: str, entity: str, *, reason: str = "") -> Erasure:
        """Erase a person or thing for good."""
        return self._do(self._calls.erase(name, entity, reason=reason))

    def statements(self, name: str) -> tuple[Statement, ...]:
        """Every statement, each with its evidence."""
        return self._do(self._calls.statements(name))

    def pairs(self, name: str) -> tuple[Pair, ...]:
        """Things that may be one, likeliest first."""
        return self._do(self._calls.pairs(name))

    def contradictions(self, name: str) -> tuple[Contradiction, ...]:
        """What cannot all be true."""
        return self._do(self._calls.contradictions(name))

    def decide(self, name: str, verdict: Verdict, a: str, b: str, *, reason: str = "") -> Decision:
        """Two things are the same, or different."""
        return self._do(self._calls.decide(name, verdict, a, b, reason=reason))

    def decisions(self, name: str) -> tuple[Decision, ...]:
        """What was decided and is in force, newest first."""
        return self._do(self._calls.decisions(name))

    def undo(self, name: str, decision: str) -> Decision:
        """Take a decision back."""
        return self._do(self._calls.undo(name, decision))

    def link_known(self, name: str, file: str, data: bytes) -> Change:
        """Link a list of known things."""
        return self._do(self._calls.link_known(name, file, data))

    def put_member(self, name: str, principal: str, role: Role) -> None:
        """Give somebody a role."""
        self._do(self._calls.put_member(name, principal, role))

    def export(self, name: str, *, output: str = "nquads") -> bytes:
        """The whole collection: nquads, turtle, jsonl or csv."""
        return self._do(self._calls.export(name, output=output))

    def query(self, name: str, sparql: str, *, accept: str = RESULTS) -> bytes:
        """The answer to a SPARQL query that reads: rows as SPARQL's JSON, a graph as Turtle, or what `accept` names."""
        return self._do(self._calls.query(name, sparql, accept=accept))

    def path(self, name: str, a: str, b: str) -> tuple[Connection, ...]:
        """How two things are connected, by their names or ids; empty where they are not."""
        return self._do(self._calls.path(name, a, b))


@documented_as(Collections)
class AsyncCollections:
    """`client.collections`, for tasks: the same methods, to be awaited, which raise the same errors."""

    def __init__(self, calls: CollectionCalls, do: AsyncDo) -> None:
        self._calls = calls
        self._do = do

    async def create(self, name: str, *, ontology: str, base: str | None = None) -> CollectionInfo:
        return await self._do(self._calls.create(name, ontology=ontology, base=base))

    async def list(self) -> tuple[CollectionInfo, ...]:
        return await self._do(self._calls.list())

    async def show(self, name: str) -> CollectionInfo:
        return await self._do(self._calls.show(name))

    async def remove(self, name: str) -> None:
        await self._do(self._calls.remove(name))

    async def add(
        self, name: str, texts: Mapping[str, str], *, extractor: str | None = None, model: str | None = None
    ) -> Accepted:
        return await self._do(self._calls.add(name, texts, extractor=extractor, model=model))

    async def documents(self, name: str) -> tuple[DocumentInfo, ...]:
        return await self._do(self._calls.documents(name))

    async def remove_document(self, name: str, document: str) -> Change:
        return await self._do(self._calls.remove_document(name, document))

    async def retry_failed(self, name: str) -> Accepted:
        return await self._do(self._calls.retry_failed(name))

    async def sync_state(self, name: str) -> SyncState:
        return await self._do(self._calls.sync_state(name))

    async def wait(self, name: str, *, within: float = 600.0) -> SyncState:
        return await self._do(self._calls.wait(name, within=within))

    async def sync(
        self,
        name: str,
        folder: str | Path,
        *,
        named: str = "",
        extractor: str | None = None,
        model: str | None = None,
        retry_failed: bool = False,
        allow_empty: bool = False,
        within: float = 600.0,
    ) -> Summary:
        look = await asyncio.to_thread(Look.at, Path(folder), named=named)
        return await self._do(
            self._calls.sync(
                name, look, extractor=extractor, model=model, retry_failed=retry_failed, allow_empty=allow_empty,
                within=within,
            )
        )  # fmt: skip

    async def entities(self, name: str) -> tuple[EntityInfo, ...]:
        return await self._do(self._calls.entities(name))

    async def find(self, name: str, text: str) -> tuple[EntityInfo, ...]:
        return await self._do(self._calls.find(name, text))

    async def entity(self, name: str, entity: str) -> EntityPage:
        return await self._do(self._calls.entity(name, entity))

    async def erase(self, name: str, entity: str, *, reason: str = "") -> Erasure:
        return await self._do(self._calls.erase(name, entity, reason=reason))

    async def statements(self, name: str) -> tuple[Statement, ...]:
        return await self._do(self._calls.statements(name))

    async def pairs(self, name: str) -> tuple[Pair, ...]:
        return await self._do(self._calls.pairs(name))

    async def contradictions(self, name: str) -> tuple[Contradiction, ...]:
        return await self._do(self._calls.contradictions(name))

    async def decide(self, name: str, verdict: Verdict, a: str, b: str, *, reason: str = "") -> Decision:
        return await self._do(self._calls.decide(name, verdict, a, b, reason=reason))

    async def decisions(self, name: str) -> tuple[Decision, ...]:
        return await self._do(self._calls.decisions(name))

    async def undo(self, name: str, decision: str) -> Decision:
        return await self._do(self._calls.undo(name, decision))

    async def link_known(self, name: str, file: str, data: bytes) -> Change:
        return await self._do(self._calls.link_known(name, file, data))

    async def put_member(self, name: str, principal: str, role: Role) -> None:
        await self._do(self._calls.put_member(name, principal, role))

    async def export(self, name: str, *, output: str = "nquads") -> bytes:
        return await self._do(self._calls.export(name, output=output))

    async def query(self, name: str, sparql: str, *, accept: str = RESULTS) -> bytes:
        return await self._do(self._calls.query(name, sparql, accept=accept))

    async def path(self, name: str, a: str, b: str) -> tuple[Connection, ...]:
        return await self._do(self._calls.path(name, a, b))


_PATH = f"{API}/collections"


def _of(name: str, *more: str) -> str:
    return f"{_PATH}{_sub(name, *more)}"


def _sub(name: str, *more: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in (name, *more))
