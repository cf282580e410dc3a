"""Ontologies: read safely, versioned by content, asked quickly."""

from sameas.ontology.errors import (
    OntologyError,
    OntologyExpressionError,
    OntologyExtraError,
    OntologyFormatError,
    OntologyNotFoundError,
    OntologyRefusedError,
    OntologySyntaxError,
    OntologyTooLargeError,
)
from sameas.ontology.focus import Focus, Focuser, FocusSettings
from sameas.ontology.index import OntologyIndex, Verdict
from sameas.ontology.lexicon import Entry
from sameas.ontology.limits import Limits
from sameas.ontology.load import load_ontology, read_ontology
from sameas.ontology.model import (
    Constraint,
    Datatype,
    Import,
    Individual,
    Ontology,
    OntologyClass,
    OntologyProperty,
    Restriction,
    Text,
)
from sameas.ontology.review import Finding, review_ontology
from sameas.ontology.show import show_ontology
from sameas.ontology.validate import ShapeReport, ShapeResult, validate_graph
from sameas.ontology.version import compute_ontology_version
from sameas.ontology.vocabulary import PATTERN

__all__ = [
    "PATTERN",
    "Constraint",
    "Datatype",
    "Entry",
    "Finding",
    "Focus",
    "FocusSettings",
    "Focuser",
    "Import",
    "Individual",
    "Limits",
    "Ontology",
    "OntologyClass",
    "OntologyError",
    "OntologyExpressionError",
    "OntologyExtraError",
    "OntologyFormatError",
    "OntologyIndex",
    "OntologyNotFoundError",
    "OntologyProperty",
    "OntologyRefusedError",
    "OntologySyntaxError",
    "OntologyTooLargeError",
    "Restriction",
    "ShapeReport",
    "ShapeResult",
    "Text",
    "Verdict",
    "compute_ontology_version",
    "load_ontology",
    "read_ontology",
    "review_ontology",
    "show_ontology",
    "validate_graph",
]
