"""What an extractor is scored on: a folder in Text2KGBench's layout, or a file of examples with any ontology.

A folder has `ontologies/N_name_ontology.json`, `train/` and other splits beside it. A split whose lines are sentences
alone has its answers in `ground_truth/`, joined by id. The ontology is read as `extract` reads it, so that what is
scored is what users get.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from sameas.extraction.extractors.learned import schema_of
from sameas.extraction.extractors.learning.examples import Example, ExamplesError, read_answers, read_examples
from sameas.extraction.extractors.learning.schema import Schema
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import load_ontology

_ONTOLOGY = "_ontology.json"
_ANSWERS = "ground_truth"
# Which examples of a file are learned from where no other file is given: four of five.
_PARTS = 5


@dataclass(frozen=True, slots=True)
class Part:
    """One ontology with its examples to learn from and the way to the others."""

    name: str
    ontology: Path
    index: OntologyIndex
    schema: Schema
    train: list[Example]
    folder: Path | None = None
    others: list[Example] = field(default_factory=list)

    def held_out(self, split: str) -> list[Example]:
        """The examples of another split, without those whose text is also in train."""
        found = self.others if self.folder is None else self._read(self.folder, split)
        known = {_plain(example.text) for example in self.train}
        return [example for example in found if _plain(example.text) not in known]

    def _read(self, folder: Path, split: str) -> list[Example]:
        path = folder / split / f"ont_{self.name}_{split}.jsonl"
        if not path.is_file():
            raise ExamplesError(f"{path} is not there: the folder has no split {split!r} for {self.name}")
        answers = folder / _ANSWERS / f"ont_{self.name}_{_ANSWERS}.jsonl"
        given = read_answers(answers) if answers.is_file() else None
        return read_examples(path, self.schema, unknown="keep", answers=given)


def _plain(text: str) -> str:
    return " ".join(text.split()).lower()


def _number(path: Path) -> tuple[int, str]:
    first = path.name.split("_", 1)[0]
    return (int(first) if first.isdigit() else 0, path.name)


def read_corpus(folder: Path) -> list[Part]:
    """All ontologies of a folder, in their order."""
    paths = sorted((folder / "ontologies").glob(f"*{_ONTOLOGY}"), key=_number)
    if not paths:
        raise ExamplesError(f"{folder} has no ontologies/*{_ONTOLOGY}; give a folder in Text2KGBench's layout")
    parts = []
    for path in paths:
        name = path.name.removesuffix(_ONTOLOGY)
        index = OntologyIndex(load_ontology(path))
        schema = schema_of(index)
        train = read_examples(folder / "train" / f"ont_{name}_train.jsonl", schema, unknown="keep")
        parts.append(Part(name, path, index, schema, train, folder))
    return parts


def read_part(examples: Path, ontology: Path, *, train: Path | None = None, seed: int = 0) -> Part:
    """One file of examples to score with any ontology, learned from another file.

    Without the other file, a fifth of the examples is scored and the rest is learned from; the seed deals them.
    """
    index = OntologyIndex(load_ontology(ontology))
    schema = schema_of(index)
    scored = read_examples(examples, schema, unknown="keep")
    learned = read_examples(train, schema, unknown="keep") if train is not None else []
    if train is None:
        dealt = set(random.Random(seed).sample(range(len(scored)), len(scored) // _PARTS))
        learned = [one for number, one in enumerate(scored) if number not in dealt]
        scored = [one for number, one in enumerate(scored) if number in dealt]
    part = Part(examples.stem, ontology, index, schema, learned, None, scored)
    if not part.held_out(""):
        raise ExamplesError(f"{examples.name} has no example to score whose text is not learned from; give more")
    return part


def sample(examples: Iterable[Example], limit: int | None, *, seed: int = 0) -> list[Example]:
    """So many of the examples, in their order, the same ones for the same seed; all of them without a
    limit.
    """
    found = list(examples)
    if limit is None or limit >= len(found):
        return found
    chosen = random.Random(seed).sample(range(len(found)), limit)
    return [found[i] for i in sorted(chosen)]
