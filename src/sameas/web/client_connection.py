"""The client of one request, as long as it is there: what was done is kept whether or not it can be told."""

from __future__ import annotations

from typing import Final

from sameas.once.errors import ResultNotKept
from sameas.once.record import ProcessingRecord
from sameas.web.capture import Message, Spool
from sameas.web.encoding import NotPacked, accepts, codings_of, decoded
from sameas.web.problem import Problem, Send, problem_of
from sameas.web.recording import Recording
from sameas.web.response import EXPIRES, REPLAYED, TRUNCATED, Headers, KeptResponse, http_date, with_length, with_member
from sameas.web.route import RoutePolicy

FRESH: Final = (REPLAYED, b"false")
_REPLAYED: Final = (REPLAYED, b"true")
# What anyio's streams raise, through which Starlette's BaseHTTPMiddleware hands an answer on.
_CLOSED: Final = frozenset({"ClosedResourceError", "BrokenResourceError"})


class ClientConnection:
    """Where the answer goes."""

    __slots__ = ("_asked", "_head_only", "_policy", "_send", "is_gone")

    def __init__(self, send: Send, policy: RoutePolicy, asked: Headers, *, head_only: bool) -> None:
        """`asked` are the headers of the request."""
        self._send = send
        self._policy = policy
        self._asked = asked
        self._head_only = head_only
        self.is_gone = False

    async def send(self, message: Message) -> None:
        """A message, if the client is still there."""
        if self.is_gone:
            return
        try:
            await self._send(message)
        except Exception as error:
            if not isinstance(error, OSError) and type(error).__name__ not in _CLOSED:
                raise
            self.is_gone = True

    async def send_problem(self, problem: Problem) -> None:
        await problem.answer(self.send, head_only=self._head_only)

    async def give(self, recording: Recording, *, expires_at: int | None = None) -> None:
        """The first answer: all of its headers, and ours."""
        if recording.is_lost:
            await self.send_problem(_not_kept(recording.status, recording.size))
            return
        headers, body = [*recording.headers, FRESH], recording.body
        if expires_at is not None:
            headers.append((EXPIRES, http_date(expires_at // 1_000_000)))
        if self._policy.replayed_in_body and not body.on_disk:
            told = with_member(recording.headers, bytes(body.view()), b"false")
            if len(told) != body.size:
                body = Spool(told)
                length = b"%d" % len(told)
                headers = [(name, length if name == b"content-length" else value) for name, value in headers]
        await self.send({"type": "http.response.start", "status": recording.status, "headers": headers})
        if body.on_disk:
            for piece in body.chunks():
                await self.send({"type": "http.response.body", "body": piece, "more_body": True})
        await self.send({"type": "http.response.body", "body": b"" if body.on_disk else body.view()})

    async def replay(self, record: ProcessingRecord) -> None:
        """The answer that was kept."""
        if record.not_kept:
            await self.send_problem(problem_of(ResultNotKept(reason=record.not_kept)))
            return
        kept: KeptResponse = record.result
        if kept.part == "nothing":
            await self.send_problem(_not_kept(kept.status, kept.size, kept.why))
            return
        codings = codings_of(kept.headers)
        if codings and not accepts(self._asked, codings):
            try:
                kept = await decoded(kept)
            except NotPacked:
                await self.send_problem(_not_readable(kept.status, b", ".join(codings)))
                return
        body = kept.body
        if self._policy.replayed_in_body and kept.part == "whole":
            body = with_member(kept.headers, body, b"true")
        headers = list(kept.headers) if self._head_only else with_length(kept, body)
        headers.append(_REPLAYED)
        if record.stored:
            headers.append((EXPIRES, http_date(record.expires_at // 1_000_000)))
        if kept.part == "start":
            headers.append((TRUNCATED, b"%d" % kept.size))
        await self.send({"type": "http.response.start", "status": kept.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


def _not_kept(status: int, size: int, why: str = "") -> Problem:
    because = f": {why}" if why else ""
    return Problem(
        409,
        "answer-not-kept",
        f"This request was run and answered with status {status}; its answer of {size} bytes was not kept{because}. "
        "It is not run again.",
        original_status=status,
        original_size=size,
    )


def _not_readable(status: int, codings: bytes) -> Problem:
    said = codings.decode("latin-1")
    return Problem(
        406,
        "encoding-not-accepted",
        f"This request was run and answered with status {status}; its answer is kept as {said}. "
        "Accept that encoding to hear it. It is not run again.",
        original_status=status,
    )
