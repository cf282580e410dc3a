"""What a request in flight adds to the memory of its process, beside the bare application and without its body."""

import asyncio
import gc
import tracemalloc

from bench.http.asking import order
from sameas import AsyncEngine, open_async_store
from sameas.web import IdempotencyMiddleware

IN_FLIGHT = 1_000
AT_MOST_BYTES = 20 * 1_024


def added_per_request() -> float:
    """Bytes, with a store in memory: what a store holds of a record is its own."""
    return _held(guarded=True) - _held(guarded=False)


def _held(*, guarded: bool) -> float:
    async def measured() -> float:
        gate = asyncio.Event()

        async def handler(scope, receive, send):
            await receive()
            await gate.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})

        engine = AsyncEngine(open_async_store("memory://"))
        app = IdempotencyMiddleware(handler, engine=engine) if guarded else handler
        await asyncio.gather(*_requests(app, [-1], opened=gate))
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        gate.clear()
        tasks = [asyncio.ensure_future(each) for each in _requests(app, range(IN_FLIGHT))]
        for _ in range(20):
            await asyncio.sleep(0)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        gate.set()
        await asyncio.gather(*tasks)
        return held / IN_FLIGHT

    return asyncio.run(measured())


def _requests(app, numbers, opened: asyncio.Event | None = None):
    if opened is not None:
        opened.set()
    return [_ask(app, number) for number in numbers]


async def _ask(app, number: int) -> None:
    body = order(number)
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/orders",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"content-type", b"application/json"), (b"idempotency-key", b'"memory-%d"' % number)],
    }

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        pass

    await app(scope, receive, send)
