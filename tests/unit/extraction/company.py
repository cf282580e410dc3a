"""A small ontology of people and companies, and a text about them, for the tests of extraction."""

from sameas.extraction.extractors.lexicon import LexiconExtractor
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology

EX = "http://example.org/company#"
ONTOLOGY = """
@prefix : <http://example.org/company#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix sameas: <https://sameas.dev/ns#> .
<http://example.org/company> a owl:Ontology .
:Agent a owl:Class ; rdfs:label "agent" .
:Person a owl:Class ; rdfs:subClassOf :Agent ; rdfs:label "person" ; owl:disjointWith :Organization .
:Organization a owl:Class ; rdfs:subClassOf :Agent ; rdfs:label "organization" .
:Company a owl:Class ; rdfs:subClassOf :Organization ; rdfs:label "company" .
:Place a owl:Class ; rdfs:label "place" .
:City a owl:Class ; rdfs:subClassOf :Place ; rdfs:label "city" .
:Country a owl:Class ; rdfs:subClassOf :Place ; rdfs:label "country" .
:worksFor a owl:ObjectProperty ; rdfs:label "works for" ; skos:altLabel "employed by" ;
    rdfs:domain :Person ; rdfs:range :Organization .
:founder a owl:ObjectProperty ; rdfs:label "founder" ; rdfs:domain :Organization ; rdfs:range :Person .
:bornIn a owl:ObjectProperty ; rdfs:label "born in" ; sameas:pattern "{subject}出生于{object}" ;
    rdfs:domain :Person ; rdfs:range :Place .
:birthDate a owl:DatatypeProperty, owl:FunctionalProperty ; rdfs:label "birth date" ;
    rdfs:domain :Person ; rdfs:range xsd:date .
:inception a owl:DatatypeProperty ; rdfs:label "inception" ; rdfs:domain :Organization ; rdfs:range xsd:gYear .
:employees a owl:DatatypeProperty ; rdfs:label "employees" ; rdfs:domain :Organization ; rdfs:range xsd:integer .
:motto a owl:DatatypeProperty ; rdfs:label "motto" ; rdfs:domain :Organization ; rdfs:range xsd:string .
:capital a owl:ObjectProperty ; rdfs:label "capital" ; rdfs:domain :Country ; rdfs:range :City .
:headquarters a owl:ObjectProperty ; rdfs:label "headquarters" ; rdfs:domain :Organization ; rdfs:range :Place .
:France a owl:NamedIndividual, :Country ; rdfs:label "France"@en, "Frankreich"@de .
"""
TEXT = """Alice Stone was born in Paris on 1 May 1980. She works for Acme Robotics Ltd. Acme Robotics Ltd was \
founded by Alice Stone and Bob Miller in 1999. It employs 3,400 people and is headquartered in Zürich.

Paris is the capital of France. Berlin, the capital of Germany, is large. The founder of the company Globex is \
Hank Scorpio. Ms Stone was employed by Globex. The motto of Globex is "Tomorrow, today".

李明出生于北京。"""


def company_index() -> OntologyIndex:
    return OntologyIndex(read_ontology(ONTOLOGY.encode(), extension=".ttl"))


def company_pipeline(index: OntologyIndex | None = None, *, concurrency: int = 4) -> Pipeline:
    index = index or company_index()
    return Pipeline(index=index, extractor=LexiconExtractor(index), settings=PipelineSettings(concurrency=concurrency))
