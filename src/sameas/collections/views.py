"""Reading a collection: rows put together to entities, statements, pages and contradictions, and small parts of the
graph to look at.

Rule: a reader lives in one transaction and sees one state. What is gone through may be long: it is yielded, not
listed. Of a part to look at there is never more than was asked for, however large the collection; what was left out is
counted.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice, product

import msgspec

from sameas.collections.drafts import Place
from sameas.collections.errors import (
    DecisionNotFoundError,
    DocumentNotFoundError,
    EntityAmbiguousError,
    EntityNotFoundError,
)
from sameas.collections.model import (
    CollectionEvidence,
    CollectionInfo,
    Decision,
    DocumentInfo,
    EntityInfo,
    EntityPage,
    LiteralValue,
    MatchReason,
    Pair,
    Role,
    SourceName,
    Statement,
    Told,
)
from sameas.collections.names import hashed, normal_name, sought_keys
from sameas.collections.scoring import DOUBTFUL, Traits, probability
from sameas.databases import Row, Session

_PLACES = msgspec.json.Decoder(tuple[Place, ...])
_REASONS = msgspec.json.Decoder(tuple[tuple[str, float, str], ...])
_TEXTS = msgspec.json.Decoder(tuple[str, ...])
# Claims that are put together for one page.
_ON_A_PAGE = 2_000
_ALL = 1 << 62
_MENTIONS_SHOWN = 100


class Reader:
    """One state of a collection."""

    def __init__(self, session: Session, collection: int, *, base: str, traits: Traits) -> None:
        self.session = session
        self.collection = collection
        self.base = base
        self.traits = traits
        self._documents: dict[int, tuple[str, str]] = {}

    # Documents

    def document(self, digest: str) -> DocumentInfo:
        row = self.session.one("document_by_digest", collection=self.collection, digest=digest)
        if row is None:
            raise DocumentNotFoundError(f"there is no document {digest!r} in the collection")
        id_, status, run, added_at, entities, claims = row
        return self._document((id_, digest, status, run, added_at, entities, claims))

    def documents(self, *, after: str = "", limit: int = 50) -> list[DocumentInfo]:
        """Texts after a digest, in their order."""
        rows = self.session.run("documents", collection=self.collection, after=after, most=limit)
        return [self._document(row) for row in rows]

    def sources(self, *, status: str = "", after: str = "", limit: int = 50) -> list[DocumentInfo]:
        """Names after a name, each with its document as far as there is one."""
        values = {"collection": self.collection, "after": after, "most": limit}
        rows = (
            self.session.run("sources_of_status", **values, status=status)
            if status
            else self.session.run("sources", **values)
        )
        return [self._of_source(row) for row in rows]

    def _of_source(self, row: Row) -> DocumentInfo:
        *told, document, _ = row
        name = source_name(told)
        digest, run, added_at, entities, claims = "", "", "", 0, 0
        if document is not None:
            found = self.session.one("document", collection=self.collection, document=document)
            assert found is not None
            digest, _, run, added_at, entities, claims, _ = found
        return DocumentInfo(
            digest=digest, iri=self.document_iri(digest) if digest else "", status=name.status, names=(name,), run=run,
            added_at=added_at, entities=entities, claims=claims,
        )  # fmt: skip

    def _document(self, row: Row) -> DocumentInfo:
        id_, digest, status, run, added_at, entities, claims = row
        names = self.session.run("sources_of_document", collection=self.collection, document=id_)
        return DocumentInfo(
            digest=digest, iri=self.document_iri(digest), status=status, run=run, added_at=added_at, entities=entities,
            claims=claims, names=tuple(source_name(one) for one in names),
        )  # fmt: skip

    def document_iri(self, digest: str) -> str:
        """The IRI of a text: the same under whatever ontology, extractor or name."""
        return f"{self.base}document-{digest}"

    def entity_iri(self, id_: str) -> str:
        return f"{self.base}{id_}"

    # Entities

    def resolve_id(self, id_: str) -> tuple[int, str, str]:
        """Number, id and name of the thing that an id leads to."""
        row = self.session.one("entity_by_id", collection=self.collection, id=id_.removeprefix(self.base))
        if row is not None and row[3] is not None:
            row = self.session.one("entity_by_number", collection=self.collection, entity=row[3])
        if row is None:
            raise EntityNotFoundError(f"there is nothing with the id {id_!r} in the collection")
        return row[0], row[1], row[2]

    def find(self, named: str) -> str:
        """The id of the one thing that an id, an IRI or a name stands for."""
        try:
            return self.resolve_id(named)[1]
        except EntityNotFoundError:
            found: dict[str, str] = {row[1]: row[2] for row in self.named(named)}
        if not found:
            raise EntityNotFoundError(
                f"nothing in the collection is called {named!r}. Search for it, or give its id"
            ) from None
        if len(found) > 1:
            ids = ", ".join(sorted(found))
            raise EntityAmbiguousError(f"{len(found)} things are called {named!r}: {ids}. Give the id of one")
        return next(iter(found))

    def named(self, name: str, *, limit: int = 50) -> list[Row]:
        """Number, id and name of things that have a name or alias, whatever their class."""
        key = normal_name(name)
        families = {""} | {self.traits.family((iri,)) for iri in self.traits.index.classes}
        found: dict[str, Row] = {}
        for family in sorted(families):
            for row in self.session.run(
                "entities_named", collection=self.collection, hash=hashed("name", family, key), most=limit
            ):
                found[row[1]] = row
        return list(found.values())

    def search(self, text: str, *, limit: int = 50) -> list[EntityInfo]:
        """Things whose name is, or may be, this one: aliases, initials and slips too; the nearest first."""
        key = normal_name(text)
        found: dict[int, Row] = {row[0]: row for row in self.named(text, limit=limit)}
        families = {""} | {self.traits.family((iri,)) for iri in self.traits.index.classes}
        for family in sorted(families):
            for sought in sought_keys(key, (), family):
                own = {"collection": self.collection, "hash": sought.hash, "most": limit}
                for row in self.session.run("entities_named", **own):
                    found.setdefault(row[0], row)
        return [self.entity_info(*row) for row in islice(found.values(), limit)]

    def entity_info(self, number: int, id_: str, name: str) -> EntityInfo:
        atoms = self.session.run("atoms_of_entity", collection=self.collection, entity=number)
        names: set[str] = set()
        types: dict[str, int] = {}
        known: set[str] = set()
        for atom in atoms:
            own = {"collection": self.collection, "atom": atom[0]}
            names.update(row[1] for row in self.session.run("names_of_atom", **own))
            for type_, uses in self.session.run("types_of_atom", **own):
                types[type_] = types.get(type_, 0) + uses
            known.update(trait[2] for trait in msgspec.json.decode(atom[4]) if trait[0] == "known")
        ((documents,),) = self.session.run("documents_of_entity", collection=self.collection, entity=number)
        return EntityInfo(
            id=id_, iri=self.entity_iri(id_), name=name, types=tuple(sorted(types, key=lambda one: (-types[one], one))),
            aliases=tuple(sorted(names - {name})), documents=documents, same_as=tuple(sorted(known)),
        )  # fmt: skip

    def entity(self, id_: str) -> EntityInfo:
        return self.entity_info(*self.resolve_id(id_))

    def all_entities(self) -> Iterator[EntityInfo]:
        """Every thing, oldest first."""
        for number, id_, name in self.session.stream("all_entities", collection=self.collection):
            yield self.entity_info(number, id_, name)

    def most_connected(self, *, limit: int) -> list[str]:
        """The ids of the things that most claims begin or end with."""
        return [row[1] for row in self.session.run("most_connected", collection=self.collection, most=limit)]

    def all_merged(self) -> Iterator[tuple[str, str]]:
        """Every id that leads to another, and that one."""
        yield from ((id_, now) for id_, now in self.session.stream("all_merged", collection=self.collection))

    def entities(self, *, after: tuple[str, str] = ("", ""), limit: int = 50) -> list[EntityInfo]:
        """Things after a name and id, in their order."""
        rows = self.session.run("entities", collection=self.collection, name=after[0], id=after[1], most=limit)
        return [self.entity_info(*row) for row in rows]

    def page(self, id_: str) -> EntityPage:
        """All that is known of one thing."""
        number, now, name = self.resolve_id(id_)
        asked = id_.removeprefix(self.base)
        atoms = [row[0] for row in self.session.run("atoms_of_entity", collection=self.collection, entity=number)]
        own = list(self._claims("claims_of_subject", atoms, most=_ON_A_PAGE))
        others = list(self._claims("claims_of_object", atoms, most=_ON_A_PAGE))
        mentions = list(islice(self._mentions(atoms), _MENTIONS_SHOWN + 1))
        return EntityPage(
            entity=self.entity_info(number, now, name),
            statements=tuple(self._put_together(own)),
            mentioned_by=tuple(self._put_together(others)),
            mentions=tuple(mentions[:_MENTIONS_SHOWN]),
            redirected_from=asked if asked != now else "",
            truncated=max(len(own), len(others)) >= _ON_A_PAGE or len(mentions) > _MENTIONS_SHOWN,
        )

    def _mentions(self, atoms: Iterable[int]) -> Iterator[CollectionEvidence]:
        for atom in atoms:
            for row in self.session.stream("nodes_of_atom", collection=self.collection, atom=atom):
                yield from self.evidence(row[1], row[5])

    # Statements

    def statements_of(self, id_: str, *, evidence: int | None = None) -> list[Statement]:
        """The resolved statements that begin with a thing."""
        number, *_ = self.resolve_id(id_)
        return self._of_entity("claims_of_subject", number, evidence)

    def statements_about(self, id_: str, *, evidence: int | None = None) -> list[Statement]:
        """The resolved statements that end with a thing."""
        number, *_ = self.resolve_id(id_)
        return self._of_entity("claims_of_object", number, evidence)

    def statements_in(self, digest: str, *, evidence: int | None = None) -> list[Statement]:
        """What one document says."""
        row = self.session.one("document_by_digest", collection=self.collection, digest=digest)
        if row is None:
            raise DocumentNotFoundError(f"there is no document {digest!r} in the collection")
        claims = self.session.run("claims_of_document", collection=self.collection, document=row[0])
        return list(self._put_together(claims, evidence))

    def all_statements(self, *, evidence: int | None = None, after: int = 0) -> Iterator[tuple[int, Statement]]:
        """Every resolved statement with the number of its subject, one subject after the other."""
        for number, _, _ in self.session.stream("entities_after", collection=self.collection, after=after):
            for statement in self._of_entity("claims_of_subject", number, evidence):
                yield number, statement

    def _of_entity(self, statement: str, number: int, evidence: int | None) -> list[Statement]:
        atoms = [row[0] for row in self.session.run("atoms_of_entity", collection=self.collection, entity=number)]
        return list(self._put_together(self._claims(statement, atoms, most=_ALL), evidence))

    def _claims(self, statement: str, atoms: Iterable[int], *, most: int) -> Iterator[Row]:
        for atom in atoms:
            yield from self.session.run(statement, collection=self.collection, atom=atom, most=most)

    def _put_together(self, claims: Iterable[Row], evidence: int | None = None) -> Iterator[Statement]:
        """One statement for each fact, with the evidence of all its claims."""
        found: dict[tuple[object, ...], list[Row]] = {}
        for row in claims:
            _, subject, _, _, predicate, object_, _, _, value, datatype, unit, *_ = row
            found.setdefault((subject, predicate, object_ or 0, value, datatype, unit), []).append(row)
        for rows in sorted(found.values(), key=lambda rows: (rows[0][2], rows[0][4], rows[0][6] or "", rows[0][8])):
            _, _, subject_id, subject_name, predicate, object_, object_id, object_name, value, datatype, unit, *_ = (
                rows[0]
            )
            places: list[CollectionEvidence] = []
            for row in rows:
                if evidence is None or len(places) < evidence:
                    places.extend(self.evidence(row[13], row[12]))
            yield Statement(
                subject=subject_id, predicate=predicate, object=object_id or "", subject_name=subject_name,
                value=None if object_ is not None else LiteralValue(value=value, datatype=datatype, unit=unit),
                object_name=object_name or "", confidence=max(row[11] for row in rows),
                documents=len({row[13] for row in rows}), evidence=tuple(places[:evidence]),
            )  # fmt: skip

    def evidence(self, document: int, places: str) -> Iterator[CollectionEvidence]:
        digest, name = self._document_names(document)
        for start, end, text, page, paragraph in _PLACES.decode(places):
            yield CollectionEvidence(
                document=digest, start=start, end=end, text=text, page=page, paragraph=paragraph, document_name=name
            )

    def _document_names(self, document: int) -> tuple[str, str]:
        if document not in self._documents:
            row = self.session.one("document", collection=self.collection, document=document)
            names = self.session.run("sources_of_document", collection=self.collection, document=document)
            if len(self._documents) > 10_000:
                self._documents.clear()
            self._documents[document] = ("" if row is None else row[0], names[0][0] if names else "")
        return self._documents[document]

    # Doubts

    def pairs(self) -> Iterator[Pair]:
        """Things that may be one, likeliest first; what was decided is not asked again."""
        decided = self.decided_pairs()
        seen: set[tuple[int, int]] = set()
        for low, high, logit, reasons, a, b in self.session.run(
            "doubtful_pairs", collection=self.collection, least=DOUBTFUL
        ):
            pair = (min(a, b), max(a, b))
            if pair in seen or pair in decided:
                continue
            seen.add(pair)
            told = [self._reason(low, high, *reason) for reason in _REASONS.decode(reasons)]
            yield Pair(
                a=self.by_number(pair[0]), b=self.by_number(pair[1]), probability=round(probability(logit), 4),
                reasons=tuple(sorted(told, key=lambda reason: -abs(reason.weight))),
            )  # fmt: skip

    def decision(self, id_: str) -> Decision:
        """What somebody decided, as things are now."""
        row = self.session.one("decision", collection=self.collection, id=id_)
        if row is None:
            raise DecisionNotFoundError(f"there is no decision {id_!r}. List the decisions")
        return self._decision(row)

    def decisions(self, *, before: str = "", limit: int = _ALL) -> list[Decision]:
        """What was decided, newest first, also what was taken back."""
        rows = self.session.run("decisions", collection=self.collection, before=before, most=limit)
        return [self._decision(row) for row in rows]

    def _decision(self, row: Row) -> Decision:
        id_, verdict, a, b, a_name, b_name, by, reason, at, undone_at, undone_by = row
        now = []
        for stored, numbers in zip((a, b), self.sides(id_), strict=True):
            found = (
                self.session.one("entity_by_number", collection=self.collection, entity=numbers[0]) if numbers else None
            )
            now.append(stored if found is None else found[1])
        return Decision(
            id=id_, verdict=verdict, a=now[0], b=now[1], a_name=a_name, b_name=b_name, by=by, reason=reason, at=at,
            undone_at=undone_at, undone_by=undone_by,
        )  # fmt: skip

    def decided_pairs(self) -> set[tuple[int, int]]:
        found: set[tuple[int, int]] = set()
        for row in self.session.run("decisions", collection=self.collection, before="", most=_ALL):
            if not row[9]:
                a, b = self.sides(row[0])
                found.update((min(one, other), max(one, other)) for one in a for other in b)
        return found

    @cached_property
    def told_apart(self) -> dict[str, tuple[str, ...]]:
        """By the id of a thing, the ids of those that somebody said it is not."""
        found: dict[str, set[str]] = {}
        for row in self.session.run("decisions", collection=self.collection, before="", most=_ALL):
            if row[1] == "different" and not row[9]:
                a, b = ({self.by_number(number).id for number in side} for side in self.sides(row[0]))
                for one, other in product(a, b):
                    if one != other:
                        found.setdefault(one, set()).add(other)
                        found.setdefault(other, set()).add(one)
        return {one: tuple(sorted(others)) for one, others in found.items()}

    def sides(self, decision: str) -> tuple[list[int], list[int]]:
        """The numbers of the things on both sides of a decision, as they are now."""
        found: dict[str, list[int]] = {"a": [], "b": []}
        for side, digest, _, _ in self.session.run("anchors", collection=self.collection, decision=decision):
            atom = self.session.one("atom_by_digest", collection=self.collection, digest=digest)
            if atom is not None and atom[7] not in found[side]:
                found[side].append(atom[7])
        return found["a"], found["b"]

    def by_number(self, number: int) -> EntityInfo:
        row = self.session.one("entity_by_number", collection=self.collection, entity=number)
        assert row is not None
        return self.entity_info(row[0], row[1], row[2])

    def _reason(self, low: int, high: int, kind: str, weight: float, detail: str) -> MatchReason:
        if kind == "shared":
            predicate, direction, token = detail.split()
            statement = "example_object" if direction == ">" else "example_subject"
            row = self.session.one(
                statement, collection=self.collection, atom=low, predicate=predicate, token=int(token)
            )
            name = "" if row is None else row[0] or row[1]
            detail = f"{predicate} {name}" if direction == ">" else f"{name} {predicate}"
        return MatchReason(kind=kind, weight=round(weight, 2), detail=detail)


def info_of(row: Row, *, role: Role | None) -> CollectionInfo:
    """A row of a collection as whoever has this role in it sees it."""
    _, id_, name, base, ontology_id, version, created_at, revision, documents, entities, claims, _ = row
    return CollectionInfo(
        id=id_, name=name, base=base, ontology_id=ontology_id, ontology_version=version, created_at=created_at,
        revision=revision, documents=documents, entities=entities, claims=claims, role=role,
    )  # fmt: skip


def source_name(row: Iterable[object]) -> SourceName:
    """A row of a source as its readers see it."""
    name, status, path, error, media_type, title, size, source_time, read_at = row
    return msgspec.convert(
        {
            "name": name, "status": status, "path": path, "error": error, "mediaType": media_type, "title": title,
            "size": size, "sourceTime": source_time, "readAt": read_at,
        },
        SourceName,
    )  # fmt: skip


# Sentences of a fact that are brought along; the thing's own page has all of them.
_EVIDENCE = 5


class Neighbourhood(Told, frozen=True, kw_only=True):
    """Things and the statements between them. `opened` are the things whose statements were looked for, `left_out`
    counts those of their statements that are not here.
    """

    opened: tuple[str, ...] = ()
    entities: tuple[EntityInfo, ...] = ()
    statements: tuple[Statement, ...] = ()
    left_out: int = 0


def around(reader: Reader, ids: Iterable[str], *, limit: int) -> Neighbourhood:
    """What some things are connected with: of each the facts that most documents tell, up to a limit."""
    entities: dict[str, EntityInfo] = {}
    statements: dict[tuple[object, ...], Statement] = {}
    opened: list[str] = []
    left_out = 0
    for id_ in ids:
        _, now, _ = reader.resolve_id(id_)
        opened.append(now)
        entities[now] = reader.entity(now)
        found = [*reader.statements_of(now, evidence=_EVIDENCE), *reader.statements_about(now, evidence=_EVIDENCE)]
        found.sort(key=lambda one: (-one.documents, not one.object))
        left_out += max(0, len(found) - limit)
        for one in found[:limit]:
            statements[one.subject, one.predicate, one.object, one.value] = one
            for end in filter(None, (one.subject, one.object)):
                if end not in entities:
                    entities[end] = reader.entity(end)
    return Neighbourhood(
        opened=tuple(opened),
        entities=tuple(entities.values()),
        statements=tuple(statements.values()),
        left_out=left_out,
    )
