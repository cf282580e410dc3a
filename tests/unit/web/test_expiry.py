"""How long answers are kept, who says so, and who removes them."""

import asyncio
import logging
from email.utils import parsedate_to_datetime

import pytest

from sameas.once import pruning
from sameas.once.errors import StoreUnavailable
from sameas.once.policy import Policy
from sameas.stores.memory import MemoryBackend
from tests.unit.web.asking import Handler, ask, guarded

pytestmark = pytest.mark.anyio

WITHIN = 20


class Clock:
    micros = 1_700_000_000_000_000

    def __call__(self):
        return self.micros


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({"scope": "hour"}, 3_600),
        ({"scope": "other"}, 86_400),
        ({"scope": "hour", "expires_after": 100}, 100),
    ],
)
async def test_an_answer_is_kept_as_long_as_the_route_says_or_else_the_engine(settings, seconds):
    clock = Clock()
    app = guarded(Handler(), backend=MemoryBackend(clock), policies={"hour": Policy(retention=3_600)}, **settings)
    reply = await ask(app, key="a", json={})
    expires = parsedate_to_datetime(reply.headers["idempotency-expires"]).timestamp()
    assert expires == clock.micros // 1_000_000 + seconds
    clock.micros += (seconds - 1) * 1_000_000
    assert (await ask(app, key="a", json={})).replayed == "true"
    clock.micros += 1_000_000
    assert (await ask(app, key="a", json={})).replayed == "false"


class Server:
    """Starts an application and stops it, as a server does."""

    def __init__(self, app):
        self._said = asyncio.Queue()
        self._told = asyncio.Queue()
        self._living = asyncio.create_task(app({"type": "lifespan"}, self._said.get, self._told.put))

    async def say(self, what):
        await self._said.put({"type": f"lifespan.{what}"})
        return (await asyncio.wait_for(self._told.get(), WITHIN))["type"]

    async def stop(self):
        said = await self.say("shutdown")
        await asyncio.wait_for(self._living, WITHIN)
        return said


class Lively(Handler):
    """A handler that takes part in startup and shutdown."""

    async def __call__(self, scope, receive, send):
        if scope["type"] != "lifespan":
            await super().__call__(scope, receive, send)
            return
        for _ in range(2):
            await send({"type": f"{(await receive())['type']}.complete"})


def pruners():
    return [task for task in asyncio.all_tasks() if "keep_pruned" in repr(task.get_coro())]


async def until(condition):
    async with asyncio.timeout(WITHIN):
        while not condition():
            await asyncio.sleep(0.005)


class Records(MemoryBackend):
    """Counts how often it is asked to prune, and fails as often as it is told to."""

    def __init__(self, clock, trouble=0):
        super().__init__(clock)
        self.asked = 0
        self.trouble = trouble

    def prune(self, limit):
        self.asked += 1
        if self.trouble:
            self.trouble -= 1
            raise StoreUnavailable("away")
        return (yield from super().prune(limit))


async def test_expired_records_are_removed_and_counted_from_startup_to_shutdown(caplog):
    caplog.set_level(logging.INFO, "sameas")
    clock = Clock()
    backend = Records(clock, trouble=1)
    app = guarded(Lively(), backend=backend, prune_every=0.01, expires_after=60)
    server = Server(app)
    assert await server.say("startup") == "lifespan.startup.complete"
    for key in ("a", "b", "c"):
        await ask(app, key=key, json={})
    asked = backend.asked
    await until(lambda: backend.asked > asked + 2)
    assert len(backend._records) == 3
    clock.micros += 61_000_000
    await until(lambda: not backend._records)
    await until(lambda: any("removed:" in message for message in caplog.messages))
    assert await server.stop() == "lifespan.shutdown.complete"
    assert "expired records removed: 3" in caplog.messages
    assert "expired records could not be removed: away" in caplog.messages
    assert not pruners()


async def test_one_turn_of_pruning_is_bounded(monkeypatch):
    monkeypatch.setattr(pruning, "BATCH", 1)
    monkeypatch.setattr(pruning, "MAX_BATCHES", 2)
    clock = Clock()
    backend = Records(clock)
    app = guarded(Lively(), backend=backend, expires_after=60)
    for number in range(5):
        await ask(app, key=f"k{number}", json={})
    clock.micros += 61_000_000
    left = []

    async def turn(seconds):
        left.append(len(backend._records))
        if len(left) > 3:
            raise asyncio.CancelledError
        assert 5 <= seconds <= 15

    monkeypatch.setattr(pruning.asyncio, "sleep", turn)
    with pytest.raises(asyncio.CancelledError):
        await pruning.keep_pruned(app.engine, every=10)
    assert left == [5, 3, 1, 0]


@pytest.mark.parametrize("options", [{"prune_every": None}, {"prune_every": 0.001, "mode": "off"}])
async def test_nothing_is_removed_where_something_else_does_it_or_nothing_is_kept(options):
    server = Server(guarded(Lively(), **options))
    await server.say("startup")
    assert not pruners()
    await server.stop()


async def test_an_application_that_does_not_go_on_after_startup_leaves_nothing_behind():
    async def failing(scope, receive, send):
        await receive()
        assert len(pruners()) == 1
        raise LookupError("no such thing")

    app = guarded(failing)

    async def receive():
        return {"type": "lifespan.startup"}

    with pytest.raises(LookupError):
        await app({"type": "lifespan"}, receive, None)
    assert not pruners()


def test_a_time_between_two_turns_must_be_one():
    with pytest.raises(ValueError, match="prune_every"):
        guarded(Handler(), prune_every=0)
