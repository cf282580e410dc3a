"""Ids that are made here: UUIDv7 and W3C trace ids; and the trace context that comes in and goes out.

Every random bit comes from the operating system at the moment of use, so two processes that forked from one parent
never make the same id; a generator with a state of its own would. A trace context from outside is believed only
where it is well formed in every character; anything else starts a new trace: a bad header is no reason to refuse work.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from itertools import count
from threading import Lock
from uuid import UUID

import msgspec

_COUNTER_BITS = 42
_RANDOM_BITS = 32


class Uuid7Source:
    """UUIDv7 that only ever grow, within a millisecond and after the clock was set back too (RFC 9562, 6.2)."""

    def __init__(self, clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._clock_ms = clock_ms
        self._lock = Lock()
        self._last_ms = 0
        self._counter = 0

    def __call__(self) -> UUID:
        return UUID(hex=self._digits())

    def text(self) -> str:
        """The id in its one spelling."""
        digits = self._digits()
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def _digits(self) -> str:
        random = int.from_bytes(os.urandom(10), "big")
        with self._lock:
            now = self._clock_ms()
            if now > self._last_ms:
                self._last_ms = now
                # The top bit stays free, so that the counter has room to grow within the millisecond.
                self._counter = (random >> _RANDOM_BITS) & ((1 << (_COUNTER_BITS - 1)) - 1)
            else:
                self._counter += 1
                if self._counter >> _COUNTER_BITS:
                    self._last_ms += 1
                    self._counter = 0
            ms, counter = self._last_ms, self._counter
        head = ms << 16 | 0x7 << 12 | counter >> 30
        tail = 0b10 << 62 | (counter & 0x3FFFFFFF) << 32 | random & 0xFFFFFFFF
        return f"{head:016x}{tail:016x}"


_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def is_uuid7(text: str) -> bool:
    """Whether a text is a UUIDv7 in its one spelling: lower case with hyphens."""
    return _UUID7.fullmatch(text) is not None


uuid7 = Uuid7Source()
os.register_at_fork(after_in_child=uuid7.__init__)  # type: ignore[misc]


# What the names of tries begin with since other types than JSON's have tags in keys; before, it was a hex digit.
_TAGGED = "t"


def is_attempt_of_before(attempt_id: str) -> bool:
    """Whether a try was made by a program whose keys did not tell types apart."""
    return not attempt_id.startswith(_TAGGED)


class Attempts:
    """Names for tries at a claim: 128 random bits, then a count. A forked child must make its own."""

    def __init__(self) -> None:
        self._origin = _TAGGED + os.urandom(16).hex()
        self._count = count()

    def __call__(self) -> str:
        return f"{self._origin}-{next(self._count):x}"


def new_trace_id() -> str:
    """A W3C trace id: 32 lower-case hex digits, never all zero."""
    return _nonzero_hex(16)


def new_span_id() -> str:
    """A W3C parent id: 16 lower-case hex digits, never all zero."""
    return _nonzero_hex(8)


def _nonzero_hex(size: int) -> str:
    while True:
        raw = os.urandom(size)
        if any(raw):
            return raw.hex()


def is_trace_id(text: str) -> bool:
    """Whether a text is a W3C trace id."""
    return _TRACE_ID.fullmatch(text) is not None


_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16
_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")
_TRACEPARENT = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1
_RANDOM = 2
# A traceparent of version 00 has 55 characters; a later version may add fields, but no sender has a reason for more.
_MAX_TRACEPARENT = 256

# W3C Trace Context, 3.3.1: a vendor's key and value, at most 32 of them; a tenant and its system, or a name alone.
_STATE_KEY = r"[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13}|[a-z0-9][a-z0-9_\-*/]{0,255}"
_STATE_MEMBER = re.compile(rf"({_STATE_KEY})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{{0,255}}[\x21-\x2b\x2d-\x3c\x3e-\x7e]")
_MAX_STATE_MEMBERS = 32
# 3.3.1.5: what everybody must be able to pass on; where it is too much, long members go first, then the oldest.
_MAX_STATE = 512
_LONG_MEMBER = 128
_MAX_STATE_READ = 8_192


def parse_traceparent(header: str) -> tuple[str, str] | None:
    """The trace id and parent id of a traceparent header, or None if it is malformed (then start a new trace)."""
    parsed = _parse(header)
    return parsed and parsed[:2]


def format_traceparent(trace_id: str, span_id: str, *, sampled: bool = True, random: bool = False) -> str:
    """A version 00 traceparent header; level 2 tells whether the last half of the trace id is random."""
    return f"00-{trace_id}-{span_id}-{_SAMPLED * sampled | _RANDOM * random:02x}"


class TraceContext(msgspec.Struct, frozen=True, kw_only=True):
    """Where a hop stands in its trace: `span_id` is the hop's own, `parent_id` the caller's, if there was one."""

    trace_id: str
    span_id: str
    parent_id: str = ""
    sampled: bool = True
    random: bool = False
    state: str = ""

    @classmethod
    def new(cls) -> TraceContext:
        digits = os.urandom(24).hex()
        trace_id, span_id = digits[:32], digits[32:]
        if trace_id == _NO_TRACE or span_id == _NO_SPAN:
            return cls.new()
        return cls(trace_id=trace_id, span_id=span_id, random=True)

    @classmethod
    def joined(cls, traceparents: Sequence[str], tracestates: Sequence[str] = ()) -> TraceContext:
        """The trace that the headers of these names continue; a new one if they are malformed or sent twice."""
        parsed = _parse(traceparents[0]) if len(traceparents) == 1 else None
        if parsed is None:
            return cls.new()
        trace_id, parent_id, flags = parsed
        return cls(
            trace_id=trace_id,
            span_id=new_span_id(),
            parent_id=parent_id,
            sampled=bool(flags & _SAMPLED),
            random=bool(flags & _RANDOM),
            state=bounded_tracestate(tracestates),
        )

    @property
    def traceparent(self) -> str:
        """Where this hop is in its trace."""
        return format_traceparent(self.trace_id, self.span_id, sampled=self.sampled, random=self.random)

    def for_call(self) -> str:
        """The traceparent of one call that this hop makes: each has a parent id of its own."""
        return format_traceparent(self.trace_id, new_span_id(), sampled=self.sampled, random=self.random)

    def headers(self) -> dict[str, str]:
        """The headers of one request that this hop makes."""
        return {"traceparent": self.for_call(), **({"tracestate": self.state} if self.state else {})}


def bounded_tracestate(headers: Sequence[str]) -> str:
    """The tracestate headers as one, small enough to be passed on; empty if any of it is malformed. Of members
    with one key the first is kept.

    A tracestate that cannot be read never costs the trace its id (W3C Trace Context, 4.3): it is only left out.
    """
    if not headers or sum(map(len, headers)) > _MAX_STATE_READ:
        return ""
    members = [member for part in ",".join(headers).split(",") if (member := part.strip(" \t"))]
    if len(members) > _MAX_STATE_MEMBERS:
        return ""
    by_key: dict[str, str] = {}
    for member in members:
        match = _STATE_MEMBER.fullmatch(member)
        if match is None:
            return ""
        by_key.setdefault(match[1], member)
    members = [*by_key.values()]
    if len(",".join(members)) > _MAX_STATE:
        members = [member for member in members if len(member) <= _LONG_MEMBER]
    while len(",".join(members)) > _MAX_STATE:
        members.pop()
    return ",".join(members)


def _parse(header: str) -> tuple[str, str, int] | None:
    match = _TRACEPARENT.fullmatch(header) if len(header) <= _MAX_TRACEPARENT else None
    if match is None or (match[1] == "00" and match[5]):
        return None
    return match[2], match[3], int(match[4], 16)
