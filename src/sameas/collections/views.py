"""Reading a collection: rows put together to entities, statements, pages and contradictions.

Rule: a reader lives in one transaction and sees one state. What is gone through may be long: it is yielded, not
listed.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice, product

import msgspec

from sameas.collections.drafts import Place
from sameas.collections.errors import DocumentNotFoundError, EntityAmbiguousError, EntityNotFoundError
from sameas.collections.model import (
    CollectionEvidence,
    Contradiction,
    DocumentInfo,
    EntityInfo,
    EntityPage,
    LiteralValue,
    MatchReason,
    Pair,
    SourceName,
    Statement,
)
from sameas.collections.names import hashed, normal_name, sought_keys
from sameas.collections.scoring import DOUBTFUL, probability
from sameas.collections.traits import Traits
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
        self._collection = collection
        self._base = base
        self._traits = traits
        self._documents: dict[int, tuple[str, str]] = {}

    # Documents

    def document(self, digest: str) -> DocumentInfo:
        row = self.session.one("document_by_digest", collection=self._collection, digest=digest)
        if row is None:
            raise DocumentNotFoundError(f"there is no document {digest!r} in the collection")
        id_, status, run, added_at, entities, claims = row
        return self._document((id_, digest, status, run, added_at, entities, claims))

    def documents(self, *, after: str = "", limit: int = 50) -> list[DocumentInfo]:
        """Texts after a digest, in their order."""
        rows = self.session.run("documents", collection=self._collection, after=after, most=limit)
        return [self._document(row) for row in rows]

    def sources(self, *, status: str = "", after: str = "", limit: int = 50) -> list[DocumentInfo]:
        """Names after a name, each with its document as far as there is one."""
        values = {"collection": self._collection, "after": after, "most": limit}
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
            found = self.session.one("document", collection=self._collection, document=document)
            assert found is not None
            digest, _, run, added_at, entities, claims, _ = found
        return DocumentInfo(
            digest=digest, iri=self.document_iri(digest) if digest else "", status=name.status, names=(name,), run=run,
            added_at=added_at, entities=entities, claims=claims,
        )  # fmt: skip

    def _document(self, row: Row) -> DocumentInfo:
        id_, digest, status, run, added_at, entities, claims = row
        names = self.session.run("sources_of_document", collection=self._collection, document=id_)
        return DocumentInfo(
            digest=digest, iri=self.document_iri(digest), status=status, run=run, added_at=added_at, entities=entities,
            claims=claims, names=tuple(source_name(one) for one in names),
        )  # fmt: skip

    def document_iri(self, digest: str) -> str:
        """The IRI of a text: the same under whatever ontology, extractor or name."""
        return f"{self._base}document-{digest}"

    def entity_iri(self, id_: str) -> str:
        return f"{self._base}{id_}"

    # Entities

    def resolve_id(self, id_: str) -> tuple[int, str, str]:
        """Number, id and name of the thing that an id leads to."""
        row = self.session.one("entity_by_id", collection=self._collection, id=id_.removeprefix(self._base))
        if row is not None and row[3] is not None:
            row = self.session.one("entity_by_number", collection=self._collection, entity=row[3])
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
        families = {""} | {self._traits.family((iri,)) for iri in self._traits.index.classes}
        found: dict[str, Row] = {}
        for family in sorted(families):
            for row in self.session.run(
                "entities_named", collection=self._collection, hash=hashed("name", family, key), most=limit
            ):
                found[row[1]] = row
        return list(found.values())

    def search(self, text: str, *, limit: int = 50) -> list[EntityInfo]:
        """Things whose name is, or may be, this one: aliases, initials and slips too; the nearest first."""
        key = normal_name(text)
        found: dict[int, Row] = {row[0]: row for row in self.named(text, limit=limit)}
        families = {""} | {self._traits.family((iri,)) for iri in self._traits.index.classes}
        for family in sorted(families):
            for sought in sought_keys(key, (), family):
                own = {"collection": self._collection, "hash": sought.hash, "most": limit}
                for row in self.session.run("entities_named", **own):
                    found.setdefault(row[0], row)
        return [self.entity_info(*row) for row in islice(found.values(), limit)]

    def entity_info(self, number: int, id_: str, name: str) -> EntityInfo:
        atoms = self.session.run("atoms_of_entity", collection=self._collection, entity=number)
        names: set[str] = set()
        types: dict[str, int] = {}
        known: set[str] = set()
        for atom in atoms:
            own = {"collection": self._collection, "atom": atom[0]}
            names.update(row[1] for row in self.session.run("names_of_atom", **own))
            for type_, uses in self.session.run("types_of_atom", **own):
                types[type_] = types.get(type_, 0) + uses
            known.update(trait[2] for trait in msgspec.json.decode(atom[4]) if trait[0] == "known")
        ((documents,),) = self.session.run("documents_of_entity", collection=self._collection, entity=number)
        return EntityInfo(
            id=id_, iri=self.entity_iri(id_), name=name, types=tuple(sorted(types, key=lambda one: (-types[one], one))),
            aliases=tuple(sorted(names - {name})), documents=documents, same_as=tuple(sorted(known)),
        )  # fmt: skip

    def entity(self, id_: str) -> EntityInfo:
        return self.entity_info(*self.resolve_id(id_))

    def all_entities(self) -> Iterator[EntityInfo]:
        """Every thing, oldest first."""
        for number, id_, name in self.session.stream("all_entities", collection=self._collection):
            yield self.entity_info(number, id_, name)

    def all_merged(self) -> Iterator[tuple[str, str]]:
        """Every id that leads to another, and that one."""
        yield from ((id_, now) for id_, now in self.session.stream("all_merged", collection=self._collection))

    def entities(self, *, after: tuple[str, str] = ("", ""), limit: int = 50) -> list[EntityInfo]:
        """Things after a name and id, in their order."""
        rows = self.session.run("entities", collection=self._collection, name=after[0], id=after[1], most=limit)
        return [self.entity_info(*row) for row in rows]

    def page(self, id_: str) -> EntityPage:
        """All that is known of one thing."""
        number, now, name = self.resolve_id(id_)
        asked = id_.removeprefix(self._base)
        atoms = [row[0] for row in self.session.run("atoms_of_entity", collection=self._collection, entity=number)]
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
            for row in self.session.stream("nodes_of_atom", collection=self._collection, atom=atom):
                yield from self._evidence(row[1], row[5])

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
        row = self.session.one("document_by_digest", collection=self._collection, digest=digest)
        if row is None:
            raise DocumentNotFoundError(f"there is no document {digest!r} in the collection")
        claims = self.session.run("claims_of_document", collection=self._collection, document=row[0])
        return list(self._put_together(claims, evidence))

    def all_statements(self, *, evidence: int | None = None, after: int = 0) -> Iterator[tuple[int, Statement]]:
        """Every resolved statement with the number of its subject, one subject after the other."""
        for number, _, _ in self.session.stream("entities_after", collection=self._collection, after=after):
            for statement in self._of_entity("claims_of_subject", number, evidence):
                yield number, statement

    def _of_entity(self, statement: str, number: int, evidence: int | None) -> list[Statement]:
        atoms = [row[0] for row in self.session.run("atoms_of_entity", collection=self._collection, entity=number)]
        return list(self._put_together(self._claims(statement, atoms, most=_ALL), evidence))

    def _claims(self, statement: str, atoms: Iterable[int], *, most: int) -> Iterator[Row]:
        for atom in atoms:
            yield from self.session.run(statement, collection=self._collection, atom=atom, most=most)

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
                    places.extend(self._evidence(row[13], row[12]))
            yield Statement(
                subject=subject_id, predicate=predicate, object=object_id or "", subject_name=subject_name,
                value=None if object_ is not None else LiteralValue(value=value, datatype=datatype, unit=unit),
                object_name=object_name or "", confidence=max(row[11] for row in rows),
                documents=len({row[13] for row in rows}), evidence=tuple(places[:evidence]),
            )  # fmt: skip

    def _evidence(self, document: int, places: str) -> Iterator[CollectionEvidence]:
        digest, name = self._document_names(document)
        for start, end, text, page, paragraph in _PLACES.decode(places):
            yield CollectionEvidence(
                document=digest, start=start, end=end, text=text, page=page, paragraph=paragraph, document_name=name
            )

    def _document_names(self, document: int) -> tuple[str, str]:
        if document not in self._documents:
            row = self.session.one("document", collection=self._collection, document=document)
            names = self.session.run("sources_of_document", collection=self._collection, document=document)
            if len(self._documents) > 10_000:
                self._documents.clear()
            self._documents[document] = ("" if row is None else row[0], names[0][0] if names else "")
        return self._documents[document]

    # Doubts

    def pairs(self) -> Iterator[Pair]:
        """Things that may be one, likeliest first; what was decided is not asked again."""
        decided = self._decided_pairs()
        seen: set[tuple[int, int]] = set()
        for low, high, logit, reasons, a, b in self.session.run(
            "doubtful_pairs", collection=self._collection, least=DOUBTFUL
        ):
            pair = (min(a, b), max(a, b))
            if pair in seen or pair in decided:
                continue
            seen.add(pair)
            told = [self._reason(low, high, *reason) for reason in _REASONS.decode(reasons)]
            yield Pair(
                a=self._by_number(pair[0]), b=self._by_number(pair[1]), probability=round(probability(logit), 4),
                reasons=tuple(sorted(told, key=lambda reason: -abs(reason.weight))),
            )  # fmt: skip

    def _decided_pairs(self) -> set[tuple[int, int]]:
        found: set[tuple[int, int]] = set()
        for row in self.session.run("decisions", collection=self._collection, before="", most=_ALL):
            if not row[9]:
                a, b = self.sides(row[0])
                found.update((min(one, other), max(one, other)) for one in a for other in b)
        return found

    @cached_property
    def told_apart(self) -> dict[str, tuple[str, ...]]:
        """By the id of a thing, the ids of those that somebody said it is not."""
        found: dict[str, set[str]] = {}
        for row in self.session.run("decisions", collection=self._collection, before="", most=_ALL):
            if row[1] == "different" and not row[9]:
                a, b = ({self._by_number(number).id for number in side} for side in self.sides(row[0]))
                for one, other in product(a, b):
                    if one != other:
                        found.setdefault(one, set()).add(other)
                        found.setdefault(other, set()).add(one)
        return {one: tuple(sorted(others)) for one, others in found.items()}

    def sides(self, decision: str) -> tuple[list[int], list[int]]:
        """The numbers of the things on both sides of a decision, as they are now."""
        found: dict[str, list[int]] = {"a": [], "b": []}
        for side, digest, _, _ in self.session.run("anchors", collection=self._collection, decision=decision):
            atom = self.session.one("atom_by_digest", collection=self._collection, digest=digest)
            if atom is not None and atom[7] not in found[side]:
                found[side].append(atom[7])
        return found["a"], found["b"]

    def _by_number(self, number: int) -> EntityInfo:
        row = self.session.one("entity_by_number", collection=self._collection, entity=number)
        assert row is not None
        return self.entity_info(row[0], row[1], row[2])

    def _reason(self, low: int, high: int, kind: str, weight: float, detail: str) -> MatchReason:
        if kind == "shared":
            predicate, direction, token = detail.split()
            statement = "example_object" if direction == ">" else "example_subject"
            row = self.session.one(
                statement, collection=self._collection, atom=low, predicate=predicate, token=int(token)
            )
            name = "" if row is None else row[0] or row[1]
            detail = f"{predicate} {name}" if direction == ">" else f"{name} {predicate}"
        return MatchReason(kind=kind, weight=round(weight, 2), detail=detail)

    def contradictions(self) -> Iterator[Contradiction]:
        """Two values of a functional property, and classes that exclude each other."""
        for predicate in sorted(self._traits.functional):
            for number, _ in self.session.run("many_values", collection=self._collection, predicate=predicate):
                row = self.session.one("entity_by_number", collection=self._collection, entity=number)
                assert row is not None
                sides = [one for one in self.statements_of(row[1]) if one.predicate == predicate]
                yield Contradiction(
                    kind="functional", entity=self._by_number(number), predicate=predicate, sides=tuple(sides)
                )
        yield from self._disjoint()

    def _disjoint(self) -> Iterator[Contradiction]:
        types = [row[0] for row in self.session.run("types_in_use", collection=self._collection)]
        for one, other in self._traits.disjoint_pairs(types):
            rows = self.session.run("entities_of_types", collection=self._collection, one=one, other=other)
            for (number,) in rows:
                evidence = tuple(tuple(self._said_to_be(number, type_)) for type_ in (one, other))
                yield Contradiction(
                    kind="disjoint", entity=self._by_number(number), predicate="", classes=(one, other),
                    evidence=evidence,
                )  # fmt: skip

    def _said_to_be(self, number: int, type_: str) -> Iterator[CollectionEvidence]:
        for atom in self.session.run("atoms_of_entity", collection=self._collection, entity=number):
            for row in self.session.run("nodes_of_atom", collection=self._collection, atom=atom[0]):
                if type_ in _TEXTS.decode(row[4]):
                    yield from islice(self._evidence(row[1], row[5]), 3)


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
