"""What to add to an ontology, from texts in which names were found and no relation between them.

Rule: a proposal is the user's own words. What stands between two names of a sentence may be how texts say a property
that joins such things; the sentence with the fact may be an example to learn from. Nothing is decided here: a person
looks at both before they are used.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from sameas.extraction.extractors.confidence import READ_FROM
from sameas.extraction.graph.model import Entity, Evidence, Graph
from sameas.extraction.text.chunking import sentence_spans
from sameas.extraction.text.document import Span
from sameas.ontology.focus import words_of
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Constraint
from sameas.ontology.vocabulary import THING
from sameas.ontology.word_families import LITTLE, root_of

_LONGEST = 60
_MOST_WORDS = 5
# Two things that more properties may join say nothing about which is meant.
_MOST_PROPERTIES = 3
_MARKS = re.compile(r"[^\w\s'\u2019-]")
_WEAK = frozenset((
    "is", "was", "are", "were", "be", "been", "being", "has", "had", "have", "also", "the", "a", "an", "its", "their",
    "his", "her", "our", "which", "who", "that", "then", "later", "now", "ist", "war", "sind", "waren", "hat", "der",
    "die", "das", "ein", "eine", "est", "sont", "était", "le", "la", "les", "un", "une", "es", "son", "fue", "el",
    "los", "las",
))  # fmt: skip


class Suggestion(msgspec.Struct, frozen=True):
    """A phrase that may be another label of a property, and a sentence for each time it was seen."""

    property: str
    phrase: str
    sentences: tuple[str, ...]


class SuggestedExample(msgspec.Struct, frozen=True):
    """A sentence, and the facts that it may state."""

    text: str
    triples: tuple[tuple[str, str, str], ...]


class Suggestions(msgspec.Struct, frozen=True):
    """Everything that texts propose, the commonest first."""

    labels: tuple[Suggestion, ...]
    examples: tuple[SuggestedExample, ...]


class _Pair(msgspec.Struct, frozen=True):
    """Two names that follow each other in a sentence, and what stands between them."""

    subject: Entity
    target: Entity
    phrase: str


def suggest(texts: Iterable[tuple[str, Graph]], index: OntologyIndex) -> Suggestions:
    """What normalised texts and the graphs that were found in them propose."""
    seen: dict[tuple[str, str], list[str]] = defaultdict(list)
    examples: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for text, graph in texts:
        known = _known(graph)
        for sentence, pair in _pairs(text, _named(graph)):
            said = known.get((pair.subject.id, pair.target.id), [])
            if any(sure >= READ_FROM for sure, _, _ in said):
                continue
            shown = " ".join(text[sentence.start : sentence.end].split())
            for iri, turned in _properties(pair, said, index):
                ends = (pair.target, pair.subject) if turned else (pair.subject, pair.target)
                examples[shown].append((ends[0].name, iri, ends[1].name))
                if pair.phrase and not turned and not _is_label(pair.phrase, iri, index):
                    seen[iri, pair.phrase].append(shown)
    ranked = sorted(seen.items(), key=lambda one: (-len(one[1]), one[0]))
    return Suggestions(
        tuple(Suggestion(iri, phrase, tuple(dict.fromkeys(shown))) for (iri, phrase), shown in ranked),
        tuple(SuggestedExample(shown, tuple(dict.fromkeys(facts))) for shown, facts in examples.items()),
    )


def _known(graph: Graph) -> dict[tuple[str, str], list[tuple[float, str, bool]]]:
    """What was read between two things, either way: how surely, which property, and whether it is turned."""
    found: dict[tuple[str, str], list[tuple[float, str, bool]]] = defaultdict(list)
    for relation in graph.relations:
        if relation.object:
            found[relation.subject, relation.object].append((relation.confidence, relation.predicate, False))
            found[relation.object, relation.subject].append((relation.confidence, relation.predicate, True))
    return found


def _pairs(text: str, entities: Iterable[Entity]) -> Iterator[tuple[Span, _Pair]]:
    places = sorted(
        ((mention.start, mention.end, entity) for entity in entities for mention in entity.mentions),
        key=lambda one: (one[0], one[1], one[2].id),
    )
    for sentence in sentence_spans(text):
        inside = [place for place in places if sentence.start <= place[0] and place[1] <= sentence.end]
        for (_, end, subject), (start, _, target) in pairwise(inside):
            between = text[end:start]
            if subject.id != target.id and end < start and len(between) <= _LONGEST:
                yield sentence, _Pair(subject, target, _phrase(between))


def _phrase(between: str) -> str:
    """The words between two names without those that carry nothing; empty where they are no phrase."""
    if _MARKS.search(between):
        return ""
    words = between.split()
    while words and words[0].casefold() in _WEAK:
        words.pop(0)
    while words and words[-1].casefold() in _WEAK:
        words.pop()
    if not 1 <= len(words) <= _MOST_WORDS or all(word.casefold() in LITTLE for word in words):
        return ""
    return " ".join(words)


def _properties(pair: _Pair, said: Sequence[tuple[float, str, bool]], index: OntologyIndex) -> list[tuple[str, bool]]:
    """What was thought and not sure enough; else the few properties that such things can have."""
    if said:
        _, iri, turned = max(said)
        return [(iri, turned)]
    fitting = []
    for iri in sorted(index.properties):
        domain, reach = index.domain(iri), index.range(iri)
        if index.properties[iri].deprecated or not domain or not reach:
            continue
        straight = _fits(pair.subject, domain, index) and _fits(pair.target, reach, index)
        if straight or (_fits(pair.target, domain, index) and _fits(pair.subject, reach, index)):
            fitting.append((iri, not straight))
    return fitting if pair.phrase and len(fitting) <= _MOST_PROPERTIES else []


def _fits(entity: Entity, constraint: Constraint, index: OntologyIndex) -> bool:
    """Whether a thing may be what an end asks for; one that got no class may be anything but a value."""
    types = [iri for iri in entity.types if iri != THING]
    if not types:
        return all(any(name in index.classes for name in group) for group in constraint)
    return any(all(not index.class_tree.above(iri).isdisjoint(group) for group in constraint) for iri in types)


def _named(graph: Graph) -> Iterator[Entity]:
    """Every name, also those that got no class and were refused for it."""
    yield from graph.entities
    for one in graph.rejected:
        if one.code == "no_type" and one.subject:
            place = Evidence(one.start, one.end, one.subject)
            yield Entity(f"no class: {one.subject.casefold()}", one.subject, (), mentions=(place,))


def _is_label(phrase: str, iri: str, index: OntologyIndex) -> bool:
    known = index.properties[iri]
    said = _roots(phrase)
    return any(_roots(text.value) == said for text in (*known.labels, *known.alt_labels))


def _roots(text: str) -> frozenset[str]:
    return frozenset(root_of(word) for word in words_of(text) if word not in LITTLE)
