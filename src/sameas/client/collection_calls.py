"""What the client asks of collections, as scripts; and a collection that is kept in step with a folder of this machine:
what is new is sent, what changed is sent again, what is gone is taken out.

Rule: a file whose size and time are as the service has them is not read. The documents of a folder are those whose
names begin with its name. A folder that is not there, or is empty all at once, is an error and takes nothing out.
"""

import base64
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from sameas.client.calls import (
    API,
    Ask,
    InThread,
    Pause,
    Send,
    ServiceError,
    ServiceUnreachable,
    decode,
)
from sameas.collections.erasure import Erasure
from sameas.collections.filling import FolderError, Summary, file_time
from sameas.collections.model import (
    Change,
    Contradiction,
    Decision,
    DocumentInfo,
    EntityInfo,
    EntityPage,
    Pair,
    Role,
    SourceName,
    Statement,
    SyncState,
    Verdict,
)
from sameas.extraction.text.document import readable_path
from sameas.extraction.text.inputs.reader import guess_media_type, readable_files
from sameas.once.script import Script
from sameas.questions.desk import Connection
from sameas.server.schemas import (
    Accepted,
    CollectionPage,
    ContradictionPage,
    DecisionPage,
    DocumentPage,
    EntityList,
    FoundPath,
    PairPage,
    ServedCollection,
    StatementPage,
)

T = TypeVar("T")
RESULTS = "application/sparql-results+json, text/turtle"
_JSON = {"content-type": "application/json"}
_LOOK_EVERY = 0.2
_GONE = 404
_TOO_LARGE = 413
_PATH = f"{API}/collections"

# A request is kept well below what a service takes, unless one file alone is larger.
_BYTES_AT_ONCE = 4 * 1024 * 1024
_FILES_AT_ONCE = 100


class FolderFile(NamedTuple):
    """A file as it was when the folder was looked through."""

    path: Path
    size: int
    time: str


class Look(msgspec.Struct, frozen=True):
    """What a folder has: its files by the names that their documents have."""

    folder: Path
    prefix: str
    files: Mapping[str, FolderFile]

    @classmethod
    def at(cls, folder: Path, *, named: str = "") -> "Look":
        """Look through a folder; blocking."""
        if not folder.is_dir():
            raise FolderError(f"{folder} is not a folder. Nothing was taken out of the collection")
        prefix = f"{named or folder.resolve().name}/"
        files = {}
        for path in sorted(readable_files(folder)):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            name = readable_path(f"{prefix}{path.relative_to(folder).as_posix()}")
            files[name] = FolderFile(path, status.st_size, file_time(status.st_mtime))
        return cls(folder, prefix, files)


class SyncPlan(msgspec.Struct, frozen=True):
    """What is to be done. `known` are the names that the service has."""

    known: Mapping[str, SourceName]
    documents: frozenset[str]
    """The names that stand for a document."""
    to_send: tuple[str, ...]
    gone: tuple[str, ...]
    skipped: int
    """Failed before, and not changed since."""

    @property
    def unchanged(self) -> int:
        return len(self.known) - len(self.gone) - self.skipped - len(self.known.keys() & set(self.to_send))

    @classmethod
    def of(cls, look: Look, there: tuple[DocumentInfo, ...], *, retry_failed: bool, allow_empty: bool) -> "SyncPlan":
        listed = {name.name: (name, one.digest) for one in there for name in one.names}
        known = {name: about for name, (about, _) in listed.items() if name.startswith(look.prefix)}
        if known and not look.files and not allow_empty:
            raise FolderError(
                f"{look.folder} is empty, and {len(known)} documents were sent from it. If that is meant, allow it"
            )
        skipped = 0
        to_send = []
        for name, file in look.files.items():
            about = known.get(name)
            is_same = about is not None and (about.size, about.source_time) == (file.size, file.time)
            if about is None or not is_same or about.status == "partial":
                to_send.append(name)
            elif about.status == "failed":
                skipped += not retry_failed
                to_send += [name] if retry_failed else []
        documents = frozenset(name for name in known if listed[name][1])
        return cls(known, documents, tuple(to_send), tuple(sorted(known.keys() - look.files.keys())), skipped)


class Sending(msgspec.Struct):
    """The files of a plan as documents of requests; those that vanished meanwhile are left out."""

    look: Look
    names: tuple[str, ...]
    vanished: list[str] = []

    def batches(self) -> Iterator[list[dict[str, str]]]:
        batch: list[dict[str, str]] = []
        size = 0
        for name in self.names:
            file = self.look.files[name]
            try:
                data = file.path.read_bytes()
            except FileNotFoundError:
                self.vanished.append(name)
                continue
            if batch and (size + len(data) > _BYTES_AT_ONCE or len(batch) >= _FILES_AT_ONCE):
                yield batch
                batch, size = [], 0
            size += len(data)
            batch.append(
                {
                    "name": name,
                    "contentBase64": base64.b64encode(data).decode(),
                    "mediaType": guess_media_type(name, data=data),
                    "path": readable_path(file.path.resolve()),
                    "sourceTime": file.time,
                }
            )
        if batch:
            yield batch


def summary_of(
    plan: SyncPlan, sending: Sending, there: tuple[DocumentInfo, ...], refused: Mapping[str, str], *, removed: int
) -> Summary:
    """What was done, from what the service has now."""
    now = {name.name: name for one in there for name in one.names}
    errors = dict(refused)
    counts = dict.fromkeys(("added", "changed", "partial", "failed"), 0)
    counts["failed"] = plan.skipped + len(refused)
    for name in plan.to_send:
        about = now.get(name)
        if name in sending.vanished or name in refused or about is None:
            continue
        if about.status in ("failed", "partial"):
            counts[about.status] += 1
            errors |= {name: about.error} if about.error else {}
        else:
            counts["changed" if name in plan.documents else "added"] += 1
    errors |= dict.fromkeys(sending.vanished, "the file went away while the folder was sent")
    return Summary(**counts, unchanged=plan.unchanged, removed=removed, vanished=len(sending.vanished), errors=errors)


class CollectionCalls:
    """What is asked of the service about collections, as scripts."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def create(self, name: str, *, ontology: str, base: str | None = None) -> Script[ServedCollection]:
        """A new collection."""
        wish = {"name": name, "ontologyId": ontology} | ({"base": base} if base else {})
        return decode((yield from self._ask(Send("POST", _PATH, msgspec.json.encode(wish), _JSON))), ServedCollection)

    def list(self) -> Script[tuple[ServedCollection, ...]]:
        """Those that the caller may read."""
        return (yield from self._pages("", CollectionPage, lambda page: page.collections))

    def show(self, name: str) -> Script[ServedCollection]:
        """How much is in one."""
        return decode((yield from self._ask(Send("GET", _of(name)))), ServedCollection)

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
        folder: Path,
        *,
        named: str,
        extractor: str | None,
        model: str | None,
        retry_failed: bool,
        allow_empty: bool,
        within: float,
    ) -> Script[Summary]:
        """Bring a collection in step with a folder of this machine."""
        look: Look = yield InThread(partial(Look.at, folder, named=named))
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


def _of(name: str, *more: str) -> str:
    return f"{_PATH}{_sub(name, *more)}"


def _sub(name: str, *more: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in (name, *more))
