"""Ollama's own interface under the client for OpenAI's: a schema that binds the reply, a window that holds the prompt.

Rule: on its OpenAI interface Ollama cuts a prompt that is longer than its window, usually 4,096 tokens, without a word.
So a question goes to `/api/chat` with a `num_ctx` that has room for it and its reply, and with the schema as `format`;
the answer is handed back in OpenAI's words. A server that does not know that path is asked on the other, as before.
"""

from typing import Any

import msgspec
from httpx2 import Request, Response

from sameas.llm.reply_client import ReplyClient
from sameas.llm.tokens import counter_for

# A window is made anew when it changes, which takes seconds: few sizes, and never back to a smaller one.
LEAST_WINDOW = 4_096
_MARKS = 256
_CHAT = "/chat/completions"


class OllamaClient(ReplyClient):
    """A client that speaks to Ollama in its own words."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._window = LEAST_WINDOW
        self._is_native = True

    async def send(self, request: Request, *, stream: bool = False, **options: Any) -> Response:
        """Send a request; a question becomes one of Ollama's own, if it is not to be streamed."""
        asked = _question(request) if self._is_native else None
        if asked is None:
            return await super().send(request, stream=stream, **options)
        self._window = max(self._window, window_for(asked))
        native = self.build_request(
            "POST",
            str(request.url).partition("/v1/")[0] + "/api/chat",
            json=native_question(asked, window=self._window),
            headers={name: request.headers[name] for name in ("authorization",) if name in request.headers},
            extensions=request.extensions,
        )
        response = await super().send(native, **options)
        reply = _decoded(response.content)
        if response.status_code in (404, 405) and "model" not in str(reply.get("error", "")):
            self._is_native = False
            return await super().send(request, stream=stream, **options)
        headers = {name: value for name, value in response.headers.items() if name in ("retry-after", "date")}
        answer = (
            openai_answer(reply, asked) if response.is_success else {"error": {"message": str(reply.get("error", ""))}}
        )
        return Response(response.status_code, headers=headers, json=answer, request=request)


def window_for(asked: dict[str, Any]) -> int:
    """The tokens that a question and its reply need, rounded up to a power of two."""
    most = counter_for("ollama", str(asked.get("model"))).most
    prompt = sum(most(str(message.get("content") or "")) for message in asked["messages"])
    needed = prompt + int(asked.get("max_tokens") or 0) + _MARKS
    return max(LEAST_WINDOW, 1 << (needed - 1).bit_length())


def native_question(asked: dict[str, Any], *, window: int) -> dict[str, Any]:
    """A question of OpenAI's interface in Ollama's words."""
    options = {
        "num_ctx": window,
        "num_predict": asked.get("max_tokens"),
        "temperature": asked.get("temperature"),
        "seed": asked.get("seed"),
    }
    question: dict[str, Any] = {
        "model": asked["model"],
        "messages": [{"role": one["role"], "content": one["content"]} for one in asked["messages"]],
        "stream": False,
        "options": {name: value for name, value in options.items() if value is not None},
    }
    wanted = asked.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        question["format"] = wanted["json_schema"]["schema"]
    elif wanted.get("type") == "json_object":
        question["format"] = "json"
    effort = asked.get("reasoning_effort")
    if effort is not None:
        # Only gpt-oss knows levels, and cannot be told not to think; the others think or do not.
        if asked["model"].startswith("gpt-oss"):
            question["think"] = "low" if effort == "none" else effort
        else:
            question["think"] = effort != "none"
    return question


def openai_answer(reply: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """An answer of Ollama's in the words of OpenAI's interface."""
    message = reply.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content},
        "finish_reason": "length" if reply.get("done_reason") == "length" else "stop",
    }
    counts = [one if isinstance(one, int) else 0 for one in (reply.get("prompt_eval_count"), reply.get("eval_count"))]
    return {
        "id": "ollama",
        "object": "chat.completion",
        "created": 0,
        "model": str(reply.get("model") or asked["model"]),
        "choices": [choice] if isinstance(content, str) else [],
        # A prompt that it remembers may not be counted at all: then we count ourselves.
        "usage": {"prompt_tokens": counts[0], "completion_tokens": counts[1], "total_tokens": sum(counts)},
    }


def _question(request: Request) -> dict[str, Any] | None:
    if not request.url.path.endswith(_CHAT):
        return None
    asked = _decoded(request.content)
    return asked if "messages" in asked and not asked.get("stream") else None


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return value if isinstance(value, dict) else {}
