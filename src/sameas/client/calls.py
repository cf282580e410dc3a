"""What the client asks of the service, as scripts: each yields requests and pauses and returns an answer.

Rule: every request may be sent again. A text is worked on once however often it is sent, because its key is computed
from its content, and the others only read or set what is there. So a connection that breaks, a 429 and a 503 are
answered with another try after a pause, a bounded number of times; `Retry-After` is obeyed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import wraps
from random import uniform
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from sameas.once.errors import SameasError
from sameas.once.script import Script
from sameas.server.schemas import (
    CancelAnswer,
    Estimate,
    ExtractAnswer,
    ExtractionParams,
    ExtractRequest,
    KeyQuestion,
    OntologyEntry,
    OntologyList,
    OntologyPut,
    OntologyReport,
    RunAccepted,
    RunPage,
)


class ServiceError(SameasError):
    """The service refused a request; `problem` is its problem document, `code` the last part of its type."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = problem
        self.code = str(problem.get("type", "")).rpartition("/")[2].rpartition(":")[2]
        super().__init__(f"{status}: {problem.get('detail') or problem.get('title') or 'no reason was given'}")

    @classmethod
    def of(cls, status: int, body: bytes) -> ServiceError:
        """The error that an answer stands for; one that is no problem document is quoted."""
        try:
            problem = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            problem = None
        if not isinstance(problem, dict):
            problem = {"title": body[:200].decode("utf-8", "replace")}
        return cls(status, problem)


class ServiceUnreachable(SameasError):
    """The service did not answer, however often it was asked. Whether the last request was done is not known; asking
    again is safe.
    """


T = TypeVar("T")
P = ParamSpec("P")

API = "/api/v1"
AGAIN = frozenset((429, 502, 503, 504))
_LONGEST_PAUSE = 30.0
_GONE = 404
# A redirection is not followed: whoever sends a credential has named where to.
_NOT_GIVEN = 300
_JSON = {"content-type": "application/json"}


def for_tasks(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A method of the class for threads as one of its twin for tasks. Its body serves both: it ends with `_do`, which
    there gives the answer of a script, and here what is to be awaited for it.
    """

    @wraps(method)
    async def twin(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        answer: Any = method(self, *args, **options)
        return await answer  # type: ignore[no-any-return]

    return twin


class Send(msgspec.Struct, frozen=True):
    """One HTTP request."""

    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = {}
    query: Mapping[str, str] = {}


class Pause(msgspec.Struct, frozen=True):
    """Wait before the next try."""

    seconds: float


class InThread(msgspec.Struct, frozen=True):
    """Call something that blocks, where it keeps nobody waiting."""

    function: Callable[[], Any]


class Got(msgspec.Struct, frozen=True):
    """The service's answer, or `error` where none came."""

    status: int = 0
    body: bytes = b""
    retry_after: str = ""
    error: str = ""


class Ask(Protocol):
    """Has a request sent."""

    def __call__(self, send: Send) -> Script[bytes]: ...


class Do(Protocol):
    """Runs a script."""

    def __call__(self, script: Script[T], /) -> T: ...


class AsyncDo(Protocol):
    """Runs a script in a task."""

    def __call__(self, script: Script[T], /) -> Awaitable[T]: ...


class Calls:
    """The operations of the service. `tries` is how often a request is sent at most."""

    def __init__(self, *, tries: int = 4) -> None:
        if tries < 1:
            raise ValueError("tries must be at least 1")
        self.tries = tries

    def extract(self, request: ExtractRequest, *, idempotency_key: str | None = None) -> Script[ExtractAnswer]:
        """The graph of a text; waits until it is there."""
        body = yield from self.send(_extract(request, idempotency_key, prefer=""))
        return decode(body, ExtractAnswer)

    def start(
        self, request: ExtractRequest, *, idempotency_key: str | None = None
    ) -> Script[RunAccepted | ExtractAnswer]:
        """Begin a run and come back at once; a result that is there already is given instead."""
        got = yield from self._ask(_extract(request, idempotency_key, prefer="respond-async"))
        return decode(got.body, RunAccepted) if got.status == 202 else decode(got.body, ExtractAnswer)

    def run(self, key: str) -> Script[dict[str, Any]]:
        """How a run stands: its metadata."""
        return decode((yield from self.send(Send("GET", _run(key)))), dict)

    def runs(self, *, after: str = "", limit: int = 50) -> Script[RunPage]:
        """A page of runs, the newest first; `next` of a page is `after` of the next."""
        query = {"limit": str(limit)} | ({"after": after} if after else {})
        return decode((yield from self.send(Send("GET", f"{API}/runs", query=query))), RunPage)

    def graph(self, key: str, *, output: str = "turtle", document: str = "") -> Script[bytes]:
        """The graph of a finished run in any output format; `document` is what the caller calls its source."""
        query = {"format": output} | ({"document": document} if document else {})
        return (yield from self.send(Send("GET", f"{_run(key)}/graph", query=query)))

    def cancel(self, key: str) -> Script[CancelAnswer]:
        """End a run; what it has found so far is kept."""
        return decode((yield from self.send(Send("POST", f"{_run(key)}/cancel"))), CancelAnswer)

    def delete(self, key: str) -> Script[None]:
        """Remove a run and its result."""
        yield from self._remove(Send("DELETE", _run(key)))

    def put_ontology(
        self, ontology_id: str, data: bytes, *, media_type: str = "text/turtle", shared: bool = False
    ) -> Script[OntologyPut]:
        """Register an ontology, or a new version of it."""
        query = {"shared": "true"} if shared else {}
        send = Send("PUT", _ontology(ontology_id), data, {"content-type": media_type}, query)
        return decode((yield from self.send(send)), OntologyPut)

    def ontology(self, ontology_id: str) -> Script[OntologyEntry]:
        return decode((yield from self.send(Send("GET", _ontology(ontology_id)))), OntologyEntry)

    def ontologies(self) -> Script[tuple[OntologyEntry, ...]]:
        return decode((yield from self.send(Send("GET", f"{API}/ontologies"))), OntologyList).ontologies

    def delete_ontology(self, ontology_id: str) -> Script[None]:
        """Remove an ontology and every result that was made with it."""
        yield from self._remove(Send("DELETE", _ontology(ontology_id)))

    def validate_ontology(self, data: bytes, *, media_type: str = "text/turtle") -> Script[OntologyReport]:
        """What is wrong with an ontology; nothing is kept."""
        send = Send("POST", f"{API}/ontologies/validate", data, {"content-type": media_type})
        return decode((yield from self.send(send)), OntologyReport)

    def estimate(self, request: ExtractRequest) -> Script[Estimate]:
        """What a run would take; nothing is spent."""
        send = Send("POST", f"{API}/estimate", msgspec.json.encode(request), _JSON)
        return decode((yield from self.send(send)), Estimate)

    def key_of(self, request: ExtractRequest) -> Script[KeyQuestion]:
        """The key of an extraction and what goes into it; nothing is run."""
        query = {"text": request.text, "ontologyId": request.ontology_id}
        if request.extraction_params != ExtractionParams():
            query["extractionParams"] = msgspec.json.encode(request.extraction_params).decode()
        send = Send("GET", f"{API}/debug/idempotency-key", query=query)
        return decode((yield from self.send(send)), KeyQuestion)

    def send(self, send: Send) -> Script[bytes]:
        """The body of an answer, sent for as often as it takes."""
        return (yield from self._ask(send)).body

    def _remove(self, send: Send) -> Script[None]:
        yield from self._ask(send, is_done=_GONE)

    def _ask(self, send: Send, *, is_done: int | None = None) -> Script[Got]:
        """`is_done` is a status that says, after a try without an answer, that this very try was carried out."""
        lost = False
        tries = 0
        while True:
            got: Got = yield send
            tries += 1
            if lost and got.status == is_done:
                return got
            lost = lost or bool(got.error)
            if tries >= self.tries or (not got.error and got.status not in AGAIN):
                break
            yield Pause(pause_after(tries, got.retry_after))
        if got.error:
            raise ServiceUnreachable(f"the service did not answer {self.tries} times: {got.error}. Is it running?")
        if got.status >= _NOT_GIVEN:
            raise ServiceError.of(got.status, got.body)
        return got


def pause_after(tries: int, retry_after: str = "") -> float:
    """Seconds before the next try: what the service asks for, else longer each time, never all at once."""
    asked = float(retry_after) if retry_after.isdecimal() else 0.0
    return min(max(asked, 0.1 * 2.0**tries), _LONGEST_PAUSE) * uniform(1.0, 1.25)


def events_of(key: str, *, after: int) -> Send:
    """The stream of a run's events from the one after number `after`."""
    headers = {"accept": "text/event-stream"} | ({"last-event-id": str(after)} if after else {})
    return Send("GET", f"{_run(key)}/events", headers=headers)


def _extract(request: ExtractRequest, idempotency_key: str | None, *, prefer: str) -> Send:
    headers = dict(_JSON)
    if prefer:
        headers["prefer"] = prefer
    if idempotency_key is not None:
        escaped = idempotency_key.replace("\\", "\\\\").replace('"', '\\"')
        headers["idempotency-key"] = f'"{escaped}"'
    return Send("POST", f"{API}/extract", msgspec.json.encode(request), headers)


def _run(key: str) -> str:
    return f"{API}/runs/{quote(key, safe='')}"


def _ontology(ontology_id: str) -> str:
    return f"{API}/ontologies/{quote(ontology_id, safe='')}"


def decode(body: bytes, kind: type[T]) -> T:
    """What a body says, or an error for one that this client does not understand."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ServiceError(200, {"title": f"an answer that this client does not understand: {error}"}) from error
