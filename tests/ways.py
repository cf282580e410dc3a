"""Five ways through the house, walked for real, and every function of ours that each of them enters, in order.

ARCHITECTURE.md follows the same ways; `tests/integration/test_architecture.py` holds it to them, and
`./run bench rooms` counts their files.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import httpx

import sameas
from sameas import AsyncEngine, Engine, open_async_store, open_store
from sameas.web import IdempotencyMiddleware
from tests.integration.model_path import ORACLE, document, model_path
from tests.servers.model_server import ModelServer
from tests.servers.redis import RedisServer
from tests.unit.server.house import REQUEST, running, with_company

SOURCE = Path(sameas.__file__).parent
STORY = "Anna Stone works for Acme Ltd. Bob Miller is the founder of Globex Inc."


class Walk:
    """The functions that were entered, as `file:qualified name`, each once and in the order of its first call."""

    def __init__(self) -> None:
        self._seen: dict[str, None] = {}
        self._is_over = False

    @property
    def functions(self) -> list[str]:
        return list(self._seen)

    @property
    def files(self) -> set[str]:
        return {function.partition(":")[0] for function in self._seen}

    def begin(self) -> None:
        """The way begins here: what was entered before, to get ready, is forgotten."""
        self._seen.clear()

    def end(self) -> None:
        """The way ends here: what is entered from now on only closes what was opened."""
        self._is_over = True

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Note what this thread, and every thread that begins meanwhile, enters."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and not self._is_over:
            code = frame.f_code
            path = Path(code.co_filename)
            if path.is_relative_to(SOURCE) and not code.co_qualname.startswith("<"):
                name = code.co_qualname.replace(".<locals>", "")
                self._seen.setdefault(f"{path.relative_to(SOURCE).as_posix()}:{name}")


def function_on_redis(_: Path) -> Walk:
    """A decorated function runs for the first time, its record in Redis."""
    walk = Walk()
    with RedisServer(appendonly="always") as server, open_store(server.url) as store, Engine(store) as engine:

        @engine.once(scope="charge")
        def charge(order: dict[str, int]) -> int:
            return order["total"]

        charge({"total": 1})
        with walk.recorded():
            charge({"total": 2})
    return walk


def http_request(_: Path) -> Walk:
    """A request with an Idempotency-Key comes for the first time."""
    walk = Walk()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 201, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": b"{}"})

    async def ask() -> None:
        async with open_async_store("memory://") as store, AsyncEngine(store) as engine:
            app = IdempotencyMiddleware(application, engine=engine)
            transport = httpx.ASGITransport(app=app)  # type: ignore[arg-type]
            async with httpx.AsyncClient(transport=transport, base_url="http://loopback") as client:
                for key in ("first", "second"):
                    with walk.recorded():
                        walk.begin()
                        await client.post("/orders", json={"total": 1}, headers={"Idempotency-Key": key})

    asyncio.run(ask())
    return walk


def extract_on_the_command_line(folder: Path) -> Walk:
    """`sameas extract story.txt --ontology company.ttl --out graph.ttl` with the lexicon."""
    from sameas.cli.extract import run

    walk = Walk()
    home = with_company(folder)
    (home / "story.txt").write_text(STORY, "utf-8")
    arguments = [str(home / "story.txt"), "--ontology", str(home / "ontologies" / "company.ttl")]
    with patch.dict(os.environ, SAMEAS_HOME=str(home)), walk.recorded():
        assert run([*arguments, "--extractor", "lexicon", "--out", str(home / "graph.ttl")]) == 0
    return walk


def model_call(folder: Path) -> Walk:
    """A model is asked about one chunk; what asks and controls it, without the run around it."""
    walk = Walk()

    async def ask(server: ModelServer) -> None:
        async with model_path(server, folder) as path:
            with walk.recorded():
                await path.extract(document(1))

    with ModelServer(ORACLE) as server:
        asyncio.run(ask(server))
    inside = Walk()
    inside._seen = {name: None for name in walk.functions if name.startswith("llm/") or "/prompted/" in name}
    return inside


def service_request_to_event(folder: Path) -> Walk:
    """`POST /api/v1/extract`, and the events of its run as a stream."""
    walk = Walk()
    with walk.recorded(), running(folder) as service:
        walk.begin()
        key = service.client.post("/api/v1/extract", json=REQUEST).json()["idempotencyKey"]
        service.client.get(f"/api/v1/runs/{key}/events")
        walk.end()
    return walk


WAYS: dict[str, Callable[[Path], Walk]] = {
    "A function on Redis": function_on_redis,
    "An HTTP request": http_request,
    "Extract on the command line": extract_on_the_command_line,
    "A model call": model_call,
    "A service request, to its events": service_request_to_event,
}
