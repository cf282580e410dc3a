"""How many terms an ontology has, and how long their names and texts are: checked before anything is built of them.

Rule: what searches a text for labels takes time with the square of a label's length, and memory with the number of all;
an ontology of labels that nobody would write is refused, with the term that has them.
"""

from collections.abc import Iterator

from sameas.ontology.errors import OntologyTooLargeError
from sameas.ontology.limits import Limits
from sameas.ontology.model import Datatype, Individual, Ontology, OntologyClass, OntologyProperty, Text

_SHOWN = 80


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
