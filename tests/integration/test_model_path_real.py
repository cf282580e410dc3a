"""The whole path against a real model on loopback: 135 million parameters, which copy the form of their examples."""

import asyncio
from pathlib import Path

import pytest

from sameas import open_async_store
from sameas.extraction.extractors.learning.examples import Example, Triple
from sameas.extraction.extractors.prompted import ModelControl, ModelExtractor, PromptSettings
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.runs.service import Extraction, ExtractionService
from sameas.extraction.text.chunking import ChunkSettings
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.memo import CallMemo
from sameas.llm.models import open_model
from sameas.once.async_engine import AsyncEngine
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology
from tests.servers.real_model import CONTEXT_TOKENS, RealModelServer
from tests.unit.extraction.company import EX

from .model_path import stated

# Two classes and a property: three examples fit into the context beside them.
ONTOLOGY = f"""
@prefix : <{EX}> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Person a owl:Class ; rdfs:label "person" .
:Organization a owl:Class ; rdfs:label "organization" .
:worksFor a owl:ObjectProperty ; rdfs:label "works for" ; rdfs:domain :Person ; rdfs:range :Organization .
"""
INDEX = OntologyIndex(read_ontology(ONTOLOGY.encode(), extension=".ttl"))
EXAMPLES = [
    Example(f"{person} works for {company}.", (Triple(person, f"{EX}worksFor", company),))
    for person, company in [("Bob Reed", "Globex Ltd"), ("Carol Hill", "Initech Ltd"), ("Dan Wood", "Umbrella Ltd")]
]
TEXT = "Alice Stone works for Acme Robotics."
SAID = {("Alice Stone", "worksFor", "Acme Robotics")}


async def extract(
    server: RealModelServer,
    home: Path,
    *,
    text: str = TEXT,
    window: int = 8_000,
    stream: bool = False,
    tokens: int = 100,
    shots: int = 3,
) -> Extraction:
    model = open_model(server.address, api_key=server.api_key, stream=stream)
    settings = PromptSettings(mode="joint", max_output_tokens=tokens, repair_output_tokens=tokens, examples=shots)
    try:
        async with open_async_store(f"sqlite:///{home}/sameas.db") as store:
            control = ModelControl(limiter=CentralRateLimiterService(), memo=CallMemo(AsyncEngine(store)))
            extractor = ModelExtractor(INDEX, model, control=control, settings=settings, examples=EXAMPLES)
            return await ExtractionService(home=home, store=store).extract(
                text,
                ontology=INDEX.ontology,
                extractor=extractor,
                settings=PipelineSettings(chunking=ChunkSettings(window=window, limit=16_000)),
            )
    finally:
        await model.close()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_real_model_fills_the_graph_and_is_accounted_for(
    real_model_server: RealModelServer, tmp_path: Path, stream: bool
) -> None:
    done = asyncio.run(extract(real_model_server, tmp_path, stream=stream))
    assert (done.metadata.status, done.metadata.missing) == ("complete", ())
    assert stated(done) == SAID
    (row,) = done.metadata.usage
    assert (row.stage, row.calls, row.failed, row.unreported) == ("entity_extraction", 1, 0, 0)
    # Its own count of prompt and reply, which has the examples in it and the text.
    assert 500 < row.input_tokens < CONTEXT_TOKENS
    assert 30 < row.output_tokens < 100


def test_a_real_reply_that_is_cut_is_asked_for_again_and_then_missing(
    real_model_server: RealModelServer, tmp_path: Path
) -> None:
    cut = asyncio.run(extract(real_model_server, tmp_path, tokens=8, shots=0))
    assert [(gap.stage, gap.code) for gap in cut.metadata.missing] == [("entity_extraction", "truncated_reply")]
    (row,) = cut.metadata.usage
    assert (row.calls, row.output_tokens, row.unreported) == (2, 16, 0)
    assert stated(cut) == set()


def test_a_text_that_a_real_model_cannot_hold_is_refused_once_and_the_rest_is_there(
    real_model_server: RealModelServer, tmp_path: Path
) -> None:
    """The first sentence is a chunk of its own; the rest is one that is larger than the model's context."""
    text = f"{TEXT} And on{' and on' * CONTEXT_TOKENS}"
    part = asyncio.run(extract(real_model_server, tmp_path, text=text, window=len(TEXT)))
    assert part.metadata.status == "partial"
    assert [(gap.stage, gap.code, gap.start, gap.end) for gap in part.metadata.missing] == [
        ("entity_extraction", "bad_request", len(TEXT) + 1, len(text))
    ]
    assert stated(part) == SAID
    (row,) = part.metadata.usage
    assert (row.calls, row.failed, row.unreported) == (2, 1, 0)
    assert row.input_tokens < CONTEXT_TOKENS
