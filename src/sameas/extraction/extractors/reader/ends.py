"""The ends of facts that were read, as mentions: the words of the text with a class, or a value in its normal form.

Rule: a thing has the class that its property asks for, of several the one that the reader thinks likeliest; what the
lexicon knows of exactly these words comes first where it fits. Dates and numbers are what the house's own readers
find at the place. Classes that exclude each other are never given to one place.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import chain

import msgspec

from sameas.extraction.extractors.lexicon.dates import find_dates
from sameas.extraction.extractors.lexicon.phrases import fold_phrase
from sameas.extraction.extractors.lexicon.quantities import find_quantities
from sameas.extraction.extractors.lexicon.values import STRING, ValueFit
from sameas.extraction.extractors.reader.confidence import logit
from sameas.extraction.graph.model import Mention
from sameas.extraction.text.chunking import Chunk, find_sentence
from sameas.ontology.index import OntologyIndex
from sameas.ontology.lexicon import name_of
from sameas.ontology.model import Constraint
from sameas.ontology.vocabulary import THING, XSD

BOOLEAN = XSD + "boolean"
_PRONOUNS = frozenset(
    "he she it they we i you his her its their this that who er sie es il elle ils elles ella ellos".split()  # noqa: SIM905
)
_OF_VALUES = frozenset(("date", "year", "month", "day", "point in time", "time", "number", "integer", "count"))
_LIKELY = 0.3
_EDGES = " \t\n,;:.!?()[]\"“”„«»'\u2019"
_EDGES_AND_DASHES = _EDGES + "\u2013\u2014-"


# "Acme Inc., of Leeds": the point is the name's own, the sentence goes on.
_GOES_ON = re.compile(r"\.(?:[,;)]|\s+[a-zà-ÿ])")


class Place(msgspec.Struct, frozen=True):
    """A mention of the reader in a chunk, with a score for each class."""

    start: int
    end: int
    types: Mapping[str, float]
    score: float
    name: str
    """Places of one spelling share it."""


class ReadEnds:
    """Makes mentions of what was read, for one ontology."""

    def __init__(self, index: OntologyIndex) -> None:
        self._index = index
        self._values = ValueFit(index)
        self._individuals = {
            fold_phrase(entry.text): entry.iri for entry in reversed(index.lexicon()) if entry.kind == "individual"
        }
        self._of_values: dict[str, bool] = {}
        self._within: dict[tuple[str, Constraint], bool] = {}

    def values(self, chunk: Chunk) -> list[Mention]:
        """Every date and number of a chunk."""
        return [*find_dates(chunk.text), *find_quantities(chunk.text)]

    def subject(self, chunk: Chunk, place: Place, iri: str, known: Mention | None) -> Mention | None:
        end = self._named(chunk, place, known)
        return end and self._typed(end, place, self._index.domain(iri))

    def target(
        self, chunk: Chunk, place: Place, iri: str, known: Mention | None, values: Sequence[Mention]
    ) -> Mention | None:
        """The value or the thing at a place that the range allows."""
        for value in sorted(values, key=lambda one: -_shared(one, place)):
            if _shared(value, place) <= 0:
                break
            fitted = self._values.fit(value, iri)
            if fitted is not None and fitted.datatype != STRING:
                return fitted
        end = self._named(chunk, place, known)
        if end is None or (self._is_of_values(iri) and not any(_shared(one, place) > 0 for one in values)):
            return None
        if self._values.takes_things(iri):
            if not any(map(str.isalpha, end.text)) and self._index.expected_range(iri):
                # "emplea a más de 500 personas": nobody is called 500.
                return None
            return self._typed(end, place, self._index.expected_range(iri))
        text = Mention(end.start, end.end, end.text, kind="literal", value=end.text, datatype=STRING)
        return self._values.fit(text, iri)

    def _is_of_values(self, iri: str) -> bool:
        """Whether the range is a class of dates or numbers, as ontologies without datatypes have them."""
        known = self._of_values.get(iri)
        if known is None:
            named = [name for group in self._index.range(iri) for name in group]
            classes = [self._index.classes[name] for name in named if name in self._index.classes]
            words = {name_of(one).casefold() for one in classes}
            known = self._of_values[iri] = bool(words) and len(classes) == len(named) and words <= _OF_VALUES
        return known

    def truth(self, chunk: Chunk, subject: Mention, *, value: bool) -> Mention | None:
        """A yes or no has no words of its own: it stands where the sentence goes on about its subject."""
        sentence = chunk.sentences[find_sentence(chunk.sentences, subject.start)]
        said = chunk.text[subject.end : sentence.end].strip(_EDGES_AND_DASHES)
        if not said:
            said = chunk.text[sentence.start : subject.start].strip(_EDGES_AND_DASHES)
        if not said:
            return None
        at = chunk.text.find(said, sentence.start)
        return Mention(at, at + len(said), said, kind="literal", value=str(value).lower(), datatype=BOOLEAN)

    def together(self, known: Mention | None, end: Mention) -> Mention | None:
        """The end with the classes of what is known of its name too, or None where nothing can be both."""
        if known is None or end.kind == "literal" or end.individual:
            return end
        types = self._index.classes_of_both(known.types, end.types)
        return None if types is None else msgspec.structs.replace(end, types=types)

    def guessed(self, end: Mention, place: Place) -> Mention:
        """A thing that no fact gives a class has the likeliest."""
        if end.types != (THING,) or not place.types:
            return end
        score, best = max((score, iri) for iri, score in place.types.items())
        return msgspec.structs.replace(end, types=(best,)) if score >= _LIKELY else end

    def type_score(self, place: Place, constraint: Constraint) -> float | None:
        """How far the likeliest class that an end of a property allows is ahead of others; None where it allows all."""
        return self.type_score_of(place.types, constraint)

    def type_score_of(self, types: Mapping[str, float], constraint: Constraint) -> float | None:
        """The same for scores of classes."""
        if not constraint:
            return None
        fitting = [score for iri, score in types.items() if self._is_within(iri, constraint)]
        others = [score for iri, score in types.items() if not self._is_within(iri, constraint)]
        return logit(max(fitting)) - logit(max(others, default=0.0)) if fitting else None

    def is_likely(self, place: Place, constraint: Constraint) -> bool:
        """Whether the likeliest class of a place is one that a constraint allows; those above it say nothing."""
        wider = {above for group in constraint for iri in group for above in self._index.class_tree.above(iri)}
        wider -= {iri for group in constraint for iri in group}
        best = max(((score, iri) for iri, score in place.types.items() if iri not in wider), default=None)
        return best is not None and best[0] >= _LIKELY and self._is_within(best[1], constraint)

    def _named(self, chunk: Chunk, place: Place, known: Mention | None) -> Mention | None:
        said = chunk.text[place.start : place.end]
        stripped = said.strip(_EDGES) if "(" not in said or ")" not in said else said.strip()
        if not stripped or "\n" in stripped or fold_phrase(stripped) in _PRONOUNS:
            return None
        start = place.start + said.index(stripped)
        end = start + len(stripped)
        if _is_abbreviation(stripped) and (said.endswith(".") or _GOES_ON.match(chunk.text, end)):
            stripped += "."
        if known is not None and known.text == stripped and known.kind != "literal":
            return known
        individual = self._individuals.get(fold_phrase(stripped), "")
        if individual:
            types = self._index.individuals[individual].types
            return Mention(
                start, start + len(stripped), stripped, kind="individual", types=types, individual=individual
            )
        return Mention(start, start + len(stripped), stripped, confidence=0.0, confidence_from="model")

    def _typed(self, end: Mention, place: Place, constraint: Constraint) -> Mention | None:
        if end.types and any(self._is_within(iri, constraint) for iri in end.types):
            return end
        if end.individual:
            return None
        if not constraint:
            # What it is, its other facts may tell.
            return msgspec.structs.replace(end, kind="name", types=(THING,))
        best = max(
            ((score, iri) for iri, score in place.types.items() if self._is_within(iri, constraint)), default=None
        )
        wanted = best[1] if best else self._allowed(constraint)
        return msgspec.structs.replace(end, kind="name", types=(wanted,)) if wanted else None

    def _allowed(self, constraint: Constraint) -> str:
        named = chain.from_iterable(constraint)
        return next((iri for iri in named if iri in self._index.classes and self._is_within(iri, constraint)), "")

    def _is_within(self, iri: str, constraint: Constraint) -> bool:
        asked = (iri, constraint)
        known = self._within.get(asked)
        if known is None:
            above = self._index.class_tree.above(iri)
            known = self._within[asked] = all(not above.isdisjoint(group) for group in constraint)
        return known


def _shared(value: Mention, place: Place) -> int:
    return min(value.end, place.end) - max(value.start, place.start)


def _is_abbreviation(word: str) -> bool:
    last = word.rpartition(" ")[2]
    return (len(last) <= 4 and "." in last) or last.casefold() in {"inc", "ltd", "co", "corp", "jr", "sr", "bros"}
