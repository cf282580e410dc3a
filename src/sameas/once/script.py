"""The one seam between logic and I/O.

A script is a generator: it yields commands, is sent the replies, and returns its answer. Logic lives in scripts; the
two drivers below are the only code that differs between threads and tasks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

# What a command is, a back end decides: a statement with its values, a Lua call, a change of a dictionary.
Command = Any
Script = Generator[Command, Any, T]
Effects = Mapping[type, Callable[[Any], Any]]
_NO_EFFECTS: Effects = {}


def run(script: Script[T], perform: Callable[[Command], Any], effects: Effects = _NO_EFFECTS, said: Any = None) -> T:
    """Drive a script to its answer; what a command raises is raised inside the script.

    `effects` perform the commands that are not the back end's, by their type. `said` is the reply that a script waits
    for which has begun already.
    """
    stopped: StopIteration | None = None
    try:
        command = script.send(said)
        while True:
            try:
                reply = effects.get(type(command), perform)(command)
            except BaseException as error:
                if isinstance(error, StopIteration):
                    stopped = error
                command = script.throw(error)
            else:
                command = script.send(reply)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    except RuntimeError as error:
        # What Python makes of it on its way out of a generator. Out of a coroutine it cannot come at all.
        if stopped is None or error.__cause__ is not stopped:
            raise
        raise stopped from None
    finally:
        script.close()


async def arun(
    script: Script[T],
    perform: Callable[[Command], Awaitable[Any]],
    effects: Effects = _NO_EFFECTS,
    said: Any = None,
) -> T:
    """`run`, for tasks."""
    try:
        command = script.send(said)
        while True:
            try:
                effect: Callable[[Any], Awaitable[Any]] = effects.get(type(command), perform)
                reply = await effect(command)
            except BaseException as error:
                command = script.throw(error)
            else:
                command = script.send(reply)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        script.close()


class Together:
    """Scripts in step: each round gathers one command of every script still going, to be performed in one go."""

    def __init__(self, scripts: Sequence[Script[Any]]) -> None:
        self.scripts = scripts
        self.answers: list[Any] = [None] * len(scripts)
        self._replies: list[Any] = [None] * len(scripts)
        self._going = list(range(len(scripts)))

    def commands(self) -> list[Command]:
        """The next round of commands; empty when every script has its answer."""
        commands, waiting = [], []
        for number, reply in zip(self._going, self._replies, strict=True):
            script = self.scripts[number]
            try:
                commands.append(script.throw(reply) if isinstance(reply, Exception) else script.send(reply))
                waiting.append(number)
            except StopIteration as end:
                self.answers[number] = end.value
        self._going = waiting
        return commands

    def replied(self, replies: Sequence[Any]) -> None:
        """The replies to the last round, in order; an exception is raised inside its script."""
        self._replies = list(replies)

    def close(self) -> None:
        for script in self.scripts:
            script.close()


def run_together(scripts: Sequence[Script[T]], perform_many: Callable[[Sequence[Command]], Sequence[Any]]) -> list[T]:
    """Drive many scripts, each round of commands in one go."""
    together = Together(scripts)
    try:
        while commands := together.commands():
            together.replied(perform_many(commands))
        return together.answers
    finally:
        together.close()


async def arun_together(
    scripts: Sequence[Script[T]], perform_many: Callable[[Sequence[Command]], Awaitable[Sequence[Any]]]
) -> list[T]:
    """`run_together`, for tasks."""
    together = Together(scripts)
    try:
        while commands := together.commands():
            together.replied(await perform_many(commands))
        return together.answers
    finally:
        together.close()
