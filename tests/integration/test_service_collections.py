"""Collections over REST and with the client: filled, looked at, decided about, erased, exported; each role its own."""

import asyncio

import pytest

from sameas.client import AsyncClient, Client, ServiceError
from sameas.client.folder_sync import Look
from sameas.collections.sync import FolderError
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


def synced(client, name, folder, **options):
    done = client.collections.sync(name, folder, extractor="lexicon", within=60, **options)
    return done.added, done.changed, done.unchanged, done.removed, done.failed, done.vanished


def test_a_folder_is_kept_in_step_over_rest(client, press, tmp_path):
    inbox = tmp_path / "inbox"
    (inbox / "deep").mkdir(parents=True)
    (inbox / "a.txt").write_text("Dora Klein works for Initech.")
    (inbox / "deep" / "b.html").write_text("<p>Emil Wolf works for <b>Acme Ltd</b>.</p>")
    (inbox / "bad.txt").write_bytes(b"\xff\xfe\xff")
    (inbox / ".hidden.txt").write_text("Nobody reads this.")
    assert synced(client, press, inbox) == (2, 0, 0, 0, 1, 0)
    assert {"Dora Klein", "Emil Wolf"} <= {one.name for one in client.collections.entities(press)}
    revision = client.collections.show(press).revision
    assert synced(client, press, inbox) == (0, 0, 2, 0, 1, 0)
    assert client.collections.show(press).revision == revision
    (inbox / "a.txt").write_text("Dora Klein works for Globex Inc.")
    (inbox / "deep" / "b.html").unlink()
    (inbox / "bad.txt").unlink()
    (inbox / "c.txt").write_text("Fritz Lang works for Initech.")
    assert synced(client, press, inbox) == (1, 1, 0, 1, 0, 0)
    names = {one.names[0].name for one in client.collections.documents(press)}
    assert names == {*TEXTS, "inbox/a.txt", "inbox/c.txt"}, "what is not of the folder stays"
    (inbox / "bad.txt").write_bytes(b"\xff\xfe\xff")
    failed = client.collections.sync(press, inbox, extractor="lexicon", within=60)
    assert list(failed.errors) == ["inbox/bad.txt"]
    assert client.collections.sync(press, inbox, within=60).errors == {}
    assert list(client.collections.sync(press, inbox, within=60, retry_failed=True).errors) == ["inbox/bad.txt"]


def test_a_folder_that_is_missing_or_empty_takes_nothing_out_over_rest(client, press, tmp_path):
    inbox = tmp_path / "inbox"
    with pytest.raises(FolderError, match="not a folder"):
        client.collections.sync(press, inbox)
    inbox.mkdir()
    (inbox / "a.txt").write_text("Dora Klein works for Initech.")
    synced(client, press, inbox)
    (inbox / "a.txt").unlink()
    with pytest.raises(FolderError, match="empty"):
        client.collections.sync(press, inbox)
    assert client.collections.show(press).documents == 3
    assert synced(client, press, inbox, allow_empty=True) == (0, 0, 0, 1, 0, 0)


def test_a_task_syncs_a_folder_under_another_name(service, client, press, tmp_path):
    (tmp_path / "a.txt").write_text("Dora Klein works for Initech.")

    async def work():
        async with AsyncClient(str(service.client.base_url)) as one:
            return await one.collections.sync(press, tmp_path, named="mail/2026", extractor="lexicon", within=60)

    assert asyncio.run(work()).added == 1
    sent = [one for one in client.collections.documents(press) if one.names[0].name == "mail/2026/a.txt"]
    assert [one.names[0].size for one in sent] == [len("Dora Klein works for Initech.")]


def test_a_file_that_vanished_is_told_and_gone_over_rest(client, press, tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"Dora Klein works for Initech. {name}")
    synced(client, press, tmp_path, named="in")
    (tmp_path / "b.txt").write_text("Dora Klein works for Globex Inc.")
    look = Look.at(tmp_path, named="in")
    (tmp_path / "b.txt").unlink()
    calls = client.collections._calls.sync(
        press, look, extractor="lexicon", model=None, retry_failed=False, allow_empty=False, within=60
    )
    done = client.collections._do(calls)
    assert (done.unchanged, done.vanished, done.removed, list(done.errors)) == (1, 1, 1, ["in/b.txt"])
    assert "in/b.txt" not in {one.names[0].name for one in client.collections.documents(press)}
