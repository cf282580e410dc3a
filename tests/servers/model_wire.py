"""The words of three interfaces: a scripted step as OpenAI, Anthropic or Google would put it."""

import json
from typing import Any

from tests.servers.model_script import Call, Step

_OPENAI_FINISH = {"stop": "stop", "length": "length", "refusal": "content_filter"}
_ANTHROPIC_FINISH = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal"}
_GOOGLE_FINISH = {"stop": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
# Of the text of a stream.
PIECES = 4
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def body_of(call: Call, step: Step) -> bytes:
    """The body of the answer."""
    if step.body is not None:
        return step.body
    text = step.reply if isinstance(step.reply, str) else json.dumps(step.reply, separators=(",", ":"))
    if step.status >= 400:
        return _encoded(_error(call, step.status, text))
    usage = counted(call, text) if step.usage is None else step.usage
    match call.interface:
        case "openai":
            return (
                _openai_events(call, step, text, usage)
                if is_stream(call, step)
                else _encoded(_openai(call, step, text, usage))
            )
        case "anthropic":
            return _encoded(_anthropic(call, step, text, usage))
        case "google":
            return _encoded(_google(call, step, text, usage))
        case "ollama":
            return _encoded(_ollama(call, step, text, usage))


def is_stream(call: Call, step: Step) -> bool:
    """Whether the answer is sent as events, as it was asked for; errors never are."""
    wanted = call.interface == "openai" and bool(call.body.get("stream"))
    return wanted and step.status < 400 and step.body is None


def counted(call: Call, text: str) -> tuple[int, int]:
    """Tokens as this server counts them: one for four characters that were said."""
    return -(-len(call.system + call.user) // 4) + 1, -(-len(text) // 4) + 1


def _openai(call: Call, step: Step, text: str, usage: tuple[Any, ...]) -> dict[str, Any]:
    refused = step.finish == "refusal"
    message = {"role": "assistant", "content": None if refused else text, "refusal": text if refused else None}
    choice = {"index": 0, "message": message, "finish_reason": _OPENAI_FINISH[step.finish]}
    reply: dict[str, Any] = {
        "id": f"chatcmpl-{call.number}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": call.model,
        "choices": [choice] if step.choices else [],
    }
    if usage:
        total = sum(part for part in usage if isinstance(part, int))
        reply["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": total}
    if len(usage) > 2:
        reply["usage"] |= {"total_tokens": usage[0] + usage[1], "prompt_tokens_details": {"cached_tokens": usage[2]}}
    return reply


def _openai_events(call: Call, step: Step, text: str, usage: tuple[Any, ...]) -> bytes:
    """The same reply in pieces: its text, why it ended, its usage if that was asked for, and the mark of the end."""
    whole = _openai(call, step, text, usage)
    told = {**{name: whole[name] for name in ("id", "created", "model")}, "object": "chat.completion.chunk"}
    said = "refusal" if step.finish == "refusal" else "content"
    size = max(1, -(-len(text) // PIECES))
    deltas: list[tuple[dict[str, Any], str | None]] = [
        ({"role": "assistant", said: text[start : start + size]}, None) for start in range(0, len(text), size)
    ]
    deltas.append(({}, _OPENAI_FINISH[step.finish]))
    events: list[dict[str, Any]] = [
        {**told, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}] if step.choices else []}
        for delta, finish in deltas
    ]
    if "usage" in whole and (call.body.get("stream_options") or {}).get("include_usage"):
        events.append({**told, "choices": [], "usage": whole["usage"]})
    sent = [b"data: " + _encoded(event) + b"\n\n" for event in events] + [b"data: [DONE]\n\n"]
    return b"".join(sent[: step.events])


def _anthropic(call: Call, step: Step, text: str, usage: tuple[Any, ...]) -> dict[str, Any]:
    reply: dict[str, Any] = {
        "id": f"msg_{call.number}",
        "type": "message",
        "role": "assistant",
        "model": call.model,
        "content": [{"type": "text", "text": text}] if step.choices else [],
        "stop_reason": _ANTHROPIC_FINISH[step.finish],
        "stop_sequence": None,
    }
    if usage:
        reply["usage"] = {"input_tokens": usage[0], "output_tokens": usage[1]}
    if len(usage) > 3:
        # What comes from the cache, or goes there, is not among the others here.
        reply["usage"] |= {
            "input_tokens": usage[0] - usage[2] - usage[3],
            "cache_read_input_tokens": usage[2],
            "cache_creation_input_tokens": usage[3],
        }
    return reply


def _google(call: Call, step: Step, text: str, usage: tuple[Any, ...]) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": text}]}
    candidate = {"content": content, "finishReason": _GOOGLE_FINISH[step.finish], "index": 0}
    reply: dict[str, Any] = {"candidates": [candidate] if step.choices else [], "modelVersion": call.model}
    if usage:
        reply["usageMetadata"] = {"promptTokenCount": usage[0], "candidatesTokenCount": usage[1]}
    return reply


def _ollama(call: Call, step: Step, text: str, usage: tuple[Any, ...]) -> dict[str, Any]:
    reply: dict[str, Any] = {
        "model": call.model,
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": text},
        "done": True,
        "done_reason": "length" if step.finish == "length" else "stop",
    }
    return reply | (dict(zip(("prompt_eval_count", "eval_count"), usage, strict=False)) if usage else {})


def _error(call: Call, status: int, text: str) -> dict[str, Any]:
    kind = _ERRORS.get(status, "server_error")
    match call.interface:
        case "openai":
            return {"error": {"message": text, "type": kind, "param": None, "code": None}}
        case "anthropic":
            return {"type": "error", "error": {"type": kind, "message": text}}
        case "google":
            return {"error": {"code": status, "message": text, "status": "SCRIPTED"}}
        case "ollama":
            return {"error": text}


def _encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
