"""Several machines on loopback: API nodes and workers with homes of their own, as real processes."""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tests.servers.server import Server


class Node(Server):
    """`sameas serve` or `sameas worker` with a home folder of its own."""

    ready_within_seconds: ClassVar[float] = 60.0

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__()
        self._settings = dict(settings)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def prepare(self) -> None:
        (self.folder / "home").mkdir()

    def environment(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SAMEAS_", "AWS_"))}
        return {**kept, **self._settings, "SAMEAS_HOME": str(self.folder / "home"), "SAMEAS_PORT": str(self.port)}


class ApiNode(Node):
    """A server that accepts requests and streams events, and works on nothing."""

    name: ClassVar[str] = "api"

    def command(self) -> Sequence[str]:
        return [sys.executable, "-m", "sameas.cli", "serve"]

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health/live", timeout=2.0) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        within: float = 60.0,
    ) -> tuple[int, Any]:
        """The status and the JSON of a request; what is no JSON is text."""
        raw = isinstance(body, bytes)
        data = body if raw or body is None else json.dumps(body).encode()
        given = {"Content-Type": "text/turtle" if raw else "application/json", **(headers or {})}
        request = urllib.request.Request(f"{self.url}{path}", data=data, method=method, headers=given)
        try:
            with urllib.request.urlopen(request, timeout=within) as reply:
                return reply.status, _decoded(reply.read())
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, _decoded(refusal.read())


class WorkerNode(Node):
    """A worker of the queue."""

    name: ClassVar[str] = "worker"

    def command(self) -> Sequence[str]:
        return [sys.executable, "-m", "sameas.cli", "worker"]

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "SAMEAS_METRICS_PORT": str(self.port)}

    def is_ready(self) -> bool:
        return "sameas works on runs of the queue" in self.recent_log

    def metrics(self) -> str:
        """What it shows to Prometheus."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10.0) as reply:
            return str(reply.read().decode())


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")
