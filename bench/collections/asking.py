"""Five usual shapes of SPARQL, asked of a collection as the service asks them: in a process of their own, on a snapshot."""

import random
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import NamedTuple

from bench.collections.world import COMPANY, PERSON, PLACE
from sameas.collections import Collection
from sameas.questions.desk import QuestionDesk
from sameas.questions.process import QueryLimits
from sameas.questions.runner import QueryRunner

_ASKED = 200
_WARMING = 5
TARGET_MS = 50.0


class Things(NamedTuple):
    """Things of the collection to ask for: ids by class, and names of companies."""

    people: list[str]
    companies: list[str]
    places: list[str]
    names: list[str]


_SHAPES: dict[str, Callable[[Things, random.Random], str]] = {
    "one thing, all its facts": lambda things, draw: f"SELECT ?p ?o {{ this:{draw.choice(things.companies)} ?p ?o }}",
    "a thing by its name": lambda things, draw: (
        f'SELECT ?c ?place {{ ?c rdfs:label "{draw.choice(things.names)}" ; :seatedIn ?place }}'
    ),
    "two steps away": lambda things, draw: (
        f"SELECT ?who ?name {{ this:{draw.choice(things.companies)} :partnerOf ?c . ?who :worksFor ?c ; rdfs:label ?name }}"
    ),
    "who is in a place, and how many": lambda things, draw: (
        f"SELECT ?class (COUNT(*) AS ?n) {{ ?x :livesIn|:seatedIn this:{draw.choice(things.places)} ; a ?class }} "
        "GROUP BY ?class"
    ),
    "a fact with its documents": lambda things, draw: (
        f"SELECT ?p ?o ?doc {{ GRAPH ?doc {{ this:{draw.choice(things.people)} ?p ?o }} }}"
    ),
}


def ask(collection: Collection, folder: Path) -> None:
    """Print how long the index takes to be made, and each shape."""
    runner = QueryRunner(processes=1)
    desk = QuestionDesk(collection, folder=folder, runner=runner, limits=QueryLimits(seconds=30))
    try:
        began = perf_counter()
        desk.index.snapshot()
        print(f"the index for questions is made in {perf_counter() - began:.0f} s", flush=True)
        things = _drawn(collection)
        worst = max(_measure(name, make, desk, things) for name, make in _SHAPES.items())
    finally:
        runner.close()
    verdict = "yes" if worst < TARGET_MS else "MISSED"
    print(f"p99 of the slowest shape {worst:.1f} ms (under {TARGET_MS:.0f} ms: {verdict})")


def _drawn(collection: Collection) -> Things:
    """Some of each class, from all over the collection."""
    found: dict[str, list[tuple[str, str]]] = {PERSON: [], COMPANY: [], PLACE: []}
    with collection.reading() as reader:
        for info in reader.all_entities():
            for type_ in info.types[:1]:
                found[type_].append((info.id, info.name))
    draw = random.Random(4)
    some = {type_: draw.sample(all_, min(len(all_), 400)) for type_, all_ in found.items()}
    ids = {type_: [id_ for id_, _ in chosen] for type_, chosen in some.items()}
    return Things(ids[PERSON], ids[COMPANY], ids[PLACE], [name for _, name in some[COMPANY]])


def _measure(name: str, make: Callable[[Things, random.Random], str], desk: QuestionDesk, things: Things) -> float:
    draw = random.Random(5)
    taken, rows = [], 0
    for number in range(_WARMING + _ASKED):
        query = make(things, draw)
        began = perf_counter()
        answer = desk.query(query)
        # The first few open the snapshot and warm its cache.
        if number >= _WARMING:
            taken.append((perf_counter() - began) * 1000)
            rows += answer.rows
    p99 = quantiles(taken, n=100)[98]
    print(f"{name:<34} p50 {median(taken):7.2f} ms  p99 {p99:7.2f} ms  {rows / _ASKED:7.1f} rows", flush=True)
    return p99
