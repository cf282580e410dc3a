"""Kinds of values: what the ontology declares, and how XML Schema's types include each other."""

from sameas.ontology import vocabulary as v
from sameas.ontology.expression import ExpressionReader
from sameas.ontology.facts import Facts, is_blank
from sameas.ontology.model import Datatype
from sameas.ontology.parse import Value

_BROADER = {
    "integer": "decimal",
    "nonNegativeInteger": "integer",
    "positiveInteger": "nonNegativeInteger",
    "unsignedLong": "nonNegativeInteger",
    "unsignedInt": "unsignedLong",
    "unsignedShort": "unsignedInt",
    "unsignedByte": "unsignedShort",
    "nonPositiveInteger": "integer",
    "negativeInteger": "nonPositiveInteger",
    "long": "integer",
    "int": "long",
    "short": "int",
    "byte": "short",
    "normalizedString": "string",
    "token": "normalizedString",
    "language": "token",
    "Name": "token",
    "NMTOKEN": "token",
    "NCName": "Name",
    "dateTimeStamp": "dateTime",
    "dayTimeDuration": "duration",
    "yearMonthDuration": "duration",
}
# No types of XML Schema, but of people: who asks for a date is told the month or the year where no text says the day.
_LESS_PRECISE = {"gYear": "gYearMonth", "gYearMonth": "date"}
BROADER = {v.XSD + narrow: v.XSD + broad for narrow, broad in (_BROADER | _LESS_PRECISE).items()} | {
    v.LANG_STRING: v.XSD + "string",
    v.RDF + "PlainLiteral": v.XSD + "string",
}
"""A type and the one it is derived from (XML Schema part 2, section 3), or that it says less precisely."""

_SCHEMA_BASE = {
    "Text": "string",
    "Number": "decimal",
    "Integer": "integer",
    "Float": "double",
    "Boolean": "boolean",
    "Date": "date",
    "DateTime": "dateTime",
    "Time": "time",
    "URL": "anyURI",
    "Duration": "duration",
}


def narrower(datatype: str) -> tuple[str, ...]:
    """The type and all that are derived from it, sorted."""
    found = {datatype}
    grows = True
    while grows:
        more = {narrow for narrow, broad in BROADER.items() if broad in found} - found
        found |= more
        grows = bool(more)
    return tuple(sorted(found))


def find_datatypes(facts: Facts) -> set[str]:
    """The IRIs that name kinds of values; a subclass of a schema.org data type is one too."""
    found = {
        iri
        for iri in facts.of_type(*v.DATATYPE_TYPES, *v.SCHEMA_DATATYPES)
        if not is_blank(iri) and not v.is_built_in(iri)
    }
    children: dict[str, list[str]] = {}
    for child in facts.subjects(v.SUBCLASS):
        for parent in facts.iris(child, v.SUBCLASS):
            children.setdefault(parent, []).append(child)
    waiting = list(found)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found and not is_blank(child):
                found.add(child)
                waiting.append(child)
    return found


def assemble_datatypes(facts: Facts, iris: set[str], read: ExpressionReader) -> tuple[Datatype, ...]:
    """The declared datatypes, each with the XML Schema type that carries its values."""
    return tuple(_assemble(facts, iri, iris, read) for iri in sorted(iris))


def _assemble(facts: Facts, iri: str, iris: set[str], read: ExpressionReader) -> Datatype:
    definitions = [iri, *facts.nodes(iri, v.EQUIVALENT_CLASS)]
    facets: set[tuple[str, str]] = set()
    values: set[str] = set()
    for node in definitions:
        values |= read.values(node)
        for head in facts.objects(node, v.WITH_FACETS):
            for item in read.items(head):
                for facet in sorted(v.FACETS):
                    if isinstance(item, str):
                        facets.update((facet, x.text) for x in facts.objects(item, facet) if isinstance(x, Value))
    return Datatype(
        iri=iri,
        labels=facts.texts(iri, *v.LABELS),
        alt_labels=facts.texts(iri, *v.ALT_LABELS),
        comments=facts.texts(iri, *v.COMMENTS),
        base=_base(facts, iri, iris, read),
        parents=tuple(sorted(facts.iris(iri, v.SUBCLASS) & iris)),
        values=tuple(sorted(values)),
        facets=tuple(sorted(facets)),
    )


def _base(facts: Facts, iri: str, iris: set[str], read: ExpressionReader) -> str:
    """The first XML Schema type met on the way up, nearest first; text if there is none."""
    level, seen = {iri}, {iri}
    while level:
        named = {v.XSD + _SCHEMA_BASE[name] for one in level if (name := v.schema_name(one)) in _SCHEMA_BASE}
        above: set[str] = set()
        for one in sorted(level):
            definitions = [one, *facts.nodes(one, v.EQUIVALENT_CLASS)]
            for node in definitions:
                if is_blank(node):
                    above.update(name for group in read.constraint(node) for name in group)
                above |= facts.iris(node, v.ON_DATATYPE, v.SUBCLASS)
            above |= facts.iris(one, v.EQUIVALENT_CLASS)
        named |= {one for one in above if one.startswith(v.XSD)}
        if named:
            return min(named)
        level = (above & iris) - seen
        seen |= level
    return v.XSD + "string"
