"""Examples for a prompt: those that are most like the chunk, each as a question and the reply that it should get.

Rule: likeness is that of the words, rare ones counting more; equal likeness goes by the order in the file. An example
shows only what the chunk's menu offers, and only facts whose ends stand in its own text: others would teach a model to
give names that are refused. Nothing of an example can enter the graph: names must stand in the chunk.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from sameas.extraction.extractors.prompted.settings import ExtractionMode
from sameas.extraction.extractors.prompted.signatures import Menu
from sameas.extraction.text.chunking import Chunk
from sameas.ontology.focus import words_of
from sameas.ontology.index import OntologyIndex

if TYPE_CHECKING:
    from sameas.extraction.extractors.learning.examples import Example, Triple
    from sameas.extraction.extractors.prompted.reading import ReplyReader

# Longer ones cost more than they teach.
_LONGEST = 1500


class Shown(msgspec.Struct, frozen=True):
    """An example as a model is shown it: its text, the things in it with their classes, and the reply as JSON."""

    text: str
    things: tuple[tuple[str, str], ...]
    """Names and class IRIs, in the order of their numbers; a value has no class."""
    reply: str


class ExampleBook:
    """The examples that were given, found by likeness."""

    def __init__(self, examples: Sequence[Example], index: OntologyIndex) -> None:
        self._index = index
        self._examples = [kept for one in examples if len(one.text) <= _LONGEST and (kept := _copied(one)).triples]
        bags = [Counter(words_of(one.text)) for one in self._examples]
        spread = Counter(word for bag in bags for word in bag)
        self._weights = {word: math.log(1 + len(bags) / count) for word, count in spread.items()}
        self._postings: dict[str, list[tuple[int, float]]] = {}
        for number, bag in enumerate(bags):
            length = math.sqrt(sum((self._weights[word] * count) ** 2 for word, count in bag.items())) or 1.0
            for word, count in bag.items():
                self._postings.setdefault(word, []).append((number, self._weights[word] * count / length))

    def __len__(self) -> int:
        return len(self._examples)

    @property
    def digest(self) -> str:
        """Names the examples in a key; empty where there are none."""
        if not self._examples:
            return ""
        content = [(one.text, [(t.subject, t.property, t.object) for t in one.triples]) for one in self._examples]
        return hashlib.sha256(msgspec.json.encode(content)).hexdigest()

    def like(self, text: str, *, count: int) -> list[Example]:
        """The examples most like a text, the best first; one that has no word in common is none."""
        if not self._examples or not count:
            return []
        likeness: Counter[int] = Counter()
        for word, times in Counter(words_of(text)).items():
            weight = self._weights.get(word, 0.0) * times
            for number, share in self._postings.get(word, ()):
                likeness[number] += weight * share  # type: ignore[assignment]
        best = sorted(likeness, key=lambda number: (-round(likeness[number], 9), number))
        return [self._examples[number] for number in best[:count]]

    def shown(self, text: str, menu: Menu, *, mode: ExtractionMode, stage: str, count: int) -> list[Shown]:
        """The examples for a text, the best first; none that the menu offers nothing of."""
        return [shown for example in self.like(text, count=count) if (shown := self._shown(example, menu, mode, stage))]

    def _shown(self, example: Example, menu: Menu, mode: ExtractionMode, stage: str) -> Shown | None:
        numbers = {iri: number for number, iri in enumerate(menu.properties, 1)}
        triples = [triple for triple in example.triples if triple.property in numbers]
        if not triples:
            return None
        things = list(self._things(triples, menu))
        entities = [{"name": name, "type": number} for name, number in things if number]
        values = [name for name, number in things if not number]
        if mode == "joint":
            facts = [{"subject": t.subject, "property": numbers[t.property], "object": t.object} for t in triples]
            reply: object = {"entities": entities, "relations": facts}
        elif stage == "entity_extraction":
            reply = {"entities": entities, "values": values}
        else:
            things = self._listed(example, things, menu)
            at = {name: number for number, (name, _) in enumerate(things, 1)}
            facts = [
                {"subject": at[t.subject], "property": numbers[t.property], "object": at[t.object]}
                for t in triples
                if t.subject in at and t.object in at
            ]
            if not facts:
                return None
            reply = {"relations": facts}
        listed = tuple((name, menu.class_at(number) if number else "") for name, number in things)
        return Shown(" ".join(example.text.split()), listed, msgspec.json.encode(reply).decode())

    @cached_property
    def _reader(self) -> ReplyReader:
        # Without examples, and for a replay, none is needed.
        from sameas.extraction.extractors.prompted.reading import ReplyReader

        return ReplyReader(self._index)

    def _listed(self, example: Example, things: Sequence[tuple[str, int]], menu: Menu) -> list[tuple[str, int]]:
        """What a question about the text would list: in its order, with all values, whether a fact uses them or not."""
        from sameas.extraction.extractors.prompted.reading import read_things
        from sameas.extraction.extractors.prompted.replies import Agreed

        chunk = Chunk(0, 0, len(example.text), example.text)
        names = [Agreed((name, menu.class_at(number)), None, "rule") for name, number in things if number]
        values = [name for name, number in things if not number]
        read = self._reader.mentions(chunk, names, values, with_values=menu.takes_values)
        known = dict(things)
        return [
            (text, known.get(text, 0)) for text in dict.fromkeys(one.mention.text for one in read_things(read.mentions))
        ]

    def _things(self, triples: Sequence[Triple], menu: Menu) -> Iterator[tuple[str, int]]:
        """Each end of the triples once, with the number of the class that its property asks for; 0 for a value."""
        classes = {iri: number for number, iri in enumerate(menu.classes, 1)}
        seen: set[str] = set()
        for triple in triples:
            ends = ((triple.subject, self._index.domain), (triple.object, self._index.range))
            for name, constraint_of in ends:
                if name in seen:
                    continue
                seen.add(name)
                wanted = [iri for group in constraint_of(triple.property) for iri in group if iri in classes]
                yield name, classes[wanted[0]] if wanted else 0


def _copied(example: Example) -> Example:
    """The example with the facts that can be copied from its text."""
    from sameas.extraction.extractors.prompted.reading import places

    text = example.text
    copied = (one for one in example.triples if places(text, one.subject) and places(text, one.object))
    return replace(example, triples=tuple(copied))
