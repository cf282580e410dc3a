"""Queries read a snapshot of one collection, and nothing else; they are bounded in time, rows and memory."""

import contextlib
import csv
import io
import shutil
import socket
import time
from pathlib import Path

import pyoxigraph
import pytest

from sameas.collections.collection import Source, text_digest
from sameas.collections.exports import EXPORT_FORMATS
from sameas.extraction.graph.model import KnowledgeGraph
from sameas.questions.desk import QuestionDesk
from sameas.questions.errors import QueryError, QueryLimitError
from sameas.questions.limits import QueryLimits
from sameas.questions.query_text import read_query
from sameas.questions.runner import QueryRunner

from .conftest import BASE, Writer

NAMES = "SELECT ?name { ?company :headquarters ?city ; rdfs:label ?name } ORDER BY ?name"


def names(desk: QuestionDesk, query: str = NAMES) -> list[str]:
    return [row["name"]["value"] for row in desk.query(query).bindings()]


def test_a_query_knows_the_prefixes_of_the_ontology(desk: QuestionDesk) -> None:
    assert names(desk) == ["Helvetia Zellen", "Weserstahl AG"]
    assert desk.query("ASK { ?x a company:Company }").boolean


def test_each_document_is_a_graph_and_the_rest_is_the_resolved_view(desk: QuestionDesk) -> None:
    found = desk.query("SELECT ?label { GRAPH ?doc { ?a :acquired ?b } ?doc rdfs:label ?label } ORDER BY ?label")
    assert [row["label"]["value"] for row in found.bindings()] == ["one.txt", "two.txt"]
    (once,) = desk.query("SELECT (COUNT(*) AS ?n) { ?a :acquired ?b }").bindings()
    assert once["n"]["value"] == "1"
    about = "SELECT ?t ?w { ?d rdfs:label 'one.txt' ; dcterms:title ?t ; prov:atLocation ?w }"
    (row,) = desk.query(about).bindings()
    assert (row["t"]["value"], row["w"]["value"]) == ("One.Txt", "file:///docs/one.txt")


def test_results_come_as_json_xml_csv_and_turtle(desk: QuestionDesk) -> None:
    answer = desk.query(NAMES)
    rows = list(csv.reader(io.StringIO(answer.as_format("csv").decode())))
    assert rows == [["name"], ["Helvetia Zellen"], ["Weserstahl AG"]]
    assert b"<sparql" in answer.as_format("xml")
    graph = desk.query("CONSTRUCT { ?s :seat ?o } WHERE { ?s :headquarters ?o }")
    triples = list(pyoxigraph.parse(graph.as_format(), format=pyoxigraph.RdfFormat.TURTLE))
    assert len(triples) == 2
    with pytest.raises(QueryError, match="not written as turtle"):
        answer.as_format("turtle")


def test_an_index_follows_what_changes(desk: QuestionDesk, writer: Writer) -> None:
    assert len(names(desk)) == 2
    writer.put("three.txt", ("Alster Capital/Company", "headquarters", "Hamburg/City"))
    assert names(desk) == ["Alster Capital", "Helvetia Zellen", "Weserstahl AG"]
    writer.collection.remove_name("two.txt")
    assert names(desk) == ["Alster Capital", "Helvetia Zellen"]
    assert not desk.query("ASK { ?d rdfs:label 'two.txt' }").boolean


def test_a_name_of_a_document_comes_and_goes_in_the_index_too(desk: QuestionDesk, writer: Writer) -> None:
    called = "SELECT ?name { ?d dcterms:identifier ?i ; rdfs:label ?name } ORDER BY ?name"
    fact = ("Weserstahl AG/Company", "headquarters", "Bremen/City")
    writer.put("three.txt", fact)
    assert names(desk, called) == ["one.txt", "three.txt", "two.txt"]
    writer.put("copy.txt", fact)
    assert names(desk, called) == ["copy.txt", "one.txt", "three.txt", "two.txt"]
    writer.collection.remove_name("three.txt")
    assert names(desk, called) == ["copy.txt", "one.txt", "two.txt"]


@pytest.mark.parametrize("name", ["http://[::1", "http://a/%zz", "http://a/\ue000", "urn:a:[b]"])
def test_a_document_whose_name_only_looks_like_an_address_spoils_nothing(
    desk: QuestionDesk, writer: Writer, name: str
) -> None:
    writer.collection.put_document(Source(name=name), digest=text_digest(name), said=KnowledgeGraph())
    (row,) = desk.query(
        "SELECT ?name { ?d rdfs:label ?name FILTER(STRENDS(STR(?d), '" + text_digest(name) + "')) }"
    ).bindings()
    assert row["name"]["value"] == name
    for to in EXPORT_FORMATS:
        writer.collection.export(io.BytesIO(), to=to)


def test_an_index_that_followed_equals_one_that_was_made_anew(
    desk: QuestionDesk, writer: Writer, runner: QueryRunner, tmp_path: Path
) -> None:
    everything = "SELECT ?g ?s ?p ?o { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } } ORDER BY ?g ?s ?p ?o"
    desk.query(everything)
    collection = writer.collection
    writer.put("three.txt", ("Nordlicht/Company", "headquarters", "Bremen/City"))
    desk.query(everything)
    collection.decide("same", "Nordlicht", "Nordlicht Speicher")
    desk.query(everything)
    writer.put("one.txt", ("Nordlicht Speicher/Company", "acquired", "Alster Capital/Company"))
    collection.remove_name("two.txt")
    followed = desk.query(everything)
    anew = QuestionDesk(collection, folder=tmp_path / "other", runner=runner).query(everything)
    assert followed.rows > 10
    found = [sorted(map(str, one.bindings())) for one in (followed, anew)]
    assert found[0] == found[1]
    assert any("http://www.w3.org/2002/07/owl#sameAs" in row for row in found[0]), "a merged id leads on"


def test_an_index_elsewhere_forgets_what_was_erased(desk: QuestionDesk, writer: Writer, tmp_path: Path) -> None:
    assert names(desk) == ["Helvetia Zellen", "Weserstahl AG"]
    # Whoever erases it deletes their own index; this one is of another machine.
    writer.collection.erase("Helvetia Zellen")
    assert names(desk) == ["Weserstahl AG"]
    assert desk.find("Helvetia Zellen") == []
    files = [file for file in (tmp_path / "index").rglob("*") if file.is_file() and "snapshots" not in file.parts]
    assert files
    assert not [file for file in files if b"Helvetia" in file.read_bytes()]


def test_an_update_that_was_broken_off_is_made_again(desk: QuestionDesk, tmp_path: Path) -> None:
    expected = names(desk)
    folder = tmp_path / "index" / desk.collection.id
    (folder / "state.json").unlink()
    shutil.rmtree(folder / "snapshots")
    assert names(desk) == expected


@pytest.mark.parametrize(
    "query",
    [
        "INSERT DATA { <a:b> <a:c> <a:d> }",
        "DELETE WHERE { ?s ?p ?o }",
        "PREFIX a: <a:> LOAD <http://127.0.0.1/x>",
        "CLEAR ALL",
        "SELECT * { SERVICE <http://127.0.0.1:1/sparql> { ?s ?p ?o } }",
        "SELECT * { { SeRvIcE SILENT ?where { ?s ?p ?o } } }",
        "",
        "nonsense",
        "SELECT * { ?s ?p ",
        "SELECT ?x { ?x a unknown:Thing }",
    ],
)
def test_what_does_more_than_read_is_refused(desk: QuestionDesk, query: str) -> None:
    with pytest.raises(QueryError):
        desk.query(query)


@pytest.mark.parametrize(
    "asking",
    [
        "SERVICE <URL> { ?s ?p ?o }",
        "SERVICE:x { ?s ?p ?o }",
        "serviceS:x { ?s ?p ?o }",
        "?a ?b trueSERVICE <URL> { ?s ?p ?o }",
        "?a ?b true.SERVICE:x { ?s ?p ?o }",
        "?a ?b true SERVICESILENT<URL> { ?s ?p ?o }",
        "?a ?b 1.SERVICE<URL> { ?s ?p ?o }",
        "\\u0053ERVICE <URL> { ?s ?p ?o }",
        '?a ?b "\\u0022 . SERVICE <URL> { ?s ?p ?o } . ?a ?b \\u0022" ',
    ],
)
def test_no_query_reaches_another_server_however_it_is_written(desk: QuestionDesk, asking: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        url = f"http://127.0.0.1:{elsewhere.getsockname()[1]}/"
        query = f"PREFIX : <{url}> PREFIX S: <{url}> SELECT * {{ {asking.replace('URL', url)} }}"
        with contextlib.suppress(QueryError, QueryLimitError):
            desk.query(query, limits=QueryLimits(seconds=2))
        elsewhere.setblocking(False)
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


@pytest.mark.parametrize(
    "hostile", ['"' + '\\"' * 49_000, "'" + "\\'" * 49_000, "a." * 49_000, "a-" * 49_000, "<a" * 49_000]
)
def test_reading_a_hostile_query_takes_no_longer_than_its_length(hostile: str) -> None:
    began = time.process_time()
    with pytest.raises(QueryError):
        read_query("SELECT * { " + hostile)
    # It took a minute when each letter was a place to begin again.
    assert time.process_time() - began < 10


def test_words_inside_of_strings_names_and_comments_are_no_commands(desk: QuestionDesk) -> None:
    query = """# SERVICE <http://evil>
    SELECT ?s { ?s rdfs:label "SERVICE <x> { DELETE", 'INSERT', '''LOAD ' ''' , "a\\"SERVICE" ; :service :delete }"""
    assert desk.query(query).rows == 0
    assert read_query("SELECT ?x WHERE { ?x ?y '}' . { ?x a :B } } LIMIT 3").body == "{ ?x ?y '}' . { ?x a :B } }"


def test_another_collection_is_not_there(desk: QuestionDesk) -> None:
    assert desk.query("SELECT * FROM <https://example.org/elsewhere> { ?s ?p ?o }").rows == 0
    only = desk.query("SELECT ?s { ?s ?p ?o }", default_graphs=(f"{BASE}document-none",))
    assert only.rows == 0


def test_a_query_that_takes_too_long_is_ended_and_the_next_is_answered(desk: QuestionDesk) -> None:
    endless = "SELECT (COUNT(*) AS ?n) { " + " ".join(f"?a{i} ?b{i} ?c{i} ." for i in range(9)) + " }"
    with pytest.raises(QueryLimitError) as refused:
        desk.query(endless, limits=QueryLimits(seconds=0.3))
    assert refused.value.limit == "time"
    assert names(desk)


def test_more_rows_than_allowed_are_refused_not_cut(desk: QuestionDesk) -> None:
    with pytest.raises(QueryLimitError, match="more than 3 rows"):
        desk.query("SELECT * { ?s ?p ?o }", limits=QueryLimits(rows=3))
    assert desk.query("SELECT * { ?s ?p ?o } LIMIT 3", limits=QueryLimits(rows=3)).rows == 3


def test_a_query_that_needs_too_much_memory_ends_alone(desk: QuestionDesk) -> None:
    hungry = "SELECT ?x { " + " ".join(f"?a{i} ?b{i} ?c{i} ." for i in range(5)) + " } ORDER BY ?a0 ?a1 ?a2 ?a3 ?a4"
    with pytest.raises(QueryLimitError) as refused:
        desk.query(hungry, limits=QueryLimits(seconds=60, memory_bytes=512 * 1024 * 1024))
    assert refused.value.limit in ("memory", "rows")
    assert names(desk)


def test_what_was_told_apart_is_in_the_resolved_view(desk: QuestionDesk, writer: Writer) -> None:
    asked = 'ASK { ?a rdfs:label "Weserstahl AG" ; owl:differentFrom ?b . ?b rdfs:label "Helvetia Zellen" ; owl:differentFrom ?a }'
    assert not desk.query(asked).boolean
    apart = writer.collection.decide("different", "Weserstahl AG", "Helvetia Zellen")
    assert desk.query(asked).boolean
    writer.collection.remove_name("two.txt")
    assert not desk.query("ASK { ?a owl:differentFrom ?b }").boolean
    writer.put("two.txt", ("Weserstahl AG/Company", "headquarters", "Zug/City"))
    assert desk.query(asked).boolean
    writer.collection.undo(apart.id)
    assert not desk.query("ASK { ?a owl:differentFrom ?b }").boolean
