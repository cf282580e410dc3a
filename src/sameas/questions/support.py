"""The sentences that an answer rests on: the facts that fit a query's pattern, and what documents say of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from sameas.collections.errors import CollectionError
from sameas.collections.model import CollectionEvidence, Statement
from sameas.collections.views import Reader
from sameas.extraction.outputs.rdf import RDF, RDFS, SKOS
from sameas.questions.query_text import ReadQuery

if TYPE_CHECKING:
    from sameas.questions.desk import QuestionDesk

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
