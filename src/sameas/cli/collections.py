"""`sameas collection`: many documents, one graph: create, list, show, rm, check, and what else belongs to one;
`same`, `different` and `pairs` are what people decide of things that may be one.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from sameas.cli.errors import CliError, ExitCode
from sameas.cli.extract_options import format_for
from sameas.cli.registry import find_ontology
from sameas.cli.service import delete_run, make_service, open_configured
from sameas.cli.tables import print_table
from sameas.collections import Collection, Collections, collections_url, local_caller, open_tables
from sameas.collections.erasure import Erasure
from sameas.collections.exports import EXPORT_ENDINGS, EXPORT_FORMATS, ExportFormat
from sameas.collections.model import Contradiction, Decision, Pair, Role, Statement, Verdict
from sameas.extraction.outputs.context import local_name
from sameas.extraction.runs.library import RunNotFoundError
from sameas.ontology.load import load_ontology
from sameas.questions.index import drop_index
from sameas.settings import Settings, load_settings

app = typer.Typer(
    help="Collections: many documents, one graph. `sameas add` and `sameas sync` fill one.", no_args_is_help=True
)
Name = Annotated[str, typer.Argument(help="The collection, by its name or id.")]
Json = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]


@contextmanager
def opened(settings: Settings) -> Iterator[Collections]:
    """The collections of the settings in force."""
    settings.home.mkdir(parents=True, exist_ok=True)
    try:
        found = Collections(open_tables(collections_url(settings.home, settings.database)))
    except ValueError as error:
        raise CliError(str(error), todo="Correct SAMEAS_DATABASE", code=ExitCode.USAGE) from error
    try:
        yield found
    finally:
        found.close()


@contextmanager
def open_collection(name: str) -> Iterator[Collection]:
    """One of them, for the person at the keyboard."""
    settings = load_settings()
    with opened(settings) as found:
        yield found.open(name, caller=local_caller(settings.tenant))


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="A name such as press.")],
    *,
    ontology: Annotated[str, typer.Option("--ontology", "-o", help="A file, or the name of one that was added.")],
    imports: Annotated[Path | None, typer.Option(help="A folder that answers owl:imports.")] = None,
    base: Annotated[str | None, typer.Option(help="What the IRIs of entities and documents begin with.")] = None,
) -> None:
    """Make an empty collection with an ontology."""
    settings = load_settings()
    path = find_ontology(ontology, settings)
    loaded = load_ontology(path, imports_dir=imports, cache_dir=settings.cache / "ontologies")
    with opened(settings) as found:
        try:
            made = found.create(
                name, ontology=loaded, caller=local_caller(settings.tenant), base=base or settings.base,
                source=str(path.resolve()),
            )  # fmt: skip
        except ValueError as error:
            raise CliError(str(error), code=ExitCode.USAGE) from error
    print(f"{made.name}: {made.id}")


@app.command("list")
def list_collections(*, json: Json = False) -> None:
    """The collections."""
    settings = load_settings()
    with opened(settings) as found:
        infos = found.list(local_caller(settings.tenant))
    if json:
        for info in infos:
            print(msgspec.json.encode(info).decode())
        return
    if not infos:
        print("no collections yet: `sameas collection create NAME --ontology FILE` makes one", file=sys.stderr)
        return
    rows = [
        [one.name, str(one.documents), str(one.entities), str(one.claims), one.ontology_id, one.created_at[:10]]
        for one in infos
    ]
    print_table(("name", "documents", "entities", "claims", "ontology", "created"), rows, to=sys.stdout)


@app.command()
def show(name: Name, *, json: Json = False) -> None:
    """How much is in a collection, and what needs a look."""
    with open_collection(name) as collection:
        info, state = collection.info(), collection.sync_state()
        failed = collection.documents(status="failed", limit=20)
    if json:
        shown = {"collection": info, "sync": state}
        print(msgspec.json.encode(shown).decode())
        return
    print(f"{info.name}  {info.id}  revision {info.revision}")
    print(f"ontology   {info.ontology_id} {info.ontology_version[:19]}")
    print(f"documents  {info.documents} ({state.partial} partial, {state.failed} failed, {state.waiting} waiting)")
    print(f"entities   {info.entities}")
    print(f"claims     {info.claims}")
    for document in failed:
        print(f"failed     {document.names[0].name}: {document.names[0].error}")


@app.command("rm")
def remove(name: Name, *, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False) -> None:
    """Remove a collection and all that is in it; the files that were read stay."""
    settings = load_settings()
    with opened(settings) as found:
        info = found.open(name, caller=local_caller(settings.tenant)).info()
        if not yes and info.documents:
            typer.confirm(f"remove {info.name} with {info.documents} documents?", abort=True)
        found.remove(name, caller=local_caller(settings.tenant))
        drop_index(settings.cache / "questions", info.id)
    print(f"removed {info.name}", file=sys.stderr)


@app.command()
def check(name: Name) -> None:
    """Look for damage; ends with 1 if there is any."""
    with open_collection(name) as collection:
        findings = collection.check()
    for finding in findings:
        print(f"{finding.code}: {finding.detail}")
    if findings:
        raise typer.Exit(ExitCode.FAILED)
    print("nothing is wrong", file=sys.stderr)


@app.command()
def documents(name: Name, *, json: Json = False) -> None:
    """The documents, with all their names."""
    with open_collection(name) as collection:
        after = ""
        while page := collection.documents(after=after, limit=200):
            for document in page:
                source = document.names[0]
                if json:
                    print(msgspec.json.encode(document).decode())
                else:
                    print(f"{source.name}  {source.status}  {document.digest[7:19]}  {document.claims} claims")
            after = page[-1].names[0].name


@app.command()
def export(
    name: Name,
    *,
    form: Annotated[
        str | None,
        typer.Option("--format", "-f", help=f"{', '.join(EXPORT_FORMATS)}; by default what --out is called, or nquads"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of stdout.")] = None,
) -> None:
    """The whole collection as a file; it is streamed."""
    to = format_for(out, None if form is None else _format(form), endings=EXPORT_ENDINGS, default="nquads")
    with open_collection(name) as collection:
        if out is None:
            collection.export(sys.stdout.buffer, to=to)
            sys.stdout.buffer.flush()
            return
        export_to_file(collection, out, to=to)


def export_to_file(collection: Collection, target: Path, *, to: ExportFormat) -> None:
    """Write a collection to a file, whole or not at all."""
    partial = target.with_name(f".{target.name}.tmp")
    try:
        with partial.open("wb") as file:
            collection.export(file, to=to)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _format(text: str) -> ExportFormat:
    for known in EXPORT_FORMATS:
        if text == known:
            return known
    raise CliError(f"{text!r} is no format", todo=f"Use one of {', '.join(EXPORT_FORMATS)}", code=ExitCode.USAGE)


@app.command()
def contradictions(name: Name, *, json: Json = False) -> None:
    """Two values of a functional property, and classes that exclude each other, with both sides; of two things of one
    name, too, that just this keeps apart."""
    with open_collection(name) as collection:
        found = collection.contradictions()
    for one in found:
        if json:
            print(msgspec.json.encode(one).decode())
        else:
            _print_contradiction(one)
    if not found:
        print("no contradictions", file=sys.stderr)


def _print_contradiction(one: Contradiction) -> None:
    about = local_name(one.predicate) if one.predicate else "is " + " and ".join(map(local_name, one.classes))
    two = "" if one.other is None else f" and {one.other.name} ({one.other.id}), kept apart by it"
    print(f"{one.entity.name} ({one.entity.id}){two}: {about}")
    for side in one.sides:
        whose = "" if one.other is None else f"{side.subject}: "
        print(f"  {whose}{_object(side)}  ({side.documents} documents)")
        for place in side.evidence[:3]:
            print(f"    {place.document_name}:{place.start}: {place.text}")
    for iri, places in zip(one.classes, one.evidence, strict=False):
        print(f"  {local_name(iri)}")
        for place in places[:3]:
            print(f"    {place.document_name}:{place.start}: {place.text}")


def _object(one: Statement) -> str:
    return one.object_name if one.value is None else f"{one.value.value} {one.value.unit}".rstrip()


@app.command()
def link(
    name: Name, file: Annotated[Path, typer.Argument(help="Known things: CSV with iri and name, or a graph.")]
) -> None:
    """Link a list of known things; the list of this name before is replaced."""
    data = file.read_bytes()
    with open_collection(name) as collection:
        change = collection.link_known(file.name, data)
    print(f"{change.entities} known things linked", file=sys.stderr)


@app.command()
def erase(
    name: Name,
    thing: Annotated[str, typer.Argument(help="The person or thing, by its id or name.")],
    *,
    reason: Annotated[str, typer.Option(help="Why; do not name it here.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Erase a person or thing from a collection, and the runs that named it. It does not come back."""
    with open_collection(name) as collection:
        if not yes:
            typer.confirm(f"erase {thing!r} from {collection.name} for good?", abort=True)
        done = asyncio.run(erase_everywhere(collection, thing, reason=reason, settings=load_settings()))
    print(
        f"erased from {done.documents} documents: {done.claims} claims, {done.evidence} quotations; "
        f"{len(done.removed)} documents and {len(done.runs)} runs went as a whole",
        file=sys.stderr,
    )


async def remove_runs(keys: Iterable[str], *, settings: Settings) -> None:
    """Delete runs that are there; nobody misses the others."""
    async with open_configured(settings) as store:
        service = make_service(settings, store)
        for key in keys:
            with suppress(RunNotFoundError):
                await delete_run(service, store, key, settings=settings)


async def erase_everywhere(collection: Collection, thing: str, *, reason: str, settings: Settings) -> Erasure:
    """Erase from a collection, from its index and from the runs that read the documents."""
    index, loop = settings.cache / "questions", asyncio.get_running_loop()

    def before(erased: Erasure) -> None:
        drop_index(index, collection.id)
        asyncio.run_coroutine_threadsafe(remove_runs(erased.runs, settings=settings), loop).result()

    done = await asyncio.to_thread(collection.erase, thing, reason=reason, before=before)
    # Somebody may have asked a question meanwhile.
    await asyncio.to_thread(drop_index, index, collection.id)
    return done


@app.command()
def members(
    name: Name,
    *,
    give: Annotated[str | None, typer.Option(help="PRINCIPAL=reader|contributor|curator|owner")] = None,
    take: Annotated[str | None, typer.Option(help="A principal who has no role any more.")] = None,
) -> None:
    """Who may read, add, decide and own; a principal is the id of a user or service."""
    with open_collection(name) as collection:
        if give is not None:
            principal, _, role = give.rpartition("=")
            try:
                collection.put_member(principal, msgspec.convert(role, Role))
            except msgspec.ValidationError as error:
                raise CliError(f"{role!r} is no role", todo="Use reader, contributor, curator or owner") from error
        if take is not None:
            collection.remove_member(take)
        rows = [[principal, role] for principal, role in collection.members().items()]
    print_table(("principal", "role"), rows, to=sys.stdout)


Thing = Annotated[str, typer.Argument(help="A thing, by its id, IRI or name.")]
Why = Annotated[str, typer.Option("--reason", help="Why; kept with the decision.")]


def same(name: Name, a: Thing, b: Thing, *, reason: Why = "") -> None:
    """Decide that two things are one; it holds through every later sync."""
    _decide(name, "same", a, b, reason)


def different(name: Name, a: Thing, b: Thing, *, reason: Why = "") -> None:
    """Decide that two things are different; it holds through every later sync."""
    _decide(name, "different", a, b, reason)


def _decide(name: str, verdict: Verdict, a: str, b: str, reason: str) -> None:
    with open_collection(name) as collection:
        decision = collection.decide(verdict, a, b, reason=reason)
    print(
        f"{decision.a_name} and {decision.b_name} are {verdict}: {decision.a}"
        + ("" if verdict == "same" else f", {decision.b}")
    )
    print(f"undo it with: sameas pairs {name} --undo {decision.id}", file=sys.stderr)


def pairs(
    name: Name,
    *,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 20,
    decided: Annotated[bool, typer.Option("--decided", help="Show what was decided instead.")] = False,
    undo: Annotated[str | None, typer.Option(help="Take a decision back, by its id.")] = None,
    json: Json = False,
) -> None:
    """Things that may be one, likeliest first, with what speaks for and against."""
    with open_collection(name) as collection:
        if undo is not None:
            done = collection.undo(undo)
            print(f"undone: {done.a_name} and {done.b_name} are {done.verdict}", file=sys.stderr)
            return
        decisions = collection.decisions(undone=True) if decided else []
        found = [] if decided else collection.pairs()
    if decided:
        _print_decisions(decisions, json=json)
        return
    for pair in found[:limit]:
        if json:
            print(msgspec.json.encode(pair).decode())
        else:
            _print_pair(pair)
    if len(found) > limit:
        print(f"{len(found) - limit} more (--limit)", file=sys.stderr)
    elif not found:
        print("no doubtful pairs", file=sys.stderr)


def _print_pair(pair: Pair) -> None:
    print(f"{pair.probability:.2f}  {pair.a.name} ({pair.a.id})  /  {pair.b.name} ({pair.b.id})")
    for reason in pair.reasons:
        detail = " ".join(local_name(word) if "://" in word else word for word in reason.detail.split())
        print(f"      {reason.weight:+.1f}  {reason.kind.replace('-', ' ')}  {detail}".rstrip())


def _print_decisions(decisions: list[Decision], *, json: bool) -> None:
    if json:
        for one in decisions:
            print(msgspec.json.encode(one).decode())
        return
    rows = [
        [one.id, one.verdict, one.a_name, one.b_name, one.by, one.at[:19], one.undone_at[:19], one.reason]
        for one in decisions
    ]
    print_table(("id", "verdict", "a", "b", "by", "at (UTC)", "undone", "reason"), rows, to=sys.stdout, whole=("id",))
