"""What one document says, or a list of known things, made ready for the tables: things (nodes) and claims.

Rule: everything here is a function of the document and the ontology alone. A node's name, family and signature say
which atom it belongs to, in whatever order documents come. A list goes in like a document whose things are known by
their IRIs; two things of one list are never one. A CSV file has the columns `iri` and `name`, and may have `type`,
`aliases` (separated by `|`) and any number of columns whose head is a property of the ontology, by IRI or label.
"""

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Protocol

import msgspec

from sameas.collections.errors import CollectionError
from sameas.collections.names import hashed, normal_name
from sameas.collections.scoring import Trait, Traits
from sameas.extraction.graph.model import Entity, Evidence, KnowledgeGraph, Relation, Value
from sameas.extraction.text.document import is_iri
from sameas.ontology import vocabulary as v
from sameas.ontology.index import OntologyIndex
from sameas.ontology.limits import Limits
from sameas.ontology.parse import Value as Literal
from sameas.ontology.parse import parse_statements


class Said(Protocol):
    """A graph, as far as a collection takes it in."""

    @property
    def entities(self) -> Collection[Entity]: ...

    @property
    def relations(self) -> Collection[Relation]: ...


class Locate(Protocol):
    """Where a stretch of the text stands in the source: page and paragraph."""

    def __call__(self, start: int, end: int, /) -> tuple[int | None, int | None]: ...


Place = tuple[int, int, str, int | None, int | None]
"""Start, end, text, page, paragraph: a piece of evidence as the tables have it."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A thing in a document."""

    local_id: str
    name: str
    key: str
    family: str
    types: tuple[str, ...]
    aliases: tuple[str, ...]
    individual: str
    known: str
    mentions: tuple[Place, ...]
    signature: tuple[Trait, ...]


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A statement of a document; `object` is a local id, or empty where there is a value."""

    subject: str
    predicate: str
    object: str
    value: str
    datatype: str
    unit: str
    confidence: float
    status: str
    evidence: tuple[Place, ...]
    subject_token: int
    object_token: int


class Draft(msgspec.Struct, frozen=True):
    nodes: tuple[Node, ...]
    claims: tuple[Claim, ...]


def draft(said: Said, *, traits: Traits, locate: Locate | None = None, known: bool = False) -> Draft:
    """The nodes and claims of a graph. With `known` its entities are known things, whose id is their IRI."""
    relations = tuple(said.relations)
    by_subject: dict[str, list[Relation]] = {}
    for relation in relations:
        by_subject.setdefault(relation.subject, []).append(relation)
    keys = {entity.id: normal_name(entity.name) for entity in said.entities}
    nodes = []
    for entity in said.entities:
        own = by_subject.get(entity.id, ())
        iri = entity.id if known else ""
        signature = {*_signature(own, keys, entity.types, traits)}
        if iri or entity.individual:
            signature.add(Trait("known", "", iri or entity.individual))
        nodes.append(
            Node(
                local_id=entity.id,
                name=entity.name,
                key=keys[entity.id],
                family=traits.family(entity.types),
                types=entity.types,
                aliases=entity.aliases,
                individual=entity.individual,
                known=iri,
                mentions=_places(entity.mentions, locate),
                signature=tuple(sorted(signature)),
            )
        )
    claims = [_claim(relation, keys, locate) for relation in relations if relation.subject in keys]
    return Draft(tuple(nodes), tuple(claims))


def _signature(
    relations: Iterable[Relation], keys: dict[str, str], types: Sequence[str], traits: Traits
) -> Iterable[Trait]:
    values: dict[str, set[str]] = {}
    for relation in relations:
        token = _token(relation, keys)
        values.setdefault(relation.predicate, set()).add(token)
        if relation.predicate in traits.functional:
            yield Trait("one", relation.predicate, token)
        if relation.predicate in traits.inverse_functional:
            yield Trait("key", relation.predicate, token)
    for class_iri, properties in traits.keys:
        if all(prop in values for prop in properties) and traits.is_under(types, class_iri):
            joined = "\x1f".join(min(values[prop]) for prop in properties)
            yield Trait("key", f"{class_iri} {' '.join(properties)}", f"v:{joined}")


def _token(relation: Relation, keys: dict[str, str]) -> str:
    if relation.value is None:
        return f"e:{keys.get(relation.object, relation.object)}"
    return f"v:{' '.join(relation.value.value.casefold().split())} {relation.value.unit}".rstrip()


def _claim(relation: Relation, keys: dict[str, str], locate: Locate | None) -> Claim:
    value = relation.value
    return Claim(
        subject=relation.subject,
        predicate=relation.predicate,
        object=relation.object if value is None else "",
        value="" if value is None else value.value,
        datatype="" if value is None else value.datatype,
        unit="" if value is None else value.unit,
        confidence=relation.confidence,
        status=relation.status,
        evidence=_places(relation.evidence, locate),
        subject_token=hashed("token", f"e:{keys[relation.subject]}"),
        object_token=hashed("token", _token(relation, keys)),
    )


def _places(evidence: Iterable[Evidence], locate: Locate | None) -> tuple[Place, ...]:
    found: list[Place] = []
    for one in evidence:
        page, paragraph = locate(one.start, one.end) if locate is not None else (None, None)
        found.append((one.start, one.end, one.text, page, paragraph))
    return tuple(found)


_MOST = 1_000_000
# Names of known things are looked for like the labels of an ontology, and bounded like them.
_LIMITS = Limits()
_STRING = v.XSD + "string"
_OWN_COLUMNS = ("iri", "name", "type", "aliases")


class KnownListError(CollectionError):
    """A list of known things cannot be read."""


def read_known(data: bytes, *, name: str, index: OntologyIndex) -> KnowledgeGraph:
    """The known things in a file, by the kind that its name or content shows."""
    if name.lower().endswith((".csv", ".tsv")):
        return _from_csv(data, index, delimiter="\t" if name.lower().endswith(".tsv") else ",")
    return _from_graph(data, index, extension=PurePath(name).suffix)


def _from_csv(data: bytes, index: OntologyIndex, *, delimiter: str) -> KnowledgeGraph:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise KnownListError(f"the list is not UTF-8: {error}. Save it as UTF-8") from error
    rows = _rows(csv.reader(io.StringIO(text), delimiter=delimiter))
    heads = next(rows, [])
    if "iri" not in heads or "name" not in heads:
        raise KnownListError(f"the list needs the columns iri and name; it has {', '.join(heads) or 'none'}")
    properties = {head: _property(head, index) for head in heads if head not in _OWN_COLUMNS}
    entities, relations = [], []
    for number, cells in enumerate(filter(None, rows), 2):
        row = dict(zip(heads, cells, strict=False))
        if number > _MOST:
            raise KnownListError(f"the list has more than {_MOST} things")
        iri, called = row.get("iri", "").strip(), row.get("name", "").strip()
        if not called or not is_iri(iri):
            raise KnownListError(f"line {number}: a known thing needs an absolute IRI and a name")
        type_ = _class(row.get("type", "").strip(), index, number)
        aliases = tuple(one.strip() for one in row.get("aliases", "").split("|") if one.strip())
        entities.append(Entity(iri, called, (type_,) if type_ else (), aliases))
        relations += [
            Relation(iri, prop, value=Value(value.strip(), _STRING))
            for head, prop in properties.items()
            if (value := row.get(head, "")).strip()
        ]
    return _graph(entities, relations)


def _rows(reader: Iterable[list[str]]) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error as error:
        raise KnownListError(f"the list cannot be read: {error}. Is every quote closed?") from error


def _from_graph(data: bytes, index: OntologyIndex, *, extension: str) -> KnowledgeGraph:
    names: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    types: dict[str, list[str]] = {}
    said: list[tuple[str, str, Literal]] = []
    for subject, predicate, node in parse_statements(data, extension=extension.lower(), keep=None):
        if isinstance(node, Literal) and predicate in v.LABELS:
            names.setdefault(subject, []).append(node.text)
        elif isinstance(node, Literal) and predicate in v.ALT_LABELS:
            others.setdefault(subject, []).append(node.text)
        elif predicate == v.TYPE and isinstance(node, str) and node in index.classes:
            types.setdefault(subject, []).append(node)
        elif isinstance(node, Literal) and predicate in index.properties:
            said.append((subject, predicate, node))
    entities = []
    for iri in sorted(names):
        if not iri.startswith("_:"):
            first, *more = sorted(set(names[iri]))
            aliases = tuple(sorted({*more, *others.get(iri, ())}))
            entities.append(Entity(iri, first, tuple(sorted(types.get(iri, ()))), aliases))
    known = {entity.id for entity in entities}
    relations = [
        Relation(subject, predicate, value=Value(value.text, _STRING))
        for subject, predicate, value in said
        if subject in known
    ]
    if not entities:
        raise KnownListError("the graph names nothing: known things need a label, such as rdfs:label")
    return _graph(entities, relations)


def _graph(entities: Iterable[Entity], relations: Iterable[Relation]) -> KnowledgeGraph:
    once: Mapping[str, Entity] = {entity.id: entity for entity in entities}
    for entity in once.values():
        if len(entity.id) > _LIMITS.name_characters:
            raise KnownListError(f"an IRI has {len(entity.id)} characters, more than {_LIMITS.name_characters}")
        longest = max(map(len, (entity.name, *entity.aliases)))
        if longest > _LIMITS.label_characters:
            raise KnownListError(
                f"a name of {entity.id} has {longest} characters, more than {_LIMITS.label_characters}. Shorten it"
            )
    return KnowledgeGraph.of(entities=once.values(), relations={one.triple: one for one in relations}.values())


def _property(head: str, index: OntologyIndex) -> str:
    found = [iri for iri, one in index.properties.items() if head == iri or head in {t.value for t in one.labels}]
    if len(found) != 1:
        raise KnownListError(
            f"the column {head!r} is no property of the ontology. Use its IRI or label, or leave it out"
        )
    return found[0]


def _class(text: str, index: OntologyIndex, line: int) -> str:
    if not text:
        return ""
    found = [iri for iri, one in index.classes.items() if text == iri or text in {t.value for t in one.labels}]
    if len(found) != 1:
        raise KnownListError(f"line {line}: {text!r} is no class of the ontology. Use its IRI or label")
    return found[0]
