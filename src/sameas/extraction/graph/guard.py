"""Nothing enters the graph that the text does not say or the ontology does not know.

Rule: whatever an extractor offers is data. A name must stand in the text, a class and a property must be in
the ontology, and domain and range must hold, subclasses included; a relation that only holds the other way
round is turned. What a sentence denies, doubts, asks or says to be over is not stated. What fails goes to the ledger
with a reason code, never to the graph.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec

from sameas.extraction.graph import stance_words
from sameas.extraction.graph.model import Claim, Mention, Rejection, RejectionCode
from sameas.extraction.graph.stance import Stance, claim_stance
from sameas.extraction.text.chunking import Chunk
from sameas.extraction.text.document import Span
from sameas.ontology.index import OntologyIndex, Verdict
from sameas.ontology.vocabulary import THING, XSD

T = TypeVar("T")
# "CEO of the Year" is an honour; the year is no thing that has a CEO.
_OF_THE_YEAR = re.compile(r"\bof\s+the\s+(?:year|month|week|day|decade|century|season)\Z", re.IGNORECASE)
_LONGEST_LEAD = 20
# What begins a sentence with a capital and says that something is over names nothing.
_NO_NAME = re.compile(
    r"(?:l['\u2019]|la\s+|el\s+|the\s+|de[rn]\s+|die\s+)?(?:former|formerly|previous|erstwhile|ehemalige\w*|frühere\w*|vormalige\w*"
    r"|ancien(?:ne)?s?|antigu[oa]s?|allegedly|reportedly|apparently|perhaps|maybe|possibly|probably|vermutlich|angeblich"
    r"|wanted|gesucht|märchen|mythos|gerücht"
    r"|wahrscheinlich|offenbar|vielleicht|apparemment|peut-être|probablement|supuestamente|quizás?|probablemente|ojalá)",
    re.IGNORECASE,
)
# "500 people" are counted and called nothing.
_COUNTED = re.compile(
    r"\d[\d.,]*\s+(?:people|persons|employees|menschen|personen|mitarbeiter\w*|personnes|salariés|personas|empleados)",
    re.IGNORECASE,
)
_UNTRUE = re.compile("|".join(stance_words.UNTRUE), re.IGNORECASE)


class Checked(NamedTuple, Generic[T]):
    """What may stay and what was refused."""

    kept: tuple[T, ...]
    rejected: tuple[Rejection, ...]


class Guard:
    """Checks the mentions and claims of chunks against one ontology; answers about classes are remembered."""

    def __init__(self, index: OntologyIndex) -> None:
        self._index = index
        self._verdicts: dict[tuple[str, str, str], Verdict] = {}

    def mentions(self, chunk: Chunk, offered: Iterable[Mention]) -> Checked[Mention]:
        """The mentions that stand in the chunk's text and have a class, or a datatype, that is known."""
        kept: dict[tuple[object, ...], Mention] = {}
        rejected: list[Rejection] = []
        for mention in offered:
            placed = _placed(chunk.text, mention)
            code = "not_in_text" if placed is None else self._fault(placed)
            if (
                not mention.text.strip()
                or _NO_NAME.fullmatch(mention.text)
                or _is_an_honour(chunk.text, mention)
                or (mention.kind != "literal" and _COUNTED.fullmatch(mention.text))
            ):
                code = "empty_name"
            if placed is None or code is not None:
                end = min(max(mention.end, 0), len(chunk.text))
                start = min(max(mention.start, 0), end)
                refused = Rejection(start, end, code or "not_in_text", "entity_extraction", mention.text)
                detail = "; ".join(mention.types) or mention.datatype
                rejected.append(msgspec.structs.replace(refused, detail=detail))
                continue
            known = self._known(placed)
            kept[known.order] = known
        return Checked(tuple(sorted(kept.values(), key=lambda mention: mention.order)), tuple(rejected))

    def claims(self, chunk: Chunk, offered: Iterable[Claim], *, mentions: Sequence[Mention]) -> Checked[Claim]:
        """The claims between these mentions that the ontology allows, turned round where only that holds."""
        ends = {(mention.start, mention.end, ""): mention for mention in mentions}
        # Two things of one place differ in what examples call them.
        ends |= {(one.start, one.end, one.form): one for one in mentions if one.kind != "literal"}
        kept: dict[tuple[object, ...], Claim] = {}
        rejected: list[Rejection] = []
        for claim in offered:
            checked = self._claim(chunk, claim, ends)
            if isinstance(checked, Claim):
                kept.setdefault((*_end(checked.subject), checked.predicate, *_end(checked.object)), checked)
                continue
            start = max(0, min(claim.subject.start, claim.object.start))
            end = min(len(chunk.text), max(claim.subject.end, claim.object.end))
            rejected.append(
                Rejection(
                    min(start, end),
                    end,
                    checked,
                    "relation_extraction",
                    claim.subject.text,
                    claim.predicate,
                    claim.object.text,
                )
            )
        return Checked(tuple(sorted(kept.values(), key=lambda claim: claim.order)), tuple(rejected))

    def _fault(self, mention: Mention) -> RejectionCode | None:
        if mention.kind == "literal":
            return None if self._index.is_datatype(mention.datatype) else "unknown_type"
        if not mention.types:
            return "no_type"
        return None if any(self._is_class(iri) for iri in mention.types) else "unknown_type"

    def _known(self, mention: Mention) -> Mention:
        types = tuple(iri for iri in mention.types if self._is_class(iri))
        individual = mention.individual if mention.individual in self._index.individuals else ""
        if types == mention.types and individual == mention.individual:
            return mention
        return msgspec.structs.replace(mention, types=types, individual=individual)

    def _is_class(self, iri: str) -> bool:
        return iri in self._index.classes or iri == THING

    def _claim(self, chunk: Chunk, claim: Claim, ends: dict[tuple[int, int, str], Mention]) -> Claim | RejectionCode:
        if claim.predicate not in self._index.properties:
            return "unknown_relation"
        subject, target = self._end(chunk, claim.subject, ends), self._end(chunk, claim.object, ends)
        if subject is None or target is None:
            return "unresolved_end"
        if subject.span == target.span or self._swallows(claim.predicate, subject, target):
            return "self_relation"
        claim = msgspec.structs.replace(claim, subject=subject, object=target)
        if subject.kind == "literal":
            if target.kind == "literal":
                return "domain_mismatch"
            claim = claim.turned()
        verdict = self._verdict(claim.subject, claim.predicate, claim.object)
        if verdict is Verdict.NO:
            return self._blame(claim)
        return self.stance(chunk, claim) or (claim.turned() if verdict is Verdict.WRONG_DIRECTION else claim)

    def _swallows(self, predicate: str, subject: Mention, target: Mention) -> bool:
        """Whether one end is a whole clause: the other end's name with words of the property."""
        known = self._index.properties[predicate]
        for one, other in ((subject.text, target.text), (target.text, subject.text)):
            rest = one.replace(other, " ") if len(other) < len(one) else one
            if rest != one and any(
                re.search(rf"\b{re.escape(label.value)}\b", rest, re.IGNORECASE)
                for label in (*known.labels, *known.alt_labels)
            ):
                return target.datatype != XSD + "boolean"
        return False

    def stance(self, chunk: Chunk, claim: Claim) -> Stance:
        """How the text takes a claim back; empty where it states it."""
        known = self._index.properties[claim.predicate]
        words = [label.value for label in (*known.labels, *known.alt_labels)]
        is_truth = claim.object.datatype == XSD + "boolean"
        subject, target = claim.subject.span, claim.object.span
        # The words of a yes or no are those that may deny or doubt it, whether they govern it or come after.
        others = [Span(target.start, target.start), Span(target.end, target.end)] if is_truth else [target]
        is_value = claim.object.kind == "literal" and not is_truth
        stances = (
            claim_stance(chunk.text, chunk.sentences, subject, other, words=words, is_value=is_value)
            for other in others
        )
        stance: Stance = next(filter(None, stances), "")
        if not is_truth:
            return stance
        named = (label.value for label in known.labels)
        if not stance and _UNTRUE.search(claim.object.text) and not any(map(_UNTRUE.search, named)):
            stance = "negated"
        # What is denied of a yes or no is a no.
        return "" if stance == "negated" and claim.object.value == "false" else stance

    def _end(self, chunk: Chunk, mention: Mention, ends: dict[tuple[int, int, str], Mention]) -> Mention | None:
        known = ends.get((mention.start, mention.end, mention.form)) or ends.get((mention.start, mention.end, ""))
        if known is None or known.text != mention.text:
            return None
        # A literal may come in another datatype than it was seen in, and a name as the text of a value.
        if mention.kind == "literal":
            return mention if self._index.is_datatype(mention.datatype) else None
        return known if known.kind != "literal" else None

    def _verdict(self, subject: Mention, predicate: str, target: Mention) -> Verdict:
        values = (target.datatype,) if target.kind == "literal" else target.types
        best = Verdict.NO
        for subject_type in subject.types:
            for value in values:
                asked = (subject_type, predicate, value)
                verdict = self._verdicts.get(asked)
                if verdict is None:
                    verdict = self._verdicts[asked] = self._index.allows(*asked)
                if verdict is Verdict.OK:
                    return verdict
                if verdict is Verdict.WRONG_DIRECTION:
                    best = verdict
        return best

    def _blame(self, claim: Claim) -> RejectionCode:
        tree = self._index.class_tree
        domain = self._index.domain(claim.predicate)
        fits = any(all(not tree.above(iri).isdisjoint(group) for group in domain) for iri in claim.subject.types)
        return "range_mismatch" if fits else "domain_mismatch"


def _is_an_honour(text: str, mention: Mention) -> bool:
    before = text[max(0, mention.start - _LONGEST_LEAD) : mention.start]
    return mention.kind != "literal" and _OF_THE_YEAR.search(before + mention.text) is not None


def _end(mention: Mention) -> tuple[int, int, str]:
    return (mention.start, mention.end, mention.form)


def _placed(text: str, mention: Mention) -> Mention | None:
    """The mention at the place where its text stands; the nearest one if its own place is wrong."""
    said = mention.text
    if not said.strip():
        return None
    if mention.start >= 0 and text[mention.start : mention.end] == said:
        return mention
    start = max(0, mention.start)
    after = text.find(said, start)
    before = text.rfind(said, 0, start + len(said))
    places = [at for at in (before, after) if at >= 0]
    if not places:
        return None
    at = min(places, key=lambda place: (abs(place - mention.start), place))
    return msgspec.structs.replace(mention, start=at, end=at + len(said))
