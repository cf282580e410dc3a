"""How much of an ontology is accepted: of its file, of its terms, of the length of their names and texts. Every bound
is checked before the work that it bounds.

What searches a text for labels takes time with the square of a label's length, and memory with the number of all; an
ontology of labels that nobody would write is refused, with the term that has them.
"""

from collections.abc import Iterator

import msgspec

from sameas.ontology.errors import OntologyError, OntologyTooLargeError
from sameas.ontology.model import Datatype, Individual, Ontology, OntologyClass, OntologyProperty, Text

MIB = 1024 * 1024

_SHOWN = 80


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on one ontology; the defaults hold schema.org sixty times over. Raises OntologyError for a bound that is
    not above zero."""

    file_bytes: int = 64 * MIB
    """The largest file that is read; a larger one is refused without being read."""
    statements: int = 3_000_000
    """Statements in the file and its imports together."""
    parse_seconds: float = 20.0
    """Time for parsing one file; a file of legal size can still be built to be slow."""
    entities: int = 128
    """Entities that an RDF/XML document type may declare."""
    entity_bytes: int = 8 * MIB
    """What all uses of those entities may add up to."""
    nesting: int = 1_000
    """Elements inside elements (RDF/XML) or values inside values (JSON-LD)."""
    context_steps: int = 5_000_000
    """Work on JSON-LD contexts: terms in force, summed over the places where a context begins."""
    expression_steps: int = 1_000_000
    """Work on blank nodes: members, lists and restrictions visited in class expressions."""
    expression_names: int = 50_000
    """Names in one class expression after unions and intersections are worked out."""
    terms: int = 300_000
    """Classes, properties, individuals and datatypes together."""
    labels: int = 1_000_000
    """Labels, other labels and patterns of all terms."""
    label_characters: int = 1_000
    """One label; what looks for it takes time with the square of its length."""
    name_characters: int = 2_048
    """The IRI of one term."""
    comment_characters: int = 100_000
    """One comment."""
    imports: int = 200
    """Imported files, direct and indirect."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) <= 0:
                raise OntologyError(what=f"limit {name} must be above zero", todo="Give a positive number")


DEFAULT_LIMITS = Limits()


def check_terms(ontology: Ontology, *, limits: Limits, file: str | None = None) -> None:
    """Refuse an ontology with too many terms, or with one whose name, label or comment is too long."""
    count = sum(map(len, (ontology.classes, ontology.properties, ontology.individuals, ontology.datatypes)))
    if count > limits.terms:
        raise OntologyTooLargeError(
            f"it has {count} terms, more than {limits.terms}",
            file=file,
            todo="Cut the ontology down to the part you need, or raise the limit terms",
        )
    _check_length(ontology.iri, "the name", limits.name_characters, ontology.iri, file)
    for text in ontology.titles:
        _check_length(text.value, "a label", limits.label_characters, ontology.iri, file)
    labels = 0
    for term in _terms(ontology):
        _check_length(term.iri, "a name", limits.name_characters, term.iri, file)
        said = _labels(term)
        labels += len(said)
        for text in said:
            _check_length(text.value, "a label", limits.label_characters, term.iri, file)
        for text in term.comments:
            _check_length(text.value, "a comment", limits.comment_characters, term.iri, file)
    if labels > limits.labels:
        raise OntologyTooLargeError(
            f"it has {labels} labels, more than {limits.labels}",
            file=file,
            todo="Cut the ontology down to the part you need, or raise the limit labels",
        )


def _terms(ontology: Ontology) -> Iterator[OntologyClass | OntologyProperty | Individual | Datatype]:
    yield from ontology.classes
    yield from ontology.properties
    yield from ontology.individuals
    yield from ontology.datatypes


def _labels(term: OntologyClass | OntologyProperty | Individual | Datatype) -> tuple[Text, ...]:
    patterns = term.patterns if isinstance(term, OntologyProperty) else ()
    return (*term.labels, *term.alt_labels, *patterns)


def _check_length(text: str, what: str, most: int, iri: str, file: str | None) -> None:
    if len(text) > most:
        raise OntologyTooLargeError(
            f"{what} of {iri[:_SHOWN]} has {len(text)} characters, more than {most}",
            file=file,
            todo="Shorten it; long explanations belong in rdfs:comment" if what == "a label" else "Shorten it",
        )
