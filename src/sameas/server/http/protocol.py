"""HTTP/1.1 and WebSockets as uvicorn speaks them, with bounds on how long a head may take and what a message may.

Rule: a connection that has sent no whole head within `WITHIN` seconds is closed. One that says a letter a minute would
be kept for good otherwise, and connections are not without number. What is no HTTP is refused as everything else is.
What has come of a message that is not whole yet takes room like the body of a request; where there is none, the socket
is closed.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from sameas.server.bodies import BodyMemory
from sameas.server.problems import MEDIA_TYPE, Problem

WITHIN = 15.0
# Bytes that an object of Python takes beside what is in it: a message may come in fragments of one byte.
_FRAGMENT = 64
# RFC 6455's registry: try again later.
_TRY_AGAIN = 1013
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


class BoundedMessages(WebSocketsSansIOProtocol):
    """A WebSocket. Once a message is whole, whoever takes it counts it."""

    room: ClassVar[BodyMemory]
    _fragments = 0
    _held = 0

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        try:
            self._hold(self._fragments + len(self.conn.reader.buffer))
        except Problem as problem:
            self._refuse(problem)

    def connection_lost(self, exc: Exception | None) -> None:
        self._hold(0)
        super().connection_lost(exc)

    def handle_text(self, event: Frame) -> None:
        self._fragments = len(event.data) + _FRAGMENT
        super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        self._fragments = len(event.data) + _FRAGMENT
        super().handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        self._fragments += len(event.data) + _FRAGMENT
        super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        self._fragments = 0
        super().send_receive_event_to_app()

    def _hold(self, count: int) -> None:
        """Count so many bytes in the place of those before, or refuse them."""
        if count > self._held:
            self.room.take(count - self._held)
        else:
            self.room.give_back(self._held - count)
        self._held = count

    def _refuse(self, problem: Problem) -> None:
        if self.close_sent or self.transport.is_closing():
            return
        self.conn.fail(_TRY_AGAIN, problem.detail[:120])
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.transport.close()


def messages_within(room: BodyMemory) -> type[BoundedMessages]:
    """The sockets whose messages take their room there."""
    return type("MessagesWithin", (BoundedMessages,), {"room": room})
