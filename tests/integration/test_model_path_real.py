"""The whole path against a real model on loopback: small enough to be wrong, which is what the guard is for."""

import asyncio
from pathlib import Path

from sameas import open_async_store
from sameas.extraction.chunking import ChunkSettings
from sameas.extraction.pipeline import PipelineSettings
from sameas.extraction.prompted import ModelControl, ModelExtractor, PromptSettings
from sameas.extraction.service import Extraction, ExtractionService
from sameas.identity.key import normalize_text
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.memo import CallMemo
from sameas.llm.models import open_model
from sameas.once.async_engine import AsyncEngine
from tests.servers.real_model import RealModelServer
from tests.unit.extraction.company import company_index

INDEX = company_index()
TEXT = "Alice Stone works for Acme Robotics."


async def extract(server: RealModelServer, home: Path, *, settings: PromptSettings) -> Extraction:
    model = open_model(server.address, api_key=server.api_key)
    try:
        async with open_async_store(f"sqlite:///{home}/sameas.db") as store:
            control = ModelControl(limiter=CentralRateLimiterService(), memo=CallMemo(AsyncEngine(store)))
            extractor = ModelExtractor(INDEX, model, control=control, settings=settings)
            return await ExtractionService(home=home, store=store).extract(
                TEXT,
                ontology=INDEX.ontology,
                extractor=extractor,
                settings=PipelineSettings(chunking=ChunkSettings(window=50)),
            )
    finally:
        await model.close()


def test_a_real_model_is_asked_accounted_for_and_not_believed(
    real_model_server: RealModelServer, tmp_path: Path
) -> None:
    # Few tokens: whether the reply is whole or cut off is up to the model, and either must end well.
    settings = PromptSettings(max_output_tokens=60, repair_output_tokens=90)
    first = asyncio.run(extract(real_model_server, tmp_path, settings=settings))
    metadata = first.metadata
    used = [row for row in metadata.usage if row.calls]
    assert used
    assert all(row.unreported == 0 and row.input_tokens > 100 * row.calls for row in used)
    assert metadata.status == ("partial" if metadata.missing else "complete")
    for entity in first.graph.entities:
        assert set(entity.types) <= INDEX.classes.keys()
        assert all(normalize_text(TEXT)[one.start : one.end] == one.text for one in entity.mentions)
    for relation in first.graph.relations:
        assert relation.predicate in INDEX.properties
