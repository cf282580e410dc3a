"""How well things of different documents are put together, in whatever order, and how true the probabilities are."""

import math
import random
import tempfile
from pathlib import Path
from time import perf_counter

from bench.collections.holding import fill, found, new_collection, put
from bench.collections.judging import Mention, judge, partition
from bench.collections.matchers import compare
from bench.collections.world import World
from sameas.collections import Collection

DOCUMENTS = 300
_ORDERS = 3
_CHANGES = 20


def measure() -> None:
    world = World(DOCUMENTS * 2, seed=31)
    documents = list(world.documents(DOCUMENTS, seed=32))
    truth = {(one.name, id_): thing for one in documents for id_, thing in one.truth.items()}
    partitions = set()
    print(f"{DOCUMENTS} generated documents, {len(truth)} entities of documents, {len(set(truth.values()))} things")
    for order in range(_ORDERS):
        with tempfile.TemporaryDirectory(prefix="sameas-bench-") as folder:
            collection = new_collection(Path(folder))
            began = perf_counter()
            fill(collection, random.Random(order).sample(documents, len(documents)))
            took = perf_counter() - began
            groups = found(collection)
            partitions.add(partition(groups))
            if order == 0:
                judged = judge(groups, truth)
                good = judged.precision >= 0.98 and judged.recall >= 0.90
                print(f"sameas: {judged}  ({took:.0f} s)  (.98 at .90: {'yes' if good else 'MISSED'})")
                _calibration(collection, truth)
    print(
        f"{_ORDERS} orders, different results: {len(partitions) - 1}  ({'yes' if len(partitions) == 1 else 'MISSED'})"
    )
    _random_changes(world)
    compare(documents, truth)


def _random_changes(world: World) -> None:
    draw = random.Random(5)
    pool = list(world.documents(120, seed=33))
    with tempfile.TemporaryDirectory(prefix="sameas-bench-") as one, tempfile.TemporaryDirectory() as other:
        collection, scratch = new_collection(Path(one)), new_collection(Path(other))
        present = {document.name: (document, 0) for document in pool[:90]}
        fill(collection, pool[:90])
        for step in range(1, _CHANGES + 1):
            document = draw.choice(pool)
            if document.name in present and draw.random() < 0.5:
                del present[document.name]
                collection.remove_name(document.name)
            else:
                changed = draw.choice(pool)
                present[document.name] = (type(document)(document.name, changed.graph, changed.truth), step)
                put(collection, present[document.name][0], version=step)
        for document, version in present.values():
            put(scratch, document, version=version)
        same = partition(found(collection)) == partition(found(scratch))
        print(f"{_CHANGES} random adds, changes and removals against from scratch: {'equal' if same else 'MISSED'}")


def _calibration(collection: Collection, truth: dict[Mention, int]) -> None:
    """Of the pairs of atoms that were given a probability, how many are one thing."""
    with collection.reading() as reader:
        rows = reader.session.run("judged_pairs", collection=collection.number)
    bins: dict[int, list[bool]] = {}
    for logit, a_name, a_id, b_name, b_id in rows:
        probability = 1 / (1 + math.exp(-logit))
        bins.setdefault(min(9, int(probability * 10)), []).append(truth[a_name, a_id] == truth[b_name, b_id])
    print("probability given -> share that are one (pairs):")
    for one, right in sorted(bins.items()):
        print(f"  {one / 10:.1f} to {one / 10 + 0.1:.1f}: {sum(right) / len(right):.2f} ({len(right)})")
