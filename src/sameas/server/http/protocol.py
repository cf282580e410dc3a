"""HTTP/1.1 as uvicorn speaks it, with a bound on how long the head of a request may take.

Rule: a connection that has sent no whole head within `WITHIN` seconds is closed. One that says a letter a minute would
be kept for good otherwise, and connections are not without number. What is no HTTP is refused as everything else is.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sameas.server.problems import MEDIA_TYPE, Problem

WITHIN = 15.0
_NO_HTTP = Problem(400, "request-malformed", "this is no HTTP request that can be read; mend its head")


class BoundedHeads(HttpToolsProtocol):
    """A connection. The time of a head begins when the connection does, or with the first byte after an answer."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._heard()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.cycle is not None and self.cycle.response_complete and self._waiting is None:
            self._wait()
        super().data_received(data)

    def on_headers_complete(self) -> None:
        self._heard()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: {MEDIA_TYPE}\r\nContent-Length: {len(_NO_HTTP.body)}\r\n"
        self.transport.write(f"{head}Connection: close\r\n\r\n".encode("ascii") + _NO_HTTP.body)
        self.transport.close()

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(WITHIN, self._too_slow)

    def _heard(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _too_slow(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self.transport.close()
