"""What the replies of a model say of a chunk: agreed on, placed in the text, and asserted by its words.

Rule: a fact needs words. Names that only stand side by side and what is said to an assistant assert nothing. Where a
chunk speaks to an assistant about two things, a fact about them needs a sentence of its own that speaks of the
property: else it is only what was ordered. Whether a sentence denies, doubts or asks is the guard's to judge, and what
it means beyond that the model's and the second model's.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sameas.extraction.extractors.prompted.addressing import addressed, decoded, is_within
from sameas.extraction.extractors.prompted.order_cues import may_order
from sameas.extraction.extractors.prompted.reading import Read, ReplyReader, Thing, places
from sameas.extraction.extractors.prompted.replies import (
    EntityReply,
    JointReply,
    NamedEntity,
    RelationReply,
    SampledItem,
    agree,
    percent_of,
)
from sameas.extraction.extractors.prompted.settings import PromptSettings
from sameas.extraction.extractors.prompted.signatures import Menu
from sameas.extraction.graph.model import Claim, Mention, Rejection, RejectionCode
from sameas.extraction.text.chunking import Chunk, find_sentence
from sameas.extraction.text.document import Span
from sameas.ontology.index import OntologyIndex
from sameas.ontology.lexicon import name_of

_WORD = re.compile(r"[^\W\d_]{2,}|[^\W\d_a-zA-Z]")
_STEM = 4
# They stand in the names of many properties and of no fact.
_EMPTY = frozenset(("has", "have", "is", "was", "of", "by", "in", "at", "for", "the", "to", "with", "on", "date"))


class Assertions:
    """Judges the claims of a model by the words around them, for one ontology."""

    def __init__(self, index: OntologyIndex) -> None:
        self._index = index

    def check(
        self, chunk: Chunk, claims: Iterable[Claim], mentions: Sequence[Mention]
    ) -> tuple[tuple[Claim, ...], tuple[Rejection, ...]]:
        """The claims that words assert, and the others with the reason."""
        kept: list[Claim] = []
        refused: list[Rejection] = []
        orders = addressed(chunk.text, chunk.sentences)
        names = [mention.span for mention in mentions if mention.kind != "literal"]
        for claim in claims:
            code = self._fault(chunk, claim, names, orders)
            if code is None:
                kept.append(claim)
            else:
                refused.append(_refusal(chunk, claim, code))
        return tuple(kept), tuple(refused)

    def _fault(
        self, chunk: Chunk, claim: Claim, names: Sequence[Span], orders: tuple[Span, ...]
    ) -> RejectionCode | None:
        ends = claim.subject.span, claim.object.span
        if not all(0 <= end.start < end.end <= len(chunk.text) for end in ends):
            # It has no place at all, which the guard says better.
            return None
        first, last = (find_sentence(chunk.sentences, at) for at in (min(ends).start, max(ends).end - 1))
        if orders:
            evidence = Span(chunk.sentences[first].start, max(chunk.sentences[last].end, max(ends).end))
            if any(is_within(end, orders) for end in ends):
                return "addressed_to_model"
            was_ordered = any(_holds(chunk.text, order, claim) for order in orders)
            if was_ordered and not (first == last and self._speaks_of(claim.predicate, chunk.text, evidence)):
                return "addressed_to_model"
        if first == last and may_order(_around(chunk.text, ends)):
            return "addressed_to_model"
        sentences = chunk.sentences[first : last + 1]
        if not any(_has_words(chunk.text, one, (*names, *ends)) for one in sentences):
            return "not_asserted"
        return None

    def _speaks_of(self, iri: str, text: str, evidence: Span) -> bool:
        """Whether a word of the property's names stands in the evidence, in any form."""
        term = self._index.term(iri)
        if term is None:
            return False
        labels = [name_of(term), *(label.value for label in (*term.labels, *term.alt_labels))]
        stems = {
            word[:_STEM].casefold()
            for label in labels
            for word in re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", label)
            if word and word.casefold() not in _EMPTY
        }
        words = text[evidence.start : evidence.end].casefold()
        return any(word.startswith(stem) for word in re.findall(r"\w+", words) for stem in stems)


def _holds(text: str, order: Span, claim: Claim) -> bool:
    """Whether a sentence names both ends."""
    words = text[order.start : order.end]
    words += f" {decoded(words)}"
    return all(places(words, end.text) for end in (claim.subject, claim.object))


def _around(text: str, ends: tuple[Span, Span]) -> str:
    """The lines of a fact without its names."""
    one, other = sorted(ends)
    start = text.rfind("\n", 0, one.start) + 1
    end = text.find("\n", max(one.end, other.end))
    after = text[max(one.end, other.end) : len(text) if end < 0 else end]
    return f"{text[start : one.start]} X {text[one.end : other.start]} X {after}"


def _has_words(text: str, sentence: Span, names: Iterable[Span]) -> bool:
    """Whether a sentence has a word beside the names."""
    taken = tuple(names)
    words = (Span(*word.span()) for word in _WORD.finditer(text, sentence.start, sentence.end))
    return any(not is_within(word, taken) for word in words)


def _refusal(chunk: Chunk, claim: Claim, code: RejectionCode) -> Rejection:
    start = max(0, min(claim.subject.start, claim.object.start))
    end = min(len(chunk.text), max(claim.subject.end, claim.object.end))
    return Rejection(
        min(start, end), end, code, "relation_extraction", claim.subject.text, claim.predicate, claim.object.text
    )


class Understanding:
    """Reads the replies about chunks for one ontology, as the settings say."""

    def __init__(self, index: OntologyIndex, settings: PromptSettings) -> None:
        self._settings = settings
        self._reader = ReplyReader(index)
        self._assertions = Assertions(index)

    def mentions(self, chunk: Chunk, menu: Menu, replies: Sequence[EntityReply]) -> Read:
        """What the answers agree on, with places in the text."""
        least = self._settings.minimum_agreement
        names = agree([_typed(reply.entities, menu) for reply in replies], minimum=least)
        values = agree([[SampledItem(_plain(value)) for value in reply.values] for reply in replies], minimum=least)
        return self._reader.mentions(
            chunk, names, [value.what for value in values if value.what], with_values=menu.takes_values
        )

    def claims(
        self, chunk: Chunk, menu: Menu, things: Sequence[Thing], replies: Sequence[RelationReply]
    ) -> tuple[tuple[Claim, ...], tuple[Rejection, ...]]:
        """The facts between things that the answers agree on and the text asserts, with places; and the others."""
        facts = self._agree([_stated(reply.relations, menu) for reply in replies])
        mentions = [place for thing in things for place in thing.places]
        return self._assertions.check(chunk, self._reader.claims(chunk, things, facts), mentions)

    def joint(self, chunk: Chunk, menu: Menu, replies: Sequence[JointReply]) -> tuple[Read, tuple[Claim, ...]]:
        """The names and the facts of answers that give both, as far as the text asserts them."""
        names = self._agree([_typed(reply.entities, menu) for reply in replies])
        facts = self._agree([_stated(reply.relations, menu, end=_plain) for reply in replies])
        read, claims = self._reader.joint(chunk, names, facts)
        kept, refused = self._assertions.check(chunk, claims, read.mentions)
        return Read(read.mentions, (*read.rejected, *refused)), kept

    def _agree(self, samples: list[list[SampledItem[Any]]]) -> list[Any]:
        return agree(samples, minimum=self._settings.minimum_agreement)


def _typed(entities: Sequence[NamedEntity], menu: Menu) -> list[SampledItem[tuple[str, str]]]:
    percent = percent_of(entities)
    return [SampledItem((_plain(one.name), menu.class_at(one.type)), percent(one)) for one in entities]


def _stated(
    relations: Sequence[Any], menu: Menu, *, end: Callable[[Any], Any] = lambda end: end
) -> list[SampledItem[Any]]:
    percent = percent_of(relations)
    return [
        SampledItem((end(one.subject), menu.property_at(one.property), end(one.object)), percent(one))
        for one in relations
    ]


def _plain(text: str) -> str:
    return " ".join(text.split())
