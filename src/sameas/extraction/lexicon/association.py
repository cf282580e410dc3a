"""From a cue and the mentions around it to who is related to whom, and whether the sentence says so.

Rule: both ends stand where the cue's grammar puts them (`clause`, `nouns`, `value_gaps`), or the subject is the one
name of the sentence before that a pronoun can mean. Nothing that cannot fit the property's domain or range is taken.
A claim that the sentence denies or doubts, or whose end could be of several classes, is handed on with the reason.
"""

# ruff: noqa: RUF001 (word lists and the marks of other scripts are the data here)

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from sameas.extraction.graph import Claim, Mention, Span
from sameas.extraction.lexicon import nouns
from sameas.extraction.lexicon.clause import Clause, Left
from sameas.extraction.lexicon.cues import DERIVED, Cue
from sameas.extraction.lexicon.inflection import is_past
from sameas.extraction.lexicon.lists import Listed, listed_after, listed_before
from sameas.extraction.lexicon.phrases import Match
from sameas.extraction.lexicon.pronouns import Antecedents
from sameas.extraction.lexicon.stance import Stance, stance_of
from sameas.extraction.lexicon.value_gaps import is_date, reaches_value

Fit = Callable[[Mention, str], Mention | None]
Doubt: TypeAlias = Stance | Literal["ambiguous_type"]

_BY = re.compile(r"\s+(?:\w+ly\s+|together\s+)?by\b")
_LOOSE = re.compile(r"[\s,;:(\"“«'‘]*(?:(?:the|a|an|der|die|das|le|la|les|el|los)\s+)?[\"“«'‘]?\Z", re.IGNORECASE)
_OPENING_DATE = re.compile(r"(?:(?:in|on|since|by|im|am|en|le|seit)\s+(?:the\s+)?)?", re.IGNORECASE)
_AFTER_DATE = re.compile(r",?\s+(?:(?:the|der|die|das|la|le|el)\s+)?(?:[a-zß-ÿ][\w-]*\s+){0,2}[\"“«‘]?")
_MAIN_SUBJECT = re.compile(r",\s+(?:(?:the|der|die|das|la|le|el)\s+)?(?:[a-zß-ÿ][\w-]*\s+){0,2}[\"“«‘]?\Z")
_VERB_AFTER = re.compile(r"[\"”“»’]?(?:\s*\([^()]{0,60}\))?\s+[a-zß-ÿ]")
_RESPECTIVELY = re.compile(r"\b(?:respectively|jeweils|respectivement|respectivamente)\b", re.IGNORECASE)
# Ends are looked for among so many mentions on either side of a cue.
_REACH = 24


class Said(NamedTuple):
    """A claim and, if the sentence does not plainly state it, why not."""

    claim: Claim
    doubt: Doubt


class Scene(NamedTuple):
    """The mentions of one sentence, and those of the sentences before it."""

    text: str
    sentence: Span
    mentions: Sequence[Mention]
    earlier: Sequence[Sequence[Mention]]


class _Pair(NamedTuple):
    """Two ends around a cue; `left` is the name that the verb speaks of, with the words that govern it."""

    subject: Mention
    target: Mention
    left: Left | None = None


class _Found(NamedTuple):
    said: Said
    pair: _Pair
    score: tuple[int, int]


class Associator:
    """Relates mentions around cues. `fit_subject` and `fit_object` say what a property accepts, and in which form;
    `is_open` says that an end was not accepted only because several classes fit.
    """

    def __init__(
        self,
        *,
        fit_subject: Fit,
        fit_object: Fit,
        is_open: Callable[[Mention, str], bool],
        is_functional: Callable[[str], bool],
        is_class: Callable[[str], bool],
        antecedents: Antecedents,
    ) -> None:
        self._fit_subject = fit_subject
        self._fit_object = fit_object
        self._is_open = is_open
        self._is_functional = is_functional
        self._is_class = is_class
        self._antecedents = antecedents

    def claims(self, scene: Scene, matches: Iterable[Match[Cue]], *, allowed: Callable[[str], bool]) -> Iterator[Said]:
        """The claims of a sentence: for each cue those of its best property with a thing, and with a value.

        What stands inside a longer cue that gave a claim is not looked at again, but its beginning is: `born` may
        give a date where `born in` gives a place.
        """
        if _RESPECTIVELY.search(scene.text, scene.sentence.start, scene.sentence.end):
            return
        spent = 0
        begun = -1
        last: Left | None = None
        for match in matches:
            if match.end <= spent and match.start != begun:
                continue
            found = [
                one
                for cue in match.payload
                if allowed(cue.property)
                for one in [self._best(scene, match, cue, last)]
                if one is not None
            ]
            for chosen in _chosen(found):
                if match.end > spent:
                    spent, begun = match.end, match.start
                left = chosen.pair.left
                if left is not None:
                    last = Left(left.mention, max(match.end, chosen.pair.subject.end, chosen.pair.target.end))
                yield from self._with_lists(scene, chosen.said, match)

    def _best(self, scene: Scene, match: Match[Cue], cue: Cue, last: Left | None) -> _Found | None:
        at = bisect_left(scene.mentions, match.start, key=lambda mention: mention.start)
        near = scene.mentions[max(0, at - _REACH) : at + _REACH]
        left = [m for m in reversed(near) if m.end <= match.start and m.kind != "literal"]
        right = [m for m in near if m.start >= match.end]
        clause = Clause(scene.text, scene.sentence.start, names=left, is_class=self._is_class, last=last)
        look = _Look(scene, match, cue, clause, left, right)
        pair = self._pair(look) or self._denied(look)
        if pair is None or pair.subject.span == pair.target.span:
            return None
        subject, target = pair.subject, pair.target
        # The ends carry the classes that the property gave them; what was known before is what counts.
        ends = (subject.start, target.start)
        known = 2 - sum(m.start in ends and not _is_known(m) for m in near)
        if not known and cue.weight == DERIVED:
            # A made-up form between two names of unknown classes is a guess on a guess.
            return None
        doubt: Doubt = self._stance(look, pair)
        if not doubt and any(end.kind == "name" and not end.types for end in (subject, target)):
            doubt = "ambiguous_type"
        confidence = 0.9 if known == 2 else 0.7
        start = min(scene.sentence.start, subject.start)
        if start < scene.sentence.start:
            confidence -= 0.2
        claim = Claim(subject, cue.property, target, Span(start, scene.sentence.end), round(confidence, 2))
        return _Found(Said(claim, doubt), pair, (known, cue.weight))

    def _pair(self, look: "_Look") -> _Pair | None:
        cue = look.cue
        if cue.is_pattern:
            return self._around_pattern(look)
        if cue.form == "noun":
            return self._around_noun(look)
        if cue.use == "event":
            return self._around_event(look)
        if cue.use == "verb" and (_BY.match(look.text, look.match.end) or self._lacks_object(look)):
            return None
        if cue.form == "object_first":
            thing = self._right_thing(look, fit=self._subject)
            left = self._left(look, fit=self._target) if thing is not None else None
            return _Pair(thing, left[1], left[0]) if thing is not None and left is not None else None
        target = self._right_thing(look, fit=self._target) or self._right_value(look, look.match.end)
        left = self._left(look, fit=self._subject) if target is not None else None
        return _Pair(left[1], target, left[0]) if target is not None and left is not None else None

    def _lacks_object(self, look: "_Look") -> bool:
        return look.cue.form == "object_first" and look.clause.is_passive(look.match.start)

    def _left(self, look: "_Look", *, fit: Fit) -> tuple[Left, Mention] | None:
        """The name on the left that the cue speaks of, fitted."""
        match, cue, clause = look.match, look.cue, look.clause
        first = look.first_word
        if cue.use == "nominal":
            found = self._is_a(look)
        else:
            participle = cue.use in ("passive", "event", "phrase")
            found = clause.left(match.start, is_active=cue.use == "verb", is_participle=participle)
        if found is None and is_past(first) and cue.use != "verb" and not look.left:
            found = look.main_subject()
        if found is None:
            found = self._before(look, fit)
        if found is None or clause.owns(found.mention):
            return None
        fitted = fit(found.mention, cue.property)
        return (found, fitted) if fitted is not None else None

    def _is_a(self, look: "_Look") -> Left | None:
        for name in look.left[:2]:
            if nouns.IS_A.fullmatch(look.text, name.end, look.match.start) or nouns.HAS_A.fullmatch(
                look.text, name.end, look.match.start
            ):
                return Left(name, name.end) if look.clause.is_apposed(name, look.match.start) else None
        found = look.clause.left(look.match.start, is_active=True, is_participle=False)
        return found if found is not None and found.mention.end < found.group else None

    def _before(self, look: "_Look", fit: Fit) -> Left | None:
        """The one name of the sentence before that a pronoun at the sentence's beginning can mean."""
        if look.left:
            return None
        opening = look.clause.opens(look.match.start) or ""
        one = self._antecedents.of(opening, look.scene.earlier, fits=lambda name: fit(name, look.cue.property) is not None)
        return Left(one, look.scene.sentence.start) if one is not None else None

    def _right_thing(self, look: "_Look", *, fit: Fit, is_event: bool = False) -> Mention | None:
        start = look.match.end
        for name in look.right:
            if name.kind == "literal" and name.value != name.text:
                continue
            if not look.clause.reaches(start, name, is_event=is_event):
                return None
            after = look.clause.after_possessor(name)
            if after >= 0:
                start = after
                continue
            return fit(name, look.cue.property) if not look.clause.owns(name) else None
        return None

    def _right_value(self, look: "_Look", start: int) -> Mention | None:
        for one in look.right:
            if one.start < start or one.kind != "literal":
                continue
            fitted = self._fit_object(one, look.cue.property)
            if fitted is None or fitted.kind != "literal":
                continue
            return fitted if reaches_value(look.text, start, one, datatype=fitted.datatype) else None
        return None

    def _around_event(self, look: "_Look") -> _Pair | None:
        """`Acme was founded in 1999`, `Anna founded Acme in 1999`, `In 1999 Acme was founded`: the thing and when."""
        direct = look.right[0] if look.right and look.right[0].kind != "literal" else None
        if direct is not None and not look.clause.is_passive(look.match.start):
            if look.clause.reaches(look.match.end, direct) and not look.clause.owns(direct):
                subject = self._subject(direct, look.cue.property)
                doer = look.clause.left(look.match.start, is_active=True, is_participle=False)
                value = self._right_value(look, direct.end)
                if value is None and doer is not None and doer.mention is look.left[-1]:
                    value = self._opening_date(look)
                if value is not None and subject is not None and doer is not None:
                    return _Pair(subject, value, doer)
        left = self._left(look, fit=self._subject)
        if left is None:
            return None
        target = self._right_value(look, look.match.end) or self._right_thing(look, fit=self._target, is_event=True)
        if target is None and look.left and left[0].mention is look.left[-1]:
            target = self._opening_date(look)
        return _Pair(left[1], target, left[0]) if target is not None else None

    def _opening_date(self, look: "_Look") -> Mention | None:
        scene = look.scene
        first = scene.mentions[0] if scene.mentions else None
        if first is None or first.kind != "literal" or first.start >= look.match.start or not is_date(first.datatype):
            return None
        name = look.left[-1] if look.left else None
        if name is None or not _OPENING_DATE.fullmatch(look.text, scene.sentence.start, first.start):
            return None
        return self._fit_object(first, look.cue.property) if _AFTER_DATE.fullmatch(look.text, first.end, name.start) else None

    def _around_pattern(self, look: "_Look") -> _Pair | None:
        text, match, cue = look.text, look.match, look.cue
        near_left = [m for m in look.left if _LOOSE.match(text[m.end : match.start])][:1]
        near_right = [m for m in look.right if _LOOSE.match(text[match.end : m.start])][:1]
        if cue.before:
            near_left = [m for m in near_left if _folded_before(text, m.start).endswith(cue.before)]
        elif near_left and text[match.start].isalpha() and look.clause.is_complement(near_left[0]):
            near_left = []
        if cue.after:
            near_right = [m for m in near_right if _folded_after(text, m.end).startswith(cue.after)]
        elif near_right and look.clause.owns(near_right[0]):
            near_right = []
        subject_first = cue.form == "subject_first"
        left_fit, right_fit = (self._subject, self._target) if subject_first else (self._target, self._subject)
        right = right_fit(near_right[0], cue.property) if near_right else None
        found = Left(near_left[0], near_left[0].end) if near_left else None
        if found is None and not cue.before and right is not None:
            found = self._before(look, left_fit)
        left = left_fit(found.mention, cue.property) if found is not None else None
        if left is None or right is None:
            return None
        return _Pair(left, right, found) if subject_first else _Pair(right, left, found)

    def _around_noun(self, look: "_Look") -> _Pair | None:
        text, match, iri = look.text, look.match, look.cue.property
        if nouns.NOT_ALONE.search(text, max(0, match.start - 12), match.start):
            return None
        return self._counted(look) or self._noun_of(look, text, match, iri) or self._owned_noun(look, text, match, iri)

    def _counted(self, look: "_Look") -> _Pair | None:
        """`Acme has 3,400 employees`: the value stands right before the noun, or has taken it for its unit."""
        text, match = look.text, look.match
        for value in look.scene.mentions:
            if value.kind == "literal" and value.start < match.start <= value.end + 1:
                fitted = self._fit_object(value, look.cue.property)
                name = next((m for m in look.left if m.end <= value.start), None)
                if fitted is None:
                    return None
                if name is None:
                    found = self._before(look.at(value.start), self._subject)
                    subject = self._subject(found.mention, look.cue.property) if found is not None else None
                    return _Pair(subject, fitted, found) if subject is not None else None
                gap = text[name.end : value.start]
                if not (nouns.HAS_A.fullmatch(gap) or _has_about(gap)) or look.clause.is_complement(name):
                    return None
                subject = self._subject(name, look.cue.property)
                return _Pair(subject, fitted, Left(name, name.end)) if subject is not None else None
        return None

    def _noun_of(self, look: "_Look", text: str, match: Match[Cue], iri: str) -> _Pair | None:
        """`the founder of Acme is Anna`, and `Anna is the founder of Acme`."""
        whose = look.right[0] if look.right and look.right[0].kind != "literal" else None
        if whose is None or not nouns.OF.fullmatch(text, match.end, whose.start) or look.clause.owns(whose):
            return None
        subject = self._subject(whose, iri)
        if subject is None:
            return None
        value = self._right_value(look, whose.end)
        if value is not None:
            return _Pair(subject, value)
        name = look.left[0] if look.left else None
        if name is not None and nouns.IS_A.fullmatch(text, name.end, match.start):
            target = self._target(name, iri) if look.clause.is_apposed(name, match.start) else None
            return _Pair(subject, target, Left(name, name.end)) if target is not None else None
        who = look.right[1] if len(look.right) > 1 else None
        if who is not None and nouns.NAMELY.fullmatch(text, whose.end, who.start):
            is_list = text[whose.end : who.start].strip() in ("", ",") and not look.opens_sentence()
            target = self._target(who, iri) if not is_list and not look.clause.owns(who) else None
            return _Pair(subject, target) if target is not None else None
        return None

    def _owned_noun(self, look: "_Look", text: str, match: Match[Cue], iri: str) -> _Pair | None:
        """`Acme's founder, Anna`, `Acme has its headquarters in Bremen`, `Its founder is Anna`."""
        owner = look.left[0] if look.left else None
        found: Left | None = None
        gap = nouns.NAMELY
        if owner is None:
            found = self._before(look, self._subject)
        elif nouns.OWNS.fullmatch(text, owner.end, match.start) or not text[owner.end : match.start].strip():
            found = Left(owner, owner.end)
        elif nouns.HAS_A.fullmatch(text, owner.end, match.start) and not look.clause.is_complement(owner):
            found, gap = Left(owner, owner.end), nouns.LIES
        subject = self._subject(found.mention, iri) if found is not None else None
        if subject is None:
            return None
        value = self._right_value(look, match.end)
        if value is not None:
            return _Pair(subject, value, found)
        who = look.right[0] if look.right else None
        if who is not None and (gap.fullmatch(text, match.end, who.start) or nouns.LIES.fullmatch(text, match.end, who.start)):
            target = self._target(who, iri) if not look.clause.owns(who) else None
            return _Pair(subject, target, found) if target is not None else None
        earlier = look.left[1] if owner is not None and len(look.left) > 1 else None
        if earlier is not None and owner is not None and nouns.IS_A.fullmatch(text, earlier.end, owner.start):
            # "Anna is Acme's founder".
            target = self._target(earlier, iri) if not look.clause.is_complement(earlier) else None
            return _Pair(subject, target, Left(earlier, earlier.end)) if target is not None else None
        return None

    def _denied(self, look: "_Look") -> _Pair | None:
        """A pair that the grammar does not give, for the ledger alone: `grew without acquiring Acme`."""
        if look.cue.use not in ("verb", "phrase", "passive") or look.cue.form == "noun" or not look.left:
            return None
        subject_first = look.cue.form == "subject_first"
        first, second = (self._subject, self._target) if subject_first else (self._target, self._subject)
        right = self._right_thing(look, fit=second)
        left = first(look.left[-1], look.cue.property) if right is not None else None
        if left is None or right is None or _BY.match(look.text, look.match.end):
            return None
        end = Left(look.left[-1], look.clause.group(look.match.start))
        pair = _Pair(left, right, end) if subject_first else _Pair(right, left, end)
        return pair if self._stance(look, pair) else None

    def _stance(self, look: "_Look", pair: _Pair) -> Stance:
        text, sentence, match = look.text, look.scene.sentence, look.match
        ends = sorted((pair.subject, pair.target), key=lambda end: end.start)
        low = max(sentence.start, min(ends[0].start, match.start))
        high = max(ends[1].end, match.end)
        inner_from = low
        if pair.left is not None and not look.is_base_form():
            inner_from = max(low, min(pair.left.group, match.start))
        if ends[0].start < sentence.start:
            inner_from = low = sentence.start
        spans = sorted([(end.start, end.end) for end in ends] + [(match.start, match.head or match.end)])
        pieces, place = [], inner_from
        for start, end in spans:
            if start > place:
                pieces.append(text[place:start])
            place = max(place, end)
        pieces.append(text[place:high])
        group = text[look.clause.group(match.start) : match.start] if look.cue.use != "nominal" else ""
        return stance_of(text[sentence.start : low], " ".join(pieces), text[high : sentence.end], group=group)

    def _subject(self, mention: Mention, iri: str) -> Mention | None:
        return self._fit_subject(mention, iri) or self._open(mention, iri)

    def _target(self, mention: Mention, iri: str) -> Mention | None:
        return self._fit_object(mention, iri) or self._open(mention, iri)

    def _open(self, mention: Mention, iri: str) -> Mention | None:
        return mention if not mention.types and mention.kind == "name" and self._is_open(mention, iri) else None

    def _with_lists(self, scene: Scene, said: Said, match: Match[Cue]) -> Iterator[Said]:
        """The claim, and the same for the other members of a list that an end belongs to."""
        claim = said.claim
        targets = self._listed(scene, claim.object, match) if not self._is_functional(claim.predicate) else Listed()
        subjects = self._listed(scene, claim.subject, match)
        doubt = said.doubt
        if not doubt and (targets.is_choice or subjects.is_choice):
            doubt = "hedged"
        yield Said(claim, doubt)
        for other in targets.others:
            fitted = self._fit_object(other, claim.predicate)
            if fitted is None or other.span == claim.subject.span:
                break
            yield Said(msgspec.structs.replace(claim, object=fitted), doubt)
        for other in subjects.others:
            fitted = self._fit_subject(other, claim.predicate)
            if fitted is None or other.span == claim.object.span:
                break
            yield Said(msgspec.structs.replace(claim, subject=fitted), doubt)

    def _listed(self, scene: Scene, end: Mention, match: Match[Cue]) -> Listed:
        if end.start < scene.sentence.start:
            return Listed()
        if end.start >= match.end:
            return listed_after(scene.text, scene.mentions, end)
        found = listed_before(scene.text, scene.mentions, end)
        clause = Clause(scene.text, scene.sentence.start, names=(), is_class=self._is_class, last=None)
        return found if found.others and clause.begins(found.others[-1]) else Listed()


class _Look(NamedTuple):
    """One cue of a sentence, and the mentions on either side of it, nearest first."""

    scene: Scene
    match: Match[Cue]
    cue: Cue
    clause: Clause
    left: list[Mention]
    right: list[Mention]

    @property
    def text(self) -> str:
        return self.scene.text

    @property
    def first_word(self) -> str:
        words = self.text[self.match.start : self.match.end].lower().split()
        return words[0] if words else ""

    def at(self, start: int) -> "_Look":
        return self._replace(match=self.match._replace(start=start))

    def is_base_form(self) -> bool:
        """Whether the cue is a verb that an auxiliary further back governs as well: `may buy Acme and sell Globex`."""
        first = self.first_word
        return self.cue.use == "verb" and not is_past(first) and not first.endswith(("s", "ing"))

    def opens_sentence(self) -> bool:
        """Whether nothing but an article or a time stands before the cue."""
        return not self.left and len(self.text[self.scene.sentence.start : self.match.start].split()) <= 4

    def main_subject(self) -> Left | None:
        """`Founded in 1999, Acme grew`: the subject that an opening participle speaks of."""
        if self.text[self.scene.sentence.start : self.match.start].strip(" \"“„«‘'"):
            return None
        for name in self.right:
            if (
                name.kind != "literal"
                and _MAIN_SUBJECT.search(self.text, self.match.end, name.start)
                and _VERB_AFTER.match(self.text, name.end)
            ):
                return Left(name, self.match.start)
        return None


def _chosen(found: Sequence[_Found]) -> Iterator[_Found]:
    """The best with a thing and the best with a value: what is stated before what is not, then what is known."""
    for is_value in (False, True):
        those = [one for one in found if (one.said.claim.object.kind == "literal") is is_value]
        if those:
            top = max((one.score[0], not one.said.doubt, one.score[1]) for one in those)
            yield min(
                (one for one in those if (one.score[0], not one.said.doubt, one.score[1]) == top),
                key=lambda one: one.said.claim.predicate,
            )


def _has_about(gap: str) -> bool:
    """`has more than`: words of measure between having and the number."""
    words = gap.lower().split()
    while words and words[-1] in ("about", "around", "some", "over", "more", "than", "nearly", "roughly", "almost", "least", "at"):
        words.pop()
    return bool(words) and bool(nouns.HAS_A.fullmatch(" " + " ".join(words) + " "))


def _is_known(mention: Mention) -> bool:
    """Whether its class, or at least its kind, is plain."""
    return bool(mention.types) or mention.kind == "literal" or mention.looks_like in ("person", "organisation", "place")


def _folded_before(text: str, end: int) -> str:
    return " ".join(text[max(0, end - 80) : end].lower().split())


def _folded_after(text: str, start: int) -> str:
    return " ".join(text[start : start + 80].lower().split())
