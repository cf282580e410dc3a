"""What the OpenAPI document says is what the service does: every operation, with requests that fit it and that do not."""

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from sameas.server.app import ROUTES
from sameas.server.http.openapi import openapi_document
from tests.unit.server.house import REQUEST, TURTLE, running

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = 6
DOCUMENT = openapi_document(ROUTES)
OPERATIONS = [operation["operationId"] for path in DOCUMENT["paths"].values() for operation in path.values()]


# What is there, so that requests do not only meet what is not.
KNOWN = {
    "extract": {"body": REQUEST},
    "estimate": {"body": REQUEST},
    "debugIdempotencyKey": {"query": REQUEST},
    "getOntology": {"path_parameters": {"id": "company"}},
    "putOntology": {"path_parameters": {"id": "mine"}, "body": TURTLE, "media_type": "text/turtle"},
    "deleteOntology": {"path_parameters": {"id": "mine"}},
    "validateOntology": {"body": TURTLE, "media_type": "text/turtle"},
    "listOntologyVersions": {"query": {"id": "company"}},
    "getOntologyOutline": {"query": {"id": "company"}},
    "previewOntology": {"query": {"id": "mine"}, "body": TURTLE, "media_type": "text/turtle"},
}
OF_A_RUN = {"getRun", "getTimeline", "getGraph", "streamEvents", "cancelRun", "deleteRun"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("contract"), max_body=65_536) as one:
        yield one


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_request_gets_a_server_error_or_an_undocumented_reply(service, name):
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    (operation,) = [
        found.ok() for found in schema.get_all_operations() if found.ok().definition.raw["operationId"] == name
    ]
    known = dict(KNOWN.get(name, {}))
    if name in OF_A_RUN:
        run = service.client.post("/api/v1/extract", json=REQUEST).json()
        known["path_parameters"] = {"key": run["idempotencyKey"]}
    for mode, fixed in ((GenerationMode.POSITIVE, {}), (GenerationMode.NEGATIVE, {}), (GenerationMode.POSITIVE, known)):

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode, **fixed))
        def holds(case):
            case.call_and_validate(base_url=service.url, checks=CHECKS)

        try:
            holds()
        except Unsatisfiable:
            # An operation without a part that could be wrong has no wrong requests.
            assert mode is GenerationMode.NEGATIVE


def test_every_operation_and_every_reply_has_an_example():
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (path, method)
            for status, response in operation["responses"].items():
                for media, content in response.get("content", {}).items():
                    assert "example" in content, (path, method, status, media)
            for content in operation.get("requestBody", {}).get("content", {}).values():
                assert "example" in content, (path, method)


def test_the_examples_fit_their_schemas():
    import jsonschema_rs

    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            replies = [reply.get("content", {}) for reply in operation["responses"].values()]
            for contents in (*replies, operation.get("requestBody", {}).get("content", {})):
                for media, content in contents.items():
                    if "json" in media and content.get("schema"):
                        whole = {**content["schema"], "components": DOCUMENT["components"]}
                        jsonschema_rs.validator_for(whole).validate(content["example"])


def test_the_document_is_served_as_it_is_made(service):
    assert service.client.get("/openapi.json").json() == json.loads(json.dumps(DOCUMENT))
