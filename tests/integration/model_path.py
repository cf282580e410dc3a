"""A document of people and companies, a scripted model that knows them, and the model path between the two."""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sameas import open_async_store
from sameas.extraction.events.events import Event
from sameas.extraction.extractors.prompted import ModelControl, ModelExtractor, PromptSettings
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.runs.record import run_policy
from sameas.extraction.runs.service import Extraction, ExtractionService, ServiceSettings
from sameas.extraction.text.chunking import ChunkSettings
from sameas.llm.account import RateLimits
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.memo import SCOPE, CallMemo
from sameas.llm.models import Model, open_model
from sameas.llm.prices import Price
from sameas.llm.supervisor import Backoff
from sameas.llm.timeouts import STAGE_TIMEOUTS, StageName, StageTimeout
from sameas.once.async_engine import AsyncEngine
from sameas.once.policy import Policy
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology
from tests.servers.model_oracle import Fact, Oracle
from tests.servers.model_server import ModelServer
from tests.unit.extraction.company import EX, ONTOLOGY, company_index

from .model_interfaces import opened

CHUNKS = ChunkSettings(window=20, limit=400)
PLENTY = RateLimits(requests_per_minute=1_000_000, tokens_per_minute=1_000_000_000, max_concurrent=4)
QUICK = Backoff(first=0.01, longest=0.05)
INDEX = company_index()
# With a class that no chunk is about.
VOLCANO = ':Volcano a owl:Class ; rdfs:subClassOf :Place ; rdfs:label "volcano" .\n'
LARGER = OntologyIndex(read_ontology((ONTOLOGY + VOLCANO).encode(), extension=".ttl"))
_SAID = re.compile(r"(\w+ Stone) works for (\w+ Robotics)")


def sentence(number: int) -> str:
    return f"Person{number} Stone works for Acme{number} Robotics."


def document(chunks: int, *, changed: Mapping[int, str] | None = None) -> str:
    """A paragraph, and so a chunk, for each number."""
    return "\n\n".join((changed or {}).get(number, sentence(number)) for number in range(chunks))


def facts(text: str) -> Iterable[Fact]:
    return [(match[1], "works for", match[2]) for match in _SAID.finditer(text)]


ORACLE = Oracle(facts)


def stated(extraction: Extraction) -> set[tuple[str, str, str]]:
    """The triples of a graph, by names."""
    names = {entity.id: entity.name for entity in extraction.graph.entities}
    return {
        (
            names[one.subject],
            one.predicate.removeprefix(EX),
            names.get(one.object) or str(one.value and one.value.value),
        )
        for one in extraction.graph.relations
    }


def expected(chunks: Iterable[int]) -> set[tuple[str, str, str]]:
    return {(f"Person{number} Stone", "worksFor", f"Acme{number} Robotics") for number in chunks}


@dataclass
class ModelPath:
    """The service and the extractor of one process."""

    service: ExtractionService
    extractor: ModelExtractor
    model: Model
    settings: PipelineSettings
    index: OntologyIndex
    events: list[Event] = field(default_factory=list)

    async def extract(
        self, text: str, *, on_event: Callable[[Event], None] | None = None, **options: Any
    ) -> Extraction:
        return await self.service.extract(
            text,
            ontology=self.index.ontology,
            extractor=self.extractor,
            settings=self.settings,
            on_event=on_event or self.events.append,
            **options,
        )

    def told(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@asynccontextmanager
async def model_path(
    server: ModelServer | str,
    home: Path,
    *,
    limits: RateLimits = PLENTY,
    control: Mapping[str, Any] | None = None,
    prompts: PromptSettings | None = None,
    with_memo: bool = True,
    timeouts: Mapping[StageName, StageTimeout] = STAGE_TIMEOUTS,
    timeout: float = 5.0,
    price: Price | None = None,
    index: OntologyIndex = INDEX,
    second: bool | ModelServer = False,
    limiter: CentralRateLimiterService | None = None,
    lease: float = 30.0,
    interface: str = "compatible",
) -> AsyncIterator[ModelPath]:
    """Everything real but the model: SQLite, files, HTTP on loopback."""
    root = server if isinstance(server, str) else server.url
    if isinstance(server, ModelServer) and interface != "compatible":
        model = opened(server, interface, timeout=timeout, price=price)
    else:
        model = open_model(f"{root}#tiny", timeout=timeout, price=price)
    there = second.url if isinstance(second, ModelServer) else root
    other = open_model(f"{there}#second", timeout=timeout, price=price) if second else None
    async with open_async_store(f"sqlite:///{home}/sameas.db") as store:
        extractor = ModelExtractor(
            index,
            model,
            control=ModelControl(
                limiter=limiter or CentralRateLimiterService(limits),
                memo=CallMemo(AsyncEngine(store, policies={SCOPE: Policy(lease=lease)})) if with_memo else None,
                backoff=QUICK,
                # Another server is another account.
                **{
                    "second_limiter": CentralRateLimiterService(limits) if isinstance(second, ModelServer) else None,
                    **(control or {}),
                },
            ),
            settings=prompts,
            grounding_model=other,
        )
        settings = PipelineSettings(chunking=CHUNKS, concurrency=limits.max_concurrent, timeouts=timeouts)
        try:
            service = ExtractionService(
                home=home, store=store, settings=ServiceSettings(policy=run_policy(lease=lease))
            )
            yield ModelPath(service, extractor, model, settings, index)
        finally:
            await model.close()
            if other is not None:
                await other.close()
