"""The memo of calls: one identity per thing sent, one call per identity, and only good replies kept."""

import asyncio

import pytest

from sameas.identity.errors import NotCanonical
from sameas.llm.errors import CallRefused
from sameas.llm.memo import SCOPE, CallMemo, call_key
from sameas.llm.models import Message, ModelError
from sameas.once.async_engine import AsyncEngine
from sameas.once.errors import OutcomeUnknown, StoreUnavailable, Superseded
from sameas.once.policy import DAY, Policy
from sameas.once.store import AsyncStore, Query
from sameas.stores.memory import MemoryBackend
from sameas.testing import MovableClock
from tests.unit.llm.asks import SCHEMA, a_reply, an_ask

pytestmark = pytest.mark.anyio
MODEL = "openai:gpt-5-mini"


class Asked:
    """A model that counts."""

    def __init__(self, *replies, gate=None):
        self.replies = list(replies) or [a_reply()]
        self.gate = gate
        self.calls = 0

    async def __call__(self):
        reply = self.replies[min(self.calls, len(self.replies) - 1)]
        self.calls += 1
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(reply, Exception):
            raise reply
        return reply


@pytest.fixture
def clock():
    return MovableClock()


@pytest.fixture
def engine(clock):
    return AsyncEngine(AsyncStore(MemoryBackend(clock=clock)))


@pytest.fixture
def memo(engine):
    return CallMemo(engine, "acme")


async def test_the_same_call_is_made_once(memo):
    model = Asked()
    first = await memo.ask(MODEL, an_ask(), model)
    second = await memo.ask(MODEL, an_ask(), model)
    assert model.calls == 1
    assert (first.was_kept, second.was_kept) == (False, True)
    assert first.reply == second.reply == a_reply()


@pytest.mark.parametrize(
    "change",
    [
        {"messages": (Message("system", "Find the names."), Message("user", "Acme was founded in Bonn."))},
        {"messages": (Message("user", "Find the names."), Message("user", "Acme was founded in Berlin."))},
        {"schema": {**SCHEMA, "title": "Names"}},
        {"schema": dict(reversed(SCHEMA.items()))},
        {"schema_name": "names"},
        {"max_output_tokens": 101},
        {"temperature": 0.5},
        {"sample": 1},
    ],
    ids=["text", "role", "schema", "order of the schema", "name", "limit", "temperature", "sample"],
)
async def test_whatever_is_sent_is_part_of_the_identity(memo, change):
    model = Asked()
    await memo.ask(MODEL, an_ask(), model)
    await memo.ask(MODEL, an_ask(**change), model)
    assert model.calls == 2


async def test_another_model_is_another_call():
    assert call_key(MODEL, an_ask()) != call_key("openai:gpt-5", an_ask())


async def test_messages_cannot_be_shifted_into_each_other():
    one = an_ask(messages=(Message("user", "a"), Message("user", "bc")))
    two = an_ask(messages=(Message("user", "ab"), Message("user", "c")))
    assert call_key(MODEL, one) != call_key(MODEL, two)


async def test_tenants_do_not_share(engine):
    model = Asked()
    await CallMemo(engine, "acme").ask(MODEL, an_ask(), model)
    await CallMemo(engine, "other").ask(MODEL, an_ask(), model)
    assert model.calls == 2


async def test_callers_at_the_same_time_share_one_call(memo):
    gate = asyncio.Event()
    model = Asked(gate=gate)
    callers = [asyncio.ensure_future(memo.ask(MODEL, an_ask(), model)) for _ in range(20)]
    while not model.calls:
        await asyncio.sleep(0)
    gate.set()
    remembered = await asyncio.gather(*callers)
    assert model.calls == 1
    assert sum(not one.was_kept for one in remembered) == 1
    assert {one.reply.text for one in remembered} == {a_reply().text}


@pytest.mark.parametrize("finish", ["length", "refusal", "other"])
async def test_a_reply_that_did_not_end_is_handed_over_and_not_kept(memo, finish):
    model = Asked(a_reply("{", finish=finish), a_reply())
    first = await memo.ask(MODEL, an_ask(), model)
    second = await memo.ask(MODEL, an_ask(), model)
    third = await memo.ask(MODEL, an_ask(), model)
    assert (first.reply.finish, first.was_kept) == (finish, False)
    assert (second.reply, second.was_kept, third.was_kept, model.calls) == (a_reply(), False, True, 2)


async def test_a_reply_that_its_caller_finds_invalid_is_not_kept(memo):
    model = Asked(a_reply("[]"), a_reply())
    seen = [await memo.ask(MODEL, an_ask(), model, is_valid=lambda reply: reply.text != "[]") for _ in range(3)]
    assert [one.reply.text for one in seen] == ["[]", a_reply().text, a_reply().text]
    assert model.calls == 2


async def test_a_reply_that_its_caller_finds_valid_is_kept_however_it_ended(memo):
    model = Asked(a_reply(finish="length"))
    for _ in range(2):
        await memo.ask(MODEL, an_ask(), model, is_valid=lambda reply: reply.text.endswith("}"))
    assert model.calls == 1


async def test_callers_who_wait_for_an_invalid_reply_ask_for_themselves(memo):
    gate = asyncio.Event()
    model = Asked(a_reply("[]"), a_reply(), gate=gate)
    callers = [
        asyncio.ensure_future(memo.ask(MODEL, an_ask(), model, is_valid=lambda reply: reply.text != "[]"))
        for _ in range(5)
    ]
    while not model.calls:
        await asyncio.sleep(0)
    gate.set()
    replies = sorted(one.reply.text for one in await asyncio.gather(*callers))
    assert replies == sorted(["[]", *[a_reply().text] * 4])
    assert model.calls == 2


async def test_a_failed_call_leaves_nothing_behind(memo):
    model = Asked(ModelError("down", code="server"), a_reply())
    with pytest.raises(ModelError, match="down"):
        await memo.ask(MODEL, an_ask(), model)
    assert (await memo.ask(MODEL, an_ask(), model)).reply == a_reply()


async def test_a_cancelled_call_is_made_by_the_next_caller(memo):
    model = Asked(gate=asyncio.Event())
    caller = asyncio.ensure_future(memo.ask(MODEL, an_ask(), model))
    while not model.calls:
        await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    again = Asked()
    assert not (await memo.ask(MODEL, an_ask(), again)).was_kept


async def test_replies_are_kept_until_they_are_forgotten(memo, clock):
    await memo.ask(MODEL, an_ask(), Asked())
    clock.advance(10_000 * DAY)
    assert await memo.find(MODEL, an_ask()) == a_reply()


async def test_a_retention_ends_what_is_kept(engine, clock):
    memo = CallMemo(engine, retention=DAY)
    await memo.ask(MODEL, an_ask(), Asked())
    clock.advance(DAY - 1)
    assert await memo.find(MODEL, an_ask()) == a_reply()
    clock.advance(2)
    assert await memo.find(MODEL, an_ask()) is None


async def test_the_replies_of_one_model_can_be_forgotten(memo):
    for model in (MODEL, "ollama:qwen3"):
        await memo.ask(model, an_ask(), Asked())
        await memo.ask(model, an_ask("Another text."), Asked())
    assert await memo.forget(MODEL) == 2
    assert await memo.find(MODEL, an_ask()) is None
    assert await memo.find("ollama:qwen3", an_ask()) == a_reply()
    assert await memo.forget() == 2


async def test_forgetting_stays_with_the_tenant_and_the_calls(engine, memo):
    await CallMemo(engine, "other").ask(MODEL, an_ask(), Asked())
    await engine.run(lambda _: 1, scope="charge", key="k", tenant="acme", tags=(f"model:{MODEL}",))
    assert await memo.forget() == 0
    assert await CallMemo(engine, "other").find(MODEL, an_ask()) == a_reply()


async def test_one_reply_can_be_forgotten(memo):
    await memo.ask(MODEL, an_ask(), Asked())
    assert await memo.forget_call(MODEL, an_ask())
    assert not await memo.forget_call(MODEL, an_ask())


async def test_a_call_in_the_making_is_not_found(memo):
    gate = asyncio.Event()
    model = Asked(gate=gate)
    caller = asyncio.ensure_future(memo.ask(MODEL, an_ask(), model))
    while not model.calls:
        await asyncio.sleep(0)
    assert await memo.find(MODEL, an_ask()) is None
    gate.set()
    await caller


async def test_who_would_wait_too_long_is_told_when_to_come_back(engine):
    gate = asyncio.Event()
    model = Asked(gate=gate)
    caller = asyncio.ensure_future(CallMemo(engine).ask(MODEL, an_ask(), model))
    while not model.calls:
        await asyncio.sleep(0)
    with pytest.raises(CallRefused, match="being made elsewhere") as refused:
        await CallMemo(engine, wait_for=0).ask(MODEL, an_ask(), model)
    assert refused.value.retry_after > 0
    gate.set()
    await caller
    assert model.calls == 1


class Forgetful(MemoryBackend):
    """Takes claims and then cannot be reached."""

    is_down = False

    async def aperform(self, command):
        if self.is_down:
            raise StoreUnavailable
        return await super().aperform(command)


async def test_a_reply_is_not_lost_with_the_store(clock):
    backend = Forgetful(clock=clock)
    memo = CallMemo(AsyncEngine(AsyncStore(backend), policy=Policy(hand_in_for=0)))

    async def call():
        backend.is_down = True
        return a_reply()

    remembered = await memo.ask(MODEL, an_ask(), call)
    assert (remembered.reply, remembered.was_kept) == (a_reply(), False)


class Losing(AsyncEngine):
    """Does the work and cannot keep the result."""

    error: type[Exception]

    async def record(self, work, **options):
        await work(None)
        raise self.error


@pytest.mark.parametrize("error", [OutcomeUnknown, Superseded])
async def test_a_reply_that_came_too_late_to_be_kept_is_handed_over(error):
    engine = Losing(AsyncStore(MemoryBackend()))
    engine.error = error
    remembered = await CallMemo(engine).ask(MODEL, an_ask(), Asked())
    assert (remembered.reply, remembered.was_kept) == (a_reply(), False)


async def test_without_a_store_nothing_is_asked(clock):
    backend = Forgetful(clock=clock)
    backend.is_down = True
    model = Asked()
    with pytest.raises(StoreUnavailable):
        await CallMemo(AsyncEngine(AsyncStore(backend))).ask(MODEL, an_ask(), model)
    assert model.calls == 0


async def test_a_record_holds_the_reply_and_never_the_question(engine, memo):
    await memo.ask(MODEL, an_ask("a secret text"), Asked())
    page = await engine.find(Query(scope=SCOPE))
    assert len(page.records) == 1
    assert "secret text" not in repr(page.records)
    assert page.records[0].about.tags == (f"model:{MODEL}",)


def test_an_ask_that_cannot_be_written_has_no_key():
    with pytest.raises(NotCanonical, match="lone surrogate"):
        call_key(MODEL, an_ask(messages=(Message("user", "Acme \ud800 Berlin"),)))
