"""Lists of known things that a collection is linked to: CSV, or a graph.

Rule: a list goes in like a document whose things are known by their IRIs; two things of one list are never one. A CSV
file has the columns `iri` and `name`, and may have `type`, `aliases` (separated by `|`) and any number of columns
whose head is a property of the ontology, by IRI or label.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import PurePath

from sameas.collections.errors import CollectionError
from sameas.extraction.graph.model import Entity, KnowledgeGraph, Relation, Value
from sameas.extraction.text.document import is_iri
from sameas.ontology import vocabulary as v
from sameas.ontology.index import OntologyIndex
from sameas.ontology.parse import Value as Literal
from sameas.ontology.parse import parse_statements

_MOST = 1_000_000
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
    reader = csv.DictReader(io.StringIO(text), delimiter=delimiter)
    heads = reader.fieldnames or ()
    if "iri" not in heads or "name" not in heads:
        raise KnownListError(f"the list needs the columns iri and name; it has {', '.join(heads) or 'none'}")
    properties = {head: _property(head, index) for head in heads if head not in _OWN_COLUMNS}
    entities, relations = [], []
    for number, row in enumerate(reader, 2):
        if number > _MOST:
            raise KnownListError(f"the list has more than {_MOST} things")
        iri, called = (row["iri"] or "").strip(), (row["name"] or "").strip()
        if not called or not is_iri(iri):
            raise KnownListError(f"line {number}: a known thing needs an absolute IRI and a name")
        type_ = _class((row.get("type") or "").strip(), index, number)
        aliases = tuple(one.strip() for one in (row.get("aliases") or "").split("|") if one.strip())
        entities.append(Entity(iri, called, (type_,) if type_ else (), aliases))
        relations += [
            Relation(iri, prop, value=Value(value.strip(), _STRING))
            for head, prop in properties.items()
            if (value := row.get(head) or "").strip()
        ]
    return _graph(entities, relations)


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
