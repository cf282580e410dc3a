"""An ontology as extraction sees it: frozen, sorted, and free of blank nodes.

Two files that say the same give equal objects, whatever their notation, order or blank-node names, because
everything is kept sorted by IRI. Class expressions are kept as far as extraction uses them: see
`Constraint`. What is not kept: annotations other than labels, comments and patterns; individuals without an
IRI; data about individuals.
"""

from typing import Literal

import msgspec

Constraint = tuple[tuple[str, ...], ...]
"""All of these groups; of each group any one name. `()` allows everything; a group `()` allows nothing."""

PropertyKind = Literal["object", "datatype", "any"]
RestrictionKind = Literal["some", "all", "value", "cardinality"]


class Text(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Words in a language; the language is lower-case and empty if none was given."""

    value: str
    lang: str = ""


class Restriction(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """What a class says of one property of its members."""

    property: str
    kind: RestrictionKind
    inverse: bool = False
    """It speaks of the property read backwards."""
    filler: Constraint = ()
    minimum: int = 0
    maximum: int | None = None
    value: str = ""


class OntologyClass(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A class, its names and its place in the tree."""

    iri: str
    labels: tuple[Text, ...] = ()
    alt_labels: tuple[Text, ...] = ()
    comments: tuple[Text, ...] = ()
    parents: tuple[str, ...] = ()
    equivalents: tuple[str, ...] = ()
    disjoint: tuple[str, ...] = ()
    restrictions: tuple[Restriction, ...] = ()
    deprecated: bool = False
    declared: bool = True
    """False if the file never says that it is a class, only uses it as one, for instance as a domain."""
    keys: tuple[tuple[str, ...], ...] = ()
    """`owl:hasKey`: two members with the same values of all properties of a key are one. Extraction does not use it."""


class OntologyProperty(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A property, its names and what it may connect."""

    iri: str
    kind: PropertyKind = "any"
    labels: tuple[Text, ...] = ()
    alt_labels: tuple[Text, ...] = ()
    comments: tuple[Text, ...] = ()
    patterns: tuple[Text, ...] = ()
    """Relation cues: `https://sameas.dev/ns#pattern`, a text with `{subject}` and `{object}`."""
    parents: tuple[str, ...] = ()
    equivalents: tuple[str, ...] = ()
    inverses: tuple[str, ...] = ()
    domain: Constraint = ()
    range: Constraint = ()
    values: tuple[str, ...] = ()
    """The only values it may take, where the range is an enumeration."""
    functional: bool = False
    inverse_functional: bool = False
    symmetric: bool = False
    asymmetric: bool = False
    transitive: bool = False
    reflexive: bool = False
    irreflexive: bool = False
    deprecated: bool = False


class Individual(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A known thing: a word of the lexicon."""

    iri: str
    labels: tuple[Text, ...] = ()
    alt_labels: tuple[Text, ...] = ()
    comments: tuple[Text, ...] = ()
    types: tuple[str, ...] = ()
    same_as: tuple[str, ...] = ()


class Datatype(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A kind of value that the ontology declares, with the XML Schema type that carries it."""

    iri: str
    labels: tuple[Text, ...] = ()
    alt_labels: tuple[Text, ...] = ()
    comments: tuple[Text, ...] = ()
    base: str = ""
    parents: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    facets: tuple[tuple[str, str], ...] = ()


class Import(msgspec.Struct, frozen=True, array_like=True, order=True):
    """An `owl:imports`: the file of the imports folder that answered it, or nothing."""

    iri: str
    file: str = ""


class Ontology(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A whole ontology; each group is sorted by IRI."""

    iri: str = ""
    version_iri: str = ""
    titles: tuple[Text, ...] = ()
    imports: tuple[Import, ...] = ()
    version: str = ""
    """The content hash that `load_ontology` computed; `compute_ontology_version` never trusts it."""
    classes: tuple[OntologyClass, ...] = ()
    properties: tuple[OntologyProperty, ...] = ()
    individuals: tuple[Individual, ...] = ()
    datatypes: tuple[Datatype, ...] = ()

    @property
    def unresolved_imports(self) -> tuple[str, ...]:
        """Imports that no local file answered; nothing is ever fetched."""
        return tuple(item.iri for item in self.imports if not item.file)


Term = OntologyClass | OntologyProperty | Individual | Datatype
