"""What is refused, how quickly, and what the message says."""

import contextlib
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sameas.ontology import (
    Limits,
    OntologyError,
    OntologyExpressionError,
    OntologyFormatError,
    OntologyNotFoundError,
    OntologyRefusedError,
    OntologySyntaxError,
    OntologyTooLargeError,
    compute_ontology_version,
    load_ontology,
    read_ontology,
)

from .samples import PREFIXES

ROOT = (
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://example.org/" '
    b'xmlns:owl="http://www.w3.org/2002/07/owl#">'
)
SECONDS = 5.0
"""Far above what is needed and far below what an attack costs."""


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        pytest.fail("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < SECONDS


def xml(doctype: bytes, body: bytes = b"") -> bytes:
    return b'<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF ' + doctype + b">\n" + ROOT + body + b"</rdf:RDF>"


NESTED = (
    b'[<!ENTITY a0 "ha">' + b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 30)) + b"]"
)
ATTACKS = {
    "nested entities": xml(NESTED, b'<owl:Class rdf:about="http://example.org/&a29;"/>'),
    "two nested entities": xml(b'[<!ENTITY a "x"><!ENTITY b "&a;">]'),
    "quadratic entities": xml(
        b'[<!ENTITY a "' + b"x" * 100_000 + b'">]', b"<e:C><e:p>" + b"&a;" * 10_000 + b"</e:p></e:C>"
    ),
    "external entity": xml(b'[<!ENTITY a SYSTEM "file:///etc/passwd">]', b"<e:C><e:p>&a;</e:p></e:C>"),
    "unparsed entity": xml(b'[<!NOTATION n SYSTEM "n"><!ENTITY a SYSTEM "http://example.org/x" NDATA n>]'),
    "external document type": xml(b'SYSTEM "http://example.org/x.dtd"'),
    "public document type": xml(b'PUBLIC "x" "http://example.org/x.dtd"'),
    "parameter entity": xml(b'[<!ENTITY % a "x"> %a;]'),
    "external parameter entity": xml(b'[<!ENTITY % a SYSTEM "http://example.org/x"> %a;]'),
    "many entities": xml(b"[" + b"".join(b'<!ENTITY e%d "x">' % n for n in range(5_000)) + b"]"),
    "remote context": b'{"@context": "https://schema.org/", "@id": "http://example.org/a"}',
    "remote context in a list": b'[{"@context": [{"a": "http://a/"}, "https://schema.org/"], "a": 1}]',
    "remote context further in": b'{"http://a/p": {"@context": "./context.jsonld"}}',
    "remote context with an escaped key": b'{"\\u0040context": "https://schema.org/"}',
    "imported context": b'{"@context": {"@version": 1.1, "@import": "https://schema.org/"}, "@id": "http://a/"}',
    "context of a term": b'{"@context": {"a": {"@id": "http://a/", "@context": "https://schema.org/"}}, "a": 1}',
    "unknown encoding": b'<?xml version="1.0" encoding="UTF-7"?>' + ROOT + b"</rdf:RDF>",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_traps_are_refused_with_their_place(name: str) -> None:
    with pytest.raises(OntologyRefusedError) as caught:
        read_ontology(ATTACKS[name], file="trap")
    assert caught.value.line is not None
    assert caught.value.column is not None
    assert caught.value.todo
    assert str(caught.value).startswith(f"trap, line {caught.value.line}, column {caught.value.column}: ")


def test_a_document_type_inside_the_content_is_malformed() -> None:
    with pytest.raises(OntologySyntaxError):
        read_ontology(ROOT + b'<!DOCTYPE r [<!ENTITY a "x">]><e:C/></rdf:RDF>')


def test_namespace_entities_load_and_expand() -> None:
    data = xml(
        b'[<!ENTITY owl "http://www.w3.org/2002/07/owl#"><!ENTITY dash "&#45;">]',
        b'<rdf:Description rdf:about="http://example.org/a&dash;b"><rdf:type rdf:resource="&owl;Class"/></rdf:Description>',
    )
    assert [one.iri for one in read_ontology(data).classes] == ["http://example.org/a-b"]


DEEP = 100_000
SLOW = {
    "elements": ROOT + b"<e:a><e:b>" * DEEP + b"</e:b></e:a>" * DEEP + b"</rdf:RDF>",
    "objects": b'{"@context":{"p":"http://p/"},"p":' + b'{"p":' * DEEP + b"1" + b"}" * DEEP + b"}",
    "arrays": b'{"http://p/":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "triples": b"<a:a> <a:b> " + b"<<( <a:a> <a:b> " * DEEP + b"1 " + b")>> " * DEEP + b".",
    "contexts": b'{"@context":{'
    + b",".join(b'"t%d":"http://p/%d"' % (n, n) for n in range(10_000))
    + b'},"t1":['
    + b",".join([b'{"@context":{"z":"http://z/"},"z":1}'] * 10_000)
    + b"]}",
    "contexts of terms": b'{"@context":{"s":{"@id":"http://s/","@context":{}},'
    + b",".join(b'"t%d":"http://p/%d"' % (n, n) for n in range(10_000))
    + b'},"s":['
    + b",".join([b'{"s":1}'] * 10_000)
    + b"]}",
}


@pytest.mark.parametrize("name", SLOW)
def test_nesting_that_would_cost_hours_or_the_process_is_refused(name: str) -> None:
    with pytest.raises(OntologyTooLargeError):
        read_ontology(SLOW[name])


def test_double_angles_in_strings_and_comments_are_no_nesting() -> None:
    text = PREFIXES + '# <<\n:C a owl:Class ; rdfs:comment "1 << 2", """<<""" .\n' * 100
    assert len(read_ontology(text.encode()).classes) == 1


def test_a_time_limit_ends_a_parse() -> None:
    with pytest.raises(OntologyTooLargeError, match="seconds"):
        read_ontology(b'<a:a> <a:b> "c" .\n' * 20_000, limits=Limits(parse_seconds=1e-9))


def test_a_statement_limit_ends_a_parse() -> None:
    with pytest.raises(OntologyTooLargeError, match="more than 10 statements"):
        read_ontology(b'<a:a> <a:b> "c" .\n' * 20, limits=Limits(statements=10))


@pytest.mark.parametrize(
    ("data", "limits", "said"),
    [
        (
            b'<a:c> a <http://www.w3.org/2002/07/owl#Class> ; <http://www.w3.org/2000/01/rdf-schema#label> "%s" .'
            % (b"long " * 200_000),
            Limits(),
            "a label of a:c has 1000000 characters, more than 1000",
        ),
        (
            b'<a:c> a <http://www.w3.org/2002/07/owl#Class> ; <http://www.w3.org/2000/01/rdf-schema#comment> "%s" .'
            % (b"long " * 200_000),
            Limits(),
            "a comment of a:c has",
        ),
        (
            b'<a:o> a <http://www.w3.org/2002/07/owl#Ontology> ; <http://www.w3.org/2000/01/rdf-schema#label> "%s" .'
            % (b"long " * 200_000),
            Limits(),
            "a label of a:o has",
        ),
        (b"<a:%s> a <http://www.w3.org/2002/07/owl#Class> ." % (b"c" * 5_000), Limits(), "a name of a:c"),
        (
            b"\n".join(b"<a:c%d> a <http://www.w3.org/2002/07/owl#Class> ." % n for n in range(20)),
            Limits(terms=10),
            "it has 20 terms, more than 10",
        ),
        (
            b"\n".join(
                b"<a:c> a <http://www.w3.org/2002/07/owl#Class> ; "
                b'<http://www.w3.org/2000/01/rdf-schema#label> "c %d" .' % n
                for n in range(20)
            ),
            Limits(labels=10),
            "it has 20 labels, more than 10",
        ),
    ],
    ids=["label", "comment", "title", "name", "terms", "labels"],
)
def test_terms_and_their_texts_are_bounded(data: bytes, limits: Limits, said: str) -> None:
    with pytest.raises(OntologyTooLargeError, match=said):
        read_ontology(data, limits=limits)


def test_limits_must_be_positive() -> None:
    with pytest.raises(OntologyError, match="file_bytes"):
        Limits(file_bytes=0)


MEASURE = """
import resource, sys
from sameas.ontology import OntologyTooLargeError, load_ontology
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    load_ontology(sys.argv[1])
except OntologyTooLargeError as error:
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_file_of_100_mb_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "large.nt"
    with path.open("wb") as target:
        target.truncate(100 * 1024 * 1024)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) < 8


def test_a_device_without_an_end_is_read_up_to_the_limit_only() -> None:
    with pytest.raises(OntologyTooLargeError):
        load_ontology("/dev/zero", limits=Limits(file_bytes=1_000_000))


MEASURE_LARGE = """
import resource, sys
from sameas.ontology import load_ontology
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert len(load_ontology(sys.argv[1]).classes) == 1
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_statements_that_are_not_used_take_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.nt"
    size = 16 * 1024 * 1024
    line = b'<http://example.org/a> <http://example.org/p> "%s" .\n' % (b"x" * 100)
    with path.open("wb") as target:
        target.write(
            b"<a:C> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.w3.org/2002/07/owl#Class> .\n"
        )
        target.write(line * (size // len(line)))
    done = subprocess.run(
        [sys.executable, "-c", MEASURE_LARGE, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert int(done.stdout) < 3 * size // 1024 // 1024


def clique(count: int, predicate: str) -> bytes:
    lines = [
        f"_:b{one} {predicate} ( {' '.join(f'_:b{other}' for other in range(count) if other != one)} ) ."
        for one in range(count)
    ]
    return (PREFIXES + "\n".join(lines) + "\n:p rdfs:domain _:b0 . :C a owl:Class ; rdfs:subClassOf _:b1 .").encode()


@pytest.mark.parametrize("predicate", ["owl:unionOf", "owl:intersectionOf", "owl:oneOf"])
def test_blank_node_cliques_of_class_expressions_end_quickly(predicate: str) -> None:
    if predicate == "owl:oneOf":
        assert len(read_ontology(clique(100, predicate)).classes) == 1
    else:
        with pytest.raises((OntologyExpressionError, OntologyTooLargeError)):
            read_ontology(clique(100, predicate))


def test_blank_node_cliques_of_data_cost_nothing_and_change_nothing() -> None:
    lines = "\n".join(f"_:b{one} ex:knows _:b{other} ." for one in range(200) for other in range(200))
    ontology = PREFIXES + ':C a owl:Class ; rdfs:label "c" .'
    assert compute_ontology_version((ontology + lines).encode()) == compute_ontology_version(ontology.encode())


@pytest.mark.parametrize("inner", ["owl:intersectionOf", "owl:unionOf"])
def test_shared_blank_nodes_that_double_at_each_level_are_refused(inner: str) -> None:
    other = {"owl:intersectionOf": "owl:unionOf", "owl:unionOf": "owl:intersectionOf"}[inner]
    levels = "\n".join(
        f"_:b{n} {inner} ( _:b{n + 1} _:c{n + 1} ) . _:c{n} {other} ( _:b{n + 1} _:c{n + 1} :X{n} ) ."
        for n in range(60)
    )
    ends = "_:b60 owl:unionOf ( :A :B ) . _:c60 owl:intersectionOf ( :C :D ) ."
    text = f"{PREFIXES} {levels} {ends} :C a owl:Class ; rdfs:subClassOf _:b0 ."
    with pytest.raises(OntologyTooLargeError):
        read_ontology(text.encode())


def test_a_union_of_large_intersections_is_refused_before_it_is_worked_out() -> None:
    parts = [f"[ owl:intersectionOf ( {' '.join(f':A{n}_{m}' for m in range(1000))} ) ]" for n in range(3)]
    with pytest.raises(OntologyTooLargeError, match="union"):
        read_ontology((PREFIXES + f":p rdfs:domain [ owl:unionOf ( {' '.join(parts)} ) ] .").encode())


def test_expressions_inside_expressions_are_limited() -> None:
    text = ":p rdfs:domain " + "[ owl:unionOf ( :A " * 5_000 + ") ]" * 5_000 + " ."
    with pytest.raises(OntologyTooLargeError, match="deep"):
        read_ontology((PREFIXES + text).encode())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("_:l rdf:first :A ; rdf:rest _:l . :p rdfs:domain [ owl:unionOf _:l ] .", "circle"),
        ("_:l rdf:first :A . :p rdfs:domain [ owl:unionOf _:l ] .", "list"),
        ("_:l rdf:first :A ; rdf:rest (), (:B) . :p rdfs:domain [ owl:unionOf _:l ] .", "list"),
        ("_:u owl:unionOf ( :A _:u ) . :p rdfs:domain _:u .", "contains itself"),
        (":C a owl:Class ; rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality -1 ] .", "cardinality"),
        (
            ":C a owl:Class ; rdfs:subClassOf [ owl:onProperty :p ; owl:cardinality 99999999999999999999 ] .",
            "cardinality",
        ),
    ],
)
def test_broken_expressions_are_named(text: str, words: str) -> None:
    with pytest.raises(OntologyExpressionError, match=words) as caught:
        read_ontology((PREFIXES + text).encode(), file="broken.ttl")
    assert caught.value.file == "broken.ttl"
    assert caught.value.todo


MALFORMED = {
    "turtle": (".ttl", b"@prefix a: <http://a/> .\n\na:b a:c .\n", 3, 9),
    "turtle without a prefix": (".ttl", b"\n  b:a b:c b:d .", 2, 3),
    "trig": (".trig", b"{ <http://a/> <http://b/> ", 1, None),
    "ntriples": (".nt", b"<http://a/> <http://b/> <http://c/> .\n<http://a/> oops .\n", 2, 13),
    "nquads": (".nq", b"<http://a/> <http://b/> <http://c/> <http://d/> oops .\n", 1, None),
    "rdfxml, not well-formed": (".rdf", ROOT + b"\n<e:a>\n</e:b></rdf:RDF>", 3, 3),
    "rdfxml, not RDF": (".rdf", ROOT + b"\n\n<rdf:li/>\n<e:a/></rdf:RDF>", 3, None),
    "rdfxml, bad IRI": (".rdf", ROOT + b'\n<e:a rdf:about="a b"/></rdf:RDF>', 2, None),
    "rdfxml, far into the file": (".rdf", ROOT + b"\n" * 200_000 + b"<rdf:li/></rdf:RDF>", 200_001, None),
    "rdfxml, not UTF-8": (".rdf", ROOT + b"\n\xff</rdf:RDF>", 2, 1),
    "jsonld, not JSON": (".jsonld", b'{"@id": "http://a/",\n "http://b/": }', 2, None),
    "jsonld, not JSON-LD": (".jsonld", b'{"@id": "http://a/",\n\n "@type": 1}', 3, None),
    "jsonld, not UTF-8": (".jsonld", b'{"@id":\n "\xff"}', 2, None),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_input_is_reported_with_file_line_and_column(name: str, tmp_path: Path) -> None:
    extension, data, line, column = MALFORMED[name]
    path = tmp_path / f"bad{extension}"
    path.write_bytes(data)
    with pytest.raises(OntologySyntaxError) as caught:
        load_ontology(path)
    error = caught.value
    assert error.file == str(path)
    assert error.line == line
    assert error.column is not None
    assert column is None or error.column == column
    assert error.todo
    assert f"line {line}, column {error.column}" in str(error)


def test_a_missing_file_a_folder_and_an_unreadable_file_are_told_apart_from_bad_content(
    tmp_path: Path,
) -> None:
    with pytest.raises(OntologyNotFoundError, match="no such file"):
        load_ontology(tmp_path / "nothing.ttl")
    with pytest.raises(OntologyNotFoundError):
        load_ontology(tmp_path)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"Prefix(:=<http://a/>)\nOntology(<http://a/>)", "functional"),
        (b"Prefix: a: <http://a/>\nOntology: <http://a/>\nClass: a:B", "Manchester"),
        (b'<?xml version="1.0"?>\n<Ontology xmlns="http://www.w3.org/2002/07/owl#"/>', "OWL/XML"),
        (b"<!DOCTYPE html>\n<html><body/></html>", "web page"),
        (b"<html><body/></html>", "web page"),
        (b"\x1f\x8b\x08\x00", "compressed"),
    ],
)
def test_notations_that_are_not_read_are_named(data: bytes, words: str) -> None:
    with pytest.raises(OntologyFormatError, match=words) as caught:
        read_ontology(data)
    assert caught.value.todo


def test_random_bytes_give_an_error_and_never_anything_else() -> None:
    chance = random.Random(7)
    for _ in range(300):
        data = chance.choice([b"", ROOT, b'{"@id":', b"@prefix "]) + chance.randbytes(chance.randrange(80))
        with contextlib.suppress(OntologyError):
            read_ontology(data)
