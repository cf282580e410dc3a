"""Requests that name a model: only those that the deployment lists, under its control."""

import time

import pytest

from sameas.llm.accounts import AccountLimiters
from sameas.llm.address import parse_address
from sameas.llm.redis_windows import RedisWindows
from sameas.stores.memory import MemoryBackend
from sameas.stores.redis import open_backend
from sameas.stores.tiered import TieredBackend
from tests.integration.model_path import ORACLE, document
from tests.servers.model_server import ModelServer
from tests.unit.server.house import running

TEXT = document(2)


def request(**params):
    return {"text": TEXT, "ontologyId": "company", "extractionParams": {"chunkSize": 100, **params}}


def test_a_listed_model_is_asked_once_and_estimated_before(tmp_path):
    with ModelServer(ORACLE) as model, running(tmp_path, models=model.address("tiny")) as service:
        estimate = service.client.post("/api/v1/estimate", json=request(extractor="model")).json()
        assert estimate["calls"] > 0
        assert estimate["inputTokens"] > 0
        assert len(model.calls) == 0
        first = service.client.post("/api/v1/extract", json=request(extractor="model")).json()
        asked = len(model.calls)
        second = service.client.post("/api/v1/extract", json=request(extractor="model")).json()
        assert {entity["name"] for entity in first["entities"]} >= {"Person0 Stone", "Acme1 Robotics"}
        assert (first["status"], second["cacheHit"]) == ("complete", True)
        assert len(model.calls) == asked > 0


def test_a_model_that_is_not_listed_is_refused_and_never_called(tmp_path):
    with ModelServer(ORACLE) as listed, ModelServer(ORACLE) as other:
        with running(tmp_path, models=listed.address("tiny")) as service:
            answer = service.client.post("/api/v1/extract", json=request(model=other.address("tiny")))
            assert (answer.status_code, answer.json()["type"]) == (422, "urn:sameas:problem:model-unknown")
        assert len(other.calls) == 0


def test_a_model_and_an_extractor_that_asks_none_contradict_each_other(tmp_path):
    with running(tmp_path) as service:
        answer = service.client.post("/api/v1/extract", json=request(extractor="lexicon", model="x"))
        assert answer.json()["type"] == "urn:sameas:problem:params-contradict"
        answer = service.client.post("/api/v1/extract", json=request(extractor="model"))
        assert answer.json()["type"] == "urn:sameas:problem:no-model"


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
    assert isinstance(limiters.of(first)._windows, RedisWindows)
    assert limiters.of(first) is limiters.of(parse_address("openai:gpt-5-mini"))
    assert limiters.of(first) is not limiters.of(second)
    assert not isinstance(AccountLimiters(backend=MemoryBackend()).of(first)._windows, RedisWindows)
    backend.close()
