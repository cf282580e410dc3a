"""An example as the heads are fitted to it: what the frozen layers wrote, its mentions, and the facts between names.

Rule: an end of a fact must stand in the text, as its words or as a value that says the same; an example whose facts
have no such places is told with the reason and teaches nothing else. Mentions that the reader finds and no fact speaks
of are lessons, too: they take part in none.
"""

import random
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sameas.extraction.extractors.learning.examples import Example, Triple
from sameas.extraction.extractors.lexicon.dates import find_dates
from sameas.extraction.extractors.lexicon.quantities import find_quantities
from sameas.extraction.extractors.reader.decoding import BEGIN, INSIDE, VIRTUAL_BUCKET, distance_bucket, find_mentions
from sameas.extraction.extractors.reader.labels import Asked, local_name
from sameas.extraction.extractors.reader.network import Network
from sameas.extraction.extractors.reader.packing import Floats
from sameas.extraction.extractors.reader.reading import Reader
from sameas.extraction.extractors.reader.tokenizer import SubwordTokens
from sameas.ontology.index import OntologyIndex

DATES = frozenset(("date", "dateTime", "gYear", "gYearMonth"))
NUMBERS = frozenset(("integer", "decimal", "double", "float", "int", "long", "nonNegativeInteger", "positiveInteger"))

_OCCURRENCES = 5
_PLACES = 30
_OTHERS = 4
_TRUTHS = {"true": -1, "1": -1, "yes": -1, "false": -2, "0": -2, "no": -2}
Numbers = npt.NDArray[np.int64]


class StatedValue(NamedTuple):
    """A date or number said in a text."""

    start: int
    end: int
    value: str
    sort: str
    """`date` or `number`."""


def find_values(text: str) -> list[StatedValue]:
    """Dates first, then numbers that are no part of a date."""
    dates = [StatedValue(one.start, one.end, one.value, "date") for one in find_dates(text)]
    numbers = [StatedValue(one.start, one.end, one.value, "number") for one in find_quantities(text)]
    return dates + [one for one in numbers if not any(d.start < one.end and one.start < d.end for d in dates)]


def _number(said: str) -> Decimal | None:
    try:
        return Decimal(said.replace(",", ""))
    except InvalidOperation:
        return None


def same_value(gold: str, found: StatedValue) -> bool:
    """Whether a value said in the text is the gold's; a gold year may be said as a day."""
    if found.sort == "date":
        return found.value == gold or found.value.startswith(gold + "-") or gold == found.value + "-01-01"
    number = _number(gold)
    return number is not None and number == _number(found.value)


def find_name(name: str, text: str) -> list[tuple[int, int]]:
    """The whole-word places of a name, in its own case if there are any."""
    pattern = rf"(?<!\w){re.escape(name)}(?!\w)"
    found = [match.span() for match in re.finditer(pattern, text)]
    return found or [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]


def find_end(said: str, text: str, values: list[StatedValue], datatype: str) -> list[tuple[int, int]]:
    """The places of a fact's subject or object; values are found in any way of writing them."""
    fitting = [(one.start, one.end) for one in values if same_value(said, one)]
    if datatype in DATES | NUMBERS and fitting:
        return fitting
    return find_name(said, text) or fitting


def without_nested(places: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Places (name, start, end) that lie in no longer place of another name."""
    return [
        one
        for one in places
        if not any(
            other[1] <= one[1] and one[2] <= other[2] and other[2] - other[1] > one[2] - one[1] for other in places
        )
    ]


class Lesson(NamedTuple):
    """One example, ready for the heads. Places are in order of names, so that those of one name stand together."""

    hidden: Floats
    tags: Numbers
    """0, BEGIN or INSIDE for each token."""
    vectors: Floats
    """First token, last token and mean of each place."""
    bucket: Numbers
    """How far each two places are apart."""
    starts: Numbers
    """The first place of each name."""
    columns: Numbers
    """The numbers of the properties that were asked for, among all."""
    queries: Floats
    biases: Floats
    target: Floats
    """1 for facts [names, names + 2, properties]; the last two are true and false."""
    allowed: npt.NDArray[np.bool_]
    """What can be asked at all: values of yes and no for such properties alone, and nothing of a name with itself."""


class Unused(NamedTuple):
    """A fact of an example that teaches nothing, and why."""

    number: int
    triple: Triple
    reason: str


def make_lesson(
    example: Example,
    number: int,
    asked: Asked,
    columns: Mapping[str, int],
    reader: Reader,
    index: OntologyIndex,
) -> tuple[Lesson | None, list[Unused]]:
    """The lesson of an example, and which of its facts could not be used; None where nothing in it can be named."""
    text = example.text
    tokens, encoded, joined = reader.encode(text, (*asked.property_texts, *asked.class_texts))
    ends = _Ends(text, index)
    facts: list[tuple[int, int, int]] = []
    unused: list[Unused] = []
    at = {iri: place for place, iri in enumerate(asked.properties)}
    for triple in example.triples:
        column = at.get(triple.property)
        found = "its property is not read" if column is None else ends.fact(triple, boolean=asked.booleans[column])
        if column is None or isinstance(found, str):
            unused.append(Unused(number, triple, str(found)))
        else:
            facts.append((*found, column))
    spans = {(name, *where) for name, *place in ends.places() if (where := _covered(tokens, text, *place)) is not None}
    tags = np.zeros(len(tokens.ids), np.int64)
    for _, first, last in sorted(spans, key=lambda one: (one[1] - one[2], one)):
        tags[first] = BEGIN
        tags[first + 1 : last + 1] = INSIDE
    taken = {(first, last) for _, first, last in spans}
    count = ends.count
    for place in _others(tokens, encoded.tags, text, random.Random(number)):
        if place not in taken and len(spans) < _PLACES:
            taken.add(place)
            spans.add((count, *place))
            count += 1
    if not spans:
        return None, unused
    renumbered = {name: place for place, name in enumerate(sorted({name for name, _, _ in spans}))}
    ordered = sorted((renumbered[name], first, last) for name, first, last in spans)
    names, firsts, lasts = (np.array(column, np.int64) for column in zip(*ordered, strict=True))
    size, properties = len(renumbered), len(asked.properties)
    target = np.zeros((size, size + 2, properties), np.float32)
    for subject, end, column in facts:
        if subject in renumbered and (end < 0 or end in renumbered):
            target[renumbered[subject], size - 1 - end if end < 0 else renumbered[end], column] = 1
    booleans = np.array(asked.booleans, bool)
    allowed = np.zeros(target.shape, np.bool_)
    allowed[:, :size] = ~booleans
    allowed[:, size:] = booleans
    allowed[np.arange(size), np.arange(size)] = False
    bucket = np.full((len(firsts), len(firsts) + 2), VIRTUAL_BUCKET, np.int64)
    bucket[:, : len(firsts)] = distance_bucket(firsts[None, :] - firsts[:, None])
    lesson = Lesson(
        encoded.hidden,
        tags,
        Network.span_vectors(encoded.hidden, firsts, lasts),
        bucket,
        np.searchsorted(names, np.arange(size)),
        np.array([columns[iri] for iri in asked.properties], np.int64),
        joined.queries[:properties],
        joined.biases[:properties],
        target,
        allowed,
    )
    return lesson, unused


class _Ends:
    """The names and values of an example's facts, numbered, with their places in its text."""

    def __init__(self, text: str, index: OntologyIndex) -> None:
        self._text = text
        self._index = index
        self._values = find_values(text)
        self._numbers: dict[str, int] = {}
        self._places: list[tuple[int, int, int]] = []

    @property
    def count(self) -> int:
        return len(self._numbers)

    def fact(self, triple: Triple, *, boolean: bool) -> tuple[int, int] | str:
        """Subject and object by number, true and false as -1 and -2; or why the fact cannot be used."""
        subject = self._number(triple.subject, "")
        if subject is None:
            return "its subject does not stand in the text"
        if boolean:
            said = _TRUTHS.get(triple.object.casefold())
            return "its object is neither true nor false" if said is None else (subject, said)
        names = [name for group in self._index.range(triple.property) for name in group]
        datatype = next((local_name(name) for name in names if self._index.is_datatype(name)), "")
        target = self._number(triple.object, datatype)
        if target is None:
            return "its object does not stand in the text"
        return "its ends are the same" if target == subject else (subject, target)

    def places(self) -> list[tuple[int, int, int]]:
        """Name, start and end; a name inside a longer one counts only where it stands nowhere else."""
        kept = without_nested(self._places)
        alone = {name for name, _, _ in self._places} - {name for name, _, _ in kept}
        return kept + [place for place in self._places if place[0] in alone]

    def _number(self, said: str, datatype: str) -> int | None:
        key = said.casefold()
        if key not in self._numbers:
            found = find_end(said, self._text, self._values, datatype)[:_OCCURRENCES]
            if not found:
                return None
            self._numbers[key] = len(self._numbers)
            self._places.extend((self._numbers[key], *span) for span in found)
        return self._numbers[key]


def _covered(tokens: SubwordTokens, text: str, start: int, end: int) -> tuple[int, int] | None:
    inside = [
        at
        for at, (one, other) in enumerate(zip(tokens.starts, tokens.ends, strict=True))
        if other > start and one < end and text[one:other].strip()
    ]
    return (inside[0], inside[-1]) if inside else None


def _others(tokens: SubwordTokens, tags: Floats, text: str, rng: random.Random) -> list[tuple[int, int]]:
    """The mentions that the reader finds, and some stretches that are none."""
    found = [(one.first, one.last) for one in find_mentions(tags, tokens.starts, tokens.ends, text)]
    count = len(tokens.ids)
    for _ in range(_OTHERS if count else 0):
        first = rng.randrange(count)
        found.append((first, min(count - 1, first + rng.randrange(4))))
    return found
