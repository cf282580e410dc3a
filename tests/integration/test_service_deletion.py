"""Deleted is deleted: no file, no table and no server has a word of it, and whoever comes back is told."""

import sqlite3
import time

import psycopg
import pytest

from sameas.cli.collections import erase
from sameas.cli.runs import remove
from sameas.client import Client
from sameas.server.runs import preparation as preparing
from tests.integration.model_path import ORACLE
from tests.servers.model_server import ModelServer
from tests.servers.redis import RedisServer
from tests.unit.server.house import LONG, SLOW, WITHIN, Hold, running

pytest_plugins = ["tests.servers.fixtures"]

CANARY = "Zyxwvut"
TEXT = f"{CANARY} Stone works for {CANARY}corp Ltd. Bob Miller is the founder of Globex Inc."
OTHER = "Anna Young works for Acme Ltd."


def _request(text=TEXT, **params):
    return {"text": text, "ontologyId": "company", "document": text[:7], "extractionParams": params}


def _extract(service, request, **headers):
    return service.client.post("/api/v1/extract", json=request, headers=headers)


def _in_files(*folders):
    """The files in which the canary is, once SQLite has put its logs into its files."""
    for folder in folders:
        for file in folder.rglob("*.db"):
            connection = sqlite3.connect(file)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.close()
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    # Case is folded in what extraction makes of a name.
    return sorted(str(file) for file in files if CANARY.lower().encode() in _read(file).lower())


def _read(file):
    """A file's bytes; none where it was deleted meanwhile."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def _in_postgres(url):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM FULL")
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        found = []
        for schema, table in tables:
            rows = connection.execute(f'SELECT t.* FROM "{schema}"."{table}" AS t').fetchall()
            found += [table for row in rows if CANARY.lower() in _shown(row)]
        return found


def _shown(row):
    cells = (bytes(cell).decode("latin-1") if isinstance(cell, bytes | memoryview) else str(cell) for cell in row)
    return " ".join(cells).lower()


def _in_redis(server):
    with server.client() as client:
        client.bgrewriteaof()
        ends_at = time.monotonic() + WITHIN
        while (
            client.info("persistence")["aof_rewrite_in_progress"] or client.info("persistence")["aof_rewrite_scheduled"]
        ):
            assert time.monotonic() < ends_at, "the log was not rewritten"
            time.sleep(0.05)
    return _in_files(server.folder)


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def place(request, tmp_path):
    """Settings of a store and a database, and what looks for the canary in them."""
    home = tmp_path / "home"
    if request.param == "sqlite":
        return home, {"database": f"sqlite:///{tmp_path}/results.db"}, lambda: _in_files(tmp_path)
    if request.param == "redis":
        url = request.getfixturevalue("redis_url")
        server: RedisServer = request.getfixturevalue("redis_server")
        return home, {"store": url}, lambda: _in_files(tmp_path) + _in_redis(server)
    url = request.getfixturevalue("postgres_url")
    settings = {
        "store": url.replace("postgresql://", "postgresql+psycopg://"),
        "database": url.replace("postgresql://", "postgresql+psycopg://"),
    }
    return home, settings, lambda: _in_files(tmp_path) + _in_postgres(url)


@pytest.mark.parametrize("how", ["run", "cache"])
def test_a_deleted_run_leaves_no_word_anywhere_and_its_client_key_answers_gone(place, how):
    home, settings, search = place
    with ModelServer(ORACLE) as model, running(home, models=model.address("tiny"), **settings) as service:
        keys = set()
        for number, params in enumerate(({}, {"chunkSize": 120}, {"extractor": "model", "chunkSize": 100})):
            answer = _extract(service, _request(**params), **{"Idempotency-Key": f"mine-{number}"})
            assert answer.status_code == 200, answer.text
            keys.add(answer.json()["idempotencyKey"])
        assert CANARY in _extract(service, _request()).text
        kept = _extract(service, _request(OTHER), **{"Idempotency-Key": "other"})
        assert len(search()) > 3, "the search finds nothing where there is something"
        if how == "run":
            for key in keys:
                assert service.client.delete(f"/api/v1/runs/{key}").status_code == 204
        else:
            cleared = service.client.post("/api/v1/cache/clear", json={"reason": "a person asked for it"})
            assert cleared.status_code == 200
        for number in range(3):
            gone = _extract(service, _request(), **{"Idempotency-Key": f"mine-{number}"})
            assert (gone.status_code, gone.json()["type"]) == (410, "urn:sameas:problem:result-deleted")
        assert search() == []
        replayed = _extract(service, _request(OTHER), **{"Idempotency-Key": "other"})
        assert replayed.status_code == (200 if how == "run" else 410)
        if how == "run":
            assert replayed.content == kept.content
        anew = _extract(service, _request(), **{"Idempotency-Key": "new"})
        assert (anew.status_code, anew.json()["cacheHit"]) == (200, False)


@pytest.mark.parametrize("how", ["runs rm", "collection erase"])
def test_a_run_that_is_deleted_at_the_command_line_answers_gone_under_its_client_key_too(tmp_path, monkeypatch, how):
    monkeypatch.setenv("SAMEAS_HOME", str(tmp_path))
    with running(tmp_path) as service:
        if how == "collection erase":
            with Client(service.url) as client:
                client.collections.create("press", ontology="company")
                client.collections.add("press", {"a.txt": TEXT})
                assert client.collections.wait("press", within=WITHIN).complete == 1
        key = _extract(service, _request(), **{"Idempotency-Key": "mine"}).json()["idempotencyKey"]
        kept = _extract(service, _request(OTHER), **{"Idempotency-Key": "other"})
        assert _in_files(tmp_path)
        if how == "collection erase":
            for name in (f"{CANARY} Stone", f"{CANARY}corp Ltd"):
                erase("press", name, reason="asked for", yes=True)
        else:
            remove([key])
        gone = _extract(service, _request(), **{"Idempotency-Key": "mine"})
        assert (gone.status_code, gone.json()["type"]) == (410, "urn:sameas:problem:result-deleted")
        assert _extract(service, _request(OTHER), **{"Idempotency-Key": "other"}).content == kept.content
    assert _in_files(tmp_path) == []


def test_a_run_that_is_deleted_while_it_is_worked_on_leaves_nothing(tmp_path):
    request = {"text": f"{TEXT}\n\n{LONG}", "ontologyId": "company", "extractionParams": SLOW}
    hold = Hold(after=5)
    with running(tmp_path, hold=hold) as service:
        accepted = _extract(service, request, Prefer="respond-async", **{"Idempotency-Key": "mine"})
        assert hold.reached.wait(WITHIN)
        assert _in_files(tmp_path)
        assert service.client.delete(accepted.headers["location"]).status_code == 204
        hold.let_go()
        assert service.client.get(accepted.headers["location"]).status_code == 404
        assert _extract(service, request, **{"Idempotency-Key": "mine"}).status_code == 410
        assert _in_files(tmp_path) == []


def test_a_run_of_another_process_is_deleted_with_what_that_process_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(preparing, "LONG_TEXT", 10)
    with running(tmp_path) as service:
        key = _extract(service, _request()).json()["idempotencyKey"]
        assert _in_files(tmp_path)
        assert service.client.delete(f"/api/v1/runs/{key}").status_code == 204
        assert _in_files(tmp_path) == []


def test_copies_that_were_set_aside_and_promises_that_cannot_be_read_go_too(tmp_path):
    with running(tmp_path) as service:
        key = _extract(service, _request()).json()["idempotencyKey"]
        aside = tmp_path / "runs" / ".quarantine" / f"{key}-7"
        aside.mkdir(parents=True)
        (aside / "entities.json").write_text(CANARY)
        promise = tmp_path / "requests" / "_" / f"{key}.json.unreadable"
        promise.parent.mkdir(parents=True, exist_ok=True)
        promise.write_text(CANARY)
        assert service.client.delete(f"/api/v1/runs/{key}").status_code == 204
        assert _in_files(tmp_path) == []


def test_a_run_that_never_wrote_down_what_it_used_takes_all_checkpoints_with_it(tmp_path):
    with running(tmp_path) as service:
        key = _extract(service, _request()).json()["idempotencyKey"]
        (tmp_path / "runs" / ".used" / key).unlink()
        assert service.client.delete(f"/api/v1/runs/{key}").status_code == 204
        assert _in_files(tmp_path) == []


def test_the_audit_of_a_run_that_failed_has_a_digest_and_no_message(tmp_path):
    class Failing:
        def extractor(self, wish):
            extractor = Hold().extractor(wish)

            async def fail(chunk, focus):
                raise ValueError(f"{chunk.text} is not what I like")

            extractor.extract_entities = fail
            return extractor

    with running(tmp_path / "home", hold=_Hold(Failing()), database=f"sqlite:///{tmp_path}/results.db") as service:
        assert _extract(service, _request(extractor="model", model="held")).status_code == 500
        [run] = service.client.get("/api/v1/runs").json()["runs"]
        assert service.client.delete(f"/api/v1/runs/{run['idempotencyKey']}").status_code == 204
        assert _in_files(tmp_path) == []


class _Hold(Hold):
    def __init__(self, failing):
        super().__init__()
        self.extractor = failing.extractor


ONTOLOGY = f"""
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix : <https://example.org/secret#> .
<https://example.org/secret> a owl:Ontology ; rdfs:label "{CANARY} house"@en .
:Person a owl:Class ; rdfs:label "person"@en, "{CANARY} person"@en .
:Firm a owl:Class ; rdfs:label "firm"@en .
:worksFor a owl:ObjectProperty ; rdfs:label "works for"@en ; rdfs:domain :Person ; rdfs:range :Firm .
"""
NEXT = ONTOLOGY.replace(CANARY, "Another")


def test_an_ontology_that_is_deleted_leaves_no_word_anywhere_and_neither_do_the_versions_before(place):
    home, settings, search = place
    with running(home, **settings) as service:
        client = service.client
        text = {"text": OTHER, "ontologyId": "secret"}
        for how in ("replaced", "deleted"):
            assert client.put("/api/v1/ontologies/secret", content=ONTOLOGY).status_code in (200, 201)
            assert client.get("/api/v1/ontologies/secret").json()["label"] == f"{CANARY} house"
            assert _extract(service, text, **{"Idempotency-Key": how}).status_code == 200
            assert len(_in_files(home)) > 0, "the search finds nothing where there is something"
            if how == "replaced":
                assert client.put("/api/v1/ontologies/secret", content=NEXT).json()["changed"] is True
                assert client.get("/api/v1/ontologies/secret").json()["label"] == "Another house"
                assert search(), "a version that was replaced is kept, to be compared"
            else:
                assert client.delete("/api/v1/ontologies/secret").status_code == 200
                assert _extract(service, text).status_code == 404
                assert search() == []
    with running(home, **settings) as service:
        assert "Another house" not in service.client.get("/api/v1/ontologies").text
        assert search() == []


def test_an_ontology_that_is_validated_or_refused_or_put_as_it_is_leaves_nothing(tmp_path):
    with running(tmp_path) as service:
        client = service.client
        assert client.post("/api/v1/ontologies/validate", content=ONTOLOGY).json()["valid"] is True
        assert _in_files(tmp_path) == []
        assert client.put("/api/v1/ontologies/secret", content=NEXT).status_code == 201
        assert client.put("/api/v1/ontologies/secret", content=f"# {CANARY}\n{NEXT}").json()["changed"] is False
        other = ONTOLOGY.replace("example.org/secret", "example.org/other")
        taken = client.put("/api/v1/ontologies/https:%2F%2Fexample.org%2Fsecret", content=other)
        assert taken.status_code == 409, taken.text
        assert _in_files(tmp_path) == []


def test_an_ontology_s_runs_that_wait_or_go_on_are_deleted_with_it(tmp_path):
    hold = Hold(after=0)
    with running(tmp_path, hold=hold, max_runs=1) as service:
        assert service.client.put("/api/v1/ontologies/secret", content=NEXT).status_code == 201
        places = []
        for number in range(3):
            request = {"text": f"{TEXT} Number {number}.", "ontologyId": "secret", "extractionParams": SLOW}
            accepted = _extract(service, request, Prefer="respond-async")
            assert accepted.status_code == 202
            places.append(accepted.headers["location"])
        assert hold.reached.wait(WITHIN)
        assert _in_files(tmp_path)
        assert service.client.delete("/api/v1/ontologies/secret").status_code == 200
        hold.let_go()
        assert [service.client.get(one).status_code for one in places] == [404] * 3
        assert _in_files(tmp_path) == []


def test_a_run_that_goes_on_while_the_cache_is_cleared_answers_under_its_client_s_key(tmp_path):
    request = {"text": LONG, "ontologyId": "company", "extractionParams": SLOW}
    hold = Hold(after=5)
    with running(tmp_path, hold=hold) as service:
        ended = _extract(service, _request(), **{"Idempotency-Key": "ended"})
        accepted = _extract(service, request, Prefer="respond-async", **{"Idempotency-Key": "mine"})
        assert (ended.status_code, accepted.status_code) == (200, 202)
        assert hold.reached.wait(WITHIN)
        assert service.client.post("/api/v1/cache/clear", json={"reason": "a test"}).status_code == 200
        hold.let_go()
        answer = _extract(service, request, **{"Idempotency-Key": "mine"})
        assert (answer.status_code, answer.json()["status"]) == (200, "complete")
        again = _extract(service, request, **{"Idempotency-Key": "mine"})
        assert (again.content, again.headers["x-idempotency-replayed"]) == (answer.content, "true")
        told = service.client.get(f"{accepted.headers['location']}/events").text
        assert told.count("event: extraction_started") == 1, "the run was begun again"
        assert _extract(service, _request(), **{"Idempotency-Key": "ended"}).status_code == 410


@pytest.mark.parametrize("how", ["run", "ontology", "cache"])
def test_what_is_deleted_at_one_server_is_deleted_at_another_with_a_home_of_its_own(tmp_path, redis_url, how):
    homes = tmp_path / "a", tmp_path / "b"
    with running(homes[0], store=redis_url) as one, running(homes[1], store=redis_url) as other:
        assert one.client.put("/api/v1/ontologies/secret", content=ONTOLOGY).status_code == 201
        request = {**_request(), "ontologyId": "secret"}
        key = _extract(other, request, **{"Idempotency-Key": "mine"}).json()["idempotencyKey"]
        kept = _extract(other, {**_request(OTHER), "ontologyId": "company"}).json()["idempotencyKey"]
        assert _in_files(homes[1])
        if how == "run":
            assert other.client.delete(f"/api/v1/runs/{key}").status_code == 204
            assert other.client.get(f"/api/v1/runs/{kept}").status_code == 200
            key = _extract(other, request).json()["idempotencyKey"]
        if how == "cache":
            assert one.client.post("/api/v1/cache/clear", json={"reason": "a test"}).status_code == 200
        else:
            assert one.client.delete("/api/v1/ontologies/secret").status_code == 200
        ends_at = time.monotonic() + WITHIN
        # The ontology's own text stays where only results were cleared.
        runs = [home / "runs" for home in homes] if how == "cache" else homes
        while found := _in_files(*runs):
            assert time.monotonic() < ends_at, f"the other server has it still: {found}"
            time.sleep(0.05)
        assert other.client.get(f"/api/v1/runs/{key}").status_code == 404
        scopes = [one["scope"] for one in other.client.get("/api/v1/keys").json()["keys"]]
        assert ("extract" in scopes, "extract.deleted" in scopes) == (False, True)
        while other.client.get(f"/api/v1/runs/{kept}").status_code != (404 if how == "cache" else 200):
            assert time.monotonic() < ends_at, "the other server cleared too little or too much"
            time.sleep(0.05)
