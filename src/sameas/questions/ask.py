"""A question in plain words: a model writes the query, the collection answers it, and sentences of documents support
it.

Rule: the model writes SPARQL and nothing else. Its query is read like anybody's and can only read; the answer is made
of the rows and of the sentences that they rest on, never of the model's words. Where no sentence supports an answer,
that is the answer. A query that cannot be run is sent back once with the reason. What was asked before is not paid for
again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

import msgspec

from sameas.collections.errors import CollectionError, EntityNotFoundError
from sameas.collections.model import CollectionEvidence, Statement
from sameas.collections.views import Reader
from sameas.extraction.outputs.rdf import RDF, RDFS, SKOS
from sameas.llm.errors import BudgetSpent
from sameas.llm.memo import Check
from sameas.llm.models import Ask, Message, Reply
from sameas.ontology.focus import Focuser
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Constraint, OntologyClass, OntologyProperty
from sameas.questions.answers import Answer
from sameas.questions.desk import QuestionDesk
from sameas.questions.errors import QueryError, QueryLimitError, QuestionError
from sameas.questions.graph import shortened
from sameas.questions.query_text import ReadQuery, read_query, stated_by_query

if TYPE_CHECKING:
    from sameas.questions.desk import QuestionDesk


STAGE = "relation_extraction"
UNSUPPORTED = "The collection has nothing that answers this."
NO_SUCH_FACT = "No document says so."
_OUTPUT_TOKENS = 1_000
_LONGEST_QUESTION = 4_000
_NAMES_SHOWN = 12
_ROWS_SHOWN = 50
_LABELS_SHOWN = 4
_SCHEMA = {
    "type": "object",
    "properties": {"sparql": {"type": "string"}},
    "required": ["sparql"],
    "additionalProperties": False,
}
_SYSTEM = """You write one SPARQL 1.1 query that answers a question about a knowledge graph. You only write the query; \
you never answer from what you know yourself.

Rules:
- SELECT or ASK only. No SERVICE, no FROM, no updates.
- Use the classes and properties below and nothing else. Their prefixes are declared already.
- Things have rdfs:label (their name) and skos:altLabel. Where a thing is given below by its IRI, use the IRI.
- Otherwise match names without regard to case: FILTER(CONTAINS(LCASE(?name), "acme")).
- Select the things themselves, not only their names, and add LIMIT 50.
- No text, number or IRI of your own in SELECT or BIND, no text or number in VALUES; use FILTER.
- If the graph cannot answer the question, give an empty string.

Classes:
{classes}

Properties (domain -> range):
{properties}
"""
_QUESTION = """Things whose names are like words of the question:
{names}

Question: {question}"""
_AGAIN = "That query cannot be used: {error}\nWrite it again."


class Supervisor(Protocol):
    """What asks a model: memo, budget, limiter and retries are behind it."""

    async def ask(
        self, stage: str, ask: Ask, *, is_valid: Check | None = None, repair_tokens: int | None = None
    ) -> Reply: ...


class Answered(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer to a question. `rows` are what the query gave, things by their names; `citations` are what it rests
    on. Without support `text` says so.
    """

    question: str
    text: str
    is_supported: bool
    sparql: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    citations: tuple[Cited, ...] = ()


class _Written(msgspec.Struct):
    sparql: str


async def answer_question(desk: QuestionDesk, question: str, supervisor: Supervisor) -> Answered:
    """Have a model write the query of a question, and answer it with what the collection holds."""
    asked = question.strip()
    if not asked:
        raise QueryError("there is no question")
    if len(asked) > _LONGEST_QUESTION:
        raise QueryError(f"the question has {len(asked)} characters; at most {_LONGEST_QUESTION} are asked")
    messages = await asyncio.to_thread(_messages, desk, asked)
    text = await _written(supervisor, messages)
    try:
        return await asyncio.to_thread(_answered, desk, asked, text)
    except QuestionError as error:
        again = (
            *messages,
            Message("assistant", msgspec.json.encode({"sparql": text}).decode()),
            Message("user", _AGAIN.format(error=str(error)[:1_000])),
        )
    second = await _written(supervisor, again)
    try:
        return await asyncio.to_thread(_answered, desk, asked, second)
    except QuestionError as error:
        raise QueryError(f"the model wrote no query that can be run: {error}") from error


async def _written(supervisor: Supervisor, messages: tuple[Message, ...]) -> str:
    ask = Ask(messages=messages, schema=_SCHEMA, schema_name="query", max_output_tokens=_OUTPUT_TOKENS)
    try:
        reply = await supervisor.ask(STAGE, ask, is_valid=_is_usable, repair_tokens=_OUTPUT_TOKENS)
    except BudgetSpent as error:
        raise QueryLimitError(
            "the budget of the question is spent; allow more tokens or money", limit="budget"
        ) from error
    try:
        return msgspec.json.decode(reply.text, type=_Written).sparql.strip()
    except msgspec.DecodeError as error:
        raise QueryError(
            "the model's reply is not the JSON that was asked for; ask again, or ask another model"
        ) from error


def _is_usable(reply: Reply) -> bool:
    try:
        msgspec.json.decode(reply.text, type=_Written)
    except msgspec.DecodeError:
        return False
    return reply.finish == "stop"


def _messages(desk: QuestionDesk, question: str) -> tuple[Message, ...]:
    prefixes = desk.prefixes
    index = OntologyIndex(desk.collection.ontology)
    focus = Focuser(index).focus(question)
    classes = [one for one in desk.collection.ontology.classes if one.iri in set(focus.classes)]
    properties = [one for one in desk.collection.ontology.properties if one.iri in set(focus.properties)]
    system = _SYSTEM.format(
        classes="\n".join(f"{shortened(one.iri, prefixes)} {_label(one)}".rstrip() for one in classes),
        properties="\n".join(
            f"{shortened(one.iri, prefixes)} {_label(one)} "
            f"({_ends(one.domain, prefixes)} -> {_ends(one.range, prefixes)})"
            for one in properties
        ),
    )
    found = desk.find(question, limit=_NAMES_SHOWN)
    base = desk.collection.base
    names = "\n".join(f"<{base}{one.id}> is called {one.matched!r}" for one in found) or "none"
    return Message("system", system), Message("user", _QUESTION.format(names=names, question=question))


def _label(term: OntologyClass | OntologyProperty) -> str:
    """Its names, those in English first: most models know it best."""
    names = sorted(term.labels, key=lambda one: one.lang not in ("en", "")) + list(term.alt_labels)
    return ", ".join(f'"{one.value}"' for one in names[:_LABELS_SHOWN])


def _ends(constraint: Constraint, prefixes: dict[str, str]) -> str:
    found = [shortened(iri, prefixes) for choice in constraint for iri in choice]
    return " or ".join(dict.fromkeys(found)) or "anything"


def _answered(desk: QuestionDesk, question: str, text: str) -> Answered:
    if not text:
        return Answered(question=question, text=UNSUPPORTED, is_supported=False, sparql="")
    query = read_query(text)
    if query.form not in ("SELECT", "ASK"):
        raise QueryError(f"{query.form} is not a question; write SELECT or ASK")
    if constant := stated_by_query(query):
        raise QueryError(
            f"{constant} would be an answer of your own: SELECT, BIND and VALUES take variables, functions of them "
            "and, in VALUES, IRIs; compare with texts and numbers in a FILTER"
        )
    answer = desk.query(text)
    is_no = answer.kind == "boolean" and not answer.boolean
    citations = () if is_no or not answer.rows else support_of(desk, query)
    if is_no or not citations:
        said = NO_SUCH_FACT if is_no else UNSUPPORTED
        return Answered(question=question, text=said, is_supported=False, sparql=text)
    columns, rows = _rows(desk, answer)
    return Answered(
        question=question,
        text=_said(answer, rows, citations),
        is_supported=True,
        sparql=text,
        columns=columns,
        rows=rows,
        citations=citations,
    )


def _rows(desk: QuestionDesk, answer: Answer) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    if answer.kind == "boolean":
        return ("answer",), (("yes",),)
    columns = tuple(answer.variables)
    names: dict[str, str] = {}
    rows: list[tuple[str, ...]] = []
    with desk.collection.reading() as reader:
        for row in answer.bindings():
            cells = []
            for column in columns:
                value = row.get(column, {}).get("value", "")
                if value.startswith(desk.collection.base) and value not in names:
                    try:
                        names[value] = reader.resolve_id(value)[2]
                    except EntityNotFoundError:
                        names[value] = value
                cells.append(names.get(value, value))
            if tuple(cells) not in rows:
                rows.append(tuple(cells))
            if len(rows) >= _ROWS_SHOWN:
                break
    return columns, tuple(rows)


def _said(answer: Answer, rows: tuple[tuple[str, ...], ...], citations: tuple[Cited, ...]) -> str:
    """The rows in a line each, with the numbers of the sentences that speak of them."""
    if answer.kind == "boolean":
        return f"Yes {_marks(range(1, len(citations) + 1))}"
    lines = []
    for row in rows:
        cells = list(dict.fromkeys(cell for cell in row if cell))
        numbers = [number for number, cited in enumerate(citations, 1) if any(cell in cited.names for cell in cells)]
        lines.append(f"{', '.join(cells)} {_marks(numbers or range(1, len(citations) + 1))}")
    return "\n".join(lines)


def _marks(numbers: Iterable[int]) -> str:
    return "".join(f"[{number}]" for number in numbers)


_ROWS = 50
_CITED = 30
_EVIDENCE_EACH = 2
# What is said of every thing is no fact of its own.
_DESCRIBES = frozenset((f"{RDF}type", f"{RDFS}label", f"{SKOS}altLabel"))


class Cited(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A sentence of a document, and the fact that it supports."""

    text: str
    document: str
    document_name: str
    start: int
    end: int
    page: int | None = None
    paragraph: int | None = None
    fact: str = ""
    names: tuple[str, ...] = ()
    """What the fact is about."""


def support_of(desk: QuestionDesk, query: ReadQuery) -> tuple[Cited, ...]:
    """What documents say of the facts that a query found."""
    if not query.body:
        return ()
    # All that its pattern binds, whatever it selects of that.
    rows = list(desk.query(f"{query.head} SELECT * WHERE {query.body} LIMIT {_ROWS}").bindings())
    base = desk.collection.base
    named = _named(query, desk.prefixes)
    bound = {value["value"] for row in rows for value in row.values()} | named
    subjects = sorted(iri.removeprefix(base) for iri in bound if iri.startswith(base))
    predicates = (named | {iri for iri in bound if "/" in iri or "#" in iri}) - _DESCRIBES
    found: dict[tuple[str, int, int], Cited] = {}
    with desk.collection.reading() as reader:
        for id_ in subjects:
            for fact in _facts(reader, id_, predicates, bound, base):
                for evidence in fact.evidence[:_EVIDENCE_EACH]:
                    place = (evidence.document, evidence.start, evidence.end)
                    found.setdefault(place, _cited(evidence, fact))
                    if len(found) >= _CITED:
                        return tuple(found.values())
        if not found:
            found = _mentions(reader, subjects)
    return tuple(found.values())


def _facts(reader: Reader, id_: str, predicates: set[str], bound: set[str], base: str) -> Iterator[Statement]:
    try:
        statements = reader.statements_of(id_, evidence=_EVIDENCE_EACH)
    except CollectionError:
        return
    for one in statements:
        object_ = base + one.object if one.value is None else one.value.value
        if one.predicate in predicates and object_ in bound:
            yield one


def _mentions(reader: Reader, subjects: list[str]) -> dict[tuple[str, int, int], Cited]:
    """Where a question is about things alone, the places that name them."""
    found: dict[tuple[str, int, int], Cited] = {}
    for id_ in subjects[:_CITED]:
        try:
            page = reader.page(id_)
        except CollectionError:
            continue
        for evidence in page.mentions[:1]:
            fact = Statement(subject=id_, predicate="", subject_name=page.entity.name)
            found[evidence.document, evidence.start, evidence.end] = _cited(evidence, fact)
    return found


def _cited(evidence: CollectionEvidence, fact: Statement) -> Cited:
    value = fact.object_name if fact.value is None else fact.value.value
    # As people write it: `investedIn` is "invested in".
    said = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.split(r"[/#:]", fact.predicate)[-1]).lower()
    return Cited(
        text=evidence.text,
        document=evidence.document,
        document_name=evidence.document_name,
        start=evidence.start,
        end=evidence.end,
        page=evidence.page,
        paragraph=evidence.paragraph,
        fact=" ".join(filter(None, (fact.subject_name, said, value))),
        names=tuple(filter(None, (fact.subject_name, value))),
    )


def _named(query: ReadQuery, prefixes: dict[str, str]) -> set[str]:
    """The IRIs that a query names, by themselves or by a prefix."""
    known = dict(prefixes)
    words = query.words
    for number, word in enumerate(words[:-2]):
        if word.kind == "word" and word.text.upper() == "PREFIX":
            known[words[number + 1].text.removesuffix(":")] = words[number + 2].text[1:-1]
    found = set(query.iris)
    for word in words:
        if word.kind == "name":
            prefix, _, rest = word.text.partition(":")
            if prefix in known:
                found.add(known[prefix] + rest.replace("\\", ""))
    return found
