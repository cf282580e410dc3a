"""Lists of known things: what documents name is linked to them, and two known things are never one."""

import tracemalloc

import pytest

from sameas.collections.drafts import KnownListError
from tests.unit.collections.press import company, named, person, put

CSV = b"iri,name,type,aliases\nhttps://known.org/1,Acme Limited,company,ACME Worldwide|Acme W.\nhttps://known.org/2,Globex,company,\n"


def test_a_list_in_csv_is_linked_to_what_documents_name(collection):
    put(collection, "a", company("ACME Worldwide"))
    put(collection, "b", person("Alice Stone"))
    assert collection.link_known("companies.csv", CSV).entities == 2
    linked = {one.name: one.same_as for one in collection.entities()}
    assert ("https://known.org/1",) in linked.values()
    assert linked["Alice Stone"] == ()
    assert len(linked) == 3
    assert collection.info().documents == 2


def test_the_next_list_of_the_name_replaces_the_first(collection):
    collection.link_known("companies.csv", CSV)
    collection.link_known("companies.csv", b"iri,name\nhttps://known.org/3,Initech\n")
    assert [name for name, _ in named(collection)] == ["Initech"]


def test_a_graph_is_a_list_too(collection):
    put(collection, "a", company("Globex"))
    data = b"""<https://known.org/2> <http://www.w3.org/2000/01/rdf-schema#label> "Globex" ;
        a <http://example.org/Company> ; <http://example.org/register> "HRB 2" ."""
    collection.link_known("companies.ttl", data)
    (one,) = collection.entities()
    assert (one.same_as, one.documents) == (("https://known.org/2",), 2)


def test_two_known_things_of_one_name_stay_two(collection):
    collection.link_known("c.csv", b"iri,name,type\nhttps://k.org/1,Acme,company\nhttps://k.org/2,Acme,company\n")
    put(collection, "a", company("Acme"))
    assert [count for _, count in named(collection)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"id,name\n1,Acme\n", "columns iri and name"),
        (b"iri,name\nno iri,Acme\n", "line 2"),
        (b"iri,name\nhttp://[::1,Acme\n", "line 2"),
        (b"iri,name\nhttps://k.org/%zz,Acme\n", "line 2"),
        (b"iri,name,type\nhttps://k.org/1,Acme,spaceship\n", "no class"),
        (b"iri,name,colour\nhttps://k.org/1,Acme,red\n", "no property"),
        (b"iri,name\nhttps://k.org/1,\xff\n", "UTF-8"),
        (b"iri,name\nhttps://k.org/1\n", "line 2"),
        (b"iri,name\nhttps://k.org/1," + b"a" * 200_000 + b"\n", "field larger than"),
        (b"iri,name\nhttps://k.org/1," + b"a" * 100_000 + b"\n", "a name of https://k.org/1 has 100000 characters"),
        (b"iri,name,aliases\nhttps://k.org/1,Acme,A|" + b"b" * 1_001 + b"\n", "has 1001 characters"),
        (b"iri,name\nhttps://k.org/" + b"a" * 3_000 + b",Acme\n", "an IRI has 3014 characters"),
    ],
)
def test_a_list_that_cannot_be_read_is_refused_and_changes_nothing(collection, data, said):
    with pytest.raises(KnownListError, match=said):
        collection.link_known("c.csv", data)
    assert collection.entities() == []


def test_a_graph_s_names_are_bounded_too(collection):
    label = b'<https://k.org/1> <http://www.w3.org/2000/01/rdf-schema#label> "%s" .' % (b"a" * 100_000)
    with pytest.raises(KnownListError, match="has 100000 characters"):
        collection.link_known("c.ttl", label)


def test_a_word_without_an_end_in_a_document_takes_room_once(collection):
    tracemalloc.start()
    try:
        put(collection, "a", company("A" + "b" * 20_000))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(collection.entities()) == 1
    # Every form of it without one letter would be 400 MB.
    assert most < 50_000_000
