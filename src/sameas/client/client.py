"""The client of the service, for threads and for tasks; both send the same requests.

    with Client("http://127.0.0.1:8080") as client:
        client.put_ontology("company", Path("company.ttl").read_bytes())
        answer = client.extract("Alice Stone works for Acme.", ontology="company")
        for event in client.stream("A longer text ...", ontology="company"):
            print(event.type, event.progress)

A stream goes on where it was after a dropped connection. Needs the extra `client` (httpx).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Self, TypeVar

import httpx
import msgspec

from sameas.client.calls import Calls, Got, InThread, Pause, Send, events_of, for_tasks
from sameas.client.collection_calls import CollectionCalls
from sameas.client.collections import AsyncCollections, Collections
from sameas.client.stream import NOTHING_FOLLOWS, ResumableStream
from sameas.extraction.events.events import ProgressEvent
from sameas.once.script import Effects, Script, arun, run
from sameas.server.schemas import (
    CancelAnswer,
    Estimate,
    ExtractAnswer,
    ExtractionParams,
    ExtractRequest,
    KeyQuestion,
    OntologyEntry,
    OntologyPut,
    OntologyReport,
    RunAccepted,
    RunPage,
)

T = TypeVar("T")

# A run may take long, but a server that is alive says so on every stream more often than this.
_TIMEOUT = httpx.Timeout(600.0, connect=5.0)
_GIVEN = 200
_STREAM_TIMEOUT = httpx.Timeout(60.0, connect=5.0)
_EFFECTS: Effects = {
    Pause: lambda pause: time.sleep(pause.seconds),
    InThread: lambda call: call.function(),
}
_ASYNC_EFFECTS: Effects = {
    Pause: lambda pause: asyncio.sleep(pause.seconds),
    InThread: lambda call: asyncio.to_thread(call.function),
}


class _Connection:
    """What both clients are made with."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        token: str | None = None,
        api_key: str | None = None,
        tries: int = 4,
        headers: Mapping[str, str] | None = None,
        timeout: httpx.Timeout = _TIMEOUT,
    ) -> None:
        self._calls = Calls(tries=tries)
        self._open(base_url=url, headers=_headers(token, api_key, headers), timeout=timeout)

    def _open(self, **settings: Any) -> None:
        raise NotImplementedError


class Client(_Connection):
    """For threads. `token` is sent as a bearer token, `api_key` as an API key.

    Every method raises ServiceError if the service refuses the request, and ServiceUnreachable if it did not answer any
    of `tries` times. Both are SameasErrors.
    """

    def _open(self, **settings: Any) -> None:
        self._http = httpx.Client(**settings)
        self.collections = Collections(CollectionCalls(self._calls.send), self._do)
        """Collections of the service: create, add, pairs, decide and so on."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def extract(
        self,
        text: str,
        *,
        ontology: str,
        params: Mapping[str, Any] | None = None,
        document: str = "",
        idempotency_key: str | None = None,
    ) -> ExtractAnswer:
        """The graph of a text; a text that was sent before is answered at once, with `cache_hit`."""
        request = request_of(text, ontology=ontology, params=params, document=document)
        return self._do(self._calls.extract(request, idempotency_key=idempotency_key))

    def start(
        self,
        text: str,
        *,
        ontology: str,
        params: Mapping[str, Any] | None = None,
        document: str = "",
        idempotency_key: str | None = None,
    ) -> RunAccepted | ExtractAnswer:
        """Begin a run and come back at once; a result that is there already is given instead."""
        request = request_of(text, ontology=ontology, params=params, document=document)
        return self._do(self._calls.start(request, idempotency_key=idempotency_key))

    def stream(
        self, text: str, *, ontology: str, params: Mapping[str, Any] | None = None, document: str = ""
    ) -> Iterator[ProgressEvent]:
        """Begin a run, or join it, and give its events from the first to the last."""
        started = self.start(text, ontology=ontology, params=params, document=document)
        yield from self.events(started.idempotency_key)

    def events(self, key: str, *, after: int = 0) -> Iterator[ProgressEvent]:
        """The events of a run after number `after`, past ones first, until its last."""
        following = ResumableStream(after=after, tries=self._calls.tries)
        while not following.reader.is_over:
            reason, retry_after = "the stream ended before the run", ""
            send = _words(events_of(key, after=following.begin()))
            try:
                with self._http.stream(**send, timeout=_STREAM_TIMEOUT) as answer:
                    if answer.status_code == NOTHING_FOLLOWS:
                        return
                    if answer.status_code == _GIVEN:
                        for data in answer.iter_bytes():
                            yield from following.reader.feed(data)
                    else:
                        reason = following.refuse(answer.status_code, answer.read())
                        retry_after = answer.headers.get("retry-after", "")
            except httpx.RequestError as error:
                reason = _said(error)
            time.sleep(following.end(reason, retry_after))

    def run(self, key: str) -> dict[str, Any]:
        """How a run stands: its metadata."""
        return self._do(self._calls.run(key))

    def runs(self, *, after: str = "", limit: int = 50) -> RunPage:
        """A page of runs, the newest first."""
        return self._do(self._calls.runs(after=after, limit=limit))

    def graph(self, key: str, *, output: str = "turtle", document: str = "") -> bytes:
        """The graph of a finished run: turtle, jsonld, nquads, graphml, csv, cypher or json.

        `document` is the name, the path or the address of its source, which the graph then tells.
        """
        return self._do(self._calls.graph(key, output=output, document=document))

    def cancel(self, key: str) -> CancelAnswer:
        """End a run; what it has found so far is kept."""
        return self._do(self._calls.cancel(key))

    def delete(self, key: str) -> None:
        """Remove a run and its result."""
        self._do(self._calls.delete(key))

    def put_ontology(
        self, ontology_id: str, data: bytes, *, media_type: str = "text/turtle", shared: bool = False
    ) -> OntologyPut:
        """Register an ontology, or a new version of it."""
        return self._do(self._calls.put_ontology(ontology_id, data, media_type=media_type, shared=shared))

    def ontology(self, ontology_id: str) -> OntologyEntry:
        """What is known of a registered ontology."""
        return self._do(self._calls.ontology(ontology_id))

    def ontologies(self) -> tuple[OntologyEntry, ...]:
        """All registered ontologies."""
        return self._do(self._calls.ontologies())

    def delete_ontology(self, ontology_id: str) -> None:
        """Remove an ontology and every result that was made with it."""
        self._do(self._calls.delete_ontology(ontology_id))

    def validate_ontology(self, data: bytes, *, media_type: str = "text/turtle") -> OntologyReport:
        """What is wrong with an ontology; nothing is kept."""
        return self._do(self._calls.validate_ontology(data, media_type=media_type))

    def estimate(self, text: str, *, ontology: str, params: Mapping[str, Any] | None = None) -> Estimate:
        """What a run would take; nothing is spent."""
        return self._do(self._calls.estimate(request_of(text, ontology=ontology, params=params)))

    def key_of(self, text: str, *, ontology: str, params: Mapping[str, Any] | None = None) -> KeyQuestion:
        """The key of an extraction and what goes into it; nothing is run."""
        return self._do(self._calls.key_of(request_of(text, ontology=ontology, params=params)))

    def _do(self, script: Script[T]) -> T:
        return run(script, self._send, _EFFECTS)

    def _send(self, send: Send) -> Got:
        try:
            return _got(self._http.request(**_words(send)))
        except httpx.RequestError as error:
            return Got(error=_said(error))


class AsyncClient(_Connection):
    """`Client`, for tasks: the same methods, to be awaited.

    Each raises ServiceError and ServiceUnreachable, as those of Client do.
    """

    def _open(self, **settings: Any) -> None:
        self._http = httpx.AsyncClient(**settings)
        self.collections = AsyncCollections(CollectionCalls(self._calls.send), self._do)
        """Collections of the service: create, add, pairs, decide and so on."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    extract = for_tasks(Client.extract)
    start = for_tasks(Client.start)
    run = for_tasks(Client.run)
    runs = for_tasks(Client.runs)
    graph = for_tasks(Client.graph)
    cancel = for_tasks(Client.cancel)
    delete = for_tasks(Client.delete)
    put_ontology = for_tasks(Client.put_ontology)
    ontology = for_tasks(Client.ontology)
    ontologies = for_tasks(Client.ontologies)
    delete_ontology = for_tasks(Client.delete_ontology)
    validate_ontology = for_tasks(Client.validate_ontology)
    estimate = for_tasks(Client.estimate)
    key_of = for_tasks(Client.key_of)

    async def stream(
        self, text: str, *, ontology: str, params: Mapping[str, Any] | None = None, document: str = ""
    ) -> AsyncIterator[ProgressEvent]:
        """Begin a run, or join it, and give its events from the first to the last."""
        started = await self.start(text, ontology=ontology, params=params, document=document)
        async for event in self.events(started.idempotency_key):
            yield event

    async def events(self, key: str, *, after: int = 0) -> AsyncIterator[ProgressEvent]:
        """The events of a run after number `after`, past ones first, until its last."""
        following = ResumableStream(after=after, tries=self._calls.tries)
        while not following.reader.is_over:
            reason, retry_after = "the stream ended before the run", ""
            send = _words(events_of(key, after=following.begin()))
            try:
                async with self._http.stream(**send, timeout=_STREAM_TIMEOUT) as answer:
                    if answer.status_code == NOTHING_FOLLOWS:
                        return
                    if answer.status_code == _GIVEN:
                        async for data in answer.aiter_bytes():
                            for event in following.reader.feed(data):
                                yield event
                    else:
                        reason = following.refuse(answer.status_code, await answer.aread())
                        retry_after = answer.headers.get("retry-after", "")
            except httpx.RequestError as error:
                reason = _said(error)
            await asyncio.sleep(following.end(reason, retry_after))

    async def _do(self, script: Script[T]) -> T:
        return await arun(script, self._send, _ASYNC_EFFECTS)

    async def _send(self, send: Send) -> Got:
        try:
            return _got(await self._http.request(**_words(send)))
        except httpx.RequestError as error:
            return Got(error=_said(error))


def request_of(
    text: str, *, ontology: str, params: Mapping[str, Any] | None = None, document: str = ""
) -> ExtractRequest:
    """The request for a text; `params` have the wire's names, such as `chunkSize`."""
    given = msgspec.convert(dict(params or {}), ExtractionParams)
    return ExtractRequest(text=text, ontology_id=ontology, extraction_params=given, document=document)


def _headers(token: str | None, api_key: str | None, more: Mapping[str, str] | None) -> dict[str, str]:
    if token is not None and api_key is not None:
        raise ValueError("give a token or an API key, not both")
    headers = dict(more or {})
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    if api_key is not None:
        headers["x-api-key"] = api_key
    return headers


def _words(send: Send) -> dict[str, Any]:
    return {
        "method": send.method,
        "url": send.path,
        "content": send.body or None,
        "headers": dict(send.headers),
        "params": dict(send.query) or None,
    }


def _got(answer: httpx.Response) -> Got:
    return Got(answer.status_code, answer.content, answer.headers.get("retry-after", ""))


def _said(error: Exception) -> str:
    return f"{type(error).__name__} {error}".strip()
