"""The memo of calls in every store: what holds for records in memory holds for those on disk and on servers."""

import pytest

from sameas.connections import open_async_store
from sameas.llm.memo import CallMemo
from sameas.once.async_engine import AsyncEngine
from tests.unit.llm.asks import a_reply, an_ask
from tests.unit.llm.test_memo import (  # noqa: F401
    MODEL,
    Asked,
    test_a_call_in_the_making_is_not_found,
    test_a_cancelled_call_is_made_by_the_next_caller,
    test_a_failed_call_leaves_nothing_behind,
    test_a_record_holds_the_reply_and_never_the_question,
    test_a_reply_that_did_not_end_is_handed_over_and_not_kept,
    test_a_reply_that_its_caller_finds_invalid_is_not_kept,
    test_a_reply_that_its_caller_finds_valid_is_kept_however_it_ended,
    test_callers_at_the_same_time_share_one_call,
    test_callers_who_wait_for_an_invalid_reply_ask_for_themselves,
    test_forgetting_stays_with_the_tenant_and_the_calls,
    test_one_reply_can_be_forgotten,
    test_tenants_do_not_share,
    test_the_replies_of_one_model_can_be_forgotten,
    test_the_same_call_is_made_once,
    test_whatever_is_sent_is_part_of_the_identity,
)

pytestmark = pytest.mark.anyio
STORES = ("memory", "sqlite", "redis", "postgres", "mariadb")


@pytest.fixture(params=STORES)
async def engine(request, tmp_path):
    match request.param:
        case "memory":
            url = "memory://"
        case "sqlite":
            url = f"sqlite:///{tmp_path}/records.db"
        case server:
            url = request.getfixturevalue(f"{server}_url")
    async with AsyncEngine(open_async_store(url)) as engine:
        yield engine


@pytest.fixture
def memo(engine):
    return CallMemo(engine, "acme")


@pytest.mark.parametrize(
    "text", ["", "\u0000\u2028\U0001f600 'quoted' \\", "{}" * 40_000], ids=["empty", "signs", "long"]
)
async def test_a_reply_comes_back_as_it_was(memo, text):
    model = Asked(a_reply(text))
    for _ in range(2):
        assert (await memo.ask(MODEL, an_ask(), model)).reply == a_reply(text)
    assert model.calls == 1
