"""A service in a temporary folder, and an extractor that counts its calls and can be made to wait or fail."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sameas import open_async_store
from sameas.extraction.extractors.contract import ChunkFailedError, Found
from sameas.extraction.extractors.lexicon import LexiconExtractor
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.runs.record import run_policy
from sameas.extraction.runs.service import Extraction, ExtractionService, ServiceSettings
from sameas.extraction.text.chunking import Chunk, ChunkSettings
from sameas.ontology.focus import Focus
from tests.unit.extraction.company import TEXT, company_index

INDEX = company_index()
ONTOLOGY = INDEX.ontology
SMALL = PipelineSettings(chunking=ChunkSettings(window=60, limit=200))
LONG = "\n\n".join(TEXT.replace("Acme", f"Acme{number}").replace("Alice", f"Al{number}ice") for number in range(8))

# No two chunks of it are alike.
DISTINCT = "\n\n".join(
    f"Anna{n} Stone works for Acme{n} Ltd. The founder of the company Globex{n} is Hank{n} Scorpio. "
    f"Anna{n} Stone was born in Paris{n} on 1 May 19{n + 10}."
    for n in range(40)
)


class CountingExtractor:
    """The lexicon, with a look at every chunk it is asked about."""

    name = "counting"
    version = "1"

    def __init__(self, *, settings: Mapping[str, Any] | None = None) -> None:
        self.settings: Mapping[str, Any] = settings or {}
        self.asked: list[str] = []
        self.fails_on: set[str] = set()
        self.breaks = False
        self.reached = asyncio.Event()
        self.gate: asyncio.Event | None = None
        self.before: Callable[[Chunk], None] = lambda chunk: None
        self._inner = LexiconExtractor(INDEX)

    async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
        self.asked.append(chunk.text)
        self.before(chunk)
        self.reached.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.breaks:
            raise RuntimeError("the extractor is broken")
        if any(word in chunk.text for word in self.fails_on):
            raise ChunkFailedError("overloaded", "try again later")
        return await self._inner.extract_entities(chunk, focus)

    async def extract_relations(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> Found[Claim]:
        return await self._inner.extract_relations(chunk, mentions, focus)


def make_service(home: Path, **options: Any) -> ExtractionService:
    """A service on the SQLite store of a folder."""
    home.mkdir(parents=True, exist_ok=True)
    lease = options.pop("lease", 30.0)
    settings = ServiceSettings(policy=run_policy(lease=lease), **options.pop("bounds", {}))
    store = open_async_store(f"sqlite:///{home}/sameas.db")
    return ExtractionService(home=home, store=store, settings=settings, **options)


async def extract(
    service: ExtractionService, extractor: CountingExtractor, text: str | Iterable[str] = TEXT, **options: Any
) -> Extraction:
    options.setdefault("ontology", ONTOLOGY)
    return await service.extract(text, extractor=extractor, **options)


def same_files(one: Path, other: Path) -> bool:
    """Whether two runs have the same artefacts, byte for byte."""
    names = ("entities.json", "relations.json", "graph.ttl", "rejected.json")
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)
