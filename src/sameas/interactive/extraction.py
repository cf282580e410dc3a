"""`sameas.extract` and `sameas.aextract`: documents in, a result out, with the settings in force.

Rule: it is the work of `sameas extract`, with its store, its runs and its extractors: what the command line did is not
done again here, nor the other way round.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterable
from contextlib import AsyncExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from sameas.cli.extract_options import ModelOptions
from sameas.cli.extractors import ExtractorName, choose_extractor, model_from
from sameas.cli.registry import find_ontology
from sameas.cli.service import open_service
from sameas.extraction.extractors.contract import Extractor
from sameas.extraction.outputs import OutputFormat
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.runs.service import ExtractionService
from sameas.extraction.text.document import DocumentPlaces
from sameas.identity.errors import SameasError
from sameas.interactive.documents import Given, GivenDocument, documents_of, read_given
from sameas.interactive.result import DocumentResult, Result
from sameas.ontology.load import load_ontology
from sameas.ontology.model import Ontology
from sameas.settings import Settings, load_settings

T = TypeVar("T")


class EmptyDocumentError(SameasError, ValueError):
    """A document has no text."""


def extract(
    documents: GivenDocument | Iterable[GivenDocument],
    *,
    ontology: str | os.PathLike[str] | Ontology,
    model: str | None = None,
    examples: str | os.PathLike[str] | None = None,
    extractor: ExtractorName | None = None,
    base: str | None = None,
    min_confidence: float | None = None,
    max_tokens: int | None = None,
    max_cost: Decimal | float | None = None,
    concurrency: int | None = None,
) -> Result:
    """The entities and relations of a document, or of several; the same work a second time is a replay.

    A document is a path, a pattern of paths, a text, or a document of LangChain or LlamaIndex. `ontology` is a file or
    the name of one that was added. `model` is a language model such as `openai:gpt-5-mini`, under `max_tokens` and
    `max_cost` for each document; without it the learned model, the reader or the lexicon extract. `examples` is a file
    to learn from, or to show the language model. Works where an event loop is running, too.

    Raises `DocumentError` for what cannot be read, `OntologyError` for an ontology that cannot, `ValueError` for
    options that do not fit together, `ModelError` if a model cannot be asked, and `StoreError` if the store is away.
    """
    work = aextract(
        documents,
        ontology=ontology,
        model=model,
        examples=examples,
        extractor=extractor,
        base=base,
        min_confidence=min_confidence,
        max_tokens=max_tokens,
        max_cost=max_cost,
        concurrency=concurrency,
    )
    return to_its_end(work)


async def aextract(
    documents: GivenDocument | Iterable[GivenDocument],
    *,
    ontology: str | os.PathLike[str] | Ontology,
    model: str | None = None,
    examples: str | os.PathLike[str] | None = None,
    extractor: ExtractorName | None = None,
    base: str | None = None,
    min_confidence: float | None = None,
    max_tokens: int | None = None,
    max_cost: Decimal | float | None = None,
    concurrency: int | None = None,
) -> Result:
    """`extract` for a task; raises what it raises."""
    settings = load_settings()
    if model is not None and extractor is not None:
        raise ValueError("model= is an extractor of its own. Leave extractor= out")
    if model is None and (max_tokens is not None or max_cost is not None):
        raise ValueError("max_tokens and max_cost need model=")
    given = await asyncio.to_thread(_read_all, documents)
    path = None if isinstance(ontology, Ontology) else find_ontology(os.fspath(ontology), settings)
    loaded = ontology if isinstance(ontology, Ontology) else _load(path, settings)
    learned_from = None if examples is None else Path(examples)
    pipeline = PipelineSettings(concurrency=concurrency or settings.concurrency)
    async with AsyncExitStack() as opened:
        if model is not None:
            from sameas.cli.prompted import examples_from, open_model_path

            cost = None if max_cost is None else Decimal(str(max_cost))
            options = ModelOptions(model=model, max_tokens=max_tokens, max_cost=cost, concurrency=concurrency)
            shown = [] if learned_from is None else examples_from(learned_from, loaded)
            asked = await opened.enter_async_context(
                open_model_path(options, ontology=loaded, settings=settings, examples=shown)
            )
            pipeline = PipelineSettings(concurrency=pipeline.concurrency, timeouts=asked.timeouts)
            chosen: Extractor = asked.extractor
        else:
            chosen = await asyncio.to_thread(_embedded, loaded, path, extractor, learned_from, settings)
        service = await opened.enter_async_context(open_service(settings))
        slots = asyncio.Semaphore(pipeline.concurrency)

        async def do(one: Given) -> DocumentResult:
            async with slots:
                return await _extract(
                    service, one, loaded, chosen, pipeline, base or settings.base, min_confidence, settings
                )

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(do(one)) for one in given]
    return Result([task.result() for task in tasks])


async def _extract(
    service: ExtractionService,
    given: Given,
    ontology: Ontology,
    extractor: Extractor,
    pipeline: PipelineSettings,
    base: str,
    min_confidence: float | None,
    settings: Settings,
) -> DocumentResult:
    done = await service.extract(
        given.document.text, ontology=ontology, extractor=extractor, settings=pipeline, base=base
    )
    sure = done.sure(settings.min_confidence if min_confidence is None else min_confidence)

    def render(output: OutputFormat) -> bytes:
        return service.render(sure, output, sources=[given.source], places=DocumentPlaces(given.document))

    return DocumentResult(
        given.document,
        given.source,
        graph=await asyncio.to_thread(lambda: sure.graph),
        metadata=sure.metadata,
        replayed=sure.replayed,
        render=render,
    )


def _read_all(documents: GivenDocument | Iterable[GivenDocument]) -> list[Given]:
    found: list[Given] = []
    for one in documents_of(documents):
        found.extend(read_given(one, number=len(found) + 1))
    if not found:
        raise EmptyDocumentError("there is no document. Give a path, a text, or a list of them")
    for given in found:
        if not given.document.normalized:
            raise EmptyDocumentError(f"{given.source.name} is empty. Give a document with some text in it")
    return found


def _load(path: Path | None, settings: Settings) -> Ontology:
    assert path is not None
    return load_ontology(path, cache_dir=settings.cache / "ontologies")


def _embedded(
    ontology: Ontology, path: Path | None, wanted: ExtractorName | None, examples: Path | None, settings: Settings
) -> Extractor:
    learned = None
    if examples is not None:
        if wanted not in (None, "learned"):
            raise ValueError("examples= needs the learned extractor. Leave extractor= out")
        learned = model_from(examples, ontology=ontology, settings=settings, quiet=True)
    # An ontology that is not a file has no model beside it.
    beside = path or settings.ontologies / "none"
    return choose_extractor(ontology, path=beside, wanted=wanted, model=learned, default=settings.extractor)


def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """The result of the work; in a thread of its own where this one has a loop already, such as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    answer: list[T] = []
    trouble: list[BaseException] = []

    def run() -> None:
        try:
            answer.append(asyncio.run(work))
        except BaseException as error:
            trouble.append(error)

    thread = threading.Thread(target=run, name="sameas-extract")
    thread.start()
    thread.join()
    if trouble:
        raise trouble[0]
    return answer[0]
