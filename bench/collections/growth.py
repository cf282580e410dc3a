"""What one more document costs in a small collection and in a large one, what the large one answers, and its export.

The documents are extraction results that are put in directly: what is measured is the collection, not the reading. Both
figures come from the same process and the same file, and count the commit to the disk.
"""

import resource
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.collections.asking import ask
from bench.collections.holding import new_collection, put
from bench.collections.world import World, Written
from sameas.collections import Collection

STATEMENTS = 100
_PROBES = 25
_SMALL = 100


def measure(documents: int = 10_000, *, target: float = 1.5) -> None:
    # The same world for both: a small collection has the first documents of the large one.
    world = World(documents * 2, seed=11)
    written = world.documents(documents + 2 * _PROBES, statements=STATEMENTS, seed=12)
    with tempfile.TemporaryDirectory(prefix="sameas-bench-") as folder:
        (Path(folder) / "small").mkdir()
        collection, few = new_collection(Path(folder)), new_collection(Path(folder) / "small")
        first = list(islice(written, _SMALL))
        _fill(few, first)
        began = perf_counter()
        _fill(collection, first)
        _fill(collection, islice(written, documents - _SMALL))
        filled = perf_counter() - began
        # They take turns: on a machine that others use too, two figures from two hours cannot be compared.
        small, large = _probe((few, collection), written)
        info = collection.info()
        print(f"documents {info.documents}, statements put in {info.claims}, things {info.entities}")
        print(f"filling took {filled:.0f} s")
        ratio = large / small
        verdict = "yes" if ratio <= target else "MISSED"
        print(
            f"one more document: {small * 1e3:.1f} ms at {_SMALL}, {large * 1e3:.1f} ms at {info.documents}: "
            f"{ratio:.2f}x  (at most {target}x: {verdict})",
            flush=True,
        )
        _export(collection, Path(folder) / "out.nq")
        ask(collection, Path(folder) / "questions")
        size = sum(file.stat().st_size for file in Path(folder).glob("collections.db*")) / 1e6
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"the file takes {size:.0f} MB; peak memory {peak:.0f} MB  (under 1024 MB: {'yes' if peak < 1024 else 'MISSED'})"
        )


def _fill(collection: Collection, documents: Iterable[Written]) -> None:
    for document in documents:
        put(collection, document)


def _probe(collections: Sequence[Collection], written: Iterator[Written]) -> list[float]:
    """The median seconds that one more document takes in each."""
    times: list[list[float]] = [[] for _ in collections]
    for document in islice(written, _PROBES):
        for collection, taken in zip(collections, times, strict=True):
            began = perf_counter()
            put(collection, document)
            taken.append(perf_counter() - began)
    return [median(taken) for taken in times]


def _export(collection: Collection, target: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = perf_counter()
    with target.open("wb") as file:
        collection.export(file, to="nquads")
    took = perf_counter() - began
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"export as N-Quads: {target.stat().st_size / 1e6:.0f} MB in {took:.0f} s, {more:.0f} MB more at the peak")
