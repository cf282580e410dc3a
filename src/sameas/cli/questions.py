"""`sameas query`, `find`, `entity`, `path`, `ask` and `push`: questions to a collection, and publishing it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import msgspec
import typer

from sameas.cli.delivery import emit
from sameas.cli.errors import CliError, ExitCode
from sameas.cli.extract_options import ModelOptions, dollars, format_for
from sameas.cli.tables import print_table
from sameas.collections.model import CollectionEvidence, Statement
from sameas.collections.registry import Collections, collections_url, local_caller, open_tables
from sameas.extraction.outputs.context import local_name
from sameas.questions.answers import Answer, AnswerFormat
from sameas.questions.desk import QuestionDesk
from sameas.questions.graph import shortened
from sameas.questions.process import QueryLimits
from sameas.questions.runner import QueryRunner
from sameas.settings import Settings, bolt_credentials, hide_password, load_settings

if TYPE_CHECKING:
    from sameas.llm.supervisor import RequestSupervisor
    from sameas.questions.ask import Answered
    from sameas.questions.desk import Connection

Name = Annotated[str, typer.Argument(metavar="NAME", help="The collection.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
ResultFormat = Literal["table", "json", "csv", "tsv", "xml", "turtle", "ntriples", "jsonld"]
_RESULT_ENDINGS: dict[str, ResultFormat] = {
    ".json": "json", ".csv": "csv", ".tsv": "tsv", ".xml": "xml", ".ttl": "turtle", ".turtle": "turtle",
    ".nt": "ntriples", ".jsonld": "jsonld",
}  # fmt: skip
_WIDEST = 60


@contextmanager
def open_desk(name: str, settings: Settings, *, limits: QueryLimits | None = None) -> Iterator[QuestionDesk]:
    """Where questions to a collection are asked, until the block ends."""
    database = open_tables(collections_url(settings.home, settings.database))
    runner = QueryRunner(processes=1)
    try:
        collection = Collections(database).open(name, caller=local_caller(settings.tenant))
        yield QuestionDesk(collection, folder=index_folder(settings), runner=runner, limits=limits)
    finally:
        runner.close()
        database.close()


def index_folder(settings: Settings) -> Path:
    """Where the indexes of collections are; they can be made again at any time."""
    return settings.cache / "questions"


def query(
    name: Name,
    sparql: Annotated[str, typer.Argument(metavar="SPARQL|-", help="The query, or - for standard input.")],
    *,
    format_: Annotated[
        ResultFormat | None,
        typer.Option("--format", "-f", help="By default by the name of --out, else a table, or Turtle."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
    timeout: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds after which it is ended.")] = 30.0,
    max_rows: Annotated[int, typer.Option(min=1, help="More rows than this are refused.")] = 10_000,
) -> None:
    """Ask a collection in SPARQL 1.1; the prefixes of its ontology are known."""
    if format_ == "table" and out is not None:
        raise CliError("a table is for reading, not for a file", todo="Leave --format out", code=ExitCode.USAGE)
    wanted: ResultFormat = format_for(out, format_, endings=_RESULT_ENDINGS, default="table")
    text = sys.stdin.read() if sparql == "-" else sparql
    with open_desk(name, load_settings(), limits=QueryLimits(seconds=timeout, rows=max_rows)) as desk:
        answer = desk.query(text)
        if wanted == "table" and answer.kind != "graph" and out is None:
            _print_answer(answer, desk.prefixes)
            return
        chosen = None if wanted == "table" else cast("AnswerFormat", wanted)
        data = answer.as_format(chosen, prefixes=desk.prefixes)
    if out is None:
        emit(data if data.endswith(b"\n") else data + b"\n")
    else:
        from sameas.cli.delivery import save

        save(out, data)


def find(
    name: Name,
    text: Annotated[str, typer.Argument(help="A name, or nearly one.")],
    *,
    limit: Annotated[int, typer.Option(min=1, max=500)] = 20,
    json: AsJson = False,
) -> None:
    """Find things by a name that is nearly theirs."""
    with open_desk(name, load_settings()) as desk:
        found = desk.find(text, limit=limit)
    if json:
        emit(msgspec.json.encode(found) + b"\n")
    elif not found:
        print(f"nothing is called nearly {text!r}", file=sys.stderr)
    else:
        rows = [(f"{one.score:.2f}", one.matched, local_name(one.type) if one.type else "", one.id) for one in found]
        print_table(("score", "name", "type", "id"), rows, to=sys.stdout, whole=("id",))


def entity(
    name: Name,
    thing: Annotated[str, typer.Argument(help="A name, an id or an IRI.")],
    *,
    json: AsJson = False,
) -> None:
    """All that is known of one thing, with its sources."""
    with open_desk(name, load_settings()) as desk:
        page = desk.entity(thing)
    if json:
        emit(msgspec.json.encode(page) + b"\n")
        return
    about = page.entity
    print(about.name)
    print("=" * len(about.name))
    print(", ".join(map(local_name, about.types)) or "thing")
    print(f"<{about.iri}>")
    if page.redirected_from:
        print(f"({page.redirected_from} leads here)")
    if about.aliases:
        print(f"also called {', '.join(about.aliases)}")
    for same in about.same_as:
        print(f"the same as <{same}>")
    print(f"in {about.documents} documents")
    for heading, statements in (("Facts", page.statements), ("Said by others", page.mentioned_by)):
        if statements:
            print(f"\n{heading}")
        for statement in statements:
            _print_statement(statement)
    if not page.statements and not page.mentioned_by:
        print("\nMentions")
        for place in page.mentions:
            print(f"    {_place(place)}")
    if page.truncated:
        print("\nThere is more; `sameas query` finds it.")


def path(
    name: Name,
    a: Annotated[str, typer.Argument(help="A name, an id or an IRI.")],
    b: Annotated[str, typer.Argument(help="Another one.")],
    *,
    longest: Annotated[int, typer.Option(min=1, max=12, help="Facts at most.")] = 6,
    json: AsJson = False,
) -> None:
    """How two things are connected, by the fewest facts."""
    with open_desk(name, load_settings()) as desk:
        found = desk.path(a, b, longest=longest)
    if json:
        emit(msgspec.json.encode(found) + b"\n")
    elif not found:
        print(f"{a!r} and {b!r} are not connected by {longest} facts or fewer", file=sys.stderr)
        raise typer.Exit(ExitCode.FAILED)
    else:
        _print_path(found)


def ask(
    name: Name,
    question: Annotated[str, typer.Argument(help="In plain words.")],
    *,
    model: Annotated[str, typer.Option(help="openai:NAME, anthropic:NAME, ..., http://host:port/v1#NAME")],
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens at most.")] = None,
    max_cost: Annotated[str | None, typer.Option(help="US dollars at most.")] = None,
    show_query: Annotated[bool, typer.Option("--show-query", help="Print the SPARQL, too.")] = False,
    json: AsJson = False,
) -> None:
    """Ask in plain words: a model writes the query, documents give the answer."""
    from sameas.questions.ask import answer_question

    settings = load_settings()
    cost = None if max_cost is None else dollars(max_cost)
    options = ModelOptions(model=model, max_tokens=max_tokens, max_cost=cost)

    async def work(desk: QuestionDesk) -> Answered:
        async with open_supervisor(options, settings) as supervisor:
            return await answer_question(desk, question, supervisor)

    with open_desk(name, settings) as desk:
        answered = asyncio.run(work(desk))
    if json:
        emit(msgspec.json.encode(answered) + b"\n")
    else:
        print(answered.text)
        if answered.citations:
            print()
        for number, cited in enumerate(answered.citations, 1):
            where = f", page {cited.page}" if cited.page is not None else ""
            where = where or (f", paragraph {cited.paragraph}" if cited.paragraph is not None else "")
            print(f'[{number}] "{cited.text}" ({cited.document_name}{where})')
        if show_query:
            print(f"\n{answered.sparql}")
    if not answered.is_supported:
        raise typer.Exit(ExitCode.PARTIAL)


def push(
    name: Name,
    *,
    to: Annotated[
        str, typer.Option(help="A SPARQL server's graph store (http://...), or bolt://... of a graph database.")
    ],
    update: Annotated[str, typer.Option(help="Where the SPARQL server takes updates, if that is not beside it.")] = "",
    json: AsJson = False,
) -> None:
    """Publish a collection to a SPARQL server or a graph database; only what changed since the last time is sent.

    The user and password of a graph database are SAMEAS_SERVICE_BOLT_USER and SAMEAS_SERVICE_BOLT_PASSWORD.
    """
    from sameas.questions.bolt_target import push_bolt
    from sameas.questions.sparql_target import SparqlTarget, push_sparql

    scheme = to.partition("://")[0]
    with open_desk(name, load_settings()) as desk:
        if scheme in ("http", "https"):
            done = push_sparql(desk.collection, SparqlTarget.of(to, update=update))
        elif scheme.startswith(("bolt", "neo4j")):
            user, password = bolt_credentials()
            done = push_bolt(desk.collection, to, user=user, password=password)
        else:
            raise CliError(
                f"{hide_password(to)!r} is not a database that is known",
                todo="Give http://HOST/store or bolt://HOST:7687",
                code=ExitCode.USAGE,
            )
    if json:
        emit(msgspec.json.encode(done) + b"\n")
    elif done.before == done.revision:
        print(f"nothing changed since revision {done.revision}")
    else:
        since = "everything" if done.before < 0 else f"what changed since revision {done.before}"
        print(
            f"{since}: {done.entities} things, {done.documents} documents; {done.removed} gone; now at {done.revision}"
        )


@asynccontextmanager
async def open_supervisor(options: ModelOptions, settings: Settings) -> AsyncIterator[RequestSupervisor]:
    """What asks the model of the options: memo, budget and limiter, as for an extraction."""
    from sameas.cli.prompted import DeferredModel, limits_of
    from sameas.cli.service import open_configured
    from sameas.llm.budget import OTHER, TOKENS_PER_CHUNK, TokenBudgetService
    from sameas.llm.limiter import AccountLimiters
    from sameas.llm.memo import SCOPE, CallMemo
    from sameas.llm.supervisor import RequestSupervisor
    from sameas.once.async_engine import AsyncEngine
    from sameas.once.policy import Policy
    from sameas.questions.ask import STAGE

    model = DeferredModel(options.model, prices=settings.prices)
    if options.max_cost is not None and model.price is None:
        raise CliError(f"--max-cost needs a price, and that of {model.name} is not known", todo="Give --max-tokens")
    settings.home.mkdir(parents=True, exist_ok=True)
    async with open_configured(settings) as store:
        memo = CallMemo(AsyncEngine(store, policies={SCOPE: Policy(lease=10.0, hand_in_for=5.0)}), settings.tenant)
        limiters = AccountLimiters(partial(limits_of, options), backend=store.backend)
        budget = TokenBudgetService(
            options.max_tokens or 4 * TOKENS_PER_CHUNK,
            shares={STAGE: Decimal(1), OTHER: Decimal(0)},
            cost_limit=options.max_cost,
            grows=options.max_tokens is None,
        )
        try:
            yield RequestSupervisor(
                model,
                limiter=limiters.of(model.address),
                budget=budget,
                memo=memo,
                attempt_seconds=model.timeout,
            )
        finally:
            await model.close()


def _print_answer(answer: Answer, prefixes: dict[str, str]) -> None:
    if answer.kind == "boolean":
        print("yes" if answer.boolean else "no")
        return
    columns = answer.variables
    rows = [tuple(_cell(row.get(column), prefixes) for column in columns) for row in answer.bindings()]
    print_table(columns, rows, to=sys.stdout)
    if not rows:
        print("no rows", file=sys.stderr)


def _cell(term: dict[str, str] | None, prefixes: dict[str, str]) -> str:
    if term is None:
        return ""
    return shortened(term["value"], prefixes) if term["type"] == "uri" else str(term["value"])


def _print_statement(statement: Statement) -> None:
    value = statement.value
    object_ = statement.object_name if value is None else f"{value.value} {value.unit}".rstrip()
    print(f"  {statement.subject_name} - {local_name(statement.predicate)} - {object_}")
    for place in statement.evidence:
        print(f"      {_place(place)}")


def _print_path(found: list[Connection]) -> None:
    for step in found:
        print(f"{step.subject_name} - {local_name(step.predicate)} - {step.object_name}")
        for place in step.evidence:
            print(f"    {_place(place)}")


def _place(place: CollectionEvidence) -> str:
    where = f", page {place.page}" if place.page is not None else ""
    where = where or (f", paragraph {place.paragraph}" if place.paragraph is not None else "")
    return f'"{place.text}" ({place.document_name or place.document}{where})'
