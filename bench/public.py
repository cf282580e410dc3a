"""Ontologies as they are published, on texts that fit them (`bench/public_texts`): `./run bench public`.

What a careful reader would mark in each text is written beside it. The ontologies are those of the shared data folder.
"""

import asyncio
import sys
from pathlib import Path

import msgspec

from sameas.cli.extractors import choose_extractor
from sameas.extraction.evaluation import Domain, GoldDocument, Judged, judge_documents, report_of
from sameas.extraction.evaluation.report import Figures
from sameas.extraction.extractors.confidence import least_confidence
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import load_ontology

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "ontologies"
TEXTS = Path(__file__).parent / "public_texts"
PRECISION, RECALL = 0.85, 0.4


def read_texts(path: Path) -> tuple[GoldDocument, ...]:
    return tuple(msgspec.json.decode(line, type=GoldDocument) for line in path.read_bytes().splitlines())


def judge_public(folder: Path) -> dict[str, list[Judged]]:
    """Each ontology's texts, read as `extract` would."""
    found: dict[str, list[Judged]] = {}
    for path in sorted(TEXTS.glob("*.jsonl")):
        ontology = next(folder.glob(f"{path.stem}.*"))
        index = OntologyIndex(load_ontology(ontology))
        extractor = choose_extractor(index.ontology, path=ontology)
        domain = Domain(path.stem, ontology, read_texts(path), None)
        least = least_confidence(extractor.name, None)
        found[path.stem] = asyncio.run(judge_documents(domain, index, extractor, min_confidence=least))
    return found


def line(name: str, figures: Figures) -> str:
    return f"{name:<24}{figures.precision:>7.3f}{figures.recall:>7.3f}{figures.f1:>7.3f}"


def main(folder: str = str(SHARED)) -> int:
    """Print the figures of each ontology and of all."""
    if not Path(folder).is_dir():
        print(f"no ontologies in {folder}; name a folder of published ones", file=sys.stderr)
        return 1
    judged = judge_public(Path(folder))
    print(f"{'ontology':<24}{'P':>7}{'R':>7}{'F1':>7}")
    for name, some in judged.items():
        print(line(name, report_of(some).whole))
    whole = report_of([one for some in judged.values() for one in some]).whole
    print(f"{line('public ontologies', whole)}  (wanted {PRECISION:.2f} / {RECALL:.2f})", flush=True)
    return 0
