"""Questions to a collection: five usual shapes of SPARQL at 1,000,000 statements, each asked as the service asks it.

    ./run bench questions [STATEMENTS]

The statements are generated: companies, people and cities, each fact in the resolved view and in the graph of a document.
A query goes to a process that holds a snapshot, and its answer comes back as JSON; the floor is the same query in this
process, without a bound on anything.
"""

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median, quantiles

from sameas.collections.model import CollectionEvidence, EntityInfo, Statement
from sameas.questions.graph import CollectionGraph
from sameas.questions.process import Asked, QueryLimits
from sameas.questions.runner import QueryRunner

BASE = "https://example.org/kg/"
NS = "https://example.org/company#"
PREFIXES = {"": NS, "this": BASE, "rdfs": "http://www.w3.org/2000/01/rdf-schema#"}
FACTS_EACH = 10
IN_A_DOCUMENT = 100
ASKED = 200
TARGET_MS = 50.0


def main(statements: str = "1000000") -> None:
    import pyoxigraph

    wanted = int(statements)
    with tempfile.TemporaryDirectory(prefix="sameas-bench-") as folder:
        began = time.perf_counter()
        store = pyoxigraph.Store(str(Path(folder) / "store"))
        world = _World(wanted)
        quads = world.quads()
        while batch := list(islice(quads, 100_000)):
            store.bulk_extend(batch)
        store.flush()
        store.optimize()
        built = time.perf_counter() - began
        began = time.perf_counter()
        snapshot = Path(folder) / "snapshot"
        store.backup(str(snapshot))
        taken = time.perf_counter() - began
        print(f"{world.facts} statements, {len(store)} quads: made in {built:.0f} s, snapshot in {taken * 1000:.0f} ms")
        runner = QueryRunner(processes=1)
        try:
            worst = max(_measure(name, make, snapshot, runner, store, world) for name, make in SHAPES.items())
        finally:
            runner.close()
    print(
        f"p99 of the slowest shape {worst:.1f} ms (under {TARGET_MS:.0f} ms: {'yes' if worst < TARGET_MS else 'MISSED'})"
    )


def _measure(name, make, snapshot, runner, store, world) -> float:  # type: ignore[no-untyped-def]
    rng = random.Random(5)
    queries = [make(world, rng) for _ in range(ASKED + 5)]
    limits = QueryLimits(seconds=30)
    floors, ours, rows = [], [], 0
    for number, query in enumerate(queries):
        began = time.perf_counter()
        list(store.query(query, prefixes=PREFIXES))
        floor = time.perf_counter() - began
        began = time.perf_counter()
        answer = runner.run(Asked(str(snapshot), query, PREFIXES, limits))
        mine = time.perf_counter() - began
        # The first few open the snapshot and warm its cache.
        if number >= 5:
            floors.append(floor * 1000)
            ours.append(mine * 1000)
            rows += answer.rows
    p99 = quantiles(ours, n=100)[98]
    print(
        f"{name:<34} p50 {median(ours):7.2f} ms  p99 {p99:7.2f} ms  floor p50 {median(floors):7.2f} ms  "
        f"p99 {quantiles(floors, n=100)[98]:7.2f} ms  {rows / ASKED:6.1f} rows"
    )
    return p99


class _World:
    """Things with ten facts each."""

    def __init__(self, statements: int) -> None:
        things = max(20, statements // FACTS_EACH)
        self.people = things // 2
        self.companies = things - self.people
        self.cities = max(10, things // 20)
        self.facts = 0

    def quads(self) -> Iterator[object]:
        rng = random.Random(3)
        graph = CollectionGraph(base=BASE)
        for number in range(self.cities):
            yield from graph.described(_thing("city", number, "City"))
        for number in range(self.companies):
            yield from graph.described(_thing("company", number, "Company"))
            yield from graph.stated(list(self._company(number, rng)))
        for number in range(self.people):
            yield from graph.described(_thing("person", number, "Person"))
            yield from graph.stated(list(self._person(number, rng)))

    def _company(self, number: int, rng: random.Random) -> Iterator[Statement]:
        yield self._fact("company", number, "headquarters", f"city-{rng.randrange(self.cities)}")
        yield self._fact("company", number, "chiefExecutive", f"person-{rng.randrange(self.people)}")
        for _ in range(FACTS_EACH - 2):
            predicate = rng.choice(("acquired", "partnerOf", "supplierOf", "competitorOf", "investedIn"))
            yield self._fact("company", number, predicate, f"company-{rng.randrange(self.companies)}")

    def _person(self, number: int, rng: random.Random) -> Iterator[Statement]:
        yield self._fact("person", number, "birthPlace", f"city-{rng.randrange(self.cities)}")
        for _ in range(FACTS_EACH - 1):
            predicate = rng.choice(("worksFor", "boardMember", "founder"))
            yield self._fact("person", number, predicate, f"company-{rng.randrange(self.companies)}")

    def _fact(self, kind: str, number: int, predicate: str, object_: str) -> Statement:
        self.facts += 1
        document = f"sha256-{self.facts // IN_A_DOCUMENT:064x}"
        evidence = (CollectionEvidence(document=document, start=0, end=1, text=""),)
        return Statement(subject=f"{kind}-{number}", predicate=NS + predicate, object=object_, evidence=evidence)


def _thing(kind: str, number: int, class_: str) -> EntityInfo:
    id_ = f"{kind}-{number}"
    return EntityInfo(id=id_, iri=BASE + id_, name=f"{class_} {number}", types=(NS + class_,))


Shape = Callable[[_World, random.Random], str]

SHAPES: dict[str, Shape] = {
    "one thing, all its facts": lambda world, rng: (
        f"SELECT ?p ?o {{ this:company-{rng.randrange(world.companies)} ?p ?o }}"
    ),
    "a thing by its name": lambda world, rng: (
        f'SELECT ?c ?city {{ ?c rdfs:label "Company {rng.randrange(world.companies)}" ; :headquarters ?city }}'
    ),
    "two steps away": lambda world, rng: (
        f"SELECT ?who ?name {{ this:company-{rng.randrange(world.companies)} :partnerOf|:acquired ?c . "
        "?c :chiefExecutive ?who . ?who rdfs:label ?name }"
    ),
    "who is in a city, and how many": lambda world, rng: (
        f"SELECT ?class (COUNT(*) AS ?n) {{ ?x :headquarters|:birthPlace this:city-{rng.randrange(world.cities)} ; "
        "a ?class } GROUP BY ?class"
    ),
    "a fact with its documents": lambda world, rng: (
        f"SELECT ?p ?o ?doc {{ GRAPH ?doc {{ this:person-{rng.randrange(world.people)} ?p ?o }} }}"
    ),
}


if __name__ == "__main__":
    main()
