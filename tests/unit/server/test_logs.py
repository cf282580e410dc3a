"""Log lines: JSON with the ids of the request, and nothing of what it said."""

import io
import json

from tests.unit.server.house import running


def test_a_line_names_key_trace_invocation_and_tenant_and_no_text(tmp_path):
    with running(tmp_path) as service:
        log = io.BytesIO()
        service.app._gate._log._to, service.app._gate._log._enabled = log, True
        request = {"text": "Anna Stone keeps a secret word.", "ontologyId": "company"}
        trace = "0af7651916cd43dd8448eb211c80319c"
        sent = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
        key = service.client.post("/api/v1/extract", json=request, headers=sent).json()["idempotencyKey"]
        again = service.client.post("/api/v1/extract", json=request, headers=sent)
        service.client.get("/api/v1/debug/idempotency-key", params=request)
        lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [line["event"] for line in lines[:2]] == ["extraction", "cache hit"]
    for line in lines[:2]:
        assert (line["idempotencyKey"], line["traceId"], line["tenant"]) == (key, trace, "")
        assert line["invocationId"]
    assert len({line["invocationId"] for line in lines}) == len(lines)
    assert again.headers["x-trace-id"] == trace
    assert b"secret" not in log.getvalue()


def test_a_refusal_names_its_trace_like_every_other_answer(tmp_path):
    trace = "0af7651916cd43dd8448eb211c80319c"
    sent = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
    with running(tmp_path) as service:
        log = io.BytesIO()
        service.app._gate._log._to, service.app._gate._log._enabled = log, True
        answers = [
            service.client.request(method, path, headers={**sent, **more})
            for method, path, more in (
                ("GET", "/nowhere", {}),
                ("PATCH", "/api/v1/runs", {}),
                ("GET", "/api/v1/runs", {"Host": "elsewhere.example"}),
                ("GET", "/api/v1/runs", {"X-Tenant-ID": "another"}),
                ("GET", "/health/live", {}),
            )
        ]
        lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [answer.status_code for answer in answers] == [404, 405, 400, 403, 200]
    assert [answer.headers.get("x-trace-id") for answer in answers] == [trace] * 5
    assert [line["traceId"] for line in lines] == [trace] * 5
    assert len({line["invocationId"] for line in lines}) == 5
