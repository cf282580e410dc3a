"""A collection about people and companies, and documents put into it as extraction results."""

from contextlib import contextmanager
from pathlib import Path

from sameas.collections import Collection, Collections, Source, local_caller, open_tables, text_digest
from sameas.extraction.graph.model import Entity, Evidence, KnowledgeGraph, Relation, Value, entity_id
from sameas.ontology.load import read_ontology

NS = "http://example.org/"
PERSON, COMPANY = NS + "Person", NS + "Company"
ONTOLOGY = read_ontology(
    b"""@prefix : <http://example.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<http://example.org/press> a owl:Ontology .
:Person a owl:Class ; rdfs:label "person" ; owl:disjointWith :Company ; owl:hasKey ( :badge :office ) .
:Company a owl:Class ; rdfs:label "company" .
:worksFor a owl:ObjectProperty ; rdfs:label "works for" ; rdfs:domain :Person ; rdfs:range :Company .
:born a owl:DatatypeProperty , owl:FunctionalProperty ; rdfs:label "born" .
:register a owl:DatatypeProperty , owl:InverseFunctionalProperty ; rdfs:label "register" .
:badge a owl:DatatypeProperty . :office a owl:DatatypeProperty . :motto a owl:DatatypeProperty .
"""
)


def person(name, *aliases):
    return Entity(entity_id(name, PERSON), name, (PERSON,), aliases, (Evidence(0, len(name), name),))


def company(name, *aliases):
    return Entity(entity_id(name, COMPANY), name, (COMPANY,), aliases, (Evidence(0, len(name), name),))


def says(subject, predicate, other, *, quote="", confidence=1.0):
    """A relation to an entity, or to a value where `other` is a text."""
    named = other if isinstance(other, str) else other.name
    quote = quote or f"{subject.name} {predicate} {named}."
    evidence = (Evidence(0, len(quote), quote),)
    if isinstance(other, str):
        value = Value(other, "http://www.w3.org/2001/XMLSchema#string")
        return Relation(subject.id, NS + predicate, value=value, evidence=evidence, confidence=confidence)
    return Relation(subject.id, NS + predicate, other.id, evidence=evidence, confidence=confidence)


def graph(*said):
    """The graph of entities and relations; the ends of relations need not be named."""
    entities = [one for one in said if isinstance(one, Entity)]
    return KnowledgeGraph.of(entities=entities, relations=[one for one in said if isinstance(one, Relation)])


def put(collection, name, *said, text=None, run="", complete=True):
    digest = text_digest(text if text is not None else f"{name} {said}")
    return collection.put_document(Source(name=name), digest=digest, said=graph(*said), run=run, complete=complete)


@contextmanager
def collections_in(folder: Path, url=""):
    opened = Collections(open_tables(url or f"sqlite:///{folder / 'collections.db'}"))
    try:
        yield opened
    finally:
        opened.close()


def new_collection(collections, name="press") -> Collection:
    return collections.create(name, ontology=ONTOLOGY, caller=local_caller())


def named(collection):
    """The names of all things with how many documents each is in, sorted."""
    return sorted((one.name, one.documents) for one in collection.entities(limit=500))


def ids(collection, name):
    return [one.id for one in collection.entities(limit=500) if one.name == name]
