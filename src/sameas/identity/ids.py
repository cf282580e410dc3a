"""Ids that are made here: UUIDv7 and W3C trace ids.

Every random bit comes from the operating system at the moment of use, so two processes that forked from one parent
never make the same id; a generator with a state of its own would.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from itertools import count
from threading import Lock
from uuid import UUID

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
        head = ms << 80 | 0x7 << 76 | (counter >> 30) << 64
        tail = 0b10 << 62 | (counter & 0x3FFFFFFF) << 32 | random & 0xFFFFFFFF
        return UUID(int=head | tail)


uuid7 = Uuid7Source()
os.register_at_fork(after_in_child=uuid7.__init__)  # type: ignore[misc]


class Attempts:
    """Names for tries at a claim: 128 random bits, then a count. A forked child must make its own."""

    def __init__(self) -> None:
        self._origin = os.urandom(16).hex()
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


_TRACEPARENT = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


def parse_traceparent(header: str) -> tuple[str, str] | None:
    """The trace id and parent id of a traceparent header, or None where it is malformed (then start a new trace)."""
    match = _TRACEPARENT.fullmatch(header)
    if match is None or (match[1] == "00" and match[5]):
        return None
    return match[2], match[3]


def format_traceparent(trace_id: str, span_id: str, *, sampled: bool = True) -> str:
    """A version 00 traceparent header."""
    return f"00-{trace_id}-{span_id}-{'01' if sampled else '00'}"
