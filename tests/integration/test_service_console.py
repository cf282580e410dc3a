"""What the console asks of the service: timelines, counts, records in words, versions, previews, how it stands."""

import asyncio
import json

import pytest

from sameas.once.call_builder import identity_of
from sameas.once.record import ClaimRequest
from sameas.server.app import open_entry
from sameas.tenancy.directory import open_tables
from tests.integration.test_service_tenants import _enrol
from tests.unit.server.house import REQUEST, TURTLE, running, settings_for

CHANGED = TURTLE.replace(b'"sodium"@en', b'"soda"@en')


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("console")) as one:
        yield one


def get(service, path, **params):
    answer = service.client.get(f"/api/v1/{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def extract(service, text, **headers):
    return service.client.post(
        "/api/v1/extract", json={**REQUEST, "text": text, "document": text[:20]}, headers=headers
    )


def test_a_timeline_has_every_stage_and_event_in_order(service):
    key = extract(service, "Anna Stone works for Acme Ltd. One.").json()["idempotencyKey"]
    told = get(service, f"runs/{key}/timeline")
    assert [stage["stage"] for stage in told["stages"]][0] == "chunking"
    assert [stage["stage"] for stage in told["stages"]][-1] == "serialization"
    assert all(stage["durationMs"] is not None for stage in told["stages"])
    kinds = [event["type"] for event in told["events"]]
    assert (kinds[0], kinds[-1]) == ("extraction_started", "extraction_completed")
    assert told["counts"]["entity_found"] == 2
    assert told["total"]["calls"] == 0


def test_what_checkpoints_saved_is_told(service):
    extract(service, "Anna Stone works for Beta Ltd. Two.")
    key = service.client.post(
        "/api/v1/extract", json={**REQUEST, "text": "Anna Stone works for Beta Ltd. Two.", "document": "other"}
    ).json()["idempotencyKey"]
    told = get(service, f"runs/{key}/timeline")
    assert told["saved"]["chunks"] == 1


def test_runs_are_filtered_by_document_and_time(service):
    extract(service, "Quarterly report: Anna Stone works for Gamma Ltd.")
    assert len(get(service, "runs", document="QUARTERLY")["runs"]) == 1
    assert get(service, "runs", document="quarterly", before="2020-01-01T00:00:00Z")["runs"] == []
    assert len(get(service, "runs", **{"document": "quarterly", "from": "2020-01-01"})["runs"]) == 1
    assert service.client.get("/api/v1/runs", params={"from": "yesterday"}).status_code == 400


def test_replays_are_counted_by_the_hour_whether_from_memory_or_the_store(service):
    before = get(service, "counts", hours=1)["counts"]
    for _ in range(3):
        extract(service, "Anna Stone works for Delta Ltd.")
    for _ in range(2):
        extract(service, "Anna Stone works for Delta Ltd.", **{"Idempotency-Key": "delta-1"})
    after = get(service, "counts", hours=1)

    def grown(scope, field):
        sums = [sum(one[field] for one in rows if one["scope"] == scope) for rows in (before, after["counts"])]
        return sums[1] - sums[0]

    assert (grown("extract", "calls"), grown("extract", "hits")) == (2, 1)
    assert grown("extraction", "calls") == 4
    assert grown("extraction", "hits") == 3
    assert after["pruned"] == []


def test_a_clients_own_key_finds_its_record_and_is_told_in_words(service):
    extract(service, "Anna Stone works for Epsilon Ltd.", **{"Idempotency-Key": "order<b>7</b>"})
    found = get(service, "keys/explain", key="order<b>7</b>")
    assert found["clientKey"] == "order<b>7</b>"
    assert any("gets this result again" in one for one in found["words"])


def test_a_status_code_finds_answers_under_clients_keys(service):
    extract(service, "Anna Stone works for Zeta Ltd.", **{"Idempotency-Key": "zeta-1"})
    found = get(service, "keys", status=200, route="/api/v1/extract", method="POST")["keys"]
    assert "zeta-1" in [one["clientKey"] for one in found]
    assert {one["statusCode"] for one in found} == {200}
    assert get(service, "keys", status=404)["keys"] == []


def test_versions_their_results_and_what_changed_between_them(service):
    client = service.client
    assert client.put("/api/v1/ontologies/mine", content=TURTLE).status_code == 201
    client.post("/api/v1/extract", json={**REQUEST, "ontologyId": "mine"})
    preview = client.post("/api/v1/ontology-preview", params={"id": "mine"}, content=CHANGED).json()
    assert preview["changed"]
    assert [run["status"] for run in preview["runs"]] == ["complete"] * preview["invalidated"]
    assert {one["change"] for one in preview["changes"]} == {"changed"}
    assert get(service, "ontology-versions", id="mine")["versions"][0]["version"] == preview["oldVersion"]

    put = client.put("/api/v1/ontologies/mine", content=CHANGED).json()
    assert put["entriesInvalidated"] == preview["invalidated"] > 0
    present, former = get(service, "ontology-versions", id="mine")["versions"]
    assert (present["version"], present["replacedAt"], present["results"]) == (put["version"], None, 0)
    assert former["version"] == put["oldVersion"]
    assert {run["status"] for run in former["runs"]} == {"superseded"}
    changes = get(service, "ontology-changes", id="mine", before=former["version"])
    assert changes["changes"] == preview["changes"]

    assert client.delete("/api/v1/ontologies/mine").status_code == 200
    client.put("/api/v1/ontologies/mine", content=TURTLE)
    assert len(get(service, "ontology-versions", id="mine")["versions"]) == 1


def test_a_preview_of_what_is_no_ontology_says_where(service):
    refused = service.client.post("/api/v1/ontology-preview", params={"id": "mine"}, content=b"<a> <b> ")
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:sameas:problem:ontology-invalid")
    unknown = service.client.get("/api/v1/ontology-changes", params={"id": "company", "before": "sha256:0"})
    assert unknown.status_code == 404


def test_the_system_names_every_dependency_and_hides_passwords(tmp_path):
    with running(tmp_path, jwt_keys="https://me:hunter2@127.0.0.1/keys") as service:
        told = get(service, "system")
        assert {one["name"]: one["said"] for one in told["dependencies"]} == {"store": "ok", "home": "ok"}
        settings = {one["name"]: one["value"] for one in told["settings"]}
        assert settings["lease"] == "5 s"
        assert "hunter2" not in json.dumps(told)


def test_a_held_key_is_released_with_a_reason_that_is_audited(service):
    app = service.app.service
    identity = identity_of("extract", "stuck-1", tenant=app.settings.tenant)

    async def claim():
        await app.do(app.store.claim(ClaimRequest(identity, "", "a", 60_000_000, 60_000_000)))

    asyncio.run_coroutine_threadsafe(claim(), app._serving).result(10)
    released = service.client.post("/api/v1/keys/release", json={"key": "stuck-1", "reason": "its worker is dead"})
    assert released.status_code == 200, released.text
    audit = (app.settings.home / "audit.jsonl").read_text().splitlines()
    last = json.loads(audit[-1])
    assert (last["event"], last["reason"], last["key"]) == ("key-released", "its worker is dead", "stuck-1")


def test_tenants_have_counts_timelines_and_versions_of_their_own(tmp_path):
    database = open_tables(f"sqlite:///{tmp_path}/tenants.db")
    one, two = (_enrol(database, name) for name in ("one", "two"))
    database.close()
    entry = open_entry(settings_for(tmp_path, auth="api-key"))
    with running(tmp_path, entry=entry, auth="api-key") as service:
        client = service.client
        client.put("/api/v1/ontologies/company", content=TURTLE, headers=one.admin)
        key = client.post("/api/v1/extract", json=REQUEST, headers=one.user).json()["idempotencyKey"]
        assert client.get(f"/api/v1/runs/{key}/timeline", headers=one.user).status_code == 200
        assert client.get(f"/api/v1/runs/{key}/timeline", headers=two.admin).status_code == 404
        assert client.get("/api/v1/counts", headers=one.user).json()["counts"] != []
        assert client.get("/api/v1/counts", headers=two.admin).json()["counts"] == []
        versions = client.get("/api/v1/ontology-versions", params={"id": "company"}, headers=two.admin)
        assert versions.status_code == 404
        # The settings and the pruning of the whole service are for its operators.
        assert client.get("/api/v1/system", headers=one.user).json()["settings"] is None
        assert client.get("/api/v1/counts", headers=one.user).json()["pruned"] is None
        assert client.get("/api/v1/system", headers=one.admin).json()["settings"] is not None
        for path in ("counts", "system", "ontology-versions", f"runs/{key}/timeline"):
            assert client.get(f"/api/v1/{path}").status_code == 401
