"""Requests that name a model: only those that the deployment lists, under its control."""

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
