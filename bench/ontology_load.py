"""How long an ontology takes to load: cold from its file, and from the cache. Prints a line per file."""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sameas.ontology import load_ontology

ROUNDS = 7
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "ontologies"


def milliseconds(work: Callable[[], object]) -> float:
    """The median of several runs."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def main(*arguments: str) -> int:
    """Measure the files given, or the reference ontologies."""
    paths = [Path(one) for one in arguments] or sorted(SHARED.glob("*.*"))
    if not paths:
        print("no ontology to measure; name one", file=sys.stderr)
        return 1
    print(f"{'file':<24}{'classes':>8}{'properties':>12}{'cold ms':>10}{'cached ms':>11}")
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            ontology = load_ontology(path, cache_dir=folder)
            cold = milliseconds(lambda path=path: load_ontology(path))  # type: ignore[misc]
            cached = milliseconds(lambda path=path, folder=folder: load_ontology(path, cache_dir=folder))  # type: ignore[misc]
        print(f"{path.name:<24}{len(ontology.classes):>8}{len(ontology.properties):>12}{cold:>10.1f}{cached:>11.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
