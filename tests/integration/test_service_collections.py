"""Collections over REST and with the client: filled, looked at, decided about, erased, exported; each role its own."""

import asyncio
import json
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from sameas.client import AsyncClient, Client, ServiceError
from sameas.client.calls import InThread, Pause
from sameas.client.collection_calls import Look
from sameas.collections.filling import FolderError
from sameas.once.errors import OutcomeUnknown, StoreUnavailable
from sameas.once.script import run as run_script
from sameas.server.runs.day_accounts import Spent
from sameas.server.runs.runner import Runner
from tests.integration.model_path import ORACLE
from tests.servers.model_script import status
from tests.servers.model_server import ModelServer
from tests.unit.server.house import TURTLE, WITHIN, running

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


def test_a_text_that_a_wrong_model_is_asked_about_is_told_and_does_not_wait(tmp_path):
    with (
        ModelServer(status(404, message="scripted")) as model,
        running(tmp_path, models=model.address("tiny")) as one,
        Client(one.url) as client,
    ):
        client.collections.create("wrong", ontology="company")
        client.collections.add("wrong", {"a.txt": TEXTS["a.txt"]}, extractor="model")
        assert client.collections.wait("wrong", within=WITHIN).failed == 1
        (document,) = client.collections.documents("wrong")
        assert "there is no such model" in document.names[0].error
        assert len(model.calls) == 1


def test_a_text_waits_on_while_the_day_is_set_aside_for_runs_under_way(tmp_path):
    with (
        ModelServer(ORACLE) as model,
        running(tmp_path, models=model.address("tiny"), tenant_tokens_per_day=9_000) as one,
    ):
        inner = one.app.service

        def account(work):
            return inner._background_loop.submit(work).result(WITHIN)

        aside = account(inner.accounts.begin("", likely=Spent(8_500), most=Spent(9_000)))
        with Client(one.url) as client:
            client.collections.create("press", ontology="company")
            client.collections.add("press", {"a.txt": TEXTS["a.txt"]}, extractor="model")
            refused = one.client.post(
                "/api/v1/extract",
                json={"text": TEXTS["b.txt"], "ontologyId": "company", "extractionParams": {"extractor": "model"}},
            )
            assert refused.json()["type"] == "urn:sameas:problem:day-set-aside"
            # The text was looked at before the request that was refused, or is so by now.
            time.sleep(1)
            state = client.collections.sync_state("press")
            assert (state.waiting, state.failed) == (1, 0)
            account(inner.accounts.end(aside, Spent()))
            state = client.collections.wait("press", within=WITHIN)
            assert (state.complete, state.failed) == (1, 0)


@pytest.mark.parametrize("trouble", [OutcomeUnknown, StoreUnavailable])
def test_a_text_waits_on_when_the_store_went_away_under_its_run(tmp_path, monkeypatch, trouble):
    asked = []
    extract = Runner.extract

    async def once_away(runner, prepared, audit, **more):
        asked.append(audit)
        if len(asked) == 1:
            raise trouble
        return await extract(runner, prepared, audit, **more)

    monkeypatch.setattr(Runner, "extract", once_away)
    with running(tmp_path) as one, Client(one.url) as client:
        client.collections.create("press", ontology="company")
        client.collections.add("press", {"a.txt": TEXTS["a.txt"]}, extractor="lexicon")
        state = client.collections.wait("press", within=WITHIN)
        assert (state.complete, state.failed, len(asked)) == (1, 0, 2)


def test_the_run_of_a_text_says_who_sent_it_and_in_which_hop(tmp_path):
    trace = "0af7651916cd43dd8448eb211c80319c"
    with running(tmp_path) as one, Client(one.url) as client:
        client.collections.create("press", ontology="company")
        body = {"documents": [{"name": "a.txt", "text": TEXTS["a.txt"]}], "extractor": "lexicon"}
        sent = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
        put = one.client.post("/api/v1/collections/press/documents", json=body, headers=sent)
        assert put.status_code == 202, put.text
        client.collections.wait("press", within=WITHIN)
        (run,) = one.client.get("/api/v1/runs").json()["runs"]
    metadata = json.loads((tmp_path / "runs" / run["idempotencyKey"] / "metadata.json").read_bytes())
    assert metadata["auditMeta"]["trace_id"] == trace
    assert metadata["auditMeta"]["invocation_id"]


def test_what_is_erased_is_gone_with_the_runs_that_named_it(service, client, press):
    (anna,) = client.collections.find(press, "Anna Stone")
    done = client.collections.erase(press, anna.id, reason="asked for")
    assert done.documents == 2
    assert b"Anna" not in client.collections.export(press)
    for key in done.runs:
        assert service.client.get(f"/api/v1/runs/{key}").status_code == 404


def test_a_text_that_names_what_was_erased_leaves_no_run_behind(service, client, press):
    (anna,) = client.collections.find(press, "Anna Stone")
    client.collections.erase(press, anna.id)
    client.collections.add(press, {"c.txt": "Anna Stone works for Acme Ltd. Carla Poe works for Acme Ltd."})
    assert client.collections.wait(press, within=30).waiting == 0
    assert client.collections.find(press, "Anna Stone") == ()
    assert [one.name for one in client.collections.find(press, "Carla Poe")] == ["Carla Poe"]
    runs = service.app.service.settings.home
    assert [file for file in runs.rglob("text.txt") if b"Carla Poe" in file.read_bytes()] == []


def test_the_runs_are_gone_before_the_collection_forgets_which_they_were(service, client, press):
    (anna,) = client.collections.find(press, "Anna Stone")
    runs = [one.run for one in client.collections.documents(press)]
    file = service.app.service.settings.home / "collections.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as other, ThreadPoolExecutor(1) as pool:
        # Somebody else writes: until they are done, nothing is erased from the collection.
        other.execute("BEGIN IMMEDIATE")
        erasing = pool.submit(client.collections.erase, press, anna.id)
        ends_at = time.monotonic() + WITHIN
        while any(service.client.get(f"/api/v1/runs/{key}").status_code != 404 for key in runs):
            assert time.monotonic() < ends_at
        assert [one.id for one in client.collections.find(press, "Anna Stone")] == [anna.id]
        other.execute("ROLLBACK")
        assert erasing.result().documents == 2
    assert not client.collections.find(press, "Anna Stone")


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
        press, tmp_path, named="in", extractor="lexicon", model=None, retry_failed=False, allow_empty=False, within=60
    )
    done = run_script(calls, client._send, {Pause: lambda pause: time.sleep(pause.seconds), InThread: lambda _: look})
    assert (done.unchanged, done.vanished, done.removed, list(done.errors)) == (1, 1, 1, ["in/b.txt"])
    assert "in/b.txt" not in {one.names[0].name for one in client.collections.documents(press)}
