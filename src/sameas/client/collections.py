"""Collections of the service: `client.collections`, for threads and for tasks; both send the same requests.

client.collections.create("press", ontology="company")
client.collections.add("press", {"note.txt": "Alice Stone works for Acme."})
client.collections.wait("press")
client.collections.sync("press", "inbox")
for pair in client.collections.pairs("press"):
    print(pair.probability, pair.a.name, pair.b.name)
"""

from collections.abc import Mapping
from pathlib import Path

from sameas.client.calls import AsyncDo, Do, for_tasks
from sameas.client.collection_calls import RESULTS, CollectionCalls
from sameas.collections.erasure import Erasure
from sameas.collections.filling import Summary
from sameas.collections.model import (
    Change,
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
from sameas.questions.desk import Connection
from sameas.server.schemas import Accepted, ServedCollection


class Collections:
    """`client.collections`, for threads.

    Methods raise what those of the client raise, and FolderError if a folder to be synchronised cannot be read.
    """

    def __init__(self, calls: CollectionCalls, do: Do) -> None:
        self._calls = calls
        self._do = do

    def create(self, name: str, *, ontology: str, base: str | None = None) -> ServedCollection:
        """A new collection."""
        return self._do(self._calls.create(name, ontology=ontology, base=base))

    def list(self) -> tuple[ServedCollection, ...]:
        """Those that the caller may read."""
        return self._do(self._calls.list())

    def show(self, name: str) -> ServedCollection:
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
        return self._do(
            self._calls.sync(
                name, Path(folder), named=named, extractor=extractor, model=model, retry_failed=retry_failed,
                allow_empty=allow_empty, within=within,
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


class AsyncCollections:
    """`client.collections`, for tasks: the same methods, to be awaited, which raise the same errors."""

    def __init__(self, calls: CollectionCalls, do: AsyncDo) -> None:
        self._calls = calls
        self._do = do

    create = for_tasks(Collections.create)
    list = for_tasks(Collections.list)
    show = for_tasks(Collections.show)
    remove = for_tasks(Collections.remove)
    add = for_tasks(Collections.add)
    documents = for_tasks(Collections.documents)
    remove_document = for_tasks(Collections.remove_document)
    retry_failed = for_tasks(Collections.retry_failed)
    sync_state = for_tasks(Collections.sync_state)
    wait = for_tasks(Collections.wait)
    sync = for_tasks(Collections.sync)
    entities = for_tasks(Collections.entities)
    find = for_tasks(Collections.find)
    entity = for_tasks(Collections.entity)
    erase = for_tasks(Collections.erase)
    statements = for_tasks(Collections.statements)
    pairs = for_tasks(Collections.pairs)
    contradictions = for_tasks(Collections.contradictions)
    decide = for_tasks(Collections.decide)
    decisions = for_tasks(Collections.decisions)
    undo = for_tasks(Collections.undo)
    link_known = for_tasks(Collections.link_known)
    put_member = for_tasks(Collections.put_member)
    export = for_tasks(Collections.export)
    query = for_tasks(Collections.query)
    path = for_tasks(Collections.path)
