"""Fits how sure a fact of the reader is (`sameas.extraction.extractors.reader.confidence`) on the validation domains.

python -m training.confidence DATA/trust [--own training/corpus]

Every fact that the pipeline keeps is an observation: its signs, and whether the gold has it. A logistic regression
with a little shrinkage; printed are the constants for that file, and the figures over the domains left out in turn.
The domains of our own corpus that the weights have not seen count a third of those: their texts are harder than most.
With --fitted the reader's heads are fitted to half of a domain's texts, and the other half is observed; the weights
are held near those of the reader as it came.
"""

import argparse
import asyncio
import random
from collections import defaultdict
from pathlib import Path

import msgspec
import numpy as np

from sameas.extraction.evaluation import Domain, judge_documents, read_domains
from sameas.extraction.evaluation.reader_learning import fit_reader
from sameas.extraction.extractors.learning.examples import Example, Triple
from sameas.extraction.extractors.reader import confidence
from sameas.extraction.extractors.reader.confidence import ALONE, Signs, judge
from sameas.extraction.extractors.reader.extractor import ReaderExtractor
from sameas.extraction.extractors.reader.reading import Reader
from sameas.ontology import OntologyIndex, load_ontology
from training.sources import UNSEEN, VALIDATION, property_names

_SHRINK = 3.0
_STEP = 1e-7
_LEAST = 0.03
_UNSEEN_COUNTS = 0.3
_HELD = 30.0


def observe(
    folder: Path, names: tuple[str, ...], reader: Reader, *, fitted: bool = False
) -> dict[str, tuple[np.ndarray, np.ndarray, int]]:
    """For each domain the signs of stated facts, whether each is right, and how many facts there are."""
    told: dict[str, tuple[np.ndarray, np.ndarray, int]] = {}
    for domain in read_domains(folder):
        if domain.name not in names:
            continue
        kept: list[Signs] = []

        def remember(signs: Signs, iri: str, kept: list[Signs] = kept) -> float:
            # Its number comes back as the last digits of the confidence.
            kept.append(signs)
            return round(max(judge(signs), _LEAST), 2) * 0.99 + len(kept) * _STEP

        index = OntologyIndex(load_ontology(domain.ontology))
        if fitted:
            domain, examples = _halves(domain, index)
            extractor = fit_reader(examples, index, reader, how_sure=remember)
        else:
            extractor = ReaderExtractor(index, reader, digest="", judge_signs=remember, kept_from=_LEAST)
        judged = asyncio.run(judge_documents(domain, index, extractor))
        signs, right = [], []
        for one in judged:
            for fact in one.stated:
                number = round((fact.confidence * 1e4 % 1) * 1e-4 / _STEP)
                if fact.confidence not in ALONE.values():
                    signs.append(kept[number - 1])
                    right.append(fact.is_right)
        there = sum(one.missed + sum(fact.is_right for fact in one.stated) for one in judged)
        told[domain.name] = (np.array(signs), np.array(right, float), there)
    return told


def _halves(domain: Domain, index: OntologyIndex) -> tuple[Domain, list[Example]]:
    """One half of the texts to observe, the other as examples."""
    documents = random.Random(7).sample(domain.documents, len(domain.documents))
    names = property_names(index)
    half = len(documents) // 2
    examples = [
        Example(one.text, tuple(Triple(first, names[name], other) for first, name, other in one.triples))
        for one in documents[:half]
    ]
    return msgspec.structs.replace(domain, documents=tuple(documents[half:])), examples


def fit(signs: np.ndarray, right: np.ndarray, counts: np.ndarray, held: np.ndarray | None = None) -> np.ndarray:
    """Bias and weights, by Newton's steps; `held` are weights that they stay near."""
    rows = np.concatenate([np.ones((len(signs), 1)), signs], 1)
    start = np.zeros(rows.shape[1]) if held is None else held
    weights = start.copy()
    shrink = np.full(len(weights), _SHRINK if held is None else _HELD)
    shrink[0] = 0.01 if held is None else _HELD / 10
    for _ in range(30):
        sure = 1 / (1 + np.exp(-rows @ weights))
        gradient = rows.T @ (counts * (sure - right)) + shrink * (weights - start)
        curve = (rows * (counts * sure * (1 - sure))[:, None]).T @ rows + np.diag(shrink)
        weights -= np.linalg.solve(curve, gradient)
    return weights


def predict(weights: np.ndarray, signs: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-(weights[0] + signs @ weights[1:])))


def show(sure: np.ndarray, right: np.ndarray, there: int) -> None:
    bins: dict[int, list[float]] = defaultdict(list)
    for one, is_right in zip(sure, right, strict=True):
        bins[min(9, int(one * 10))].append(one - is_right)
    print(f"calibration error {sum(abs(sum(some)) for some in bins.values()) / len(sure):.3f}, {there} facts")
    for least in (0.0, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8):
        kept = sure >= least
        found = right[kept].sum()
        print(f"  from {least:.2f}: P {found / max(1, kept.sum()):.3f} R {found / there:.3f} ({kept.sum()} stated)")


def main() -> None:
    from sameas.extraction.extractors.embedded import find_weights

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trust", type=Path)
    parser.add_argument("--fitted", action="store_true", help="after half of each domain was learned from")
    parser.add_argument("--own", type=Path, help="our own corpus, for its domains that the weights have not seen")
    told = parser.parse_args()
    weights = find_weights()
    assert weights is not None, "the package of the weights is not there"
    reader = Reader(weights)
    seen = observe(told.trust / "corpus", VALIDATION, reader, fitted=told.fitted)
    if told.own is not None and not told.fitted:
        seen |= observe(told.own, UNSEEN, reader)
    report(seen, held=np.array([confidence.BIAS, *confidence.WEIGHTS]) if told.fitted else None)


def report(told: dict[str, tuple[np.ndarray, np.ndarray, int]], *, held: np.ndarray | None) -> None:
    """Each domain judged by the others, those of the validation shown; then what all of them say."""
    counts = {name: np.full(len(one[1]), 1.0 if name in VALIDATION else _UNSEEN_COUNTS) for name, one in told.items()}
    sure, right = [], []
    for name in VALIDATION:
        others = [other for other in told if other != name]
        weights = _fit_all(told, others, counts, held)
        sure.append(predict(weights, told[name][0]))
        right.append(told[name][1])
    show(np.concatenate(sure), np.concatenate(right), sum(told[name][2] for name in VALIDATION))
    weights = _fit_all(told, list(told), counts, held)
    print("BIAS =", round(float(weights[0]), 3))
    for name, weight in zip(Signs._fields, weights[1:], strict=True):
        print(f"    {name}={weight:.3f},")


def _fit_all(
    told: dict[str, tuple[np.ndarray, np.ndarray, int]],
    names: list[str],
    counts: dict[str, np.ndarray],
    held: np.ndarray | None,
) -> np.ndarray:
    return fit(
        *(np.concatenate([one[name] for name in names]) for one in (_part(told, 0), _part(told, 1), counts)), held
    )


def _part(told: dict[str, tuple[np.ndarray, np.ndarray, int]], number: int) -> dict[str, np.ndarray]:
    return {name: one[number] for name, one in told.items()}  # type: ignore[misc]


if __name__ == "__main__":
    main()
