"""Collections over REST and with the client: filled, looked at, decided about, erased, exported; each role its own."""

import pytest

from sameas.client import Client, ServiceError
from tests.unit.server.house import TURTLE, running

TEXTS = {
    "a.txt": "Anna Stone works for Acme Ltd. Bob Miller is the founder of Globex Inc.",
    "b.txt": "Anna Stone works for Acme Ltd.",
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("collections")) as one:
        yield one


@pytest.fixture
def client(service):
    with Client(str(service.client.base_url)) as made:
        made.put_ontology("company", TURTLE)
        yield made


@pytest.fixture
def press(client, request):
    name = request.node.name[:60].replace("[", "-").replace("]", "")
    client.collections.create(name, ontology="company")
    client.collections.add(name, TEXTS, extractor="lexicon")
    state = client.collections.wait(name, within=30)
    assert (state.complete, state.failed) == (2, 0)
    return name


def test_texts_become_one_graph_with_the_evidence_of_all(client, press):
    info = client.collections.show(press)
    assert (info.documents, info.role) == (2, "owner")
    statements = client.collections.statements(press)
    (works,) = [one for one in statements if one.subject_name == "Anna Stone"]
    assert (works.documents, {place.document_name for place in works.evidence}) == (2, {"a.txt", "b.txt"})
    page = client.collections.entity(press, works.subject)
    assert page.entity.name == "Anna Stone"
    assert [one.name for one in client.collections.find(press, "A. Stone")] == ["Anna Stone"]
    assert {one.names[0].name for one in client.collections.documents(press)} == set(TEXTS)
    assert b"Anna Stone" in client.collections.export(press)


def test_a_name_gets_a_new_text_and_goes(client, press):
    client.collections.add(press, {"b.txt": "Carl Young works for Acme Ltd."}, extractor="lexicon")
    client.collections.wait(press)
    assert any(one.name == "Carl Young" for one in client.collections.entities(press))
    assert len(client.collections.remove_document(press, "b.txt").removed) == 1
    assert not any(one.name == "Carl Young" for one in client.collections.entities(press))
    with pytest.raises(ServiceError, match="404"):
        client.collections.remove_document(press, "b.txt")


def test_pages_of_statements_are_the_whole(service, client, press):
    whole = client.collections.statements(press)
    pages, after = [], ""
    while after is not None:
        query = {"limit": 1} | ({"after": after} if after else {})
        page = service.client.get(f"/api/v1/collections/{press}/statements", params=query).json()
        pages += [one["subject"] + one["predicate"] for one in page["statements"]]
        after = page.get("next")
    assert pages == [one.subject + one.predicate for one in whole]


def test_people_decide_and_undo(client, press):
    ids = {one.name: one.id for one in client.collections.entities(press)}
    decision = client.collections.decide(press, "same", ids["Anna Stone"], ids["Bob Miller"], reason="pen name")
    assert [one.id for one in client.collections.decisions(press)] == [decision.id]
    assert client.collections.entity(press, ids["Bob Miller"]).redirected_from == ids["Bob Miller"]
    client.collections.undo(press, decision.id)
    assert client.collections.entity(press, ids["Bob Miller"]).redirected_from == ""
    assert client.collections.decisions(press) == ()


def test_what_cannot_be_read_is_told_and_tried_again(service, client, press):
    body = {"documents": [{"name": "torn.pdf", "contentBase64": "AAAA", "mediaType": "application/pdf"}]}
    assert service.client.post(f"/api/v1/collections/{press}/documents", json=body).status_code == 202
    assert client.collections.wait(press).failed == 1
    (failed,) = [one for one in client.collections.documents(press) if one.status == "failed"]
    assert failed.names[0].error
    assert client.collections.retry_failed(press).accepted == 1
    assert client.collections.wait(press).failed == 1


def test_what_is_erased_is_gone_with_the_runs_that_named_it(service, client, press):
    (anna,) = client.collections.find(press, "Anna Stone")
    done = client.collections.erase(press, anna.id, reason="asked for")
    assert done.documents == 2
    assert b"Anna" not in client.collections.export(press)
    for key in done.runs:
        assert service.client.get(f"/api/v1/runs/{key}").status_code == 404


def test_a_collection_is_gone_when_it_is_removed(client, press):
    client.collections.remove(press)
    with pytest.raises(ServiceError, match="404"):
        client.collections.show(press)
    assert all(one.name != press for one in client.collections.list())


def test_a_text_that_was_replaced_while_it_was_read_does_not_win(client, press):
    for number in range(5):
        client.collections.add(press, {"b.txt": f"Dora{number} Lane works for Acme Ltd."}, extractor="lexicon")
    client.collections.wait(press)
    assert [one.name for one in client.collections.entities(press) if one.name.startswith("Dora")] == ["Dora4 Lane"]
