"""How good and how fast extraction is with a model learned from examples, against the figures it must reach.

Each of the ten ontologies is learned from its train part alone, with all, 100 and 30 examples, from a prior made of the
other nine; the whole pipeline is scored on validation, texts that are also in train left out. Seconds and rates are of
processor time.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sameas.extraction.evaluation.learned import Row, average, measure, priors
from sameas.extraction.extractors.learning.corpus import read_corpus

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "text2kgbench"
SECONDS, BYTES, RATE = 30.0, 1_000_000, 500.0


class Target(NamedTuple):
    """What the mean over the ontologies must reach with so many examples each."""

    examples: int | None
    f1: float
    micro_f1: float
    conformance: float = 0.97


TARGETS = (Target(None, 0.46, 0.44), Target(100, 0.39, 0.37), Target(30, 0.31, 0.28))


def line(row: Row, target: Target) -> str:
    """The row of an ontology, or of the mean."""
    scores = row.scores
    return (
        f"{row.name:<14}{target.examples or 'all':>9}{scores.f1:>8.3f}{scores.micro_f1:>8.3f}{scores.conformance:>7.3f}"
        f"{row.seconds:>9.1f}{row.size:>9}{row.rate:>8.0f}"
    )


def verdicts(rows: list[Row], target: Target) -> Iterator[str]:
    """The mean against its targets, and the worst ontology against the limits."""
    scores = average(rows).scores
    figures = (
        ("F1", scores.f1, target.f1, scores.f1 >= target.f1),
        ("micro-F1", scores.micro_f1, target.micro_f1, scores.micro_f1 >= target.micro_f1),
        ("conformance", scores.conformance, target.conformance, scores.conformance >= target.conformance),
        ("longest training, s", max(row.seconds for row in rows), SECONDS, max(row.seconds for row in rows) <= SECONDS),
        ("largest model, bytes", max(row.size for row in rows), BYTES, max(row.size for row in rows) <= BYTES),
        ("mean sentences/s", average(rows).rate, RATE, average(rows).rate >= RATE),
    )
    for name, found, wanted, is_met in figures:
        yield f"  {name:<24}{found:>12.3f}{wanted:>14.3f}  {'met' if is_met else 'MISSED'}"


def main(folder: str = str(SHARED)) -> int:
    """Print the rows of the ten ontologies and what they come to."""
    if not Path(folder).is_dir():
        print(f"no data in {folder}; name a folder in Text2KGBench's layout", file=sys.stderr)
        return 1
    parts = read_corpus(Path(folder))
    starts = list(priors(parts, which="others"))
    print(f"{'ontology':<14}{'examples':>9}{'F1':>8}{'mF1':>8}{'conf':>7}{'learn s':>9}{'bytes':>9}{'sent/s':>8}")
    for target in TARGETS:
        rows = []
        for part, prior in zip(parts, starts, strict=True):
            rows.append(measure(part, prior, limit=target.examples, split="validation", seed=0))
            print(line(rows[-1], target), flush=True)
        print(line(average(rows), target), *verdicts(rows, target), sep="\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
