"""A small ontology that uses every construct that is read, and ways to write it in other notations."""

import pyoxigraph as ox

PREFIXES = """
@prefix : <https://example.org/company#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix schema: <https://schema.org/> .
@prefix sameas: <https://sameas.dev/ns#> .
@prefix ex: <https://example.org/company#> .
"""

EX = "https://example.org/company#"

COMPANY = (
    PREFIXES
    + """
<https://example.org/company> a owl:Ontology ; rdfs:label "Company" ; owl:versionIRI <https://example.org/company/1> ;
  rdfs:seeAlso <https://example.org/more> .

:Agent a owl:Class ; rdfs:label "agent"@en .
:Person a owl:Class ; rdfs:subClassOf :Agent ; rdfs:label "person"@en , "Person"@de , "personne"@fr ;
  skos:altLabel "human being"@en ; rdfs:comment "Somebody."@en ; owl:disjointWith :Organization .
:Organization a owl:Class ; rdfs:subClassOf :Agent ; skos:prefLabel "organization"@en ;
  schema:alternateName "outfit"@en ; skos:definition "People together."@en .
:Company a owl:Class ; rdfs:label "company" ; rdfs:subClassOf :Organization ,
  [ a owl:Restriction ; owl:onProperty :hasHead ; owl:maxCardinality 1 ] ,
  [ a owl:Restriction ; owl:onProperty :employs ; owl:someValuesFrom :Person ] ,
  [ a owl:Restriction ; owl:onProperty :employs ; owl:allValuesFrom [ owl:unionOf ( :Person :Robot ) ] ] .
:Firm a owl:Class ; owl:equivalentClass :Company .
:Robot a owl:Class ; rdfs:label "robot" .
:Place a owl:Class ; rdfs:label "place" .
:Size a owl:Class ; rdfs:label "size" ; owl:oneOf ( :small :large ) .
:Startup a owl:Class ; rdfs:label "startup" ;
  owl:equivalentClass [ owl:intersectionOf ( :Company [ a owl:Restriction ; owl:onProperty :size ; owl:hasValue :small ] ) ] .
:OldThing a owl:Class ; rdfs:label "old thing" ; owl:deprecated true .
[] a owl:AllDisjointClasses ; owl:members ( :Robot :Place :Size ) .

:worksFor a owl:ObjectProperty ; rdfs:label "works for"@en ; skos:altLabel "is employed by"@en ;
  sameas:pattern "{subject} joined {object}"@en ; rdfs:domain [ owl:unionOf ( :Person :Robot ) ] ; rdfs:range :Organization ;
  rdfs:subPropertyOf :relatedTo ; owl:inverseOf :employs ; rdfs:comment "A job."@en .
:employs a owl:ObjectProperty ; rdfs:label "employs"@en .
:hasHead a owl:ObjectProperty , owl:FunctionalProperty ; rdfs:label "head" ; rdfs:domain :Organization ; rdfs:range :Person .
:relatedTo a owl:ObjectProperty , owl:SymmetricProperty ; rdfs:label "related to" ; rdfs:domain :Agent ; rdfs:range :Agent .
:basedIn a rdf:Property ; rdfs:label "based in" ; schema:domainIncludes :Organization , :Robot ; schema:rangeIncludes :Place .
:founded a owl:DatatypeProperty ; rdfs:label "founded" ; rdfs:domain :Organization ; rdfs:range xsd:date .
:headcount a owl:DatatypeProperty ; rdfs:label "headcount" ; rdfs:domain :Organization ; rdfs:range :Count .
:size a owl:ObjectProperty ; rdfs:label "size" ; rdfs:domain :Organization ; rdfs:range :Size .
:status a owl:DatatypeProperty ; rdfs:label "status" ; rdfs:range [ owl:oneOf ( "open" "closed" ) ] .
:job a owl:ObjectProperty ; owl:equivalentProperty :worksFor .

:Count a rdfs:Datatype ; rdfs:label "count" ;
  owl:equivalentClass [ owl:onDatatype xsd:integer ; owl:withRestrictions ( [ xsd:minInclusive 0 ] ) ] .

:acme a :Company ; rdfs:label "Acme Ltd" ; skos:altLabel "Acme" ; owl:sameAs <https://example.org/things/acme> .
:small a owl:NamedIndividual ; rdfs:label "small" .
:large a owl:NamedIndividual ; rdfs:label "large" .
"""
)

FORMATS = {
    "turtle": ox.RdfFormat.TURTLE,
    "rdfxml": ox.RdfFormat.RDF_XML,
    "jsonld": ox.RdfFormat.JSON_LD,
    "ntriples": ox.RdfFormat.N_TRIPLES,
    "nquads": ox.RdfFormat.N_QUADS,
    "trig": ox.RdfFormat.TRIG,
}
EXTENSIONS = {
    "turtle": ".ttl",
    "rdfxml": ".rdf",
    "jsonld": ".jsonld",
    "ntriples": ".nt",
    "nquads": ".nq",
    "trig": ".trig",
}


def quads(data: bytes, notation: str = "turtle") -> list[ox.Quad]:
    """All statements of a file."""
    return list(ox.parse(input=data, format=FORMATS[notation], base_iri="https://sameas.dev/local/"))


def write(statements: list[ox.Quad], notation: str) -> bytes:
    """The statements in a notation."""
    triples = [ox.Triple(quad.subject, quad.predicate, quad.object) for quad in statements]
    out = ox.serialize(triples, format=FORMATS[notation])
    assert out is not None
    return out
