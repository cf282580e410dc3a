"""What `./run bench http` compares with works on whichever Redis a machine has."""

import pytest
from redis.asyncio import Redis
from starlette.applications import Starlette
from starlette.routing import Route

from bench.http.apps import create
from bench.http.asking import request
from bench.http.floor import RUNNING, FloorMiddleware
from tests.servers.program import program_or_skip
from tests.servers.redis import RedisServer

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("source", ["this machine's", "the wheel's"])
async def test_the_floor_runs_once_and_replays(source, monkeypatch, tmp_path):
    if source == "the wheel's":
        monkeypatch.setenv("PATH", str(tmp_path))
    with program_or_skip(), RedisServer() as server:
        async with Redis.from_url(server.url) as client:
            app = FloorMiddleware(Starlette(routes=[Route("/orders", create, methods=["POST"])]), redis=client)
            for _ in range(2):
                await request(app, 1)
            (kept,) = [await client.get(name) for name in await client.keys()]
            assert kept.startswith(b"[201,")
            # Another is at it.
            await client.set(b'floor:"key-2"', RUNNING)
            with pytest.raises(AssertionError):
                await request(app, 2)
