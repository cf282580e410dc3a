"""What the client sends, when it tries again, and what it makes of answers."""

import inspect
from typing import Any

import pytest

from sameas.client import AsyncClient, Client, ServiceError, ServiceUnreachable
from sameas.client.calls import Calls, Got, Pause, Send, pause_after
from sameas.client.client import request_of
from sameas.once.script import Script, run
from sameas.server.schemas import ExtractAnswer, RunAccepted

REQUEST = request_of("Alice works for Acme.", ontology="company", params={"chunkSize": 500})
KEY = "sha256-" + "0" * 64
ANSWER = (
    b'{"idempotencyKey":"%s","entities":[],"relations":[],"cacheHit":true,"computedAt":"2026-01-01T00:00:00.000Z",'
    b'"status":"complete"}' % KEY.encode()
)
ACCEPTED = b'{"idempotencyKey":"%s","status":"running","run":"/r","events":"/e"}' % KEY.encode()


def drive(script: Script[Any], *answers: Got) -> tuple[Any, list[Send], list[float]]:
    left, sent, pauses = list(answers), [], []

    def perform(command: Any) -> Any:
        sent.append(command)
        return left.pop(0)

    result = run(script, perform, {Pause: lambda pause: pauses.append(pause.seconds)})
    return result, sent, pauses


def test_an_extraction_is_sent_as_the_wire_has_it() -> None:
    answer, (send,), pauses = drive(Calls().extract(REQUEST), Got(200, ANSWER))
    assert isinstance(answer, ExtractAnswer)
    assert (send.method, send.path, dict(send.headers)) == (
        "POST",
        "/api/v1/extract",
        {"content-type": "application/json"},
    )
    assert send.body == (
        b'{"text":"Alice works for Acme.","ontologyId":"company","ontologyVersion":null,'
        b'"extractionParams":{"chunkSize":500},"document":""}'
    )
    assert pauses == []


def test_a_key_is_sent_as_a_structured_field_string() -> None:
    _, (send,), _ = drive(Calls().extract(REQUEST, idempotency_key='a"b\\c'), Got(200, ANSWER))
    assert send.headers["idempotency-key"] == '"a\\"b\\\\c"'


@pytest.mark.parametrize(("got", "kind"), [(Got(202, ACCEPTED), RunAccepted), (Got(200, ANSWER), ExtractAnswer)])
def test_a_start_gives_the_run_or_the_result_that_is_there(got: Got, kind: type) -> None:
    answer, (send,), _ = drive(Calls().start(REQUEST), got)
    assert isinstance(answer, kind)
    assert send.headers["prefer"] == "respond-async"


@pytest.mark.parametrize("trouble", [Got(error="ConnectError"), Got(503), Got(429), Got(502), Got(504)])
def test_a_fault_that_passes_is_tried_again(trouble: Got) -> None:
    answer, sent, pauses = drive(Calls().extract(REQUEST), trouble, trouble, Got(200, ANSWER))
    assert answer.cache_hit
    assert len({send.body for send in sent}) == 1
    assert 0 < pauses[0] < pauses[1]


def test_retry_after_is_obeyed_within_a_bound() -> None:
    _, _, pauses = drive(Calls().extract(REQUEST), Got(503, retry_after="7"), Got(200, ANSWER))
    assert 7 <= pauses[0] <= 7 * 1.25
    assert pause_after(1, "86400") <= 30 * 1.25
    assert pause_after(1, "Wed, 21 Oct 2026 07:28:00 GMT") <= 1


def test_a_service_that_never_answers_is_given_up_in_the_end() -> None:
    with pytest.raises(ServiceUnreachable, match="did not answer 3 times: ConnectError"):
        drive(Calls(tries=3).extract(REQUEST), *[Got(error="ConnectError")] * 3)


def test_a_service_that_stays_busy_is_told_as_it_said() -> None:
    with pytest.raises(ServiceError, match="503: the store is down"):
        drive(
            Calls(tries=2).extract(REQUEST),
            *[Got(503, b'{"type":"urn:x:store-down","detail":"the store is down"}')] * 2,
        )


@pytest.mark.parametrize(
    ("body", "said", "code"),
    [
        (b'{"type":"urn:sameas:problem:not-found","detail":"no such run"}', "404: no such run", "not-found"),
        (b'{"title":"Not Found"}', "404: Not Found", ""),
        (b"<html>gone</html>", "404: <html>gone</html>", ""),
        (b'["odd"]', '404: ["odd"]', ""),
        (b"", "404: no reason was given", ""),
    ],
)
def test_a_refusal_is_an_error_and_not_tried_again(body: bytes, said: str, code: str) -> None:
    with pytest.raises(ServiceError) as refused:
        drive(Calls().run(KEY), Got(404, body))
    assert (str(refused.value), refused.value.code, refused.value.status) == (said, code, 404)


def test_an_answer_that_is_not_understood_is_an_error() -> None:
    with pytest.raises(ServiceError, match="does not understand"):
        drive(Calls().extract(REQUEST), Got(200, b'{"idempotencyKey":1}'))


def test_ids_are_quoted_in_paths() -> None:
    _, (send,), _ = drive(Calls().delete("../../etc?x#y"), Got(204))
    assert send.path == "/api/v1/runs/..%2F..%2Fetc%3Fx%23y"


def test_both_clients_have_the_same_methods_with_the_same_arguments() -> None:
    def face(kind: type) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(method).parameters)
            for name, method in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_")
        }

    assert face(Client) == face(AsyncClient)


def test_two_credentials_are_refused() -> None:
    with pytest.raises(ValueError, match="not both"):
        Client(token="a", api_key="b")


@pytest.mark.parametrize("script", [Calls().delete(KEY), Calls().delete_ontology("company")])
def test_what_is_gone_after_a_lost_answer_was_deleted_by_it(script: Script[None]) -> None:
    _, sent, _ = drive(script, Got(error="reset"), Got(404, b"{}"))
    assert len(sent) == 2


def test_what_was_never_there_is_not_deleted() -> None:
    with pytest.raises(ServiceError):
        drive(Calls().delete(KEY), Got(503), Got(404, b"{}"))


def test_a_redirection_is_not_followed_and_no_answer() -> None:
    with pytest.raises(ServiceError, match="307"):
        drive(Calls().extract(REQUEST), Got(307, b""))
