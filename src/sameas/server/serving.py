"""The process: uvicorn with the application, and an end that loses nothing.

Rule: on SIGTERM no new work is taken; streams end and sockets close with 1012, so that clients come back elsewhere;
runs finish within the grace time. What does not finish is handed over: its claim is given back, and the process ends at
once, as if it had been killed, so that the run's journal has no word of an end that was none.

A connection that has sent no whole head within `WITHIN` seconds is closed: one that says a letter a minute would be
kept for good. What has come of a WebSocket's message that is not whole yet takes room like the body of a request.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from errno import EADDRINUSE
from typing import Any, ClassVar

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from sameas.once.errors import SameasError
from sameas.server.app import App, Entry, open_entry
from sameas.server.bodies import BodyMemory
from sameas.server.logs import RequestLog, configure_logging
from sameas.server.problems import MEDIA_TYPE, Problem
from sameas.server.start_checks import check_start
from sameas.settings import Settings, SettingsError, make_home

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


_LOG = logging.getLogger("sameas.server")
_SWITCH_EVERY = 0.001
# What waits there waits for disks and databases; work that takes long has threads of its own.
_THREADS = 32
_MAX_HEADER_BYTES = 64 * 1024


class Server(uvicorn.Server):
    """A server that tells the service first when it has to stop."""

    def __init__(self, config: uvicorn.Config, app: App) -> None:
        super().__init__(config)
        self._app = app
        # Why it does not serve.
        self.refusal: Exception | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGTERM and Ctrl-C ask for an end, and are not raised again after it: a stop that went well is no death."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="sameas-serving")
        asyncio.get_running_loop().set_default_executor(threads)
        try:
            # Here and not in the lifespan, where a refusal would be a traceback.
            await self._app.service.start()
            await super().startup(sockets)
        except SystemExit as ended:
            # So uvicorn says that it could not bind; it has closed the service.
            self.refusal = _not_bound(self.config, ended.__context__)
            self.should_exit = True
            return
        except (SameasError, OSError) as error:
            self.refusal = error
            self.should_exit = True
            return
        except ValueError as error:
            # The address of a store or a database that is none.
            self.refusal = SettingsError(str(error))
            self.should_exit = True
            return
        if self.started:
            # What is there now stays for good; looking through it again and again is what a slow answer is made of.
            gc.collect()
            gc.freeze()
            for server in self.servers:
                for bound in server.sockets:
                    host, port = bound.getsockname()[:2]
                    _LOG.info("sameas serves on http://%s:%s", host, port)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._app.service.send_away()
        await super().shutdown(sockets)


def serve(settings: Settings, *, quiet: bool = False, entry: Entry | None = None) -> None:
    """Serve until told to stop."""
    configure_logging()
    # The background loop's thread gives way to the serving one sooner.
    sys.setswitchinterval(_SWITCH_EVERY)
    make_home(settings)
    check_start(settings, asks_models=not settings.broker)
    access = entry or open_entry(settings)
    app = App(settings, access, log=RequestLog(enabled=not quiet))
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=_MAX_HEADER_BYTES,
        ws_max_size=settings.max_body,
        ws_ping_interval=20.0,
        ws_ping_timeout=20.0,
        timeout_keep_alive=15,
        # Whoever waits for a run waits as long as the run may take, and no longer.
        timeout_graceful_shutdown=max(1, round(settings.grace)),
        lifespan="on",
        http=BoundedHeads,
        ws=messages_within(app.service.body_memory),
    )
    server = Server(config, app)
    _run(server)
    access.close()
    if server.refusal is not None:
        raise server.refusal
    if app.handed_over:
        sys.stderr.flush()
        os._exit(0)
    if not server.started:
        sys.exit(1)


class PortInUseError(SameasError):
    """Somebody else listens on the port."""


def _not_bound(config: uvicorn.Config, error: BaseException | None) -> Exception:
    where = f"{config.host}:{config.port}"
    if isinstance(error, OSError) and error.errno == EADDRINUSE:
        return PortInUseError(f"{where} is in use by another program; choose another with --port")
    return SettingsError(f"cannot listen on {where}: {error}; choose another with --host and --port")


def _run(server: Server) -> Any:
    if sys.platform == "win32":
        return asyncio.run(server.serve())
    import uvloop

    return uvloop.run(server.serve())
