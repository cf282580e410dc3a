"""The HTTP client of a model that is asked in batches: a question is not sent but handed to `Batches`.

Rule: the provider's own package writes the question and reads the answer as ever; only the way between is another. All
else that it sends goes out as it is.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from httpx2 import Request, Response

from sameas.llm.batches import Answer, Batches, BatchFailed
from sameas.llm.reply_client import ReplyClient, mended

_OPENAI, _ANTHROPIC = "/chat/completions", "/messages"
# What tells the provider who asks; the rest belongs to a single question.
_KEPT_HEADERS = (
    "authorization",
    "x-api-key",
    "anthropic-version",
    "anthropic-beta",
    "openai-organization",
    "openai-project",
)
_ENDED_BADLY = ("failed", "cancelled", "canceled")
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}


class BatchClient(ReplyClient):
    """A client whose questions are answered by batches."""

    def __init__(self, *, batches: Batches, **options: Any) -> None:
        super().__init__(**options)
        self._batches = batches

    async def send(self, request: Request, *, stream: bool = False, **options: Any) -> Response:
        """Hand in a question and wait; send anything else."""
        path = request.url.path
        if request.method != "POST" or not path.endswith((_OPENAI, _ANTHROPIC)):
            return await super().send(request, stream=stream, **options)
        url = str(request.url).partition("?")[0]
        headers = {name: request.headers[name] for name in _KEPT_HEADERS if name in request.headers}
        wire: _OpenAIWire | _AnthropicWire
        if path.endswith(_OPENAI):
            wire = _OpenAIWire(self, url.removesuffix(_OPENAI), headers, endpoint=_OPENAI)
        else:
            wire = _AnthropicWire(self, url, headers)
        answer = await self._batches.ask(msgspec.json.decode(request.content), account=url, wire=wire)
        body = mended(msgspec.json.encode(answer.body)) if answer.status < 300 else msgspec.json.encode(answer.body)
        found = {"content-type": "application/json"}
        return Response(answer.status, headers=found, content=body, request=request)

    async def call(self, method: str, url: str, headers: Mapping[str, str], **body: Any) -> Response:
        """One request of the batches' own."""
        response = await super().send(self.build_request(method, url, headers=dict(headers), **body))
        if not response.is_success:
            raise BatchFailed(response.status_code, _decoded(response.content))
        return response


class _OpenAIWire:
    """A file of questions in, a file of answers out."""

    def __init__(self, client: BatchClient, base: str, headers: Mapping[str, str], *, endpoint: str) -> None:
        self._client = client
        self._base = base
        self._headers = headers
        self._endpoint = f"/v1{endpoint}"

    async def submit(self, questions: Mapping[str, Any]) -> str:
        lines = [
            {"custom_id": name, "method": "POST", "url": self._endpoint, "body": body}
            for name, body in questions.items()
        ]
        content = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        file = await self._call(
            "POST", "/files", files={"file": ("questions.jsonl", content)}, data={"purpose": "batch"}
        )
        wanted = {"input_file_id": file["id"], "endpoint": self._endpoint, "completion_window": "24h"}
        return str((await self._call("POST", "/batches", json=wanted))["id"])

    async def results(self, batch: str) -> Mapping[str, Answer] | None:
        batch_status = await self._call("GET", f"/batches/{batch}")
        if batch_status["status"] in _ENDED_BADLY:
            message = f"the batch is {batch_status['status']}: {batch_status.get('errors')}"
            raise BatchFailed(400, {"error": {"message": message}}, is_over=True)
        if batch_status["status"] not in ("completed", "expired"):
            return None
        found: dict[str, Answer] = {}
        for file in (batch_status.get("output_file_id"), batch_status.get("error_file_id")):
            if file:
                response = await self._client.call("GET", f"{self._base}/files/{file}/content", self._headers)
                found |= {line["custom_id"]: _openai_answer(line) for line in _lines(response.content)}
        return found

    async def _call(self, method: str, path: str, **body: Any) -> Any:
        response = await self._client.call(method, f"{self._base}{path}", self._headers, **body)
        return _decoded(response.content)


class _AnthropicWire:
    """A list of questions in, lines of answers out."""

    def __init__(self, client: BatchClient, url: str, headers: Mapping[str, str]) -> None:
        self._client = client
        self._url = f"{url}/batches"
        self._headers = headers

    async def submit(self, questions: Mapping[str, Any]) -> str:
        wanted = {"requests": [{"custom_id": name, "params": body} for name, body in questions.items()]}
        response = await self._client.call("POST", self._url, self._headers, json=wanted)
        return str(_decoded(response.content)["id"])

    async def results(self, batch: str) -> Mapping[str, Answer] | None:
        batch_status = _decoded((await self._client.call("GET", f"{self._url}/{batch}", self._headers)).content)
        if batch_status.get("processing_status") != "ended":
            return None
        # Not the address that it names: a key goes only where it was meant to go.
        response = await self._client.call("GET", f"{self._url}/{batch}/results", self._headers)
        return {line["custom_id"]: _anthropic_answer(line["result"]) for line in _lines(response.content)}


def _openai_answer(line: Mapping[str, Any]) -> Answer:
    response = line.get("response")
    if response:
        return Answer(int(response["status_code"]), response["body"])
    return Answer(503, {"error": line.get("error") or {"message": "the batch has no answer to this"}})


def _anthropic_answer(result: Mapping[str, Any]) -> Answer:
    match result["type"]:
        case "succeeded":
            return Answer(200, result["message"])
        case "errored":
            error = result["error"]
            kind = (error.get("error") or error).get("type", "")
            return Answer(_STATUSES.get(kind, 500), error)
        case other:
            message = f"the question is {other}"
            return Answer(503, {"type": "error", "error": {"type": "overloaded_error", "message": message}})


def _lines(content: bytes) -> list[Any]:
    return [msgspec.json.decode(line) for line in content.splitlines() if line.strip()]


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {"error": {"message": body[:200].decode("utf-8", "replace")}}
