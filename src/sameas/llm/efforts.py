"""How long each provider's models may be told to think, and which think whether they are told to or not.

Rule: what a model does not take is refused before anything is sent, with what it takes; nothing is rounded to something
near. A name that is in no line of the table is one that its provider's last line is true of. Servers of one's own take
what they take, and are asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, get_args

from sameas.llm.address import ModelAddress, Provider
from sameas.llm.models import Effort

_ALL: tuple[Effort, ...] = get_args(Effort)
_LEVELS: tuple[Effort, ...] = ("low", "medium", "high")
# What thoughts use up of the room for a reply. Anthropic's older models and Gemini 2.5 are given a budget in tokens for
# each level (up to 16,384 and 24,576), which must be less than the room; to OpenAI's 25,000 are recommended.
ROOM_FOR_THOUGHTS: Mapping[Effort, int] = {"minimal": 1_100, "low": 2_200, "medium": 10_400, "high": 25_000}


class Thinking(NamedTuple):
    """The efforts that a model takes; `always` if it thinks whether it is told to or not."""

    efforts: tuple[Effort, ...] = ()
    always: bool = False


# By the beginning of the name, the first that fits: as the providers' documentation has it in November 2026.
_TABLE: Mapping[Provider, Sequence[tuple[str, Thinking]]] = {
    "openai": (
        ("gpt-5-chat", Thinking()),
        ("gpt-5-pro", Thinking(("high",), always=True)),
        ("gpt-5-codex", Thinking(_LEVELS, always=True)),
        *((f"gpt-5.{minor}-chat", Thinking(("medium",), always=True)) for minor in (1, 2, 3)),
        *((f"gpt-5.{minor}-pro", Thinking(("medium", "high"), always=True)) for minor in (2, 4, 5)),
        ("gpt-6.1-sol", Thinking(_LEVELS, always=True)),
        ("gpt-6-astra", Thinking(_LEVELS, always=True)),
        ("gpt-5.", Thinking(_LEVELS)),
        ("gpt-6", Thinking(_LEVELS)),
        ("gpt-5", Thinking(_ALL, always=True)),
        *((series, Thinking(_LEVELS, always=True)) for series in ("o1", "o3", "o4")),
        ("", Thinking()),
    ),
    "anthropic": (
        *((f"claude-{old}", Thinking()) for old in ("2", "3-5", "3-haiku", "3-sonnet", "3-opus", "instant")),
        *((f"claude-{one}", Thinking(_LEVELS, always=True)) for one in ("opus-5-5", "fable", "mythos")),
        *((f"claude-{one}", Thinking(_LEVELS)) for one in ("sonnet-4-6", "sonnet-5", "haiku-5-5", "opus-5")),
        *((f"claude-opus-4-{minor}", Thinking(_LEVELS)) for minor in (6, 7, 8)),
        ("", Thinking(_ALL)),
    ),
    "google": (
        *((old, Thinking()) for old in ("gemini-1", "gemini-2.0", "gemini-2.5-flash-image", "gemma")),
        # Its budget begins at 512 tokens.
        ("gemini-2.5-flash-lite", Thinking(_LEVELS)),
        ("gemini-2.5-pro", Thinking(_ALL, always=True)),
        ("gemini-3-pro", Thinking(("low", "high"), always=True)),
        ("gemini-3.1-pro", Thinking(_LEVELS, always=True)),
        ("", Thinking(_ALL)),
    ),
    # The others think or do not.
    "ollama": (("gpt-oss", Thinking(_LEVELS, always=True)), ("", Thinking(_ALL))),
    "compatible": (("", Thinking(_ALL)),),
}


def thinking_of(model: ModelAddress) -> Thinking:
    """What a model can be told about thinking."""
    return next(found for start, found in _TABLE[model.provider] if model.model.startswith(start))


def check_effort(model: ModelAddress, effort: Effort) -> None:
    """Raise a ValueError for an effort that the model does not take."""
    efforts = thinking_of(model).efforts
    if not efforts:
        raise ValueError(f"{model.name} does not think before it answers; leave the effort out")
    if effort not in efforts:
        raise ValueError(f"{model.name} takes no effort {effort!r}; it takes {' or '.join(efforts)}")


def usual_effort(model: ModelAddress) -> Effort | None:
    """What a model is told where nobody says anything: the least that it takes, if it cannot be told not to think and
    its thoughts need room.
    """
    efforts, always = thinking_of(model)
    return efforts[0] if always and efforts[0] != "minimal" else None
