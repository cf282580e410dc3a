"""The IRIs that are read, and what each group of them means. Other predicates are never looked at."""

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
XSD = "http://www.w3.org/2001/XMLSchema#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
SH = "http://www.w3.org/ns/shacl#"
SCHEMA = ("https://schema.org/", "http://schema.org/")
SAMEAS = "https://sameas.dev/ns#"

PATTERN = SAMEAS + "pattern"
"""Annotation of a property: a text such as "{subject} works for {object}", read as a cue for the relation."""

TYPE = RDF + "type"
FIRST, REST, NIL = RDF + "first", RDF + "rest", RDF + "nil"
LANG_STRING = RDF + "langString"
LITERAL = RDFS + "Literal"
THING, NOTHING = OWL + "Thing", OWL + "Nothing"
TOP = frozenset({THING, RDFS + "Resource"})

SUBCLASS, SUBPROPERTY = RDFS + "subClassOf", RDFS + "subPropertyOf"
DOMAIN, RANGE = RDFS + "domain", RDFS + "range"
ONTOLOGY, IMPORTS, VERSION_IRI = OWL + "Ontology", OWL + "imports", OWL + "versionIRI"
EQUIVALENT_CLASS, EQUIVALENT_PROPERTY = OWL + "equivalentClass", OWL + "equivalentProperty"
DISJOINT, DISJOINT_UNION = OWL + "disjointWith", OWL + "disjointUnionOf"
ALL_DISJOINT, MEMBERS = OWL + "AllDisjointClasses", OWL + "members"
HAS_KEY = OWL + "hasKey"
UNION, INTERSECTION = OWL + "unionOf", OWL + "intersectionOf"
COMPLEMENT, ONE_OF = OWL + "complementOf", OWL + "oneOf"
RESTRICTION, ON_PROPERTY, ON_CLASS = OWL + "Restriction", OWL + "onProperty", OWL + "onClass"
ON_DATATYPE, WITH_FACETS, ON_DATA_RANGE = OWL + "onDatatype", OWL + "withRestrictions", OWL + "onDataRange"
SOME, ALL, HAS_VALUE = OWL + "someValuesFrom", OWL + "allValuesFrom", OWL + "hasValue"
CARDINALITIES = {
    OWL + "cardinality": (True, True),
    OWL + "minCardinality": (True, False),
    OWL + "maxCardinality": (False, True),
    OWL + "qualifiedCardinality": (True, True),
    OWL + "minQualifiedCardinality": (True, False),
    OWL + "maxQualifiedCardinality": (False, True),
}
"""Predicate -> (it bounds from below, it bounds from above)."""

DEPRECATED = OWL + "deprecated"
SAME_AS = OWL + "sameAs"
INVERSES = frozenset({OWL + "inverseOf", *(s + "inverseOf" for s in SCHEMA)})
DOMAIN_INCLUDES = frozenset(s + "domainIncludes" for s in SCHEMA)
RANGE_INCLUDES = frozenset(s + "rangeIncludes" for s in SCHEMA)
SUPERSEDED = frozenset(s + "supersededBy" for s in SCHEMA)

LABELS = (
    RDFS + "label",
    SKOS + "prefLabel",
    *(s + "name" for s in SCHEMA),
    "http://xmlns.com/foaf/0.1/name",
)
ALT_LABELS = (SKOS + "altLabel", SKOS + "hiddenLabel", *(s + "alternateName" for s in SCHEMA))
COMMENTS = (
    RDFS + "comment",
    SKOS + "definition",
    "http://purl.org/dc/terms/description",
    "http://purl.org/dc/elements/1.1/description",
)
TITLES = ("http://purl.org/dc/terms/title", "http://purl.org/dc/elements/1.1/title", RDFS + "label")
FACETS = frozenset(
    XSD + facet
    for facet in (
        *("length", "minLength", "maxLength", "pattern", "totalDigits", "fractionDigits"),
        *("minInclusive", "maxInclusive", "minExclusive", "maxExclusive"),
    )
)

CLASS_TYPES = frozenset({RDFS + "Class", OWL + "Class"})
DATATYPE_TYPES = frozenset({RDFS + "Datatype", OWL + "DataRange"})
SCHEMA_DATATYPES = frozenset(s + "DataType" for s in SCHEMA)
OBJECT_PROPERTY, DATATYPE_PROPERTY = OWL + "ObjectProperty", OWL + "DatatypeProperty"
ANNOTATION_PROPERTY = OWL + "AnnotationProperty"
TRAITS = {
    OWL + "FunctionalProperty": "functional",
    OWL + "InverseFunctionalProperty": "inverse_functional",
    OWL + "SymmetricProperty": "symmetric",
    OWL + "AsymmetricProperty": "asymmetric",
    OWL + "TransitiveProperty": "transitive",
    OWL + "ReflexiveProperty": "reflexive",
    OWL + "IrreflexiveProperty": "irreflexive",
}
OBJECT_TRAITS = frozenset(iri for iri, name in TRAITS.items() if name != "functional")
PROPERTY_TYPES = frozenset({RDF + "Property", OBJECT_PROPERTY, DATATYPE_PROPERTY, ANNOTATION_PROPERTY, *TRAITS})
DEPRECATED_CLASS, DEPRECATED_PROPERTY = OWL + "DeprecatedClass", OWL + "DeprecatedProperty"
BUILT_IN = (RDF, RDFS, OWL, XSD)

USED = frozenset(
    {
        TYPE, FIRST, REST, SUBCLASS, SUBPROPERTY, DOMAIN, RANGE, IMPORTS, VERSION_IRI, EQUIVALENT_CLASS,
        EQUIVALENT_PROPERTY, DISJOINT, DISJOINT_UNION, MEMBERS, HAS_KEY, UNION, INTERSECTION, COMPLEMENT, ONE_OF,
        ON_PROPERTY, ON_CLASS, ON_DATATYPE, WITH_FACETS, ON_DATA_RANGE, SOME, ALL, HAS_VALUE, DEPRECATED,
        SAME_AS, PATTERN, *CARDINALITIES, *INVERSES, *DOMAIN_INCLUDES, *RANGE_INCLUDES, *SUPERSEDED,
        *LABELS, *ALT_LABELS, *COMMENTS, *TITLES, *FACETS,
    }
)  # fmt: skip
"""Every predicate that is kept; statements with another one are dropped while the file streams by."""


def is_built_in(iri: str) -> bool:
    """Whether the IRI belongs to RDF, RDFS, OWL or XML Schema themselves."""
    return iri.startswith(BUILT_IN)


def schema_name(iri: str) -> str | None:
    """The local name of a schema.org term, whichever scheme its IRI has."""
    for prefix in SCHEMA:
        if iri.startswith(prefix):
            return iri[len(prefix) :]
    return None
