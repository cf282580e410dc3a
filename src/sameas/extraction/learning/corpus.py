"""A folder in Text2KGBench's layout: `ontologies/N_name_ontology.json`, `train/` and `validation/` beside
it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from sameas.extraction.learning.examples import Example, ExamplesError, read_examples
from sameas.extraction.learning.schema import Schema, read_text2kgbench_schema

_ONTOLOGY = "_ontology.json"


@dataclass(frozen=True, slots=True)
class Part:
    """One ontology with its examples to learn from and the path to the others."""

    name: str
    schema: Schema
    train: list[Example]
    folder: Path

    def held_out(self, split: str) -> list[Example]:
        """The examples of another split, without those whose text is also in train."""
        path = self.folder / split / f"ont_{self.name}_{split}.jsonl"
        if not path.is_file():
            raise ExamplesError(f"{path} is not there: the folder has no split {split!r} for {self.name}")
        known = {_plain(example.text) for example in self.train}
        return [
            example for example in read_examples(path, self.schema, unknown="keep") if _plain(example.text) not in known
        ]


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
        schema = read_text2kgbench_schema(path)
        train = read_examples(folder / "train" / f"ont_{name}_train.jsonl", schema, unknown="keep")
        parts.append(Part(name, schema, train, folder))
    return parts


def sample(examples: list[Example], limit: int | None, *, seed: int = 0) -> list[Example]:
    """So many of the examples, in their order, the same ones for the same seed; all of them without a
    limit.
    """
    if limit is None or limit >= len(examples):
        return list(examples)
    chosen = random.Random(seed).sample(range(len(examples)), limit)
    return [examples[i] for i in sorted(chosen)]
