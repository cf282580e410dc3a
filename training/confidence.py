"""Fits how sure a fact of the reader is (`sameas.extraction.extractors.reader.confidence`) on the validation domains.

python -m training.confidence DATA/trust

Every fact that the pipeline keeps is an observation: its signs, and whether the gold has it. A logistic regression
with a little shrinkage; printed are the constants for that file, and the figures over the domains left out in turn.
With --fitted the reader's heads are fitted to half of a domain's texts, and the other half is observed.
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
from sameas.extraction.extractors.reader.confidence import ALONE, Signs, judge
from sameas.extraction.extractors.reader.extractor import ReaderExtractor
from sameas.extraction.extractors.reader.reading import Reader
from sameas.ontology import OntologyIndex, load_ontology
from training.sources import VALIDATION, property_names

_SHRINK = 3.0
_STEP = 1e-7


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
            return round(max(judge(signs), 0.1), 2) * 0.99 + len(kept) * _STEP

        index = OntologyIndex(load_ontology(domain.ontology))
        if fitted:
            domain, examples = _halves(domain, index)
            extractor = fit_reader(examples, index, reader, how_sure=remember)
        else:
            extractor = ReaderExtractor(index, reader, digest="", judge_signs=remember)
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


def fit(signs: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Bias and weights, by Newton's steps."""
    rows = np.concatenate([np.ones((len(signs), 1)), signs], 1)
    weights = np.zeros(rows.shape[1])
    shrink = np.full(len(weights), _SHRINK)
    shrink[0] = 0.01
    for _ in range(30):
        sure = 1 / (1 + np.exp(-rows @ weights))
        gradient = rows.T @ (sure - right) + shrink * weights
        curve = (rows * (sure * (1 - sure))[:, None]).T @ rows + np.diag(shrink)
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
    from sameas.extraction.extractors.reader.finding import find_weights

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trust", type=Path)
    parser.add_argument("--fitted", action="store_true", help="after half of each domain was learned from")
    told = parser.parse_args()
    weights = find_weights()
    assert weights is not None, "the package of the weights is not there"
    report(observe(told.trust / "corpus", VALIDATION, Reader(weights), fitted=told.fitted))


def report(told: dict[str, tuple[np.ndarray, np.ndarray, int]]) -> np.ndarray:
    """Each domain judged by the others; then what all of them say."""
    sure, right = [], []
    for name, (signs, truth, _) in told.items():
        others = [one for other, one in told.items() if other != name]
        weights = fit(np.concatenate([one[0] for one in others]), np.concatenate([one[1] for one in others]))
        sure.append(predict(weights, signs))
        right.append(truth)
    show(np.concatenate(sure), np.concatenate(right), sum(one[2] for one in told.values()))
    weights = fit(np.concatenate([one[0] for one in told.values()]), np.concatenate(right))
    print("_BIAS =", round(float(weights[0]), 3))
    for name, weight in zip(Signs._fields, weights[1:], strict=True):
        print(f"    {name}={weight:.3f},")
    return weights


if __name__ == "__main__":
    main()
