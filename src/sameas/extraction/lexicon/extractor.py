"""The extractor that needs no model: the ontology's own words, and the shapes of names, dates and numbers.

Rule: it finds what the ontology names. Classes come from individuals, from class labels beside or inside a
name, from shapes, and from the domain and range of a property whose cue is there. Where an ontology gives it
no cue, it says so and names what to add.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sameas.extraction.chunking import Chunk
from sameas.extraction.embedded import LEXICON, LEXICON_VERSION
from sameas.extraction.extractor import Found
from sameas.extraction.graph import Claim, Mention
from sameas.extraction.lexicon.association import Associator, Scene
from sameas.extraction.lexicon.coordination import with_coordinated
from sameas.extraction.lexicon.cues import Cue, build_cues
from sameas.extraction.lexicon.fitting import Fitting
from sameas.extraction.lexicon.phrases import Match, Phrases, fold
from sameas.extraction.lexicon.sighting import Sighting
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
        self._associator = Associator(
            fit_subject=self._fitting.subject,
            fit_object=self._fitting.target,
            is_functional=lambda iri: index.properties[iri].functional,
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
        folded = fold(chunk.text)
        cues = self._find_cues(folded)
        mentions = self._sighting.mentions(chunk, folded, cues, focus=focus)
        typed: dict[tuple[int, int], Mention] = {}
        for claim in self._associate(chunk, mentions, cues, focus):
            for end in (claim.subject, claim.object):
                if end.kind != "literal":
                    place = (end.start, end.end)
                    typed[place] = self._fitting.both(typed[place], end) if place in typed else end
        items = [mention for mention in mentions if mention.types or (mention.start, mention.end) not in typed]
        known = {(mention.start, mention.end) for mention in items if mention.types}
        items = [mention for mention in items if mention.kind != "literal" or (mention.start, mention.end) not in typed]
        items.extend(mention for place, mention in typed.items() if place not in known)
        items = [self._sighting.by_shape(mention, focus=focus) for mention in items]
        return Found(tuple(sorted(items, key=lambda mention: mention.order)), self._notes)

    async def extract_relations(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> Found[Claim]:
        """The claims between these mentions around the cues of the chunk."""
        cues = self._find_cues(fold(chunk.text))
        ordered = sorted(mentions, key=lambda mention: mention.order)
        claims = {
            (claim.subject.span, claim.predicate, claim.object.span): claim
            for claim in self._associate(chunk, ordered, cues, focus)
        }
        return Found(tuple(sorted(claims.values(), key=lambda claim: claim.order)), self._notes)

    def _find_cues(self, folded: str) -> list[Match[Cue]]:
        return list(with_coordinated(folded, self._cues.find(folded, with_inner=True), cues=self._cues))

    def _associate(
        self, chunk: Chunk, mentions: Sequence[Mention], cues: Sequence[Match[Cue]], focus: Focus
    ) -> Iterator[Claim]:
        focused = frozenset(focus.properties)
        earlier: list[tuple[Any, Mention]] = []
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
                    if not any(start < cue.end and cue.start < end for start, end in places)
                ]
                if free:
                    scene = Scene(chunk.text, sentence, here, earlier)
                    yield from self._associator.claims(scene, free, allowed=focused.__contains__)
                first = next((mention for mention in here if mention.kind != "literal"), None)
                if first is not None:
                    earlier.append((sentence, first))

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


def _readable(iri: str, labelled: bool) -> bool:
    """Whether a term has words: a label, or a last part with letters that is not a code such as `P57`."""
    if labelled:
        return True
    last = iri[max(iri.rfind(mark) for mark in "#/:") + 1 :]
    return last.isascii() and sum(sign.isalpha() for sign in last) >= 3 and not any(sign.isdigit() for sign in last)
