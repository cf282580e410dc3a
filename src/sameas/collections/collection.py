"""A collection: many documents, one ontology, one graph.

Rule: what documents say and people decide is rows, changed in transactions; things and statements are made of them.
Every method is one transaction. Blocking: asyncio code calls it in a thread.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import IO

import msgspec

from sameas.collections.changes import Changing, check
from sameas.collections.contradictions import contradictions
from sameas.collections.decisions import decide, decided_before, undo
from sameas.collections.drafts import Locate, Said, draft, read_known
from sameas.collections.erasure import Erased, Erasure, ErasurePlan, erase, plan_erasure
from sameas.collections.errors import CollectionError, CollectionNotFoundError, DocumentNotFoundError
from sameas.collections.exports import ExportFormat, write_collection, write_page
from sameas.collections.model import (
    Change,
    Changes,
    CollectionInfo,
    Contradiction,
    Decision,
    DocumentInfo,
    EntityInfo,
    EntityPage,
    Finding,
    Pair,
    Role,
    Source,
    Statement,
    SyncState,
    Verdict,
)
from sameas.collections.scoring import Traits
from sameas.collections.views import Reader, info_of
from sameas.databases import Database, Session
from sameas.identity.canonical import instant, sha256_hex
from sameas.identity.ids import uuid7
from sameas.identity.key import normalize_text
from sameas.ontology.model import Ontology
from sameas.ontology.show import outline_of

_ALL = 1 << 62
LIST_PREFIX = "known:"
"""How the names of lists of known things begin, which curators link; no document has such a name."""
_REMOVED = "the collection is not there any more"


def text_digest(text: str) -> str:
    """The digest of a document: of its normalised text, and of nothing else."""
    return "sha256-" + sha256_hex(normalize_text(text).encode("utf-8", "surrogatepass"))


class Collection:
    """One collection, opened for a caller by `Collections.open` or `sameas.open_collection`."""

    def __init__(
        self, database: Database, number: int, info: CollectionInfo, *, by: str, clock: Callable[[], datetime]
    ) -> None:
        self._database = database
        self.number = number
        self.opened_as = info
        self._by = by
        self._clock = clock

    def __repr__(self) -> str:
        return f"<Collection {self.name!r} of {self.opened_as.documents} documents>"

    @property
    def id(self) -> str:
        return self.opened_as.id

    @property
    def name(self) -> str:
        return self.opened_as.name

    @property
    def base(self) -> str:
        return self.opened_as.base

    @property
    def database(self) -> Database:
        return self._database

    @cached_property
    def ontology(self) -> Ontology:
        with self._rows() as session:
            ((data, _, _),) = session.run("collection_ontology", collection=self.number)
        return msgspec.msgpack.decode(data, type=Ontology)

    @cached_property
    def ontology_source(self) -> str:
        """The file or name that the ontology was read from; a learned model may lie beside it."""
        with self._rows() as session:
            ((_, _, source),) = session.run("collection_ontology", collection=self.number)
        return str(source)

    @cached_property
    def traits(self) -> Traits:
        return Traits(self.ontology)

    @contextmanager
    def _rows(self) -> Iterator[Session]:
        """The rows as they are now, while the collection is there: its number may be another's after it."""
        with self._database.reading() as session:
            if session.one("is_collection", collection=self.number, id=self.id) is None:
                raise CollectionNotFoundError(_REMOVED)
            yield session

    @contextmanager
    def _writing(self) -> Iterator[tuple[Session, int, int]]:
        """A transaction that nobody else writes beside; with the revision and the next number for a row."""
        with self._database.transaction() as session:
            locked = session.one("lock_collection", collection=self.number, id=self.id)
            if locked is None:
                raise CollectionNotFoundError(_REMOVED)
            yield session, *locked

    def info(self) -> CollectionInfo:
        """How much is in it now."""
        with self._rows() as session:
            rows = session.run("collection_info", collection=self.number)
        return info_of(rows[0], role=self.opened_as.role)

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """One state of the collection, for several questions or a long answer."""
        with self._rows() as session:
            yield Reader(session, self.number, base=self.base, traits=self.traits)

    @contextmanager
    def changing(self) -> Iterator[Changing]:
        """One change, all of it or nothing."""
        traits = self.traits
        with self._writing() as (session, revision, next_id):
            yield Changing(session, self.number, traits=traits, revision=revision, next_id=next_id)

    # Documents

    def put_document(
        self,
        source: Source,
        *,
        digest: str,
        said: Said,
        run: str = "",
        complete: bool = True,
        locate: Locate | None = None,
        kind: str = "text",
        expecting: str | None = None,
    ) -> Change:
        """What a document says, under a name. Another text that had the name loses it, and goes with its last one.

        The same text again costs nothing; a partial reading is replaced by the next one. `expecting` is the SHA-256 of
        the content that waited under the name: where another one waits by now, nothing is changed.
        """
        if kind != "known":
            _check_document_name(source.name)
        drafted = draft(said, traits=self.traits, locate=locate, known=kind == "known")
        status = "complete" if complete else "partial"
        with self.changing() as change:
            session, now = change.session, self._now()
            if expecting is not None and not self._still_waits(session, source.name, expecting):
                return Change(revision=change.revision)
            erased = Erased(session, self.number)
            kept, _ = erased.filtered(drafted)
            if names_erased := kept != drafted:
                drafted, run = kept, ""
            if erased.is_source(source.name):
                raise CollectionError(f"{source.name!r} was taken out because it names something that was erased")
            row = session.one("source", collection=self.number, name=source.name)
            before = None if row is None else row[0]
            found = session.one("document_by_digest", collection=self.number, digest=digest)
            is_there = found is not None and found[1] == "complete" and (found[2] == run or not run)
            former: dict[tuple[str, str], int] = {}
            if found is not None and is_there:
                document = found[0]
            else:
                if found is not None:
                    former = change.remember_former(found[0])
                    change.remove_document(found[0])
                elif before is not None:
                    former = change.remember_former(before)
                document = change.add_document(digest, drafted, run=run, status=status, now=now, kind=kind)
                change.keep_ids(former, document)
                if found is not None:
                    session.run("move_sources", collection=self.number, document=found[0], to=document, status=status)
            told = (source.source_time, source.path, source.media_type, source.title, source.size)
            renamed = row is None or before != document or (row[2], row[3], *row[5:8]) != told
            # What changes nothing was not read anew either: whoever has a copy of the collection is told of no change.
            read_at = now if row is None or renamed or not is_there else row[8]
            self._put_source(session, source, status=status, document=document, now=read_at)
            removed: list[str] = []
            if before is not None and before != document and (found is None or before != found[0]):
                removed = self._drop_if_nameless(change, before)
            if renamed:
                change.note_document(document)
            revision = change.finish() if renamed or not is_there else change.revision
        return Change(
            revision=revision, added=not is_there, removed=tuple(removed), entities=len(drafted.nodes),
            claims=len(drafted.claims), names_erased=names_erased,
        )  # fmt: skip

    def wait_for(self, source: Source, content: bytes, *, options: str = "{}") -> None:
        """Write down a text that is to be read; what the name stands for now stays until then."""
        _check_document_name(source.name)
        with self._writing() as (session, *_):
            row = session.one("source", collection=self.number, name=source.name)
            document, read_at = (None, "") if row is None else (row[0], row[8])
            self._put_source(
                session, source, status="waiting", document=document, now=read_at, content=content, options=options
            )

    def waiting(self, *, limit: int = 100) -> list[str]:
        """Names of texts that wait to be read."""
        with self._rows() as session:
            return [row[0] for row in session.run("waiting_sources", collection=self.number, most=limit)]

    def waiting_source(self, name: str) -> tuple[Source, bytes, str] | None:
        """One of them, with its content and how it is to be read."""
        with self._rows() as session:
            row = session.one("waiting_source", collection=self.number, name=name)
        if row is None:
            return None
        content, media_type, path, title, source_time, size, options = row
        source = Source(name=name, path=path, media_type=media_type, title=title, source_time=source_time, size=size)
        return source, bytes(content), options

    def _still_waits(self, session: Session, name: str, expected: str) -> bool:
        row = session.one("waiting_source", collection=self.number, name=name)
        return row is not None and sha256_hex(bytes(row[0])) == expected

    def note_failure(self, source: Source, error: str, *, expecting: str | None = None) -> None:
        """Why a source could not be read. What the name stood for before stays."""
        with self._writing() as (session, *_):
            if expecting is not None and not self._still_waits(session, source.name, expecting):
                return
            if session.one("source", collection=self.number, name=source.name) is None:
                self._put_source(session, source, status="failed", document=None, now="")
            session.run(
                "note_failure", collection=self.number, name=source.name, error=error[:2000], read_at=self._now()
            )

    def retry_failed(self) -> int:
        """Have what failed read again, where its content was kept here; how many."""
        with self._writing() as (session, *_):
            session.run("note_waiting", collection=self.number)
            return session.changed

    def remove_name(self, name: str) -> Change:
        """Take a name away; its document goes with the last one."""
        with self.changing() as change:
            row = change.session.one("source", collection=self.number, name=name)
            if row is None:
                raise DocumentNotFoundError(f"the collection has no document called {name!r}")
            change.session.run("remove_source", collection=self.number, name=name)
            removed = self._drop_if_nameless(change, row[0]) if row[0] is not None else []
            if row[0] is not None and not removed:
                change.note_document(row[0])
            revision = change.finish() if row[0] is not None else change.revision
        return Change(revision=revision, removed=tuple(removed))

    def _put_source(
        self,
        session: Session,
        source: Source,
        *,
        status: str,
        document: int | None,
        now: str,
        content: bytes | None = None,
        options: str = "{}",
    ) -> None:
        session.run(
            "put_source", collection=self.number, name=source.name, document=document, status=status, path=source.path,
            error="", media_type=source.media_type, title=source.title, size=source.size,
            source_time=source.source_time, read_at=now, folder=source.folder, content=content, options=options,
        )  # fmt: skip

    def _drop_if_nameless(self, change: Changing, document: int) -> list[str]:
        if change.session.run("sources_of_document", collection=self.number, document=document):
            return []
        return [change.remove_document(document)]

    def documents(self, *, status: str = "", after: str = "", limit: int = 50) -> list[DocumentInfo]:
        """Names after a name, each with its document."""
        with self.reading() as reader:
            return reader.sources(status=status, after=after, limit=limit)

    def document(self, digest: str) -> DocumentInfo:
        """A document with all its names."""
        with self.reading() as reader:
            return reader.document(digest)

    def folder(self, folder: str) -> dict[str, tuple[str, int, str]]:
        """What was read from a folder: status, size and time of each name."""
        with self._rows() as session:
            rows = session.run("sources_of_folder", collection=self.number, folder=folder)
        return {name: (status, size, time) for name, status, size, time, _ in rows}

    def has_name(self, name: str) -> bool:
        """Whether a document is there under this name."""
        with self._rows() as session:
            row = session.one("source", collection=self.number, name=name)
        return row is not None and row[0] is not None

    def has_source(self, name: str) -> bool:
        """Whether anything is known under this name, also if it could not be read."""
        with self._rows() as session:
            return session.one("source", collection=self.number, name=name) is not None

    def folder_of(self, name: str) -> str:
        """The folder that is kept in step in which a name was found, if any."""
        with self._rows() as session:
            row = session.one("source", collection=self.number, name=name)
        return "" if row is None else str(row[9])

    def sync_state(self) -> SyncState:
        """How far the work is."""
        with self._rows() as session:
            counts: dict[str, int] = dict(session.run("count_statuses", collection=self.number))
            ((*_, revision, _, _, _, _),) = session.run("collection_info", collection=self.number)
        return SyncState(
            revision=revision, waiting=counts.get("waiting", 0), complete=counts.get("complete", 0),
            partial=counts.get("partial", 0), failed=counts.get("failed", 0),
        )  # fmt: skip

    def changes_since(self, revision: int) -> Changes:
        """Which entities and documents were touched after a revision, those that are gone too."""
        with self._rows() as session:
            rows = session.run("changes", collection=self.number, revision=revision)
            ((*_, now, _, _, _, _),) = session.run("collection_info", collection=self.number)
            ((erased,),) = session.run("erased_since", collection=self.number, revision=revision)
        return Changes(
            erased=erased > 0,
            revision=now,
            entities=tuple(id_ for kind, id_ in rows if kind == "entity"),
            documents=tuple(id_ for kind, id_ in rows if kind == "document"),
        )

    # The graph

    def entities(self, *, after: tuple[str, str] = ("", ""), limit: int = 50) -> list[EntityInfo]:
        with self.reading() as reader:
            return reader.entities(after=after, limit=limit)

    def entity(self, id_: str) -> EntityPage:
        """All that is known of one thing, by its id or IRI; a merged id is followed."""
        with self.reading() as reader:
            return reader.page(id_)

    def find(self, named: str) -> str:
        """The id of the one thing that an id, an IRI or a name stands for."""
        with self.reading() as reader:
            return reader.find(named)

    def statements(self, *, evidence: int | None = None) -> Iterator[Statement]:
        """Every resolved statement."""
        with self.reading() as reader:
            for _, statement in reader.all_statements(evidence=evidence):
                yield statement

    def contradictions(self) -> list[Contradiction]:
        with self.reading() as reader:
            return list(contradictions(reader))

    def pairs(self) -> list[Pair]:
        """Doubtful pairs, likeliest first."""
        with self.reading() as reader:
            return list(reader.pairs())

    # Decisions

    def decide(self, verdict: Verdict, a: str, b: str, *, reason: str = "") -> Decision:
        """Two things are the same, or different, from now on and through every later change."""
        with self.changing() as change:
            reader = Reader(change.session, self.number, base=self.base, traits=self.traits)
            if (known := decided_before(reader, verdict, a, b)) is not None:
                return known
            made = decide(change, reader, verdict, a, b, by=self._by, reason=reason, now=self._now())
            self._audit(change.session, verdict, {"decision": made.id, "a": made.a, "b": made.b, "reason": reason})
            change.finish()
            return reader.decision(made.id)

    def undo(self, decision: str) -> Decision:
        """A decision is not in force any more; that it was made stays known."""
        with self.changing() as change:
            undo(change, decision, by=self._by, now=self._now())
            self._audit(change.session, "undo", {"decision": decision})
            change.finish()
            return Reader(change.session, self.number, base=self.base, traits=self.traits).decision(decision)

    def decisions(self, *, undone: bool = False, before: str = "", limit: int = _ALL) -> list[Decision]:
        """What was decided, newest first."""
        with self.reading() as reader:
            return [one for one in reader.decisions(before=before, limit=limit) if undone or not one.undone_at]

    # Known things, erasure, damage, files

    def link_known(self, name: str, data: bytes) -> Change:
        """Link a list of known things (CSV or a graph); the list of this name before is replaced."""
        graph = read_known(data, name=name, index=self.traits.index)
        digest = "sha256-" + sha256_hex(b"known " + name.encode() + b"\0" + data)
        source = Source(name=LIST_PREFIX + name, media_type="known", size=len(data))
        return self.put_document(source, digest=digest, said=graph, kind="known")

    def erase(self, named: str, *, reason: str = "", before: Callable[[Erasure], None] | None = None) -> Erasure:
        """Erase a person or thing. The runs that it names must be deleted by the caller: by `before`, which is called
        with all of them while nothing is changed yet, so that a crash never leaves them behind with nobody who knows
        them; it may be called again for documents that came meanwhile.
        """
        told: frozenset[str] | None = None
        while True:
            with self.reading() as reader:
                number, id_, _ = reader.resolve_id(reader.find(named))
                self._make_sure_nothing_waits(reader.session)
                plan = plan_erasure(reader.session, self.number, number, traits=self.traits)
            if before is not None and (told is None or not plan.runs <= told):
                before(Erasure(documents=len(plan.documents), claims=0, evidence=0, runs=tuple(sorted(plan.runs))))
                told = plan.runs if told is None else told | plan.runs
            erased = self._erase(id_, plan, reason=reason, told=told)
            if erased is not None:
                self._database.truncate_log()
                return erased

    def _erase(self, id_: str, plan: ErasurePlan, *, reason: str, told: frozenset[str] | None) -> Erasure | None:
        with self.changing() as change:
            session = change.session
            self._make_sure_nothing_waits(session)
            reader = Reader(session, self.number, base=self.base, traits=self.traits)
            number, now, _ = reader.resolve_id(id_)
            merged = [row[1] for row in session.run("merged_into", collection=self.number, entity=number)]
            erased = erase(change, number, plan=plan, told=told, traits=self.traits, now=self._now())
            if erased is None:
                return None
            self._audit(session, "erase", {"reason": reason})
            revision = change.finish()
            for gone in (now, *merged):
                session.run("clear_changed_entity", collection=self.number, id=gone)
        return msgspec.structs.replace(erased, revision=revision)

    def _make_sure_nothing_waits(self, session: Session) -> None:
        if session.run("waiting_sources", collection=self.number, most=1):
            raise CollectionError("texts wait to be read and may name it. Erase it when they are done")

    def is_erased_source(self, name: str) -> bool:
        """Whether a document of this name was taken out because its name names something that was erased."""
        with self._rows() as session:
            return Erased(session, self.number).is_source(name)

    def check(self) -> list[Finding]:
        """What is wrong with the rows; nothing, if all is well."""
        with self._rows() as session:
            return check(session, self.number)

    def export(self, target: IO[bytes], *, to: ExportFormat = "nquads") -> None:
        """Write the whole, piece by piece."""
        if to == "html":
            info, outline = self.info(), outline_of(self.ontology)
            with self.reading() as reader:
                write_page(reader, target, info=info, outline=outline)
            return
        decisions = self.decisions()
        with self.reading() as reader:
            write_collection(reader, target, to=to, decisions=decisions)

    # Members

    def members(self) -> dict[str, Role]:
        with self._rows() as session:
            return dict(session.run("members", collection=self.number))

    def put_member(self, principal: str, role: Role) -> None:
        with self._writing() as (session, *_):
            session.run("put_member", collection=self.number, principal=principal, role=role)
            self._audit(session, "member", {"principal": principal, "role": role})

    def remove_member(self, principal: str) -> None:
        with self._writing() as (session, *_):
            session.run("remove_member", collection=self.number, principal=principal)
            self._audit(session, "member-removed", {"principal": principal})

    def _audit(self, session: Session, action: str, detail: dict[str, str]) -> None:
        session.run(
            "add_audit", collection=self.number, id=str(uuid7()), now=self._now(), done_by=self._by, action=action,
            detail=msgspec.json.encode(detail).decode(),
        )  # fmt: skip

    def _now(self) -> str:
        return instant(self._clock())


def _check_document_name(name: str) -> None:
    if name.startswith(LIST_PREFIX):
        raise CollectionError(f"the name {name!r} is that of a list of known things. Give the document another one")
