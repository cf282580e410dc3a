"""From a cue and the mentions around it to who is related to whom.

Rule: both ends lie in the cue's sentence, or the subject opens one of the two sentences before, where the
cue's own sentence has only a pronoun. An end that fits the property's domain or range by its class wins over
a nearer one whose class is not known yet. Nothing that cannot fit is ever taken.
"""

# ruff: noqa: RUF001 (word lists and the marks of other scripts are the data here)

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from sameas.extraction.graph import Claim, Mention, Span
from sameas.extraction.lexicon.cues import DERIVED, Cue
from sameas.extraction.lexicon.phrases import Match

Fit = Callable[[Mention, str], Mention | None]

_OF = re.compile(
    r"\s+(?:of|de|du|des|von|der|di|del|della|do|da)\s+(?:(?:the|la|le|el|die|der|das|den)\s+)?",
    re.IGNORECASE,
)
_SHORT_WAY = re.compile(r"(?:[\w-]+\s+){0,3}[\"“„«‘]?")
_COPULA = re.compile(
    r"\s*(?:\([^)]{0,40}\)\s*)?(?:,|:|–|-|is|was|are|were|ist|war|est|était|es|fue|è)\s*(?:the|a|an|die|der|le|la|el)?\s*"
)
_POSSESSIVE = re.compile(r"['’]s?\s+(?:[\w-]+\s+){0,2}\Z")
_JOINS = re.compile(
    r"\s*(?:,\s*(?:and|or|und|et|y)?|and|or|&|und|et|y|e|、|和|及)\s*(?:the|by|in)?\s*\Z", re.IGNORECASE
)
_PRONOUN = re.compile(
    r"(?:he|she|it|they|his|her|its|their|er|sie|il|elle|él|ella|the|this|these|der|die|das|le|la)\b",
    re.IGNORECASE,
)
_LOOSE = re.compile(r"[\s,;:(\"“«'‘]*(?:(?:the|a|an|der|die|das|le|la|les|el|los)\s+)?[\"“«'‘]?\Z", re.IGNORECASE)
_RELATIVE = re.compile(r"\b(?:who|which|that|whose|der|die|das|qui|que)\b", re.IGNORECASE)
_BY = re.compile(r"\bby\s+\Z")
_BACK = 2
_LIST_LIMIT = 50
# Ends are looked for among so many mentions on either side of a cue.
_REACH = 24
_FAR = 60


class Found(NamedTuple):
    """A possible claim and how good it is: known classes first, then the cue's weight, then nearness."""

    claim: Claim
    score: tuple[int, int, int]


class Scene(NamedTuple):
    """The mentions of one sentence, and the first mentions of the sentences before it."""

    text: str
    sentence: Span
    mentions: Sequence[Mention]
    earlier: Sequence[tuple[Span, Mention]]


class Associator:
    """Relates mentions around cues. `fit_subject` and `fit_object` say what a property accepts, and in
    which form.
    """

    def __init__(self, *, fit_subject: Fit, fit_object: Fit, is_functional: Callable[[str], bool]) -> None:
        self._fit_subject = fit_subject
        self._fit_object = fit_object
        self._is_functional = is_functional

    def claims(self, scene: Scene, matches: Iterable[Match[Cue]], *, allowed: Callable[[str], bool]) -> Iterator[Claim]:
        """The claims of a sentence, for each cue those of its best property.

        What stands inside a longer cue that gave a claim is not looked at again, but its beginning is: `born` may
        give a date where `born in` gives a place.
        """
        spent = 0
        begun = -1
        for match in matches:
            if match.end <= spent and match.start != begun:
                continue
            found = [
                one
                for cue in match.payload
                if allowed(cue.property)
                for one in [self._best(scene, match, cue)]
                if one is not None
            ]
            if not found:
                continue
            top = max(one.score for one in found)
            chosen = min((one for one in found if one.score == top), key=lambda one: one.claim.predicate)
            if match.end > spent:
                spent, begun = match.end, match.start
            yield from self._with_lists(scene, chosen.claim, match)

    def _best(self, scene: Scene, match: Match[Cue], cue: Cue) -> Found | None:
        at = bisect_left(scene.mentions, match.start, key=lambda mention: mention.start)
        near = scene.mentions[max(0, at - _REACH) : at + _REACH]
        left = [m for m in reversed(near) if m.end <= match.start]
        right = [m for m in near if m.start >= match.end]
        if cue.is_pattern:
            pair = self._adjacent(scene, match, cue, left, right)
        elif cue.form == "noun":
            pair = self._around_noun(scene, match, cue.property, left, right)
        elif cue.form == "subject_first":
            pair = self._between(scene, match, cue.property, left, right)
        else:
            target = self._pick(left, self._fit_object, cue.property)
            subject = self._pick(right, self._fit_subject, cue.property)
            pair = (subject, target) if subject is not None and target is not None else None
        if pair is None or pair[0].span == pair[1].span:
            return None
        subject, target = pair
        start = min(scene.sentence.start, subject.start)
        # The ends carry the classes that the property gave them; what was known before is what counts.
        ends = (subject.start, target.start)
        known = 2 - sum(m.start in ends and not _is_known(m) for m in near)
        if not known and cue.weight == DERIVED:
            # A made-up form between two names of unknown classes is a guess on a guess.
            return None
        nearness = -min(_gap(subject, match), _FAR) - min(_gap(target, match), _FAR)
        confidence = 0.9 if known == 2 else 0.7
        if start < scene.sentence.start:
            confidence -= 0.2
        claim = Claim(subject, cue.property, target, Span(start, scene.sentence.end), round(confidence, 2))
        return Found(claim, (known, cue.weight, nearness))

    def _adjacent(
        self, scene: Scene, match: Match[Cue], cue: Cue, left: list[Mention], right: list[Mention]
    ) -> tuple[Mention, Mention] | None:
        near_left = [m for m in left if _LOOSE.match(scene.text[m.end : match.start])]
        near_right = [m for m in right if _LOOSE.match(scene.text[match.end : m.start])]
        if cue.before:
            near_left = [m for m in near_left if _folded_before(scene.text, m.start).endswith(cue.before)]
        if cue.after:
            near_right = [m for m in near_right if _folded_after(scene.text, m.end).startswith(cue.after)]
        first, second = (near_left, near_right) if cue.form == "subject_first" else (near_right, near_left)
        subject = self._pick(first, self._fit_subject, cue.property)
        target = self._pick(second, self._fit_object, cue.property)
        if subject is None and cue.form == "subject_first" and not cue.before:
            subject = self._from_before(scene, cue.property, left)
        return (subject, target) if subject is not None and target is not None else None

    def _between(
        self, scene: Scene, match: Match[Cue], property_iri: str, left: list[Mention], right: list[Mention]
    ) -> tuple[Mention, Mention] | None:
        subject = self._pick_subject(scene, match, property_iri, left)
        target = self._pick(right, self._fit_object, property_iri)
        if target is None:
            # "In 1999 Acme was founded": a value may stand before the cue.
            target = self._pick([m for m in left if m.kind == "literal"], self._fit_object, property_iri)
        return (subject, target) if subject is not None and target is not None else None

    def _around_noun(
        self, scene: Scene, match: Match[Cue], property_iri: str, left: list[Mention], right: list[Mention]
    ) -> tuple[Mention, Mention] | None:
        text = scene.text
        counted = [m for m in scene.mentions if m.kind == "literal" and m.start < match.start <= m.end + 1]
        number = self._pick(counted, self._fit_object, property_iri)
        if number is not None:
            # "Acme has 3,400 employees": the value stands right before the noun, or has taken it for its unit.
            owner = self._pick_subject(scene, match, property_iri, [m for m in left if m.kind != "literal"])
            return (owner, number) if owner is not None else None
        of = _OF.match(text, match.end)
        if of is not None and right and _SHORT_WAY.fullmatch(text, of.end(), right[0].start):
            subject = self._fit_subject(right[0], property_iri)
            if subject is not None:
                after = right[1:2]
                if after and _COPULA.fullmatch(text, right[0].end, after[0].start):
                    target = self._fit_object(after[0], property_iri)
                    if target is not None:
                        return subject, target
                target = self._pick(left, self._fit_object, property_iri) or self._pick(
                    right[1:], self._fit_object, property_iri
                )
                return (subject, target) if target is not None else None
        if left and _POSSESSIVE.fullmatch(text, left[0].end, match.start):
            subject = self._fit_subject(left[0], property_iri)
            target = self._pick(right, self._fit_object, property_iri)
            if subject is not None and target is not None:
                return subject, target
        target = self._pick(right, self._fit_object, property_iri)
        subject = self._pick_subject(scene, match, property_iri, left)
        if subject is None and target is not None:
            # "Director Jane Doe finished the film Dawn": the thing may follow.
            beyond = [m for m in right if m.start > target.start]
            subject = self._pick(beyond, self._fit_subject, property_iri)
        return (subject, target) if subject is not None and target is not None else None

    def _pick_subject(self, scene: Scene, match: Match[Cue], property_iri: str, left: list[Mention]) -> Mention | None:
        """The nearest whose class fits; of unknown ones the sentence's first, unless a relative clause
        speaks of the last.
        """
        doers = [m.start for m in left if _BY.search(scene.text, max(0, m.start - 8), m.start)]
        # Who follows "by" did something: neither they nor who is listed with them is what the next cue speaks of.
        left = [m for m in left if _is_known(m) or not doers or m.start < min(doers)]
        relative = left and _RELATIVE.search(scene.text, left[0].end, match.start)
        known, unknown = [m for m in left if _is_known(m)], [m for m in reversed(left) if not _is_known(m)]
        unknown_last = left if relative else known + unknown
        return self._pick(unknown_last, self._fit_subject, property_iri) or self._from_before(scene, property_iri, left)

    def _pick(self, nearest_first: Iterable[Mention], fit: Fit, property_iri: str) -> Mention | None:
        unknown: Mention | None = None
        for mention in nearest_first:
            fitted = fit(mention, property_iri)
            if fitted is None:
                continue
            if _is_known(mention):
                return fitted
            unknown = unknown or fitted
        return unknown

    def _from_before(self, scene: Scene, property_iri: str, left: list[Mention]) -> Mention | None:
        if any(m.kind != "literal" for m in left) or not _PRONOUN.match(scene.text, scene.sentence.start):
            return None
        recent = [mention for _, mention in scene.earlier[-_BACK:]]
        return self._pick(reversed(recent), self._fit_subject, property_iri)

    def _with_lists(self, scene: Scene, claim: Claim, match: Match[Cue]) -> Iterator[Claim]:
        """The claim, and the same for the other members of a list that an end belongs to."""
        yield claim
        if claim.object.start >= match.end and not self._is_functional(claim.predicate):
            for other in self._listed(scene, claim.object, forward=True):
                fitted = self._fit_object(other, claim.predicate)
                if fitted is None or other.span == claim.subject.span:
                    break
                yield Claim(claim.subject, claim.predicate, fitted, claim.evidence, claim.confidence)
        if claim.subject.end <= match.start:
            for forward in (False, True):
                for other in self._listed(scene, claim.subject, forward=forward):
                    fitted = self._fit_subject(other, claim.predicate)
                    if fitted is None or other.span == claim.object.span or other.end > match.start:
                        break
                    yield Claim(fitted, claim.predicate, claim.object, claim.evidence, claim.confidence)

    def _listed(self, scene: Scene, mention: Mention, *, forward: bool) -> Iterator[Mention]:
        at = bisect_left(scene.mentions, mention.start, key=lambda one: one.start)
        after, before = scene.mentions[at + 1 : at + 1 + _LIST_LIMIT], scene.mentions[max(0, at - _LIST_LIMIT) : at]
        edge = mention
        for other in after if forward else reversed(before):
            between = scene.text[edge.end : other.start] if forward else scene.text[other.end : edge.start]
            if other.kind != mention.kind or not _JOINS.match(between):
                return
            yield other
            edge = other


def _is_known(mention: Mention) -> bool:
    """Whether its class, or at least its kind, is plain."""
    return bool(mention.types) or mention.kind == "literal" or mention.looks_like in ("person", "organisation", "place")


def _gap(mention: Mention, match: Match[Cue]) -> int:
    return match.start - mention.end if mention.end <= match.start else mention.start - match.end


def _folded_before(text: str, end: int) -> str:
    return " ".join(text[max(0, end - 80) : end].lower().split())


def _folded_after(text: str, start: int) -> str:
    return " ".join(text[start : start + 80].lower().split())
