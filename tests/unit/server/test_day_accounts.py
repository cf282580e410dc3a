"""A tenant's day: strict, whoever reserves at once, and settled once."""

import asyncio
from decimal import Decimal

import pytest
from msgspec.structs import replace

from sameas import AsyncEngine, open_async_store
from sameas.once.store import Query
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


async def entries_of(engine):
    """The number of entries of all accounts, and their bytes."""
    found, after = [], None
    while True:
        page = await engine.store.find(Query(limit=500, after=after))
        found += [await engine.store.read(record.identity) for record in page.records]
        after = page.next
        if after is None:
            return len(found), sum(len(record.outcome.data) for record in found)


async def test_a_change_costs_no_more_where_many_runs_wait(engine):
    accounts = accounts_of(engine, tokens=10**9)

    async def wait(count):
        before = await entries_of(engine)
        for _ in range(count):
            await accounts.begin("t", likely=Spent(30), most=Spent(120))
        return (await entries_of(engine))[1] - before[1]

    among_few = await wait(200)
    await wait(600)
    assert await wait(200) < 2 * among_few


async def test_changes_that_come_together_are_one_entry(tmp_path):
    async with open_async_store(f"sqlite:///{tmp_path}/records.db") as store:
        engine = AsyncEngine(store)
        accounts = accounts_of(engine, tokens=10**6)
        await asyncio.gather(*(accounts.begin("t", likely=Spent(30), most=Spent(120)) for _ in range(50)))
        assert (await entries_of(engine))[0] <= 2
        assert sum(one.tokens for one in (await accounts.read("t", DAY)).reserved.values()) == 50 * 120


async def test_one_who_comes_late_or_was_away_for_long_knows_what_all_know(engine):
    first, away = accounts_of(engine, tokens=10**6), accounts_of(engine, tokens=10**6)
    kept = await away.begin("t", likely=Spent(1), most=Spent(1))
    for number in range(300):
        reserved = await first.begin("t", likely=Spent(30), most=Spent(120))
        if number % 3:
            await first.end(reserved, Spent(50))
    late = accounts_of(engine, tokens=10**6)
    stands = [await one.read("t", DAY) for one in (first, away, late)]
    assert stands[0] == stands[1] == stands[2]
    assert (stands[0].spent, len(stands[0].reserved)) == (Spent(200 * 50), 101)
    await late.end(kept, Spent(1))
    assert (await first.read("t", DAY)).spent == Spent(200 * 50 + 1)


async def test_a_change_whose_caller_left_while_it_was_written_is_made_once(engine):
    accounts, other = accounts_of(engine), accounts_of(engine)
    reserved = await accounts.begin("t", likely=Spent(10), most=Spent(100))
    for turns in range(12):
        leaving = asyncio.create_task(accounts.add(reserved, Spent(1)))
        staying = asyncio.create_task(accounts.add(reserved, Spent(1)))
        for _ in range(turns):
            await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.gather(leaving, staying, return_exceptions=True)
    spent = (await other.read("t", DAY)).spent.tokens
    assert 12 <= spent <= 24
    assert (await accounts.read("t", DAY)).spent.tokens == spent


async def test_a_refusal_is_told_by_how_the_account_stands_and_not_by_what_was_read_once(engine):
    one, other = accounts_of(engine), accounts_of(engine)
    reserved = await other.begin("t", likely=Spent(900), most=Spent(900))
    with pytest.raises(Problem):
        await one.begin("t", likely=Spent(500), most=Spent(500))
    await other.end(reserved, Spent(10))
    assert (await one.begin("t", likely=Spent(500), most=Spent(500))).most == Spent(500)
