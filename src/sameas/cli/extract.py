"""`sameas extract`: documents in, graphs out; the same work a second time is a replay."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from sameas.cli.delivery import Delivery, emit
from sameas.cli.documents import Source, find_sources, read_source
from sameas.cli.errors import CliError, ExitCode, report, worst
from sameas.cli.extract_options import build_parser
from sameas.cli.extractors import choose_extractor, with_spacy
from sameas.cli.model_options import ModelOptions, check_options
from sameas.cli.progress import open_progress
from sameas.cli.registry import find_ontology
from sameas.cli.service import open_service
from sameas.cli.summary import Reuse, Row, print_report, print_summary
from sameas.extraction.document import Document
from sameas.extraction.events import Event
from sameas.extraction.extractor import Extractor
from sameas.extraction.inputs.errors import DocumentError
from sameas.extraction.outputs import DEFAULT_BASE
from sameas.extraction.pipeline_settings import PipelineSettings
from sameas.extraction.service import Extraction, ExtractionService
from sameas.ontology.load import load_ontology
from sameas.ontology.model import Ontology
from sameas.settings import Settings, load_settings

if TYPE_CHECKING:
    from sameas.cli.prompted import ModelPath
    from sameas.extraction.prompted.estimate import Estimate
    from sameas.ontology.validate import ShapeReport


_WAITING = "another process is at this; waiting for its result, or for its place should it have died"


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


def run(arguments: Sequence[str]) -> ExitCode:
    """Do the command."""
    parser = build_parser()
    if not arguments:
        parser.print_help(sys.stderr)
        return ExitCode.USAGE
    given = parser.parse_intermixed_args(arguments)
    check_options(given)
    settings = load_settings()
    sources = find_sources(given.documents)
    delivery = Delivery(sources, form=given.format, out=given.out, as_json=given.json)
    path = find_ontology(given.ontology, settings)
    loaded = load_ontology(path, imports_dir=given.imports, cache_dir=settings.cache / "ontologies")
    _say_unresolved(loaded, quiet=given.quiet)
    if given.model is not None:
        return _run_with_model(given, sources, delivery, ontology=loaded, settings=settings)
    model = None
    if given.examples is not None:
        if given.extractor == "lexicon":
            raise CliError("--examples needs the learned extractor", todo="Leave --extractor out", code=ExitCode.USAGE)
        from sameas.cli.models import model_from

        model = model_from(given.examples, ontology=loaded, settings=settings, quiet=given.quiet)
    extractor = choose_extractor(loaded, path=path, wanted=given.extractor, model=model)
    if given.spacy is not None:
        extractor = with_spacy(extractor, loaded, pipeline=given.spacy)
    plan = _plan(given, loaded, extractor, delivery, settings=settings, several=len(sources) > 1)

    async def work() -> list[Row]:
        async with open_service(settings) as service:
            return await _extract_all(service, sources, plan)

    rows = asyncio.run(_until_terminated(work()))
    if not given.quiet:
        print_summary(rows)
    return worst([row.code for row in rows])


def _run_with_model(
    given: argparse.Namespace, sources: Sequence[Source], delivery: Delivery, *, ontology: Ontology, settings: Settings
) -> ExitCode:
    """The command with `--model`: an estimate, or an extraction with accounts."""
    from sameas.cli.prompted import examples_from, open_model_path
    from sameas.cli.spending import print_estimates, print_spending

    options = ModelOptions.of(given)
    examples = examples_from(given.examples, ontology) if given.examples is not None else []

    async def work() -> list[Row]:
        async with open_model_path(options, ontology=ontology, settings=settings, examples=examples) as path:
            plan = _plan(given, ontology, path.extractor, delivery, settings=settings, several=len(sources) > 1)
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

    rows = asyncio.run(_until_terminated(work()))
    if not given.quiet and not given.estimate:
        print_summary(rows)
        print_spending(rows, settings=settings)
    return worst([row.code for row in rows])


async def _estimate_all(sources: Sequence[Source], plan: Plan, path: ModelPath) -> list[tuple[str, Estimate]]:
    from sameas.extraction.prompted.estimate import Estimator
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
            concurrency=given.concurrency or settings.concurrency, deadline_seconds=given.deadline
        ),
        base=_checked_base(given.base or settings.base),
        delivery=delivery,
        shapes=_shapes(given.shapes),
        several=several,
        quiet=given.quiet,
    )


def _shapes(wanted: str | None) -> Path | Literal["derived"] | None:
    if wanted is None or wanted == "derived":
        return wanted  # type: ignore[return-value]
    if not Path(wanted).is_file():
        raise CliError(f"--shapes {wanted} is not a file", todo="Give a file of SHACL shapes, or the word derived")
    return Path(wanted)


async def _until_terminated(work: Any) -> list[Row]:
    """The work, cancelled by SIGTERM so that its claim is given back before the program ends."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    terminated: list[bool] = []

    def terminate() -> None:
        terminated.append(True)
        task.cancel()

    # Windows has no such handlers; there the lease ends the claim.
    with suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGTERM, terminate)
    try:
        rows: list[Row] = await task
    except asyncio.CancelledError:
        if terminated:
            raise CliError("ended by SIGTERM; its claim was given back", code=ExitCode.TERMINATED) from None
        raise
    return rows


async def _extract_all(service: ExtractionService, sources: Sequence[Source], plan: Plan) -> list[Row]:
    rows = []
    for source in sources:
        began = time.monotonic()
        try:
            reused = Reuse()
            read = read_source(source)
            extraction = await _extract(service, source, _text(read), plan, reused)
            report_ = _validated(service, extraction, plan)
            document = read if isinstance(read, Document) else None
            plan.delivery.deliver(service, extraction, source=source, document=document, shapes=report_)
        except (BrokenPipeError, KeyboardInterrupt):
            raise
        except Exception as error:
            if not plan.several and isinstance(error, DocumentError):
                raise CliError(f"{source.name}: {error}") from error
            if not plan.several:
                raise
            # One bad document of many does not cost the others.
            print(f"{source.name}: ", end="", file=sys.stderr)
            rows.append(Row(source.name, report(error), time.monotonic() - began))
            continue
        code = ExitCode.OK if extraction.metadata.status == "complete" else ExitCode.PARTIAL
        if report_ is not None and not report_.conforms:
            print_report(report_, source.name)
            code = worst([code, ExitCode.NOT_CONFORMING])
        rows.append(Row(source.name, code, time.monotonic() - began, extraction, reused.chunks))
    return rows


def _validated(service: ExtractionService, extraction: Extraction, plan: Plan) -> ShapeReport | None:
    if plan.shapes is None:
        return None
    from sameas.ontology.validate import validate_graph

    shapes = plan.shapes if isinstance(plan.shapes, Path) else None
    return validate_graph(service.render(extraction, "turtle"), ontology=plan.ontology, shapes=shapes)


async def _extract(
    service: ExtractionService, source: Source, text: str | Iterator[str], plan: Plan, reused: Reuse
) -> Extraction:
    progress = open_progress(source.name, quiet=plan.quiet)

    def show(event: Event) -> None:
        reused.count(event)
        progress.show(event)

    try:
        return await service.extract(
            text,
            ontology=plan.ontology,
            extractor=plan.extractor,
            settings=plan.settings,
            document=source.path.name if source.path is not None else "",
            base=plan.base,
            on_event=show,
            on_wait=lambda: progress.note(_WAITING),
        )
    finally:
        progress.close()


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
