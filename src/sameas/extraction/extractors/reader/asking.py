"""What the reader is asked for: the properties and classes of a focus, with the texts that it reads of them."""

from collections.abc import Sequence
from typing import NamedTuple

from sameas.extraction.extractors.reader.labels import describe_class, describe_property
from sameas.ontology.index import OntologyIndex
from sameas.ontology.vocabulary import XSD

# More than a focus has, unless somebody widened it.
_PROPERTIES, _CLASSES = 120, 120
_BOOLEAN = XSD + "boolean"


class Asked(NamedTuple):
    """Properties and classes by IRI, each with its text, and of each property whether its values are yes and no."""

    properties: tuple[str, ...]
    property_texts: tuple[str, ...]
    booleans: tuple[bool, ...]
    classes: tuple[str, ...]
    class_texts: tuple[str, ...]


def ask_for(index: OntologyIndex, properties: Sequence[str], classes: Sequence[str]) -> Asked:
    """The first of them, as many as can be read at once; what is deprecated is not asked for."""
    named = [iri for iri in properties[:_PROPERTIES] if not index.properties[iri].deprecated]
    kinds = tuple(classes[:_CLASSES])
    return Asked(
        tuple(named),
        tuple(describe_property(index, iri) for iri in named),
        tuple(any(_BOOLEAN in group for group in index.expected_range(iri)) for iri in named),
        kinds,
        tuple(describe_class(index, iri) for iri in kinds),
    )
