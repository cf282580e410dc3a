"""An evaluation in a process of its own, to be killed: `... evaluation_process URL HOME DATA TEXTS`."""

import asyncio
import sys
from pathlib import Path

from sameas import open_async_store
from sameas.extraction.evaluation.prompted import Evaluation, ModelRow, shots_of
from sameas.extraction.extractors.learning.corpus import read_corpus
from sameas.extraction.extractors.prompted import ModelControl, ModelExtractor
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.memo import SCOPE, CallMemo
from sameas.llm.models import open_model
from sameas.once.async_engine import AsyncEngine
from sameas.once.policy import Policy
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import load_ontology

from .model_path import PLENTY


async def evaluate(url: str, home: str, data: str, texts: str) -> ModelRow:
    """Score the first texts of the movies, two at a time, with leases that end soon after a kill."""
    part = next(part for part in read_corpus(Path(data)) if part.name == "1_movie")
    index = OntologyIndex(load_ontology(Path(data) / "ontologies" / "1_movie_ontology.json"))
    model = open_model(f"{url}#tiny")
    async with open_async_store(f"sqlite:///{home}/sameas.db") as store:
        memo = CallMemo(AsyncEngine(store, policies={SCOPE: Policy(lease=1.0)}))
        control = ModelControl(limiter=CentralRateLimiterService(PLENTY), memo=memo)
        extractor = ModelExtractor(index, model, control=control, examples=shots_of(part, index))
        try:
            return await Evaluation(part, index, extractor, concurrency=2, split="validation").run(texts=int(texts))
        finally:
            await model.close()


if __name__ == "__main__":
    asyncio.run(evaluate(*sys.argv[1:]))
