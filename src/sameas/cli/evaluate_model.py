"""`sameas eval --model`: how good a language model is on a folder in Text2KGBench's layout."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import msgspec

from sameas.cli.model_options import ModelOptions
from sameas.cli.prompted import open_model_path
from sameas.extraction.learning.corpus import Part
from sameas.extraction.prompted.evaluation import Evaluation, ModelRow, shots_of, table
from sameas.settings import load_settings


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What is evaluated on what."""

    split: str
    texts: int | None
    shots: int
    options: ModelOptions
    json: bool


def evaluate(trial: Trial, parts: Sequence[Part]) -> None:
    """Ask the model about the sentences of each ontology and print its scores."""
    rows = [asyncio.run(_one(trial, part, several=len(parts) > 1)) for part in parts]
    if not trial.json:
        for line in table(rows):
            print(line)


async def _one(trial: Trial, part: Part, *, several: bool) -> ModelRow:
    index, ontology = part.index, part.index.ontology
    shots = shots_of(part, index) if trial.shots else []
    async with open_model_path(
        trial.options, ontology=ontology, settings=load_settings(), examples=shots, shots=trial.shots
    ) as path:
        evaluation = Evaluation(
            part, index, path.extractor, concurrency=trial.options.concurrency or 5, split=trial.split
        )
        row = await evaluation.run(texts=trial.texts)
    if trial.json:
        # Standard output is for programs: one line as soon as an ontology is done.
        print(msgspec.json.encode({"split": trial.split, "row": row}).decode(), flush=True)
    elif several:
        print(f"{part.name}: F1 {row.scores.f1:.3f}, {row.usage.calls} calls", file=sys.stderr)
    return row
