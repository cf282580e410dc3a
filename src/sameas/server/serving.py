"""The process: uvicorn with the application, and an end that loses nothing.

Rule: on SIGTERM no new work is taken; streams end and sockets close with 1012, so that clients come back elsewhere;
runs finish within the grace time. What does not finish is handed over: its claim is given back, and the process ends at
once, as if it had been killed, so that the run's journal has no word of an end that was none.
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
from typing import Any

import uvicorn

from sameas.once.errors import SameasError
from sameas.server.app import App
from sameas.server.authentication import Entry, open_entry
from sameas.server.http.protocol import BoundedHeads, messages_within
from sameas.server.logs import RequestLog, configure_logging
from sameas.settings import Settings, SettingsError

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
