"""The servers that are measured, each in a process of its own: the service, and a bare FastAPI route as the floor."""

import asyncio
import json
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

import psutil
import uvicorn

from tests.servers.port import free_port

_PROCESSES = multiprocessing.get_context("spawn")
_LAG_EVERY = 0.01


@contextmanager
def serving(target, *arguments) -> Iterator[tuple[int, psutil.Process]]:
    """A server in a process; its port and the process."""
    port = free_port()
    process = _PROCESSES.Process(target=target, args=(port, *arguments))
    process.start()
    try:
        _wait(port)
        yield port, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.join(20)
        if process.is_alive():
            process.kill()
            process.join()


def floor(port: int, body: bytes) -> None:
    """A FastAPI route that returns the same bytes and does nothing else."""
    from fastapi import FastAPI, Response

    app = FastAPI()

    @app.post("/api/v1/extract")
    async def extract() -> Response:
        return Response(body, media_type="application/json")

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical", access_log=False)


def service(port: int, home: Path, lag_file: Path | None = None, models: str = "") -> None:
    """The service, without its line for each request; says how late its loop was."""
    from sameas.server.serving import serve
    from sameas.settings import Settings

    if lag_file is not None:
        _watch_lag(lag_file)
    bounds = {"max_requests": 10_000, "max_streams": 10_000, "model_requests_per_minute": 1_000_000}
    serve(Settings(home=home, port=port, extractor="lexicon", models=models, **bounds), quiet=True)


def _watch_lag(file: Path) -> None:
    """Have the serving loop write down, at its end, by how much it was late."""
    from sameas.server.service import Service

    start, close = Service.start, Service.close
    lags: list[float] = []

    async def sample() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(_LAG_EVERY)
            lags.append(time.perf_counter() - before - _LAG_EVERY)

    async def started(self: Service) -> None:
        await start(self)
        self._lag_sampler = asyncio.create_task(sample())  # type: ignore[attr-defined]

    async def closed(self: Service, **options) -> int:
        self._lag_sampler.cancel()  # type: ignore[attr-defined]
        said = json.dumps({"p99": quantiles(lags, n=100)[98], "max": max(lags)})
        await asyncio.to_thread(file.write_text, said)
        return await close(self, **options)

    Service.start, Service.close = started, closed  # type: ignore[method-assign]


def _wait(port: int) -> None:
    import socket

    ends_at = time.monotonic() + 60
    while time.monotonic() < ends_at:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError("the server did not start")
