"""A tenant's day: strict, whoever reserves at once, and settled once."""

import asyncio
from decimal import Decimal

import pytest
from msgspec.structs import replace

from sameas import AsyncEngine, open_async_store
from sameas.server.problems import Problem
from sameas.server.runs.day_accounts import DayAccounts, Spent
from sameas.server.tenants.broadcast import AppendLog

pytestmark = pytest.mark.anyio
MIDDAY = 20_000 * 86_400 + 43_200.0
DAY = "2024-10-04"


@pytest.fixture
async def engine():
    async with open_async_store("memory://") as store:
        yield AsyncEngine(store)


def accounts_of(engine, *, tokens=1_000, cost=None):
    return DayAccounts(engine, tokens=tokens, cost=cost, clock=lambda: MIDDAY)


async def test_two_servers_that_reserve_at_once_never_pass_the_day(engine):
    servers = [accounts_of(engine), accounts_of(engine)]

    async def run(number):
        accounts = servers[number % 2]
        try:
            reserved = await accounts.begin("t", likely=Spent(30), most=Spent(120))
        except Problem:
            return 0
        await asyncio.sleep(0)
        await accounts.end(reserved, Spent(min(70, reserved.most.tokens)))
        return min(70, reserved.most.tokens)

    took = await asyncio.gather(*(run(number) for number in range(60)))
    account = await servers[0].read("t", DAY)
    assert (account.spent.tokens, account.reserved) == (sum(took), {})
    assert 200 < sum(took) <= 1_000
    assert (await servers[0].read("other", DAY)).spent == Spent()


async def test_the_last_of_the_day_is_given_to_a_run_that_is_likely_to_need_no_more(engine):
    accounts = accounts_of(engine)
    granted = [await accounts.begin("t", likely=Spent(200), most=Spent(900)) for _ in range(3)]
    assert [one.most.tokens for one in granted] == [500, 250, 200]
    with pytest.raises(Problem) as refused:
        await accounts.begin("t", likely=Spent(200), most=Spent(900))
    assert (refused.value.code, refused.value.retry_after) == ("day-set-aside", 10.0)
    for one in granted:
        await accounts.end(one, Spent(one.most.tokens))
    with pytest.raises(Problem) as refused:
        await accounts.begin("t", likely=Spent(200), most=Spent(900))
    assert (refused.value.code, refused.value.retry_after) == ("day-spent", 43_200.0)


async def test_money_is_limited_beside_tokens(engine):
    accounts = accounts_of(engine, cost=Decimal(5))
    reserved = await accounts.begin("t", likely=Spent(1, Decimal(2)), most=Spent(1, Decimal(9)))
    assert reserved.most.cost == Decimal("2.5")
    await accounts.end(reserved, Spent(1, Decimal("4.5")))
    with pytest.raises(Problem, match="spent"):
        await accounts.begin("t", likely=Spent(1, Decimal(2)), most=Spent(1, Decimal(9)))


async def test_money_that_nobody_limits_is_not_set_aside(engine):
    accounts = accounts_of(engine)
    for _ in range(2):
        reserved = await accounts.begin("t", likely=Spent(10), most=Spent(100, Decimal("Infinity")))
        assert reserved.most == Spent(100)


async def test_what_was_settled_is_not_settled_again(engine):
    accounts = accounts_of(engine)
    reserved = await accounts.begin("t", likely=Spent(10), most=Spent(100))
    for _ in range(2):
        await accounts.end(reserved, Spent(60))
    assert (await accounts.read("t", DAY)).spent == Spent(60)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 7, 8, 9, 31, 32, 100])
async def test_the_last_of_a_chain_is_found_whatever_its_length(engine, length):
    append_log = AppendLog(engine, Spent, scope="numbers", tenant="t")
    for number in range(1, length + 1):
        await append_log.add(Spent(number), number=number)
    assert await append_log.last() == (length, Spent(length) if length else None)


async def test_what_a_run_and_its_helpers_may_spend_is_together_what_was_set_aside(engine):
    accounts = accounts_of(engine)
    reserved = replace(await accounts.begin("t", likely=Spent(100), most=Spent(600, Decimal(6))), helpers=2)
    helper, own = reserved.allowed_to_helper(), reserved.allowed()
    assert (helper.tokens, own.tokens) == (125, 250)
    assert own.plus(helper).plus(helper).fits(reserved.most)
    await accounts.end(reserved, Spent(300))
    # What one of them told after the run had ended.
    await accounts.add(reserved, Spent(20))
    account = await accounts.read("t", DAY)
    assert (account.spent, account.reserved) == (Spent(320), {})
