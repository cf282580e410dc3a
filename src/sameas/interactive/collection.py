"""A collection from Python and in a notebook: filled, asked and looked at.

Rule: it is the same collection as on the command line, with the settings in force; close it, or use it in a `with`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sameas.cli.collection_documents import Reading, fill
from sameas.cli.collections import erase_everywhere, export_to_file, opened, remove_runs
from sameas.cli.extract_options import ModelOptions
from sameas.cli.extractors import ExtractorName
from sameas.cli.questions import index_folder, open_supervisor
from sameas.cli.registry import find_ontology
from sameas.collections.collection import Collection, text_digest
from sameas.collections.erasure import Erasure
from sameas.collections.errors import CollectionNotFoundError
from sameas.collections.exports import EXPORT_ENDINGS, EXPORT_FORMATS, ExportFormat
from sameas.collections.filling import Filler, Summary
from sameas.collections.filling import sync as sync_folder
from sameas.collections.model import Change, Contradiction, Decision, EntityPage, Finding, Pair, Source, Statement
from sameas.collections.registry import local_caller
from sameas.interactive.extraction import GivenDocument, aextract, to_its_end
from sameas.once.async_engine import AsyncEngine
from sameas.ontology.load import load_ontology
from sameas.ontology.model import Ontology
from sameas.questions.answers import Answer
from sameas.questions.ask import Answered, answer_question
from sameas.questions.desk import Connection, QuestionDesk
from sameas.questions.index import FoundName
from sameas.questions.runner import QueryRunner
from sameas.settings import Settings, load_settings

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 20


def open_collection(name: str, *, ontology: str | Path | None = None, base: str | None = None) -> OpenCollection:
    """The collection of this name; with `ontology` it is made if there is none.

    Raises `CollectionNotFoundError` if there is none and no ontology was given, and `OntologyError` for one that cannot
    be read.
    """
    return OpenCollection(name, load_settings(), ontology=ontology, base=base)


class OpenCollection:
    """A collection to work with, as `open_collection` opens it. Close it, or use it in a `with` statement.

    Methods raise CollectionError for what is not there (EntityNotFoundError, EntityAmbiguousError,
    DecisionNotFoundError, DocumentNotFoundError) or not allowed (RoleRequiredError), QuestionError for a query that
    cannot be answered, and StoreError if the database is away; `add` and `sync` also raise what `extract` raises.
    """

    def __init__(self, name: str, settings: Settings, *, ontology: str | Path | None, base: str | None) -> None:
        self._settings = settings
        self._opening = opened(settings)
        found = self._opening.__enter__()
        self._runner = QueryRunner(processes=1)
        caller = local_caller(settings.tenant)

        def load(given: str | Path) -> Ontology:
            return load_ontology(find_ontology(str(given), settings), cache_dir=settings.cache / "ontologies")

        try:
            self.collection: Collection = found.open(name, caller=caller)
        except CollectionNotFoundError:
            if ontology is None:
                self.close()
                raise
            self.collection = found.create(name, ontology=load(ontology), caller=caller, base=base or settings.base)
        else:
            if ontology is not None and load(ontology).version != self.collection.opened_as.ontology_version:
                warnings.warn(
                    f"the collection {name!r} keeps the ontology that it was made with, which is not {ontology} as it "
                    "is now. For another ontology make another collection, and add the documents to it",
                    stacklevel=3,
                )
        self._desk = QuestionDesk(self.collection, folder=index_folder(settings), runner=self._runner)

    def add(
        self,
        documents: GivenDocument | Iterable[GivenDocument],
        *,
        model: str | None = None,
        extractor: ExtractorName | None = None,
        max_tokens: int | None = None,
        max_cost: Decimal | float | None = None,
    ) -> list[Change]:
        """Extract from documents, as `sameas.extract` does, and put them in. A name that is there gets the new text."""
        result = to_its_end(
            aextract(
                documents,
                ontology=self.collection.ontology,
                model=model,
                extractor=extractor,
                base=self.collection.base,
                max_tokens=max_tokens,
                max_cost=max_cost,
            )
        )
        changes = []
        for one in result.documents:
            source = Source(
                name=one.source.location or one.name,
                path=one.source.location,
                media_type=one.source.media_type,
                title=one.source.title,
                size=one.source.size or 0,
                source_time=one.source.modified_at,
            )
            changes.append(
                self.collection.put_document(
                    source,
                    digest=text_digest(one.text),
                    said=one.graph,
                    run=one.metadata.idempotency_key,
                    complete=one.is_complete,
                    locate=one.places.of,
                )
            )
        runs = [one.metadata.idempotency_key for one in result.documents]
        gone = [key for key, change in zip(runs, changes, strict=True) if change.names_erased]
        if gone:
            to_its_end(remove_runs(gone, settings=self._settings))
        return changes

    def remove(self, name: str) -> Change:
        """Take a name of a document away; the document goes with its last one."""
        return self.collection.remove_name(name)

    def sync(
        self,
        folder: str | Path,
        *,
        model: str | None = None,
        extractor: ExtractorName | None = None,
        max_tokens: int | None = None,
        max_cost: Decimal | float | None = None,
        retry_failed: bool = False,
        allow_empty: bool = False,
    ) -> Summary:
        """Keep it in step with a folder: what is new comes in, what changed is redone, what is gone goes."""
        cost = None if max_cost is None else str(max_cost)
        how = Reading(extractor=extractor, model=model, max_tokens=max_tokens, max_cost=cost, at_once=None, quiet=True)
        named = Path(folder).as_posix().rstrip("/")

        async def work(filler: Filler, engine: AsyncEngine) -> Summary:
            return await sync_folder(
                self.collection, Path(folder), filler=filler, engine=engine, named=named, retry_failed=retry_failed,
                allow_empty=allow_empty,
            )  # fmt: skip

        (summary,) = to_its_end(fill(self.collection, how, work, settings=self._settings))
        return summary

    def query(self, sparql: str) -> Answer:
        """The answer to a SPARQL query; the prefixes of the ontology are known."""
        return self._desk.query(sparql)

    def to_pandas(self, sparql: str) -> pd.DataFrame:
        """The rows of a SELECT as a table."""
        from sameas.interactive.forms import table_of

        return table_of(self.query(sparql))

    def find(self, text: str, *, limit: int = 20) -> list[FoundName]:
        """Things by a name that is nearly theirs."""
        return self._desk.find(text, limit=limit)

    def entity(self, named: str) -> EntityPage:
        """All that is known of one thing, by its name, id or IRI."""
        return self._desk.entity(named)

    def path(self, a: str, b: str) -> list[Connection]:
        """How two things are connected."""
        return self._desk.path(a, b)

    def ask(
        self, question: str, *, model: str, max_tokens: int | None = None, max_cost: Decimal | float | None = None
    ) -> Answered:
        """A question in plain words: the model writes the query, documents give the answer."""
        cost = None if max_cost is None else Decimal(str(max_cost))
        options = ModelOptions(model=model, max_tokens=max_tokens, max_cost=cost)

        async def work() -> Answered:
            async with open_supervisor(options, self._settings) as supervisor:
                return await answer_question(self._desk, question, supervisor)

        return to_its_end(work())

    def same(self, a: str, b: str, *, reason: str = "") -> Decision:
        """Decide that two things are one, from now on."""
        return self.collection.decide("same", a, b, reason=reason)

    def different(self, a: str, b: str, *, reason: str = "") -> Decision:
        """Decide that two things are not one, from now on."""
        return self.collection.decide("different", a, b, reason=reason)

    def undo(self, decision: str) -> Decision:
        """Take a decision back, by its id."""
        return self.collection.undo(decision)

    def link(self, known: str | Path) -> Change:
        """Link a list of known things: CSV with `iri` and `name`, or a graph. The list of this file's name before is
        replaced.
        """
        path = Path(known)
        return self.collection.link_known(path.name, path.read_bytes())

    def erase(self, named: str, *, reason: str = "") -> Erasure:
        """Erase a person or thing for good, by its name, id or IRI; the runs that named it go, too."""
        return to_its_end(erase_everywhere(self.collection, named, reason=reason, settings=self._settings))

    def export(self, target: str | Path, *, output: ExportFormat | None = None) -> Path:
        """Write the whole collection to a file, piece by piece; the format is what the file is called unless it is
        given: nquads, turtle, jsonl, csv or html.
        """
        path = Path(target)
        chosen = output or EXPORT_ENDINGS.get(path.suffix.lower())
        if chosen not in EXPORT_FORMATS:
            raise ValueError(
                f"{output or path.name!r} is no format; the formats are {', '.join(EXPORT_FORMATS)}, and files are "
                f"called {', '.join(EXPORT_ENDINGS)}"
            )
        export_to_file(self.collection, path, to=chosen)
        return path

    def check(self) -> list[Finding]:
        """What is damaged; nothing, if all is well."""
        return self.collection.check()

    @property
    def pairs(self) -> list[Pair]:
        """Things that may be one, likeliest first."""
        return self.collection.pairs()

    @property
    def contradictions(self) -> list[Contradiction]:
        return self.collection.contradictions()

    @property
    def statements(self) -> list[Statement]:
        """Every fact with all its evidence, in memory."""
        return list(self.collection.statements())

    def close(self) -> None:
        """Close the collection and end its query processes."""
        self._runner.close()
        self._opening.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        info = self.collection.info()
        return f"<sameas collection {info.name!r}: {info.documents} documents, {info.entities} entities>"

    def _repr_html_(self) -> str:
        rows: list[Any] = []
        for number, statement in enumerate(self.collection.statements(evidence=1)):
            if number >= _SHOWN:
                break
            value = statement.object_name if statement.value is None else statement.value.value
            first = statement.evidence[0] if statement.evidence else None
            cells = (
                statement.subject_name,
                statement.predicate.rpartition("#")[2].rpartition("/")[2],
                value,
                "" if first is None else first.text,
                "" if first is None else first.document_name,
            )
            rows.append("".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in cells))
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<p><b>{escape(repr(self)[1:-1])}</b></p><table>{body}</table>"
