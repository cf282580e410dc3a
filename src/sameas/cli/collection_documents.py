"""`sameas add`, `sameas sync` and `sameas remove`: documents into a collection, and out of it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from sameas.cli.collections import Name, open_collection
from sameas.cli.documents import Source as Argument
from sameas.cli.documents import find_sources
from sameas.cli.errors import CliError, ExitCode, explain
from sameas.cli.extract import until_terminated
from sameas.cli.extract_options import ModelOptions, dollars
from sameas.cli.extractors import EXTRACTORS, choose_extractor
from sameas.cli.progress import Progress, open_progress
from sameas.cli.service import open_configured, open_service
from sameas.collections import Collection, Source
from sameas.collections.errors import DocumentNotFoundError
from sameas.collections.filling import Done, Filler, Given, Summary, Watch, plan_sync
from sameas.collections.filling import sync as sync_folder
from sameas.extraction.events.events import Event
from sameas.extraction.extractors.contract import Extractor
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.runs.service import ExtractionService
from sameas.extraction.text.document import readable_path
from sameas.once.async_engine import AsyncEngine
from sameas.settings import Settings, load_settings

Files = Annotated[list[str] | None, typer.Argument(help="Files, patterns, '-' for standard input, texts in quotes.")]
Chosen = Annotated[str | None, typer.Option("--extractor", help=f"One of {', '.join(EXTRACTORS)}.")]
Model = Annotated[str | None, typer.Option("--model", help="A language model, as for `sameas extract`.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", min=1, help="Stop before a document takes more tokens.")]
MaxCost = Annotated[str | None, typer.Option("--max-cost", metavar="USD", help="Stop before a document costs more.")]
AtOnce = Annotated[
    int | None, typer.Option("--concurrency", min=1, max=1000, help="Documents, or calls of the model, at a time.")
]
Retry = Annotated[bool, typer.Option("--retry-failed", help="Also try again what failed before.")]
Workers = Annotated[
    str | None, typer.Option("--workers", metavar="celery", help="Have documents read by the workers of a cluster.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but errors.")]
Json = Annotated[bool, typer.Option("--json", help="The summary as JSON on stdout.")]
_GETTING_READY = 4


# Documents that workers elsewhere are given at a time.
AT_ONCE = 200


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How documents are read."""

    extractor: str | None
    model: str | None
    max_tokens: int | None
    max_cost: str | None
    at_once: int | None
    quiet: bool
    workers: str | None = None


def add(
    name: Name,
    files: Files = None,
    *,
    retry_failed: Retry = False,
    extractor: Chosen = None,
    model: Model = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    concurrency: AtOnce = None,
    workers: Workers = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Add documents to a collection; a name that is there gets the new text. Equal texts cost once."""
    how = Reading(
        extractor=extractor, model=model, max_tokens=max_tokens, max_cost=max_cost, at_once=concurrency, quiet=quiet,
        workers=workers,
    )  # fmt: skip
    with open_collection(name) as collection:
        given = [_given(one) for one in find_sources(files)] if files else []
        if retry_failed:
            given += _failed(collection)
        if not given and not retry_failed:
            raise CliError("there is no document", todo="Give files, or --retry-failed", code=ExitCode.USAGE)

        async def work(filler: Filler, _: AsyncEngine) -> Summary:
            return Summary.of(await filler.add(given))

        _fill(collection, how, work, documents=len(given), json=json)


def sync(
    name: Name,
    folder: Annotated[Path, typer.Argument(help="The folder; files of kinds that can be read, also in its folders.")],
    *,
    retry_failed: Retry = False,
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="An empty folder takes everything out.")] = False,
    extractor: Chosen = None,
    model: Model = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    concurrency: AtOnce = None,
    workers: Workers = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Add what is new in a folder, redo what changed, take out what is gone."""
    how = Reading(
        extractor=extractor, model=model, max_tokens=max_tokens, max_cost=max_cost, at_once=concurrency, quiet=quiet,
        workers=workers,
    )  # fmt: skip
    with open_collection(name) as collection:
        named = folder.as_posix().rstrip("/")
        plan = plan_sync(collection, folder, named=named, retry_failed=retry_failed, allow_empty=allow_empty)

        async def work(filler: Filler, engine: AsyncEngine) -> Summary:
            return await sync_folder(
                collection, folder, filler=filler, engine=engine, named=named, retry_failed=retry_failed,
                allow_empty=allow_empty,
            )  # fmt: skip

        _fill(collection, how, work, documents=len(plan.to_add), json=json)


def remove(
    name: Name,
    names: Annotated[
        list[str], typer.Argument(help="Names of documents, as `sameas collection documents` shows them.")
    ],
) -> None:
    """Take documents out; a document goes with its last name, a fact with its last evidence."""
    with open_collection(name) as collection:
        missing = [one for one in names if not collection.has_source(one)]
        if missing:
            raise DocumentNotFoundError(f"the collection has no document called {missing[0]!r}. Nothing was removed")
        removed = [collection.remove_name(one) for one in names]
    gone = sum(len(change.removed) for change in removed)
    print(f"{len(names)} names and {gone} documents removed", file=sys.stderr)


def _given(source: Argument) -> Given:
    if source.error:
        raise CliError(source.error)
    if source.path is not None:
        name, path = readable_path(source.path.as_posix()), readable_path(source.path.resolve())
        return Given(source=Source(name=name, path=path), file=source.path)
    if source.text:
        return Given(source=Source(name=source.name), text=source.text)
    return Given(source=Source(name="stdin"), content=sys.stdin.buffer.read())


def _failed(collection: Collection) -> list[Given]:
    found = []
    for status in ("failed", "partial"):
        after = ""
        while page := collection.documents(status=status, after=after, limit=200):
            for document in page:
                source = document.names[0]
                if source.path:
                    given = Source(name=source.name, path=source.path, folder=collection.folder_of(source.name))
                    found.append(Given(source=given, file=Path(source.path)))
            after = page[-1].names[0].name
    return found


def _fill(
    collection: Collection,
    how: Reading,
    work: Callable[[Filler, AsyncEngine], Awaitable[Summary]],
    *,
    documents: int,
    json: bool,
) -> None:
    settings = load_settings()
    progress = open_progress(documents, quiet=how.quiet)
    began = time.monotonic()
    if how.workers not in (None, "celery"):
        raise CliError(f"--workers {how.workers} is not known", todo="Say celery", code=ExitCode.USAGE)
    try:
        filling = fill(collection, how, work, settings=settings, watch=_Watch(progress))
        (summary,) = asyncio.run(until_terminated(filling))
    finally:
        progress.close()
    _print_summary(collection, summary, seconds=time.monotonic() - began, json=json, quiet=how.quiet)
    if summary.failed:
        raise typer.Exit(ExitCode.FAILED)
    if summary.partial:
        raise typer.Exit(ExitCode.PARTIAL)


async def fill(
    collection: Collection,
    how: Reading,
    work: Callable[[Filler, AsyncEngine], Awaitable[Summary]],
    *,
    settings: Settings,
    watch: Watch | None = None,
) -> list[Summary]:
    """Open what reads documents as the settings have it, and let the work fill a collection with it."""
    at_once = how.at_once or (AT_ONCE if how.workers else settings.concurrency)
    if how.model is not None:
        # Calls are counted by the account's limiter; some documents get ready, or are written down, meanwhile.
        at_once += _GETTING_READY
    async with (
        _reading(collection, how, settings) as (extractor, pipeline),
        _service(collection, how, settings) as service,
        open_configured(settings) as store,
    ):
        filler = Filler(
            collection,
            service,
            extractor=extractor,
            settings=pipeline,
            at_once=at_once,
            min_confidence=settings.min_confidence,
            watch=watch,
            explain=_explain,
        )
        return [await work(filler, AsyncEngine(store))]


@asynccontextmanager
async def _service(collection: Collection, how: Reading, settings: Settings) -> AsyncIterator[ExtractionService]:
    """Who reads: this process, or the workers of a cluster."""
    if how.workers is None:
        async with open_service(settings) as service:
            yield service
        return
    from sameas.cli.workers import open_cluster

    if not collection.ontology_source:
        raise CliError("the collection does not know the file of its ontology", todo="Create it with --ontology FILE")
    async with open_cluster(
        settings,
        ontology=collection.ontology,
        file=Path(collection.ontology_source),
        extractor=how.extractor,
        model=how.model,
        base=collection.base,
    ) as cluster:
        yield cluster  # type: ignore[misc]


@asynccontextmanager
async def _reading(
    collection: Collection, how: Reading, settings: Settings
) -> AsyncIterator[tuple[Extractor, PipelineSettings]]:
    """The extractor that was chosen, and how the pipeline runs."""
    pipeline = PipelineSettings(concurrency=how.at_once or settings.concurrency)
    if how.workers is not None:
        # The workers choose; here it is only named.
        path = Path(collection.ontology_source or "ontology")
        yield choose_extractor(collection.ontology, path=path, wanted="lexicon", default="lexicon"), pipeline
        return
    if how.model is None:
        wanted = next((one for one in EXTRACTORS if one == how.extractor), None)
        if how.extractor is not None and wanted is None:
            raise CliError(f"{how.extractor!r} is no extractor", todo=f"Use one of {', '.join(EXTRACTORS)}")
        path = Path(collection.ontology_source or "ontology")
        yield choose_extractor(collection.ontology, path=path, wanted=wanted, default=settings.extractor), pipeline
        return
    from sameas.cli.prompted import open_model_path

    options = ModelOptions(
        model=how.model, max_tokens=how.max_tokens, max_cost=dollars(how.max_cost) if how.max_cost else None,
        concurrency=how.at_once,
    )  # fmt: skip
    async with open_model_path(options, ontology=collection.ontology, settings=settings) as path_:
        yield path_.extractor, msgspec.structs.replace(pipeline, timeouts=path_.timeouts)


class _Watch:
    """Shows how filling goes: a bar that counts documents, or lines."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._began = time.monotonic()

    def show(self, document: str, event: Event) -> None:
        self._progress.show(document, event)

    def note(self, document: str, text: str) -> None:
        self._progress.note(document, text)

    def done(self, done: Done) -> None:
        if done.error:
            self._progress.fail(done.name, f"sameas: {done.error}")
        self._progress.finish(done.name, done.outcome, time.monotonic() - self._began)


def _explain(error: Exception) -> str:
    return explain(error)[0] if not isinstance(error, ValueError) else str(error)


def _print_summary(collection: Collection, summary: Summary, *, seconds: float, json: bool, quiet: bool) -> None:
    info = collection.info()
    if json:
        print(msgspec.json.encode({"summary": summary, "collection": info}).decode())
    if quiet:
        return
    counts = [("added", summary.added), ("changed", summary.changed), ("unchanged", summary.unchanged)]
    counts += [("removed", summary.removed), ("partial", summary.partial), ("failed", summary.failed)]
    counts += [("vanished meanwhile", summary.vanished)]
    changes = ", ".join(f"{count} {what}" for what, count in counts if count) or "nothing to do"
    print(f"{info.name}: {changes} ({seconds:.1f} s)", file=sys.stderr)
    print(f"{info.documents} documents, {info.entities} entities, {info.claims} claims", file=sys.stderr)
    if summary.failed and not summary.errors:
        print("what failed before was not tried again: --retry-failed does", file=sys.stderr)
