"""The extractor that needs no model: the ontology's own words, and the shapes of names, dates and numbers.

Rule: it finds what the ontology names. Classes come from individuals, from class labels beside or inside a
name, from shapes, and from the domain and range of a property whose cue is there. Where an ontology gives it
no cue, it says so and names what to add.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sameas.extraction.extractors.contract import Found
from sameas.extraction.extractors.embedded import LEXICON, LEXICON_VERSION
from sameas.extraction.extractors.lexicon.association import Associator, StatedRelation
from sameas.extraction.extractors.lexicon.cues import Cue, build_cues, with_coordinated, with_separated
from sameas.extraction.extractors.lexicon.fitting import Fitting
from sameas.extraction.extractors.lexicon.look import Scene
from sameas.extraction.extractors.lexicon.phrases import Match, Phrases, fold
from sameas.extraction.extractors.lexicon.pronouns import Antecedents, told_on
from sameas.extraction.extractors.lexicon.sighting import Sighting
from sameas.extraction.graph.model import Claim, Mention, Rejection
from sameas.extraction.text.chunking import Chunk
from sameas.ontology.focus import Focus
from sameas.ontology.index import OntologyIndex

_NO_CUE = (
    "The ontology gives the lexicon extractor no cue for relations: none of its properties has a label, an alternative "
    'label or a readable name. Add rdfs:label or skos:altLabel with the words that texts use (such as "works for"), or '
    'https://sameas.dev/ns#pattern with a text such as "{subject} works for {object}".'
)
_NO_CLASS = (
    "The ontology has no class with a label, and no individual: the lexicon extractor cannot tell what a name is. Add "
    "classes with rdfs:label, or individuals with rdfs:label."
)
_NO_PROPERTY = "The ontology has no property: entities are found, relations are not. Add properties with labels."


class LexiconExtractor:
    """Finds mentions and claims by the words of one ontology. Made once, used for any number of chunks."""

    def __init__(self, index: OntologyIndex) -> None:
        self._index = index
        self._cues: Phrases[Cue] = Phrases(build_cues(index))
        self._sighting = Sighting(index)
        self._fitting = Fitting(index)
        self._antecedents = Antecedents(self._fitting.kind_of, self._sighting.is_class)
        self._associator = Associator(
            fit_subject=self._fitting.subject,
            fit_object=self._fitting.target,
            is_open=self._fitting.is_open,
            is_functional=lambda iri: index.properties[iri].functional,
            is_class=self._sighting.is_class,
            antecedents=self._antecedents,
        )
        self._notes = tuple(self._remarks())

    @property
    def name(self) -> str:
        return LEXICON

    @property
    def version(self) -> str:
        return LEXICON_VERSION

    @property
    def settings(self) -> Mapping[str, Any]:
        return {}

    async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
        """Individuals, names and values; a name gets its class from a cue where nothing else tells it."""
        cues = self._find_cues(chunk.text)
        mentions = self._sighting.mentions(chunk, fold(chunk.text), cues, focus=focus)
        typed: dict[tuple[int, int], Mention] = {}
        unclear: list[StatedRelation] = []
        for said in self._associate(chunk, mentions, cues, focus):
            if said.doubt == "ambiguous_type":
                unclear.append(said)
            for end in (said.claim.subject, said.claim.object):
                if end.kind != "literal" and end.types:
                    place = (end.start, end.end)
                    typed[place] = self._fitting.both(typed[place], end) if place in typed else end
        items = [mention for mention in mentions if mention.types or (mention.start, mention.end) not in typed]
        known = {(mention.start, mention.end) for mention in items if mention.types}
        items = [mention for mention in items if mention.kind != "literal" or (mention.start, mention.end) not in typed]
        items.extend(mention for place, mention in typed.items() if place not in known)
        items = [self._sighting.by_shape(mention, focus=focus) for mention in items]
        return Found(
            tuple(sorted(items, key=lambda mention: mention.order)),
            self._notes,
            rejected=tuple(_refused(said) for said in unclear),
        )

    async def extract_relations(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> Found[Claim]:
        """The claims between these mentions around the cues of the chunk; what the text denies or doubts is refused."""
        cues = self._find_cues(chunk.text)
        ordered = sorted(mentions, key=lambda mention: mention.order)
        stated: dict[tuple[object, ...], Claim] = {}
        refused: dict[tuple[object, ...], StatedRelation] = {}
        for said in self._associate(chunk, ordered, cues, focus):
            claim = said.claim
            ends = (claim.subject.span, claim.predicate, claim.object.span)
            if said.doubt:
                refused.setdefault(ends, said)
            else:
                stated[ends] = claim
        return Found(
            tuple(sorted(stated.values(), key=lambda claim: claim.order)),
            self._notes,
            rejected=tuple(sorted(_refused(said) for ends, said in refused.items() if ends not in stated)),
        )

    def _find_cues(self, text: str) -> list[Match[Cue]]:
        folded = fold(text)
        found = with_coordinated(folded, self._cues.find(folded, with_inner=True), cues=self._cues)
        return list(with_separated(text, folded, found, cues=self._cues))

    def _associate(
        self, chunk: Chunk, mentions: Sequence[Mention], cues: Sequence[Match[Cue]], focus: Focus
    ) -> Iterator[StatedRelation]:
        focused = frozenset(focus.properties)
        earlier: list[tuple[Mention, ...]] = []
        families: list[str] = []
        mention_at = cue_at = 0
        for sentence in chunk.sentences:
            mention_from, cue_from = mention_at, cue_at
            while mention_at < len(mentions) and mentions[mention_at].start < sentence.end:
                mention_at += 1
            while cue_at < len(cues) and cues[cue_at].start < sentence.end:
                cue_at += 1
            here = mentions[mention_from:mention_at]
            if here:
                places = [(mention.start, mention.end) for mention in here if mention.kind != "literal"]
                free = [
                    cue
                    for cue in cues[cue_from:cue_at]
                    if not any(start < (cue.head or cue.end) and cue.start < end for start, end in places)
                ]
                first = next((mention.start for mention in here if mention.kind != "literal"), sentence.end)
                family = self._antecedents.family(chunk.text[sentence.start : first])
                if free:
                    scene = Scene(chunk.text, sentence, here, told_on(earlier, families, family))
                    yield from self._associator.claims(scene, free, allowed=focused.__contains__)
                earlier.append(tuple(mention for mention in here if mention.kind != "literal"))
                families.append(family)

    def _remarks(self) -> Iterator[str]:
        ontology = self._index.ontology
        if not ontology.properties:
            yield _NO_PROPERTY
        elif not len(self._cues) or not any(
            _readable(one.iri, bool(one.labels or one.alt_labels or one.patterns)) for one in ontology.properties
        ):
            yield _NO_CUE
        if not ontology.individuals and not any(
            _readable(one.iri, bool(one.labels or one.alt_labels)) for one in ontology.classes
        ):
            yield _NO_CLASS


def _refused(said: StatedRelation) -> Rejection:
    """A line of the ledger for a claim that the text does not plainly state."""
    claim = said.claim
    start = min(claim.subject.start, claim.object.start)
    end = max(claim.subject.end, claim.object.end)
    return Rejection(
        start,
        end,
        said.doubt or "not_supported",
        "relation_extraction",
        claim.subject.text,
        claim.predicate,
        claim.object.text,
    )


def _readable(iri: str, labelled: bool) -> bool:
    """Whether a term has words: a label, or a last part with letters that is not a code such as `P57`."""
    if labelled:
        return True
    last = iri[max(iri.rfind(mark) for mark in "#/:") + 1 :]
    return last.isascii() and sum(sign.isalpha() for sign in last) >= 3 and not any(sign.isdigit() for sign in last)
