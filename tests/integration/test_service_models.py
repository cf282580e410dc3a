"""Requests that name a model: only those that the deployment lists, under its control."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sameas.llm.address import parse_address
from sameas.llm.limiter import AccountLimiters
from sameas.llm.redis_account import RedisAccount
from sameas.ontology.index import OntologyIndex
from sameas.server.runs import models
from sameas.server.runs.preparation import TimeLimits
from sameas.server.schemas import ExtractionParams
from sameas.settings import Settings
from sameas.stores.memory import MemoryBackend
from sameas.stores.redis import open_backend
from sameas.stores.tiered import TieredBackend
from tests.integration.model_path import ORACLE, document
from tests.servers.batch_server import BatchServer
from tests.servers.model_script import held, status
from tests.servers.model_server import ModelServer
from tests.unit.server.house import WITHIN, running

TEXT = document(2)


def request(**params):
    return {"text": TEXT, "ontologyId": "company", "extractionParams": {"chunkSize": 100, **params}}


def test_a_listed_model_is_asked_once_and_estimated_before(tmp_path):
    with ModelServer(ORACLE) as model, running(tmp_path, apart=True, models=model.address("tiny")) as service:
        estimate = service.client.post("/api/v1/estimate", json=request(extractor="model")).json()
        assert estimate["calls"] > 0
        assert estimate["inputTokens"] > 0
        assert (estimate["cost"], estimate["mostCost"]) == (None, None), "the model has no price"
        assert len(model.calls) == 0
        first = service.client.post("/api/v1/extract", json=request(extractor="model")).json()
        asked = len(model.calls)
        second = service.client.post("/api/v1/extract", json=request(extractor="model")).json()
        assert {entity["name"] for entity in first["entities"]} >= {"Person0 Stone", "Acme1 Robotics"}
        assert (first["status"], second["cacheHit"]) == ("complete", True)
        assert len(model.calls) == asked > 0
        usage = service.client.get(f"/api/v1/runs/{first['idempotencyKey']}").json()["usage"]
        spent = sum(row["inputTokens"] + row["outputTokens"] for row in usage)
        assert 0 < spent <= estimate["mostTokens"]


def test_a_model_that_is_not_listed_is_refused_and_never_called(tmp_path):
    with ModelServer(ORACLE) as listed, ModelServer(ORACLE) as other:
        with running(tmp_path, models=listed.address("tiny")) as service:
            answer = service.client.post("/api/v1/extract", json=request(model=other.address("tiny")))
            assert (answer.status_code, answer.json()["type"]) == (422, "urn:sameas:problem:model-unknown")
        assert len(other.calls) == 0


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("code", [401, 404, None], ids=["key", "name", "address"])
def test_a_model_that_cannot_answer_is_said_to_be_what_is_missing(tmp_path, code, apart):
    with ModelServer(ORACLE if code is None else status(code, message="scripted")) as model:
        address = model.address("tiny")
        if code is None:
            model.close()
        with running(tmp_path, apart=apart, models=address) as service:

            def ask():
                return service.client.post(
                    "/api/v1/extract", json=request(extractor="model"), headers={"Idempotency-Key": "mine"}
                )

            for _ in range(2):
                refused = ask()
                assert (refused.status_code, refused.json()["type"]) == (424, "urn:sameas:problem:model-refuses")
            if code is not None:
                assert len(model.calls) == 2, "one question for each request"
                model.rescript(ORACLE)
                assert ask().status_code == 200


def test_a_model_and_an_extractor_that_asks_none_contradict_each_other(tmp_path):
    with running(tmp_path) as service:
        answer = service.client.post("/api/v1/extract", json=request(extractor="lexicon", model="x"))
        assert answer.json()["type"] == "urn:sameas:problem:params-contradict"
        answer = service.client.post("/api/v1/extract", json=request(extractor="model"))
        assert answer.json()["type"] == "urn:sameas:problem:no-model"


def test_an_estimate_builds_no_index_of_the_ontology_again(tmp_path, monkeypatch):
    built, make = [], OntologyIndex.__init__

    def counted(index, ontology):
        built.append(ontology)
        make(index, ontology)

    with ModelServer(ORACLE) as model, running(tmp_path, models=model.address("tiny")) as service:
        assert service.client.post("/api/v1/estimate", json=request(extractor="model")).status_code == 200
        monkeypatch.setattr(OntologyIndex, "__init__", counted)
        again = {**request(extractor="model"), "text": "Another text by Anna Stone of Acme Ltd."}
        assert service.client.post("/api/v1/estimate", json=again).json()["calls"] > 0
        assert built == []


def test_what_the_memo_knows_is_not_estimated_again(tmp_path):
    with ModelServer(ORACLE) as model, running(tmp_path, models=model.address("tiny")) as service:
        service.client.post("/api/v1/extract", json=request(extractor="model"))
        assert service.client.post("/api/v1/estimate", json=request(extractor="model")).json()["calls"] == 0


def test_joint_extraction_and_samples_are_parameters_of_a_request(tmp_path):
    with ModelServer(ORACLE) as model, running(tmp_path, models=model.address("tiny")) as service:
        joint = service.client.post("/api/v1/extract", json=request(extractor="model", mode="joint")).json()
        calls = len(model.calls)
        sampled = service.client.post(
            "/api/v1/extract", json=request(extractor="model", mode="joint", samples=3)
        ).json()
        assert len({joint["idempotencyKey"], sampled["idempotencyKey"]}) == 2
        assert len(model.calls) - calls == 3 * calls
        answer = service.client.post("/api/v1/extract", json=request(extractor="lexicon", samples=3))
        assert answer.json()["type"] == "urn:sameas:problem:params-contradict"


LIMIT = 6


def test_servers_on_one_redis_share_the_limits_of_an_account(tmp_path, redis_url):
    with ModelServer(ORACLE) as model:
        settings = {"models": model.address("tiny"), "store": redis_url, "model_requests_per_minute": LIMIT}
        with running(tmp_path / "a", **settings) as one, running(tmp_path / "b", **settings) as other:
            runs = []
            for number, service in enumerate((one, other)):
                body = {**request(extractor="model"), "text": f"Number {number}.\n\n{document(2 * LIMIT)}"}
                answer = service.client.post("/api/v1/extract", json=body, headers={"Prefer": "respond-async"})
                runs.append((service, answer.json()["idempotencyKey"]))
            ends_at = time.monotonic() + 20
            while len(model.calls) < LIMIT and time.monotonic() < ends_at:
                time.sleep(0.05)
            # Long enough for a server that counts alone to make a call more.
            time.sleep(1.0)
            assert len(model.calls) == LIMIT
            for service, key in runs:
                assert service.client.post(f"/api/v1/runs/{key}/cancel").status_code < 300


@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "tiered"])
def test_an_account_is_shared_where_records_are_in_redis(redis_url, wrapped):
    backend = open_backend(redis_url)
    limiters = AccountLimiters(backend=TieredBackend(backend) if wrapped else backend)
    first, second = parse_address("openai:gpt-5"), parse_address("anthropic:claude-opus-4")
    assert isinstance(limiters.of(first).account, RedisAccount)
    assert limiters.of(first) is limiters.of(parse_address("openai:gpt-5-mini"))
    assert limiters.of(first) is not limiters.of(second)
    assert not isinstance(AccountLimiters(backend=MemoryBackend()).of(first).account, RedisAccount)
    backend.close()


def test_the_limiter_and_the_circuit_of_an_account_are_in_the_metrics(tmp_path):
    """Also of a process apart, in which models are asked."""
    gate = threading.Event()

    def counted(service):
        lines = service.client.get("/metrics").text.splitlines()
        calls = [line for line in lines if line.startswith("sameas_model_calls_") and "{" in line]
        return lines, {line.partition("{")[0]: float(line.rpartition(" ")[2]) for line in calls}

    with (
        ModelServer(lambda call: held(gate, ORACLE(call))) as model,
        running(tmp_path, apart=True, models=model.address("tiny")) as service,
    ):
        service.client.post("/api/v1/extract", json=request(extractor="model"), headers={"Prefer": "respond-async"})
        model.wait_for_calls(1, within_seconds=WITHIN)
        assert counted(service)[1]["sameas_model_calls_under_way"] == 1
        gate.set()
        assert service.client.post("/api/v1/extract", json=request(extractor="model")).json()["status"] == "complete"
        lines, told = counted(service)
    assert told == {"sameas_model_calls_waiting": 0, "sameas_model_calls_under_way": 0}
    states = [line for line in lines if line.startswith("sameas_model_circuit_state{")]
    assert len(states) == 3
    assert [line for line in states if line.endswith(" 1.0")] == [line for line in states if 'state="closed"' in line]


def test_servers_with_homes_of_their_own_count_a_tenant_s_day_together_to_the_token(tmp_path, redis_url):
    with ModelServer(ORACLE) as model:
        settings = {"models": model.address("tiny"), "store": redis_url, "tenant_tokens_per_day": 30_000}
        with running(tmp_path / "a", **settings) as one, running(tmp_path / "b", **settings) as other:

            def ask(number):
                service = (one, other)[number % 2]
                body = {**request(extractor="model"), "text": f"Number {number}. {document(1)}"}
                return service.client.post("/api/v1/extract", json=body)

            with ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(ask, range(40)))
            told = [answer.json() for answer in answers]
            assert {answer.status_code for answer in answers} == {200, 429}
            runs = [run for service in (one, other) for run in service.client.get("/api/v1/runs").json()["runs"]]
            spent = sum(row["inputTokens"] + row["outputTokens"] for run in runs for row in run["usage"])
            assert sum(answer.status_code == 200 for answer in answers) > 2
            refused = {answer["type"].rpartition(":")[2] for answer in told if "type" in answer}
            assert refused <= {"day-spent", "day-set-aside"}
            assert 0 < spent <= 30_000


def test_questions_of_a_request_go_in_batches_where_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "BATCH_GATHER", 0.2)
    monkeypatch.setattr(models, "BATCH_POLL", 0.05)
    with BatchServer(ORACLE) as model, running(tmp_path, models=model.address("tiny")) as service:
        answer = service.client.post("/api/v1/extract", json=request(extractor="model", batch=True))
        assert (answer.status_code, answer.json()["status"]) == (200, "complete"), answer.text
        assert sum(model.handed_in) == 4
        assert len(model.handed_in) == 2
        again = service.client.post("/api/v1/extract", json=request(extractor="model")).json()
        assert again["cacheHit"] is True, "how a model was asked is no part of the key"
        for params in ({"batch": True}, {"timeout": 3}):
            refused = service.client.post("/api/v1/extract", json=request(extractor="lexicon", **params))
            assert refused.json()["type"] == "urn:sameas:problem:params-contradict"


def test_an_answer_that_does_not_come_within_a_request_s_time_is_asked_for_again(tmp_path):
    gate = threading.Event()

    def stuck_at_first(call):
        return held(gate) if call.number == 1 else ORACLE(call)

    with ModelServer(stuck_at_first) as model, running(tmp_path, models=model.address("tiny")) as service:
        body = {**request(extractor="model", timeout=0.5), "text": document(1)}
        answer = service.client.post("/api/v1/extract", json=body)
        gate.set()
        assert (answer.status_code, answer.json()["status"]) == (200, "complete"), answer.text


def test_a_request_may_shorten_what_operators_allow_and_not_lengthen_it(tmp_path):
    limits = TimeLimits.of(Settings(stage_timeouts="entity_extraction=10/20", deadline=60.0))
    asked = limits.stages_for(ExtractionParams(timeout=300))
    assert (asked["entity_extraction"].hard_ms, asked["relation_extraction"].hard_ms) == (20_000, 605_000)
    assert limits.stages_for(ExtractionParams(timeout=2))["entity_extraction"].hard_ms == 9_000
    assert limits.stages_for(ExtractionParams())["entity_extraction"].hard_ms == 20_000
    assert limits.deadline_for(ExtractionParams(deadline=600)) == 60
    assert limits.deadline_for(ExtractionParams(deadline=6)) == 6


def test_a_run_whose_model_process_is_killed_is_finished_with_what_was_set_aside(tmp_path):
    gate = threading.Event()

    def at_second(call):
        return held(gate, ORACLE(call)) if call.number == 2 else ORACLE(call)

    with ModelServer(at_second) as model:
        with running(tmp_path, apart=True, models=model.address("tiny"), lease=1.0) as service:
            body = request(extractor="model")
            place = service.client.post("/api/v1/extract", json=body, headers={"Prefer": "respond-async"})
            ends_at = time.monotonic() + WITHIN
            while len(model.calls) < 2:
                assert time.monotonic() < ends_at
                time.sleep(0.02)
            process = service.app.service._long_work._models._process
            os.kill(process.pid, signal.SIGKILL)
            gate.set()
            answer = service.client.post("/api/v1/extract", json=body)
            while (run := service.client.get(place.headers["location"]).json())["status"] != "complete":
                assert time.monotonic() < ends_at, answer.text
                time.sleep(0.1)
            accounts, background_loop = service.app.service.accounts, service.app.service._background_loop
            today = time.strftime("%Y-%m-%d", time.gmtime())
            while (account := background_loop.submit(accounts.read("", today)).result(WITHIN)).reserved:
                assert time.monotonic() < ends_at, "what was set aside is not settled"
                time.sleep(0.05)
            assert account.spent.tokens == sum(row["inputTokens"] + row["outputTokens"] for row in run["usage"]) > 0
