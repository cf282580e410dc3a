"""The graph of a collection as an index for queries: a store of quads and a table of names, made of the rows.

Rule: the rows are the truth, and what is here can be made again at any time. One process at a time brings it up to
date, under a lock, and touches only what changed since; queries run on snapshots, which nobody changes. An update that
was broken off is noticed by its mark, and the index is made anew. Of the names, three letters in a row are looked up;
what shares most of them is compared letter by letter.
"""

import fcntl
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sameas.collections.collection import Collection
from sameas.collections.model import EntityInfo
from sameas.collections.views import Reader
from sameas.extraction.outputs.rdf import OWL
from sameas.extraction.runs.durable_file import write_durably
from sameas.questions.errors import IndexBusyError
from sameas.questions.graph import CollectionGraph
from sameas.questions.publication import current

if TYPE_CHECKING:
    from pyoxigraph import Quad, Store


_LAYOUT = 2
_STATE = "state.json"
# A query that began on a snapshot before is over by then.
_SNAPSHOT_KEPT = 600.0
_LOCK_WAITED = 600.0
_AT_ONCE = 50_000
# Beyond this many changed things, making all anew is quicker than one after the other.
_ANEW = 20_000


class IndexState(msgspec.Struct, frozen=True):
    """What an index holds: all of a collection up to a revision."""

    collection: str
    revision: int
    base: str
    layout: int = _LAYOUT


class GraphIndex:
    """The index of one collection in a folder of its own below `folder`."""

    def __init__(self, folder: Path, collection: Collection) -> None:
        self._collection = collection
        self._path = folder / collection.id
        self._graph = CollectionGraph(base=collection.base)

    @property
    def names(self) -> Path:
        """The table of names."""
        return self._path / "names.db"

    def snapshot(self) -> tuple[Path, int]:
        """A snapshot that holds what the collection holds now, and its revision."""
        revision = self._collection.info().revision
        state = self._state()
        if state is None or state.revision < revision or not self._snapshot_of(state.revision).is_dir():
            with self._locked():
                state = self._state()
                if state is None or state.revision < revision or not self._snapshot_of(state.revision).is_dir():
                    state = self._update(state)
        return self._snapshot_of(state.revision), state.revision

    def _snapshot_of(self, revision: int) -> Path:
        return self._path / "snapshots" / str(revision)

    def _state(self) -> IndexState | None:
        try:
            state = msgspec.json.decode((self._path / _STATE).read_bytes(), type=IndexState)
        except (FileNotFoundError, msgspec.DecodeError):
            return None
        known = (state.layout, state.collection, state.base)
        return state if known == (_LAYOUT, self._collection.id, self._collection.base) else None

    def _update(self, state: IndexState | None) -> IndexState:
        import pyoxigraph

        self._path.mkdir(parents=True, exist_ok=True)
        # While the mark is away, what is here is not to be believed.
        (self._path / _STATE).unlink(missing_ok=True)
        # The revision is read before the rows: what changes in between comes with the next update again.
        revision = self._collection.info().revision
        changes = None if state is None else self._collection.changes_since(state.revision)
        # Of what was erased the ids are not told.
        if changes is None or changes.erased or len(changes.entities) > _ANEW:
            changes = None
            for name in ("store", "snapshots"):
                shutil.rmtree(self._path / name, ignore_errors=True)
            for file in self._path.glob("names.db*"):
                file.unlink()
        store = pyoxigraph.Store(str(self._path / "store"))
        with closing(sqlite3.connect(self.names)) as names, self._collection.reading() as reader:
            names.execute(
                "CREATE VIRTUAL TABLE IF NOT EXISTS names "
                "USING fts5(name, id UNINDEXED, type UNINDEXED, tokenize='trigram')"
            )
            names.execute(
                "CREATE TABLE IF NOT EXISTS places (id TEXT, place INTEGER, PRIMARY KEY (id, place)) WITHOUT ROWID"
            )
            if changes is None:
                self._fill(store, names, reader)
            else:
                self._apply(store, names, reader, changes.entities, changes.documents)
            names.commit()
        store.flush()
        self._take_snapshot(store, revision)
        del store
        new = IndexState(self._collection.id, revision, self._collection.base)
        write_durably(self._path / _STATE, msgspec.json.encode(new))
        return new

    def _fill(self, store: "Store", names: sqlite3.Connection, reader: Reader) -> None:
        documents = chain.from_iterable(self._graph.about(info) for info in _documents(reader))
        quads = chain(documents, self._all(reader, names))
        while batch := list(islice(quads, _AT_ONCE)):
            store.bulk_extend(batch)

    def _all(self, reader: Reader, names: sqlite3.Connection) -> "Iterator[Quad]":
        for info in reader.all_entities():
            _put_names(names, info)
            yield from self._graph.thing(reader, info)
        for id_, now in reader.all_merged():
            yield self._graph.redirect(id_, now)

    def _apply(
        self,
        store: "Store",
        names: sqlite3.Connection,
        reader: Reader,
        entities: tuple[str, ...],
        documents: tuple[str, ...],
    ) -> None:
        """Take out what is said of the things that were touched, and put in what is said now."""
        for id_ in sorted({*entities, *chain.from_iterable(self._turned(store, reader, one) for one in entities)}):
            self._replace(store, self._graph.subject(id_), self._graph.entity(reader, id_))
            _take_names(names, id_)
            now = reader.session.one("entity_by_id", collection=self._collection.number, id=id_)
            if now is not None and now[3] is None:
                _put_names(names, reader.entity_info(now[0], now[1], now[2]))
        for digest in documents:
            self._replace(store, self._graph.document_node(digest), self._graph.document(reader, digest))

    def _turned(self, store: "Store", reader: Reader, id_: str) -> set[str]:
        """The things whose facts point to this one now and did not, or did and do not: when two became one, say."""
        base = self._collection.base
        import pyoxigraph

        here = store.quads_for_pattern(None, None, self._graph.subject(id_), pyoxigraph.DefaultGraph())
        indexed = {(quad.subject.value.removeprefix(base), quad.predicate.value) for quad in here}  # type: ignore[union-attr]
        stated: set[tuple[str, str]] = set()
        if current(reader, id_) is not None:
            stated = {(one.subject, one.predicate) for one in reader.statements_about(id_, evidence=0)}
            stated |= {(other, OWL + "differentFrom") for other in reader.told_apart.get(id_, ())}
        return {subject for subject, _ in indexed ^ stated}

    def _replace(self, store: "Store", subject: Any, quads: "list[Quad]") -> None:
        wanted = set(quads)
        for quad in list(store.quads_for_pattern(subject, None, None, None)):
            if quad in wanted:
                wanted.discard(quad)
            else:
                store.remove(quad)
        store.extend(wanted)

    def _take_snapshot(self, store: "Store", revision: int) -> None:
        target = self._snapshot_of(revision)
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        store.backup(str(target))
        now = time.time()
        for other in target.parent.iterdir():
            if other != target and now - other.stat().st_mtime > _SNAPSHOT_KEPT:
                shutil.rmtree(other, ignore_errors=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            ends_at = time.monotonic() + _LOCK_WAITED
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > ends_at:
                        raise IndexBusyError("another process is building the index; ask again later") from None
                    time.sleep(0.02)
            yield
        finally:
            os.close(descriptor)


def drop_index(folder: Path, collection_id: str) -> None:
    """Delete the index of a collection, such as when something was erased from it: a store keeps what it forgets for a
    while.
    """
    shutil.rmtree(folder / collection_id, ignore_errors=True)


def _put_names(names: sqlite3.Connection, info: EntityInfo) -> None:
    kind = info.types[0] if info.types else ""
    for name in (info.name, *info.aliases):
        added = names.execute("INSERT INTO names (name, id, type) VALUES (?, ?, ?)", (name, info.id, kind))
        names.execute("INSERT INTO places (id, place) VALUES (?, ?)", (info.id, added.lastrowid))


def _take_names(names: sqlite3.Connection, id_: str) -> None:
    # A full-text table finds nothing by its other columns: the rows of a thing are listed beside it.
    names.execute("DELETE FROM names WHERE rowid IN (SELECT place FROM places WHERE id = ?)", (id_,))
    names.execute("DELETE FROM places WHERE id = ?", (id_,))


def _documents(reader: Reader) -> "Iterator[Any]":
    seen: set[str] = set()
    after = ""
    while True:
        page = reader.sources(status="", after=after, limit=500)
        if not page:
            return
        for info in page:
            if info.digest and info.digest not in seen:
                seen.add(info.digest)
                yield reader.document(info.digest)
        after = page[-1].names[0].name


_LOOKED_AT = 400
_LEAST = 55.0


class FoundName(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A thing whose name is near."""

    id: str
    name: str
    matched: str
    """The name or alias that is near."""
    type: str = ""
    score: float


def find_names(names: Path, text: str, *, limit: int = 20, least: float = _LEAST) -> list[FoundName]:
    """The things whose names are nearest, best first."""
    from rapidfuzz import fuzz
    from rapidfuzz.utils import default_process

    wanted = default_process(text)
    if not wanted:
        return []
    with closing(sqlite3.connect(f"{names.resolve().as_uri()}?mode=ro", uri=True)) as database:
        rows = _candidates(database, wanted)
    best: dict[str, FoundName] = {}
    shown: dict[str, str] = {}
    for name, id_, kind in rows:
        shown.setdefault(id_, name)
        said = default_process(name)
        score = max(fuzz.token_sort_ratio(wanted, said), 0.9 * fuzz.WRatio(wanted, said))
        known = best.get(id_)
        if score >= least and (known is None or score > known.score):
            best[id_] = FoundName(id=id_, name=shown[id_], matched=name, type=kind, score=score)
    found = sorted(best.values(), key=lambda one: (-one.score, one.matched, one.id))[:limit]
    return [msgspec.structs.replace(one, score=round(one.score / 100, 3)) for one in found]


def _candidates(database: sqlite3.Connection, wanted: str) -> list[tuple[str, str, str]]:
    pieces = sorted({wanted[at : at + 3] for at in range(len(wanted) - 2)})
    if not pieces:
        # Shorter than three letters: only what begins so.
        pattern = wanted.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        return database.execute(
            "SELECT name, id, type FROM names WHERE name LIKE ? ESCAPE '\\' LIMIT ?", (pattern, _LOOKED_AT)
        ).fetchall()
    query = " OR ".join('"' + piece.replace('"', '""') + '"' for piece in pieces)
    return database.execute(
        "SELECT name, id, type FROM names WHERE names MATCH ? ORDER BY bm25(names) LIMIT ?", (query, _LOOKED_AT)
    ).fetchall()
