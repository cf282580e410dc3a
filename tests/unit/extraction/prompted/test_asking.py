"""One question: checked, repaired once, and then the chunk has failed with a reason."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sameas.extraction.extractors.contract import ChunkFailedError
from sameas.extraction.extractors.prompted.asking import Asker, together
from sameas.extraction.extractors.prompted.replies import RelationReply
from sameas.extraction.extractors.prompted.settings import PromptSettings
from sameas.llm.errors import CircuitOpen
from sameas.llm.models import Ask, Message, ModelError, Reply, Usage

GOOD = '{"relations":[]}'
QUESTION = (Message("system", "rules"), Message("user", "text"))


class Scripted:
    """A supervisor that gives prepared answers and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asks: list[Ask] = []
        self.kept: list[bool] = []
        self.forgotten: list[Ask] = []

    async def ask(
        self,
        stage: str,
        ask: Ask,
        *,
        is_valid: Callable[[Reply], bool] | None = None,
        repair_tokens: int | None = None,
    ) -> Reply:
        self.asks.append(ask)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        text, finish = answer if isinstance(answer, tuple) else (answer, "stop")
        reply = Reply(text, Usage(10, 5, reported=True), finish, "m")
        assert is_valid is not None
        self.kept.append(is_valid(reply))
        return reply

    async def forget(self, ask: Ask) -> None:
        self.forgotten.append(ask)


def ask(scripted: Scripted, **settings: Any) -> Any:
    asker = Asker(scripted, PromptSettings(**settings))
    return asyncio.run(asker.samples("relation_extraction", QUESTION, RelationReply))


def test_a_good_reply_is_asked_for_once() -> None:
    scripted = Scripted(GOOD)
    assert ask(scripted) == [RelationReply(())]
    assert scripted.kept == [True]


def test_a_bad_reply_goes_back_once_with_what_is_wrong() -> None:
    scripted = Scripted('{"relations":7}', GOOD)
    assert ask(scripted) == [RelationReply(())]
    again = scripted.asks[1]
    assert [message.role for message in again.messages] == ["system", "user", "assistant", "user"]
    assert again.messages[2].content == '{"relations":7}'
    assert "relations" in again.messages[3].content
    # The first is remembered with its repair: it is the way to it.
    assert scripted.kept == [True, True]
    assert scripted.forgotten == []


def test_a_second_bad_reply_fails_the_chunk() -> None:
    scripted = Scripted("nonsense", "nonsense")
    with pytest.raises(ChunkFailedError, match="nor could its second one") as error:
        ask(scripted)
    assert error.value.code == "invalid_reply"
    # Nothing of it stays: the next request may get a better reply.
    assert scripted.kept == [True, False]
    assert scripted.forgotten == scripted.asks[:1]


def test_a_repair_that_is_refused_leaves_nothing_behind() -> None:
    scripted = Scripted("nonsense", ("I cannot help with that", "refusal"))
    with pytest.raises(ChunkFailedError) as error:
        ask(scripted)
    assert error.value.code == "model_refused"
    assert scripted.forgotten == scripted.asks[:1]


def test_a_repair_that_had_no_answer_is_all_that_is_asked_the_next_time() -> None:
    scripted = Scripted("nonsense", ModelError("down", code="server"))
    with pytest.raises(ChunkFailedError):
        ask(scripted)
    assert scripted.forgotten == []


def test_a_reply_that_was_cut_off_is_asked_for_again_with_more_room() -> None:
    scripted = Scripted(('{"relations":[{"sub', "length"), GOOD)
    ask(scripted, max_output_tokens=100, repair_output_tokens=300)
    first, again = scripted.asks
    assert (first.max_output_tokens, again.max_output_tokens) == (100, 300)
    assert [message.role for message in again.messages] == ["system", "user"]
    assert "cut off" in again.messages[1].content


def test_a_reply_that_fills_its_room_exactly_is_good() -> None:
    assert ask(Scripted((GOOD, "length"))) == [RelationReply(())]


def test_a_reply_that_is_cut_off_twice_is_named_so() -> None:
    with pytest.raises(ChunkFailedError) as error:
        ask(Scripted(("{", "length"), ("{", "length")))
    assert error.value.code == "truncated_reply"


def test_a_refusal_is_not_argued_with() -> None:
    scripted = Scripted(("I cannot help with that", "refusal"))
    with pytest.raises(ChunkFailedError) as error:
        ask(scripted)
    assert error.value.code == "model_refused"
    assert len(scripted.asks) == 1
    assert scripted.kept == [False]


def test_what_keeps_a_call_from_an_answer_is_passed_on_with_its_code() -> None:
    with pytest.raises(ChunkFailedError) as error:
        ask(Scripted(ModelError("busy", code="rate_limited", retry_after=2.5)))
    assert (error.value.code, error.value.retry_after_ms) == ("rate_limited", 2500)
    with pytest.raises(ChunkFailedError) as error:
        ask(Scripted(CircuitOpen(retry_after=60)))
    assert (error.value.code, error.value.retry_after_ms) == ("circuit_open", 60_000)


def test_a_key_that_is_not_accepted_ends_more_than_the_chunk() -> None:
    with pytest.raises(ModelError):
        ask(Scripted(ModelError("no", code="auth")))


def test_samples_are_different_asks_at_a_temperature() -> None:
    scripted = Scripted(GOOD, GOOD, GOOD)
    ask(scripted, samples=3)
    assert [one.sample for one in scripted.asks] == [0, 1, 2]
    assert {one.temperature for one in scripted.asks} == {0.7}


def test_the_first_failure_of_several_ends_the_others() -> None:
    ended: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waits")

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        asyncio.run(together([waits, fails]))
    assert ended == ["waits"]
