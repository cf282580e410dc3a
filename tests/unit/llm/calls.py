"""A model that does what a test says, and a limiter on the clock of the running loop."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from decimal import Decimal
from random import Random
from typing import Any

from sameas.llm.account import LocalAccount, RateLimits
from sameas.llm.circuit import CircuitSettings
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.models import Ask, Message, ModelError, Reply, Usage
from sameas.llm.prices import Price

PRICE = Price(Decimal(1), Decimal(2))


def question(text: str = "one two three", *, room: int = 10) -> Ask:
    return Ask(messages=(Message("user", text),), schema={}, schema_name="answer", max_output_tokens=room)


def answer(text: str = "yes", *, tokens: tuple[int, int] = (4, 3)) -> Reply:
    return Reply(text, Usage(*tokens, reported=True), "stop", "scripted")


Step = Reply | Exception | Callable[[], Awaitable[Reply]]


class ScriptedModel:
    """Answers with one step of its script for each call, and with the last one for ever."""

    def __init__(self, steps: Iterable[Step], *, price: Price | None = PRICE) -> None:
        self.name = "scripted"
        self.price = price
        self.calls = 0
        self._steps = list(steps)

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    async def ask(self, ask: Ask) -> Reply:
        step = self._steps[min(self.calls, len(self._steps) - 1)]
        self.calls += 1
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, Reply) else await step()

    async def close(self) -> None: ...


def error(code: Any = "server", **words: Any) -> ModelError:
    return ModelError(f"it was {code}", code=code, **words)


def limiter_here(**words: Any) -> CentralRateLimiterService:
    """With the limits given, on the clock of the loop that runs; the scripted model has answered before, and each failure
    counts for the circuit, unless told otherwise.
    """
    clock = asyncio.get_running_loop().time
    own = {name: words.pop(name) for name in ("longest_pause", "max_waiting") if name in words}
    circuit = words.pop("circuit", CircuitSettings(together_within=0))
    limiter = CentralRateLimiterService(
        account=LocalAccount(RateLimits(**words), circuit=circuit, clock=clock),
        random=Random(1),
        **own,
    )
    limiter.known_models.add("scripted")
    return limiter
