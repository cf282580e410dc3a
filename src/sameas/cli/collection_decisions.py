"""`sameas same`, `sameas different` and `sameas pairs`: what people decide of things that may be one."""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec
import typer

from sameas.cli.collections import Json, Name, open_collection
from sameas.cli.tables import print_table
from sameas.collections.model import Decision, Pair, Verdict
from sameas.extraction.outputs.context import local_name

Thing = Annotated[str, typer.Argument(help="A thing, by its id, IRI or name.")]
Why = Annotated[str, typer.Option("--reason", help="Why; kept with the decision.")]


def same(name: Name, a: Thing, b: Thing, *, reason: Why = "") -> None:
    """Decide that two things are one; it holds through every later sync."""
    _decide(name, "same", a, b, reason)


def different(name: Name, a: Thing, b: Thing, *, reason: Why = "") -> None:
    """Decide that two things are different; it holds through every later sync."""
    _decide(name, "different", a, b, reason)


def _decide(name: str, verdict: Verdict, a: str, b: str, reason: str) -> None:
    with open_collection(name) as collection:
        decision = collection.decide(verdict, a, b, reason=reason)
    print(
        f"{decision.a_name} and {decision.b_name} are {verdict}: {decision.a}"
        + ("" if verdict == "same" else f", {decision.b}")
    )
    print(f"undo it with: sameas pairs {name} --undo {decision.id}", file=sys.stderr)


def pairs(
    name: Name,
    *,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 20,
    decided: Annotated[bool, typer.Option("--decided", help="Show what was decided instead.")] = False,
    undo: Annotated[str | None, typer.Option(help="Take a decision back, by its id.")] = None,
    json: Json = False,
) -> None:
    """Things that may be one, likeliest first, with what speaks for and against."""
    with open_collection(name) as collection:
        if undo is not None:
            done = collection.undo(undo)
            print(f"undone: {done.a_name} and {done.b_name} are {done.verdict}", file=sys.stderr)
            return
        decisions = collection.decisions(undone=True) if decided else []
        found = [] if decided else collection.pairs()
    if decided:
        _print_decisions(decisions, json=json)
        return
    for pair in found[:limit]:
        if json:
            print(msgspec.json.encode(pair).decode())
        else:
            _print_pair(pair)
    if len(found) > limit:
        print(f"{len(found) - limit} more (--limit)", file=sys.stderr)
    elif not found:
        print("no doubtful pairs", file=sys.stderr)


def _print_pair(pair: Pair) -> None:
    print(f"{pair.probability:.2f}  {pair.a.name} ({pair.a.id})  /  {pair.b.name} ({pair.b.id})")
    for reason in pair.reasons:
        detail = " ".join(local_name(word) if "://" in word else word for word in reason.detail.split())
        print(f"      {reason.weight:+.1f}  {reason.kind.replace('-', ' ')}  {detail}".rstrip())


def _print_decisions(decisions: list[Decision], *, json: bool) -> None:
    if json:
        for one in decisions:
            print(msgspec.json.encode(one).decode())
        return
    rows = [
        [one.id, one.verdict, one.a_name, one.b_name, one.by, one.at[:19], one.undone_at[:19], one.reason]
        for one in decisions
    ]
    print_table(("id", "verdict", "a", "b", "by", "at (UTC)", "undone", "reason"), rows, to=sys.stdout, whole=("id",))
