"""What operators may set, and what it does to requests."""

import json
import time
from datetime import datetime

import pytest

from sameas.connections import open_store
from sameas.once.store import Query
from sameas.server import service as service_module
from sameas.settings import Settings, SettingsError, load_settings
from tests.integration.model_path import ORACLE, document
from tests.servers.model_server import ModelServer
from tests.unit.server.house import LONG, REQUEST, SLOW, TEXT, WITHIN, Hold, running

ASKING = {"text": document(4), "ontologyId": "company", "extractionParams": {"extractor": "model", "chunkSize": 200}}


def post(service, body, **headers):
    return service.client.post("/api/v1/extract", json=body, headers=headers)


def day_of(service):
    """What the tenant has spent today."""
    accounts, background_loop = service.app.service.accounts, service.app.service._background_loop
    return background_loop.submit(accounts.read("", time.strftime("%Y-%m-%d", time.gmtime()))).result(WITHIN)


def seconds(entry):
    """For how long a record is kept, as it says."""
    return (datetime.fromisoformat(entry["expiresAt"]) - datetime.fromisoformat(entry["completedAt"])).total_seconds()


def test_results_and_clients_keys_are_kept_for_as_long_as_is_set(tmp_path):
    with running(tmp_path, result_ttl=3600.0, key_ttl=60.0) as service:
        assert post(service, REQUEST, **{"Idempotency-Key": "mine"}).status_code == 200
        keys = {entry["scope"]: entry for entry in service.client.get("/api/v1/keys").json()["keys"]}
        assert seconds(keys["extraction"]) == pytest.approx(3600, abs=1)
        assert seconds(keys["extract"]) == pytest.approx(60, abs=1)


def test_a_request_may_spend_so_many_tokens_and_no_more(tmp_path):
    with ModelServer(ORACLE) as model, running(tmp_path, models=model.address("tiny"), request_tokens=1500) as service:
        answer = post(service, ASKING).json()
        run = service.client.get(f"/api/v1/runs/{answer['idempotencyKey']}").json()
        assert (answer["status"], "budget" in str(run["missing"])) == ("partial", True)
        assert sum(row["inputTokens"] + row["outputTokens"] for row in run["usage"]) <= 1500


@pytest.fixture
def prices(tmp_path):
    """A file in which a token of the model costs a hundredth of a dollar."""
    path = tmp_path / "prices.toml"
    path.write_text('as_of = 2026-01-01\n[models]\n"compatible:tiny" = { input = 10000, output = 10000 }\n')
    return str(path)


def test_a_request_may_cost_so_much_and_no_more(tmp_path, prices):
    with (
        ModelServer(ORACLE) as model,
        running(tmp_path, models=model.address("tiny"), prices=prices, request_cost=30.0) as service,
    ):
        estimate = service.client.post("/api/v1/estimate", json=ASKING).json()
        assert 30 < estimate["cost"] < estimate["mostCost"]
        answer = post(service, ASKING).json()
        run = service.client.get(f"/api/v1/runs/{answer['idempotencyKey']}").json()
        assert (answer["status"], "budget" in str(run["missing"])) == ("partial", True)
        assert 0 < sum(float(row["cost"]) for row in run["usage"]) <= 30


def test_money_has_an_end_that_nobody_set(tmp_path):
    prices = tmp_path / "prices.toml"
    prices.write_text('as_of = 2026-01-01\n[models]\n"compatible:tiny" = { input = 4000, output = 4000 }\n')
    quick = {"model_requests_per_minute": 100_000, "model_tokens_per_minute": 1_000_000_000}
    with (
        ModelServer(ORACLE) as model,
        running(tmp_path, models=model.address(), prices=str(prices), **quick) as service,
    ):
        said = [200]
        while said[-1] == 200 and len(said) < 60:
            answer = post(service, {**ASKING, "text": f"{document(4)} Number {len(said)}."})
            said.append(answer.status_code)
        runs = service.client.get("/api/v1/runs?limit=100").json()["runs"]
        # Ten US dollars a run, a hundred a day.
        costs = [sum(float(row["cost"]) for row in run["usage"]) for run in runs]
        assert (0 < max(costs) <= 10, sum(costs) <= 100, said[-1]) == (True, True, 429)
        assert day_of(service).spent.cost > 0


def test_a_model_without_a_price_has_its_tokens_alone_as_an_end(tmp_path):
    with ModelServer(ORACLE) as model, running(tmp_path, models=model.address("tiny")) as service:
        answer = post(service, ASKING).json()
        run = service.client.get(f"/api/v1/runs/{answer['idempotencyKey']}").json()
        assert (answer["status"], run["missing"]) == ("complete", [])
        events = service.client.get(f"/api/v1/runs/{answer['idempotencyKey']}/events").text
        assert "budget_warning" not in events
        account = day_of(service)
        assert (account.spent.tokens > 0, account.spent.cost) == (True, 0)


def test_a_tenant_may_spend_so_much_money_a_day(tmp_path, prices):
    with ModelServer(ORACLE) as model:
        limits = {"models": model.address("tiny"), "prices": prices, "request_cost": 0.0, "tenant_cost_per_day": 90.0}
        with running(tmp_path, **limits) as service:
            chunk = {**ASKING, "extractionParams": {"extractor": "model"}}
            said = [post(service, {**chunk, "text": f"{TEXT} Number {number}."}).status_code for number in range(40)]
            assert (said[0], said[-1]) == (200, 429)
            account = day_of(service)
            assert (0 < account.spent.cost <= 90, account.reserved) == (True, {})


def test_a_tenant_may_spend_so_many_tokens_a_day_and_replays_cost_nothing(tmp_path):
    with ModelServer(ORACLE) as model:
        limits = {"models": model.address("tiny"), "tenant_tokens_per_day": 9_000}
        with running(tmp_path, **limits) as service:
            chunk = {**ASKING, "extractionParams": {"extractor": "model"}}
            said = []
            for number in range(40):
                answer = post(service, {**chunk, "text": f"{TEXT} Number {number}."})
                said.append(answer.status_code)
                if answer.status_code != 200:
                    break
            assert (said[0], said[-1]) == (200, 429)
            assert answer.json()["type"] == "urn:sameas:problem:day-spent"
            assert int(answer.headers["retry-after"]) > 0
            assert post(service, {**chunk, "text": f"{TEXT} Number 0."}).json()["cacheHit"] is True
            assert post(service, {**REQUEST, "text": "No model is asked."}).status_code == 200
            usage = [run["usage"] for run in service.client.get("/api/v1/runs").json()["runs"]]
            spent = sum(row["inputTokens"] + row["outputTokens"] for rows in usage for row in rows)
            account = day_of(service)
            assert (account.spent.tokens, account.reserved) == (spent, {})
            assert spent <= 9_000
        with running(tmp_path, **limits) as service:
            assert post(service, {**chunk, "text": f"{TEXT} Number 99."}).status_code == 429


def test_a_run_ends_at_its_deadline_with_what_it_has(tmp_path):
    hold = Hold()
    with running(tmp_path, hold=hold, deadline=0.3) as service:
        answer = post(service, {**REQUEST, "text": LONG, "extractionParams": SLOW}).json()
        assert answer["status"] == "partial"


def test_a_stage_ends_at_the_limit_that_is_set(tmp_path):
    hold = Hold()
    limits = "entity_extraction=0.05/0.1"
    with running(tmp_path, hold=hold, stage_timeouts=limits) as service:
        answer = post(service, {**REQUEST, "text": f"{TEXT} {TEXT}" * 3, "extractionParams": SLOW}).json()
        run = service.client.get(f"/api/v1/runs/{answer['idempotencyKey']}").json()
        assert (answer["status"], {error["type"] for error in run["errors"]}) == ("partial", {"timeout"})
        assert "0.1 s" in run["errors"][0]["message"]


def test_what_has_expired_is_archived_before_a_running_service_removes_it(tmp_path, monkeypatch):
    monkeypatch.setattr(service_module, "PRUNE_EVERY", 0.1)
    archive = tmp_path / "old" / "keys.jsonl"
    with running(tmp_path, key_ttl=1.0, lease=1.0, archive="old/keys.jsonl") as service:
        assert post(service, REQUEST, **{"Idempotency-Key": "mine"}).status_code == 200
        ends_at = time.monotonic() + WITHIN
        while not archive.is_file() or not archive.read_bytes():
            assert time.monotonic() < ends_at, "nothing was archived"
            time.sleep(0.05)
        (line,) = (json.loads(line) for line in archive.read_text().splitlines())
        assert (line["client key"], line["scope"], line["state"]) == ("mine", "extract", "done")
        assert line["audit"]["trace_id"]
        while [key for key in service.client.get("/api/v1/keys").json()["keys"] if key["scope"] == "extract"]:
            assert time.monotonic() < ends_at, "what was archived is not removed"
            time.sleep(0.05)


def test_an_archive_that_cannot_be_written_keeps_what_has_expired(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(service_module, "PRUNE_EVERY", 0.1)
    (tmp_path / "file").write_text("in the way")
    with running(tmp_path, key_ttl=1.0, lease=1.0, archive="file/keys.jsonl") as service:
        assert post(service, REQUEST, **{"Idempotency-Key": "mine"}).status_code == 200
        ends_at = time.monotonic() + WITHIN
        while "could not be removed" not in caplog.text:
            assert time.monotonic() < ends_at, "nobody was told"
            time.sleep(0.05)
    with open_store(f"sqlite:///{tmp_path}/sameas.db") as store:
        assert [record.identity.scope for record in store.find(Query(expired=True)).records] == ["extract"]


def shadowed(caplog):
    told = [record.fields for record in caplog.records if record.message.startswith("Shadow")]
    return [(fields["wouldHaveBeen"], fields["isSame"]) for fields in told]


def test_a_client_s_key_is_not_looked_at_where_keys_are_off(tmp_path):
    with running(tmp_path, mode="enforce, scope:extract=off") as service:
        assert post(service, REQUEST, **{"Idempotency-Key": "mine"}).status_code == 200
        assert post(service, {**REQUEST, "text": "Another text."}, **{"Idempotency-Key": "mine"}).status_code == 200
        assert [key["scope"] for key in service.client.get("/api/v1/keys").json()["keys"]] == ["extraction"] * 2


def test_of_a_share_of_the_keys_each_is_always_treated_alike_also_after_a_restart_and_in_a_larger_share(tmp_path):
    keys = [f"key-{number}" for number in range(16)]

    def in_force(share):
        """The keys under which another request is refused."""
        with running(tmp_path, mode=f"scope:extract=enforce:{share}%") as service:
            statuses = {}
            for key in keys:
                for text in (TEXT, "Another text."):
                    answer = post(service, {**REQUEST, "text": text}, **{"Idempotency-Key": key})
                    statuses.setdefault(key, []).append(answer.status_code)
        assert set(map(tuple, statuses.values())) <= {(200, 200), (200, 422)}
        return {key for key, said in statuses.items() if said[-1] == 422}

    some = in_force(40)
    assert 0 < len(some) < len(keys)
    assert in_force(40) == some
    assert some < in_force(80)


def test_in_shadow_it_is_told_what_a_client_s_key_would_have_done(tmp_path, caplog):
    caplog.set_level("INFO", "sameas.extraction")
    with running(tmp_path, mode="scope:extract=shadow") as service:
        for text in (TEXT, TEXT, "Another text."):
            assert post(service, {**REQUEST, "text": text}, **{"Idempotency-Key": "mine"}).status_code == 200
        # The last word comes after the answer.
        post(service, REQUEST)
    assert shadowed(caplog) == [("replayed", True), ("refused", None)]


@pytest.mark.parametrize(("mode", "told"), [("off", []), ("shadow", [("replayed", True)])])
def test_a_result_that_stands_is_worked_out_again_where_keys_of_content_are_not_in_force(tmp_path, caplog, mode, told):
    caplog.set_level("INFO", "sameas.extraction")
    with running(tmp_path, mode=f"scope:extraction={mode}") as service:
        first, second = post(service, REQUEST).json(), post(service, REQUEST).json()
    assert (first["cacheHit"], second["cacheHit"]) == (False, False)
    assert first["entities"] == second["entities"]
    assert shadowed(caplog) == told


def test_every_setting_is_shown_and_the_default_budget_has_an_end():
    shown = {name: value for name, value, _ in Settings().shown()}
    for name in (
        *("request_tokens", "request_cost", "tenant_tokens_per_day", "tenant_cost_per_day"),
        *("stage_timeouts", "deadline", "result_ttl", "key_ttl", "mode"),
    ):
        assert shown[name]
    assert int(shown["request_tokens"]) <= 5_000_000
    assert int(shown["tenant_tokens_per_day"]) <= 50_000_000
    assert shown["request_cost"].startswith("10 USD")
    assert shown["tenant_cost_per_day"].startswith("100 USD")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REQUEST_TOKENS", "0"),
        ("REQUEST_COST", "-1"),
        ("STAGE_TIMEOUTS", "entity_extraction=9/3"),
        ("STAGE_TIMEOUTS", "chnking=1/2"),
        ("RESULT_TTL", "0"),
        ("KEY_TTL", "20"),
        ("DEADLINE", "-1"),
        ("MODE", "enforced"),
        ("MODE", "shadow:101%"),
        ("MODE", "off, enforce"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_name(tmp_path, name, value):
    with pytest.raises(SettingsError, match=f"SAMEAS_{name}"):
        load_settings({f"SAMEAS_{name}": value}, folder=tmp_path)


def test_an_archive_is_refused_where_the_store_removes_by_itself(tmp_path):
    with pytest.raises(SettingsError, match="archive needs a store"):
        load_settings({"SAMEAS_ARCHIVE": "old.jsonl", "SAMEAS_STORE": "redis://localhost"}, folder=tmp_path)


def test_a_table_of_prices_that_cannot_be_read_is_refused_at_the_start(tmp_path):
    (tmp_path / "prices.toml").write_text("nothing = 1\n")
    for prices in ("prices.toml", "missing.toml"):
        with pytest.raises(SettingsError, match="SAMEAS_PRICES"), running(tmp_path, prices=str(tmp_path / prices)):
            pass
