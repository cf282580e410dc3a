"""What a scripted model server does with one request: say something, or fail in a way of its own.

A script is a step for every request, a list of steps (one per request, and then `{}` for ever), or a function of the
request that answers with a step, plain or awaited. Anything that is not a `Step` is said as JSON.
"""

import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Finish = Literal["stop", "length", "refusal"]
Break = Literal["reset", "close"]
Interface = Literal["openai", "anthropic", "google", "ollama"]


_NAMES = {
    frozenset({"entities", "values"}): "EntityReply",
    frozenset({"entities", "relations"}): "JointReply",
    frozenset({"relations"}): "RelationReply",
    frozenset({"supported"}): "GroundingReply",
}


@dataclass(frozen=True, slots=True)
class Call:
    """A request as the server saw it."""

    number: int
    interface: Interface
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    # Seconds by the monotonic clock of this machine.
    arrived_at: float

    @property
    def model(self) -> str:
        return str(self.body.get("model") or self.path.rpartition("models/")[2].partition(":")[0])

    @property
    def system(self) -> str:
        """What the system says, over all of its messages."""
        if self.interface == "google":
            return _text(self.body.get("systemInstruction", {}).get("parts"))
        if self.interface == "anthropic":
            return _text(self.body.get("system"))
        return "\n".join(_text(m["content"]) for m in self.body["messages"] if m["role"] in ("system", "developer"))

    @property
    def said(self) -> list[str]:
        """All that the user says."""
        if self.interface == "google":
            return [_text(one["parts"]) for one in self.body["contents"] if one.get("role", "user") == "user"]
        return [_text(one["content"]) for one in self.body["messages"] if one["role"] == "user"]

    @property
    def user(self) -> str:
        """The last thing the user says."""
        return self.said[-1]

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The JSON schema that the reply must fit."""
        if self.interface == "google":
            config = self.body.get("generationConfig", {})
            return config.get("responseJsonSchema") or config.get("responseSchema")
        if self.interface == "anthropic":
            wanted = self.body.get("output_config", {}).get("format") or self.body.get("output_format") or {}
            return wanted.get("schema")
        if self.interface == "ollama":
            wanted = self.body.get("format")
            return wanted if isinstance(wanted, dict) else None
        return (self.body.get("response_format") or {}).get("json_schema", {}).get("schema")

    @property
    def schema_name(self) -> str:
        """The name of the schema; where the interface carries none, the name of what has these parts."""
        named = (self.body.get("response_format") or {}).get("json_schema", {}).get("name")
        return str(named or _NAMES.get(frozenset((self.schema or {}).get("properties", ())), ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One answer. Made by the functions below; `replace` combines them."""

    reply: Any = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    # Sent in place of the provider's reply.
    body: bytes | None = None
    finish: Finish = "stop"
    # Tokens in and out as they are reported, then of those in how many came from a cache of prompts and went there; None
    # counts words, an empty tuple reports nothing.
    usage: tuple[Any, ...] | None = None
    # Seconds before the first byte, and between one byte and the next.
    latency: float = 0.0
    drip: float = 0.0
    # Nothing is sent before it is set.
    gate: threading.Event | None = None
    # After which part of the body the connection ends, and how.
    break_after: float | None = None
    break_by: Break = "reset"
    choices: bool = True
    # How many events of a stream are sent before it ends as if it were whole; None sends all.
    events: int | None = None


Script = Step | Mapping[str, Any] | str | Sequence[Any] | Callable[[Call], Any | Awaitable[Any]] | None


def says(reply: Any, *, latency: float = 0.0, usage: tuple[Any, ...] | None = None) -> Step:
    """A good reply: JSON, or text as it is."""
    return Step(reply=reply, latency=latency, usage=usage)


def status(code: int, *, retry_after: str | float | None = None, message: str = "scripted") -> Step:
    """An error status, with Retry-After in seconds or as a date."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Step(status=code, headers=headers, reply=message)


def resets(after: float = 0.5, *, by: Break = "reset", reply: Any = "a reply that is cut") -> Step:
    """The connection ends after this part of the reply; 0 is after its head."""
    return Step(reply=reply, break_after=after, break_by=by)


def garbage(body: bytes = b"\x00\xff<html>not JSON", *, content_type: str = "application/json") -> Step:
    """Status 200 and bytes that are no reply."""
    return Step(body=body, headers={"Content-Type": content_type})


def truncated(reply: Any = "a reply that is cut") -> Step:
    """Status 200 and a body that ends in the middle of its JSON, properly announced."""
    return Step(reply=reply, break_after=0.5, break_by="close", headers={"Content-Length": "as sent"})


def empty() -> Step:
    """A reply without any choice in it."""
    return Step(choices=False)


def drips(reply: Any, *, every: float) -> Step:
    """One byte at a time."""
    return Step(reply=reply, drip=every)


def cut_stream(events: int, reply: Any) -> Step:
    """A stream that ends properly, as HTTP goes, after so many of its events."""
    return Step(reply=reply, events=events)


def refuses(why: str = "I cannot help with that.") -> Step:
    return Step(reply=why, finish="refusal")


def runs_out(reply: str = '{"entities":[{"name":"Ac') -> Step:
    """A reply that ends because no more tokens were allowed."""
    return Step(reply=reply, finish="length")


def held(gate: threading.Event, reply: Any = None) -> Step:
    """Answers when the gate opens."""
    return Step(reply={} if reply is None else reply, gate=gate)


def by_text(replies: Mapping[str | tuple[str, str], Any], *, otherwise: Any = None) -> Callable[[Call], Any]:
    """Answers by the first fragment that the user's message holds; (schema name, fragment) tells stages apart."""

    def answer(call: Call) -> Any:
        for key, reply in replies.items():
            name, fragment = key if isinstance(key, tuple) else ("", key)
            if fragment in call.user and name in ("", call.schema_name):
                return reply
        return {} if otherwise is None else otherwise

    return answer


def step_of(answer: Any) -> Step:
    return answer if isinstance(answer, Step) else Step(reply=answer)


__all__ = [
    "Call",
    "Script",
    "Step",
    "by_text",
    "cut_stream",
    "drips",
    "empty",
    "garbage",
    "held",
    "refuses",
    "replace",
    "resets",
    "runs_out",
    "says",
    "status",
    "step_of",
    "truncated",
]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content or ())
