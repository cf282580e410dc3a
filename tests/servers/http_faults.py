"""A proxy before an HTTP server that answers some requests with an error of its own, or late."""

import http.client
import itertools
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Self

from tests.servers.port import LOOPBACK

_WITHIN = 30.0
_HOPS = ("connection", "transfer-encoding", "keep-alive")


class HttpFaults:
    """Every `each`th request is refused with `status`, and all wait for `seconds`; at first none is and none does."""

    def __init__(self, *, port: int) -> None:
        self.each = 0
        self.status = 503
        self.seconds = 0.0
        self.refused = 0
        self._target = port
        self._numbers = itertools.count(1)
        self._server = ThreadingHTTPServer((LOOPBACK, 0), self._handler())
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, name="http-faults", daemon=True)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        faults = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:
                """Nobody reads it."""

            def forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                time.sleep(faults.seconds)
                if faults.each and next(faults._numbers) % faults.each == 0:
                    faults.refused += 1
                    self._answer(faults.status, {}, b"<Error><Code>SlowDown</Code></Error>")
                    return
                connection = http.client.HTTPConnection(LOOPBACK, faults._target, timeout=_WITHIN)
                try:
                    connection.request(self.command, self.path, body, dict(self.headers))
                    reply = connection.getresponse()
                    self._answer(reply.status, dict(reply.getheaders()), reply.read())
                finally:
                    connection.close()

            def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
                self.send_response_only(status)
                given = {name.lower(): value for name, value in headers.items() if name.lower() not in _HOPS}
                # What a HEAD tells of is not sent.
                given.setdefault("content-length", str(len(body)))
                for name, value in given.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = forward  # noqa: N815

        return Handler
