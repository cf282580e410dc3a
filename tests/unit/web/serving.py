"""A real uvicorn in a process of its own, and what to send it: any bytes at all."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

from tests.servers.port import free_port

ROOT = Path(__file__).resolve().parents[3]
READY_WITHIN_SECONDS = 30


class Served:
    """One uvicorn process with a test application. `parser` is what reads HTTP: h11 or httptools."""

    def __init__(self, folder, store, *, name="server", app="served", parser="auto"):
        self.folder = folder
        self.parser = parser
        self.runs_file = folder / "runs"
        self.runs_file.touch()
        self.log = folder / f"{name}.log"
        self.gate = folder / "gate"
        self.port = free_port()
        environment = {
            **os.environ,
            "HTTP_TEST_STORE": store,
            "HTTP_TEST_RUNS": str(self.runs_file),
            "HTTP_TEST_GATE": str(self.gate),
            "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
        }
        command = [sys.executable, "-m", "uvicorn", "--factory", f"tests.unit.web.{app}:make_app"]
        options = ["--port", str(self.port), "--log-level", "trace", "--timeout-graceful-shutdown", "20"]
        options += ["--http", parser]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *options], cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT
            )
        self.url = f"http://127.0.0.1:{self.port}"

    def ready(self):
        deadline = time.monotonic() + READY_WITHIN_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/ping").json()["pid"]:
                    return self
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def runs(self, name):
        return self.runs_file.read_text().splitlines().count(name)

    def memory(self):
        """What the process holds itself; pages of a file that it looks at are not its own."""
        told = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1_024 * int(next(line.split()[1] for line in told.splitlines() if line.startswith("RssAnon")))

    def most_memory(self):
        """The most that it ever held, with everything that counts as memory."""
        told = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1_024 * int(next(line.split()[1] for line in told.splitlines() if line.startswith("VmHWM")))

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def raw(self, data, *, within=10):
        """Bytes in, the status line out; empty where the server closed without a word."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=within) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(data)
            return received(connection)

    def asked(self, data, *, within=10):
        """Bytes in, the answer out as `http.client` has it, with its body in `content`."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=within) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(data)
            answer = http.client.HTTPResponse(connection, method=data.partition(b" ")[0].decode())
            answer.begin()
            answer.content = answer.read()
            return answer


def received(connection):
    got = b""
    with contextlib.suppress(ConnectionError):
        while b"\r\n\r\n" not in got and (piece := connection.recv(65_536)):
            got += piece
    return got


def status(answer):
    return int(answer.split(b" ", 2)[1]) if answer else None


def head(*lines, path="/orders"):
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: test", *lines, "", ""]).encode("latin-1")


def wait_until(condition, within=20):
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
