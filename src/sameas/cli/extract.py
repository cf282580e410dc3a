"""`sameas extract`: documents in, graphs out; the same work a second time is a replay."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from sameas.cli.delivery import Delivery, emit
from sameas.cli.documents import Source, find_sources, read_source
from sameas.cli.errors import CliError, ExitCode, explain, worst
from sameas.cli.extract_options import ENDINGS, Format, ModelOptions, build_parser, check_options, format_for
from sameas.cli.extractors import choose_extractor, with_spacy
from sameas.cli.progress import Progress, open_progress
from sameas.cli.registry import find_ontology
from sameas.cli.service import open_service
from sameas.cli.summary import Reuse, Row, print_reasons, print_report, print_summary
from sameas.extraction.events.events import Event
from sameas.extraction.extractors.contract import Extractor
from sameas.extraction.outputs import DEFAULT_BASE
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.runs.service import Extraction, ExtractionService
from sameas.extraction.text.document import Document
from sameas.extraction.text.inputs.errors import DocumentError
from sameas.ontology.load import load_ontology
from sameas.ontology.model import Ontology
from sameas.settings import Settings, load_settings

if TYPE_CHECKING:
    from sameas.cli.prompted import ModelPath
    from sameas.extraction.pipeline.estimate import Estimate
    from sameas.ontology.validate import ShapeReport


T = TypeVar("T")
_WAITING = "another process is at this; waiting for its result, or for its place should it have died"


# Chunks, and documents, whose questions go into one batch.
_IN_A_BATCH = 500


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is the same for all documents of a command."""

    ontology: Ontology
    extractor: Extractor
    settings: PipelineSettings
    base: str
    delivery: Delivery
    shapes: Path | Literal["derived"] | None
    several: bool
    quiet: bool
    min_confidence: float | None


def run(arguments: Sequence[str]) -> ExitCode:
    """Do the command."""
    parser = build_parser()
    if not arguments:
        parser.print_help(sys.stderr)
        return ExitCode.USAGE
    parser.check_options(arguments)
    given = parser.parse_intermixed_args(arguments)
    check_options(given)
    settings = load_settings()
    sources = find_sources(given.documents)
    out: Path | None = None if given.out is None else Path(given.out)
    form: Format = format_for(out, given.format, endings=ENDINGS, default="turtle")
    in_folder = given.out is not None and given.out.endswith(("/", os.sep))
    delivery = Delivery(sources, form=form, out=out, in_folder=in_folder, as_json=given.json)
    path = find_ontology(given.ontology, settings)
    loaded = load_ontology(path, imports_dir=given.imports, cache_dir=settings.cache / "ontologies")
    _say_unresolved(loaded, quiet=given.quiet)
    if given.workers is not None:
        return _run_elsewhere(given, sources, delivery, ontology=loaded, path=path, settings=settings)
    if given.model is not None:
        return _run_with_model(given, sources, delivery, ontology=loaded, settings=settings)
    model = None
    if given.examples is not None:
        if given.extractor in ("lexicon", "reader"):
            raise CliError("--examples needs the learned extractor", todo="Leave --extractor out", code=ExitCode.USAGE)
        from sameas.cli.extractors import model_from

        model = model_from(given.examples, ontology=loaded, settings=settings, quiet=given.quiet)
    extractor = choose_extractor(loaded, path=path, wanted=given.extractor, model=model, default=settings.extractor)
    if given.spacy is not None:
        extractor = with_spacy(extractor, loaded, pipeline=given.spacy)
    plan = _plan(given, loaded, extractor, delivery, settings=settings, several=len(sources) > 1)

    async def work() -> list[Row]:
        async with open_service(settings) as service:
            return await _extract_all(service, sources, plan)

    rows = asyncio.run(until_terminated(work()))
    if not given.quiet:
        print_summary(rows)
    if given.open:
        _show(rows, settings)
    return worst([row.code for row in rows])


def _run_elsewhere(
    given: argparse.Namespace,
    sources: Sequence[Source],
    delivery: Delivery,
    *,
    ontology: Ontology,
    path: Path,
    settings: Settings,
) -> ExitCode:
    """The command with `--workers celery`."""
    from sameas.cli.workers import AT_ONCE, open_cluster

    for name in ("examples", "spacy", "estimate", "batch", "deadline", "max_tokens", "max_cost"):
        if getattr(given, name, None):
            option = name.replace("_", "-")
            todo = "Leave it out: the settings of the workers decide"
            raise CliError(f"--{option} is not for --workers", todo=todo, code=ExitCode.USAGE)
    # The extractor is chosen by the workers; here it is only named.
    extractor = choose_extractor(ontology, path=path, wanted=None, model=None, default="lexicon")
    plan = _plan(given, ontology, extractor, delivery, settings=settings, several=len(sources) > 1)
    plan = replace(plan, settings=replace(plan.settings, concurrency=given.concurrency or AT_ONCE))

    async def work() -> list[Row]:
        async with open_cluster(
            settings, ontology=ontology, file=path, extractor=given.extractor, model=given.model, base=plan.base
        ) as cluster:
            return await _extract_all(cluster, sources, plan)  # type: ignore[arg-type]

    rows = asyncio.run(until_terminated(work()))
    if not given.quiet:
        print_summary(rows)
        print_reasons(rows)
    return worst([row.code for row in rows])


def _show(rows: Sequence[Row], settings: Settings) -> None:
    """The first run that there is, in the web app."""
    from sameas.cli.serve import show_run

    found = [row.extraction for row in rows if row.extraction is not None]
    if found:
        show_run(found[0].key.key, settings)


def _run_with_model(
    given: argparse.Namespace, sources: Sequence[Source], delivery: Delivery, *, ontology: Ontology, settings: Settings
) -> ExitCode:
    """The command with `--model`: an estimate, or an extraction with accounts."""
    from sameas.cli.prompted import examples_from, open_model_path
    from sameas.cli.summary import print_estimates, print_spending
    from sameas.llm.lingering import LingeringCalls

    options = ModelOptions.of(given)
    lingering = LingeringCalls()
    examples = examples_from(given.examples, ontology) if given.examples is not None else []

    async def work() -> list[Row]:
        async with open_model_path(
            options, ontology=ontology, settings=settings, examples=examples, lingering=lingering
        ) as path:
            plan = _plan(given, ontology, path.extractor, delivery, settings=settings, several=len(sources) > 1)
            plan = replace(plan, settings=replace(plan.settings, timeouts=path.timeouts))
            if given.estimate:
                estimates = await _estimate_all(sources, plan, path)
                if given.json:
                    for name, estimate in estimates:
                        emit(msgspec.json.encode({"document": name, "estimate": estimate}) + b"\n")
                else:
                    print_estimates(estimates, settings=settings)
                return []
            async with open_service(settings) as service:
                return await _extract_all(service, sources, plan)

    rows = asyncio.run(until_terminated(work(), on_interrupt=lingering.interrupt))
    if not given.quiet and not given.estimate:
        print_summary(rows)
        print_spending(rows, settings=settings)
    if given.open:
        _show(rows, settings)
    return worst([row.code for row in rows])


async def _estimate_all(sources: Sequence[Source], plan: Plan, path: ModelPath) -> list[tuple[str, Estimate]]:
    from sameas.extraction.pipeline.estimate import Estimator
    from sameas.ontology.index import OntologyIndex

    estimator = Estimator(OntologyIndex(plan.ontology), path.extractor, settings=plan.settings, memo=path.memo)
    return [(source.name, await estimator.estimate(_text(read_source(source)))) for source in sources]


def _text(read: Document | Iterator[str]) -> str | Iterator[str]:
    return read.text if isinstance(read, Document) else read


def _plan(
    given: argparse.Namespace,
    ontology: Ontology,
    extractor: Extractor,
    delivery: Delivery,
    *,
    settings: Settings,
    several: bool,
) -> Plan:
    return Plan(
        ontology=ontology,
        extractor=extractor,
        settings=PipelineSettings(
            concurrency=given.concurrency or (_IN_A_BATCH if given.batch else settings.concurrency),
            deadline_seconds=given.deadline,
        ),
        base=_checked_base(given.base or settings.base),
        delivery=delivery,
        shapes=_shapes(given.shapes),
        several=several,
        quiet=given.quiet,
        min_confidence=settings.min_confidence if given.min_confidence is None else given.min_confidence,
    )


def _shapes(wanted: str | None) -> Path | Literal["derived"] | None:
    if wanted is None or wanted == "derived":
        return wanted  # type: ignore[return-value]
    if not Path(wanted).is_file():
        raise CliError(f"--shapes {wanted} is not a file", todo="Give a file of SHACL shapes, or the word derived")
    return Path(wanted)


async def until_terminated(work: Awaitable[T], *, on_interrupt: Callable[[], None] | None = None) -> T:
    """The work, cancelled by SIGTERM so that its claim is given back before the program ends.

    `on_interrupt` is told of Ctrl-C before the work is cancelled; a second one cancels what is left.
    """
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    ended_by: list[signal.Signals] = []

    def end(by: signal.Signals) -> None:
        ended_by.append(by)
        if on_interrupt is not None:
            on_interrupt()
        task.cancel()

    def hear(number: int, frame: object) -> None:
        loop.call_soon_threadsafe(end, signal.Signals(number))

    # Not the loop's own handlers: while the loop is busy its wake-up pipe may be full, and the signal would be lost.
    heard = (signal.SIGTERM,) if on_interrupt is None else (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, hear) for number in heard}
    try:
        result = await task
    except asyncio.CancelledError:
        if signal.SIGTERM in ended_by:
            raise CliError("ended by SIGTERM; its claim was given back", code=ExitCode.TERMINATED) from None
        if ended_by:
            raise KeyboardInterrupt from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
    return result


async def _extract_all(service: ExtractionService, sources: Sequence[Source], plan: Plan) -> list[Row]:
    """The documents side by side, each in a slot until it is delivered."""
    slots = asyncio.Semaphore(plan.settings.concurrency)
    progress = open_progress(len(sources), quiet=plan.quiet)
    tasks: list[asyncio.Task[Row]] = []

    async def do(source: Source, before: asyncio.Task[Row] | None) -> Row:
        async with slots:
            row = await _do(service, source, plan, progress, before)
        progress.finish(row.name, row.status, row.seconds)
        return row

    try:
        for source in sources:
            tasks.append(asyncio.create_task(do(source, tasks[-1] if tasks else None)))
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        progress.close()


async def _do(
    service: ExtractionService, source: Source, plan: Plan, progress: Progress, before: asyncio.Task[Row] | None
) -> Row:
    began = time.monotonic()
    try:
        reused = Reuse()
        # Standard input is read here: a thread that waits for it could not be interrupted.
        read = read_source(source) if source.path is None else await asyncio.to_thread(read_source, source)
        extraction = await _extract(service, source, _text(read), plan, reused, progress)
        extraction = extraction.sure(plan.min_confidence)
        report_ = _validated(service, extraction, plan)
        seconds = time.monotonic() - began
        document = read if isinstance(read, Document) else None
        # On stdout the graphs stand in the order of the documents.
        if plan.delivery.to_stdout and before is not None:
            await asyncio.wait([before])
        plan.delivery.deliver(service, extraction, source=source, document=document, shapes=report_)
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        if not plan.several and isinstance(error, DocumentError):
            raise CliError(f"{source.name}: {error}") from error
        # Neither would any other document be answered by a model that is not there.
        if not plan.several or getattr(error, "ends_run", False):
            raise
        # One bad document of many does not cost the others.
        message, code = explain(error)
        progress.fail(source.name, f"sameas: {message}")
        return Row(source.name, code, time.monotonic() - began)
    code = ExitCode.OK if extraction.metadata.status == "complete" else ExitCode.PARTIAL
    if report_ is not None and not report_.conforms:
        print_report(report_, source.name)
        code = worst([code, ExitCode.NOT_CONFORMING])
    return Row(source.name, code, seconds, extraction, reused.chunks)


def _validated(service: ExtractionService, extraction: Extraction, plan: Plan) -> ShapeReport | None:
    if plan.shapes is None:
        return None
    from sameas.ontology.validate import validate_graph

    shapes = plan.shapes if isinstance(plan.shapes, Path) else None
    return validate_graph(service.render(extraction, "turtle"), ontology=plan.ontology, shapes=shapes)


async def _extract(
    service: ExtractionService,
    source: Source,
    text: str | Iterator[str],
    plan: Plan,
    reused: Reuse,
    progress: Progress,
) -> Extraction:
    def show(event: Event) -> None:
        reused.count(event)
        progress.show(source.name, event)

    return await service.extract(
        text,
        ontology=plan.ontology,
        extractor=plan.extractor,
        settings=plan.settings,
        document=Path(source.name).name if source.path is not None else "",
        base=plan.base,
        on_event=show,
        on_wait=lambda: progress.note(source.name, _WAITING),
    )


def _say_unresolved(ontology: Ontology, *, quiet: bool) -> None:
    for iri in ontology.unresolved_imports if not quiet else ():
        print(
            f"note: owl:imports {iri} was not read; put the file into a folder and give --imports",
            file=sys.stderr,
        )


def _checked_base(base: str) -> str:
    from sameas.extraction.outputs import OutputContext

    try:
        OutputContext(key="", base=base)
    except ValueError as error:
        raise CliError(
            str(error), todo=f"Such as {DEFAULT_BASE} or https://example.org/", code=ExitCode.USAGE
        ) from error
    return base
