"""How much of an ontology file is accepted. Every bound is checked before the work that it bounds."""

import msgspec

from sameas.ontology.errors import OntologyError

MIB = 1024 * 1024


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
