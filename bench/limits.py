"""What a server sees of the limits that are kept: requests and tokens in any window, and how much of them is used.

`python -m bench limits [--window S] [--windows N]`. The server is on loopback and in a process of its own; it counts a
request when it has arrived, with its prompt and all the output that it allows. It answers within a second of each
minute. A window of 60 seconds takes minutes; a shorter one is all of it at a smaller scale, the server's time included.
"""

import argparse
import asyncio
import json
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from random import Random
from typing import IO, NamedTuple

from sameas.llm.account import WINDOW_SECONDS, LocalAccount, RateLimits
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.models import Ask, Message, open_model
from sameas.llm.supervisor import RequestSupervisor
from sameas.llm.tokens import counter_for
from tests.servers.model_script import Call, Step, says
from tests.servers.model_server import ModelServer

AT_LEAST = 0.95
SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
WORDS = "the meeting went on for a while in the usual manner and nothing of note was said about it "


class Arrived(NamedTuple):
    """A request: when it arrived, and its prompt and allowed output in tokens."""

    at: float
    tokens: int


def serve(second: float) -> None:
    """Answer within a second, and print what was counted when the caller has gone."""
    random, count = Random(1), counter_for("openai", "gpt-5").count
    seen: list[Arrived] = []

    def answer(call: Call) -> Step:
        prompt = sum(count(message["content"]) for message in call.body["messages"])
        seen.append(Arrived(call.arrived_at, prompt + call.body["max_tokens"]))
        return says({}, latency=random.uniform(0.1, 0.9) * second, usage=(prompt, 2))

    with ModelServer(answer) as server:
        print(server.address(), flush=True)
        sys.stdin.readline()
    print(json.dumps(seen), flush=True)


@contextmanager
def served(second: float) -> Iterator[tuple[str, IO[str], IO[str]]]:
    """A server in a process of its own: its address, and the two ends of the way to it."""
    command = [sys.executable, "-m", "bench.limits", "--serve", str(second)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield process.stdout.readline().strip(), process.stdout, process.stdin
        finally:
            process.terminate()


async def ask_until_full(address: str, limits: RateLimits, *, window: float, calls: int, allowed: int) -> None:
    model = open_model(address)
    limiter = CentralRateLimiterService(account=LocalAccount(limits, window=window))
    supervisor = RequestSupervisor(model, limiter=limiter)
    random = Random(2)

    def ask(number: int) -> Ask:
        text = f"{number} {WORDS * random.randint(5, 40)}"
        return Ask(messages=(Message("user", text),), schema=SCHEMA, schema_name="reply", max_output_tokens=allowed)

    await asyncio.gather(*(supervisor.ask("entity_extraction", ask(number)) for number in range(calls)))
    await model.close()


def measure(limits: RateLimits, *, window: float, windows: int, allowed: int, by_tokens: bool) -> None:
    """Fill so many windows and one call more, and print what the server has seen."""
    most = limits.tokens_per_minute if by_tokens else limits.requests_per_minute
    # A prompt is 400 tokens on the average.
    calls = windows * most // (400 + allowed) + 20 if by_tokens else windows * most + 1
    with served(window / WINDOW_SECONDS) as (address, told, tell):
        asyncio.run(ask_until_full(address, limits, window=window, calls=calls, allowed=allowed))
        tell.write("enough\n")
        tell.flush()
        seen = sorted(Arrived(*one) for one in json.loads(told.readline()))
    sums = [0, *accumulate(one.tokens if by_tokens else 1 for one in seen)]
    times = [one.at for one in seen]
    highest = max(sums[bisect_left(times, at + window)] - sums[number] for number, at in enumerate(times))
    # Whole windows: what came before the first call of the last, over the time until then.
    last = max(number for number in range(len(seen)) if sums[number] <= (windows - 1) * most)
    share = sums[last] / most / ((times[last] - times[0]) / window)
    what = "tokens" if by_tokens else "requests"
    print(
        f"{what:<10} limit {most:,} in {window:g} s, {len(seen)} calls in {times[-1] - times[0]:.1f} s: at most "
        f"{highest:,} in any window at the server{verdict(highest <= most)}, {share:.1%} used{verdict(share >= AT_LEAST)}"
    )


def verdict(held: bool) -> str:
    return " (held)" if held else " (MISSED)"


def main(*arguments: str) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="bench limits", description=__doc__)
    parser.add_argument("--window", type=float, default=12.0, help="seconds that stand for the minute")
    parser.add_argument("--windows", type=int, default=4, help="how many of them are filled")
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.serve is not None:
        serve(asked.serve)
        return
    plenty = 10**9
    for limits, by_tokens in (
        (RateLimits(requests_per_minute=120, tokens_per_minute=plenty, max_concurrent=10), False),
        (RateLimits(requests_per_minute=plenty, tokens_per_minute=100_000, max_concurrent=10), True),
    ):
        measure(limits, window=asked.window, windows=asked.windows, allowed=600, by_tokens=by_tokens)


if __name__ == "__main__":
    main(*sys.argv[1:])
