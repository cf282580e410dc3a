"""The learned model as an extractor: what the examples taught, and beside it what the lexicon sees.

Rule: the examples come first. What the lexicon sees where a learned relation has an end, and what it says of such
ends, gives way; what touches none of them stays. Which guesses are good enough is for the model's own thresholds to
say, which were chosen by cross-validation over the examples. Of properties that the lexicon reads well in the examples
it speaks too, and there, in a longer text, a guess must be more likely than not: an example is a sentence or two that
state something, and most sentences of a document are not.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sameas.extraction.extractors.contract import Found
from sameas.extraction.extractors.embedded import LEARNED, LEARNED_VERSION, learned_settings
from sameas.extraction.extractors.learned_ends import LearnedEnds
from sameas.extraction.extractors.lexicon.extractor import LexiconExtractor
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.text.chunking import Chunk
from sameas.extraction.text.document import Span
from sameas.ontology.focus import Focus
from sameas.ontology.index import OntologyIndex
from sameas.ontology.lexicon import name_of
from sameas.ontology.model import Constraint

if TYPE_CHECKING:
    from sameas.extraction.extractors.learning.decoding import LearnedTriple
    from sameas.extraction.extractors.learning.model import LearnedModel
    from sameas.extraction.extractors.learning.schema import Schema

_REMEMBERED = 64
# Of a property that the lexicon reads well, a guess below this is none in a text of more sentences than an example has.
_LIKELY = 0.5
_LIKE_AN_EXAMPLE = 2


def schema_of(index: OntologyIndex) -> Schema:
    """What the learner needs to know of an ontology."""
    from sameas.extraction.extractors.learning.schema import Property, Schema

    properties = []
    for one in index.ontology.properties:
        if one.deprecated:
            continue
        reach = _first(index.range(one.iri))
        is_value = bool(reach) and index.is_datatype(reach)
        properties.append(
            Property(
                id=one.iri,
                label=name_of(one),
                domain=_first(index.domain(one.iri)) or None,
                range=reach if reach and not is_value else None,
                datatype=reach if is_value else None,
            )
        )
    return Schema(tuple(properties), {one.iri: name_of(one) for one in index.ontology.classes})


def _first(constraint: Constraint) -> str:
    """The one class or datatype of an end, where there is one."""
    return constraint[0][0] if len(constraint) == 1 and len(constraint[0]) == 1 else ""


class LearnedExtractor:
    """Finds what the examples taught, and what the lexicon finds elsewhere. Made once, used for any number of
    chunks.
    """

    def __init__(self, index: OntologyIndex, model: LearnedModel, *, minimum: float = 0.0) -> None:
        """`minimum` asks for more confidence than the model's own thresholds do."""
        self._index = index
        self._model = model
        self._minimum = minimum
        self._lexicon = LexiconExtractor(index)
        self._ends = LearnedEnds(index)
        self._trusted = model.trusted
        self._known = frozenset(model.properties) - self._trusted
        self._recent: OrderedDict[str, tuple[tuple[Span, LearnedTriple], ...]] = OrderedDict()

    @property
    def name(self) -> str:
        return LEARNED

    @property
    def version(self) -> str:
        return LEARNED_VERSION

    @property
    def settings(self) -> Mapping[str, Any]:
        return learned_settings(self._model.version, minimum=self._minimum)

    async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
        """The ends of learned relations, and the lexicon's mentions where there are none; the claims with them."""
        found = await self._lexicon.extract_entities(chunk, focus)
        claims = self._claims(chunk, found.items, focus)
        ends = _ends_of(claims)
        apart = [mention for mention in found.items if not any(_overlap(mention, end) for end in ends)]
        items = sorted((*apart, *ends), key=lambda mention: mention.order)
        return Found(tuple(items), self._notes(found.notes), tuple(claims))

    async def extract_relations(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> Found[Claim]:
        """What the lexicon claims of properties that it can be trusted with, and between other mentions of those that
        no example speaks of; what it finds denied or doubted of the former."""
        if self._known.issuperset(self._index.properties):
            return Found()
        found = await self._lexicon.extract_relations(chunk, mentions, focus)
        new = [claim for claim in found.items if claim.predicate not in self._known]
        ends = _ends_of(self._claims(chunk, mentions, focus)) if new else []
        kept = [
            claim
            for claim in new
            if claim.predicate in self._trusted
            or not any(_overlap(claim.subject, end) or _overlap(claim.object, end) for end in ends)
        ]
        refused = tuple(each for each in found.rejected if each.predicate in self._trusted)
        return Found(tuple(kept), self._notes(found.notes), rejected=refused)

    def _notes(self, notes: Iterable[str]) -> tuple[str, ...]:
        # Relations that were learned need no cue in the ontology.
        return tuple(note for note in notes if "no cue for relations" not in note)

    def _claims(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> list[Claim]:
        allowed = None if focus.is_whole else frozenset(focus.properties)
        known = [
            (sentence, triple)
            for sentence, triple in self._triples(chunk)
            if triple.property in self._index.properties and (allowed is None or triple.property in allowed)
        ]
        return self._ends.claims(chunk, known, mentions)

    def _triples(self, chunk: Chunk) -> tuple[tuple[Span, LearnedTriple], ...]:
        known = self._recent.get(chunk.digest)
        if known is None:
            known = tuple(
                (sentence, triple)
                for sentence in chunk.sentences
                for triple in self._model.extract(chunk.text[sentence.start : sentence.end])
                if triple.confidence >= self._needed(triple, chunk)
            )
            self._recent[chunk.digest] = known
            if len(self._recent) > _REMEMBERED:
                self._recent.popitem(last=False)
        return known

    def _needed(self, triple: LearnedTriple, chunk: Chunk) -> float:
        if triple.property in self._trusted and len(chunk.sentences) > _LIKE_AN_EXAMPLE:
            return max(self._minimum, _LIKELY)
        return self._minimum


def _ends_of(claims: Iterable[Claim]) -> list[Mention]:
    """Each end of the claims once."""
    found = {end.order: end for claim in claims for end in (claim.subject, claim.object)}
    return list(found.values())


def _overlap(one: Mention, other: Mention) -> bool:
    return one.start < other.end and other.start < one.end
