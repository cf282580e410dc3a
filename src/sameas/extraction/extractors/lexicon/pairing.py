"""The two ends of a relation around a cue: of a verb, a passive, an event or a pattern.

Rule: both ends stand where the cue's grammar puts them, and fit the property's domain and range; else there is no pair.
"""

# ruff: noqa: RUF001 (word lists and the marks of other scripts are the data here)

import re

from sameas.extraction.extractors.lexicon import noun_pairing as nouns
from sameas.extraction.extractors.lexicon.clause import Left
from sameas.extraction.extractors.lexicon.inflection import is_past
from sameas.extraction.extractors.lexicon.look import Look, Pair
from sameas.extraction.extractors.lexicon.noun_pairing import Fit, NounPairing, is_date
from sameas.extraction.graph.model import Mention

_BY = re.compile(r"\s+(?:\w+ly\s+|together\s+)?by\b")
_LOOSE = re.compile(r"[\s,;:(\"“«'‘]*(?:(?:the|a|an|der|die|das|le|la|les|el|los)\s+)?[\"“«'‘]?\Z", re.IGNORECASE)
_OPENING_DATE = re.compile(r"(?:(?:in|on|since|by|im|am|en|le|seit)\s+(?:the\s+)?)?", re.IGNORECASE)
_AFTER_DATE = re.compile(r",?\s+(?:(?:the|der|die|das|la|le|el)\s+)?(?:[a-zß-ÿ][\w-]*\s+){0,2}[\"“«‘]?")


class Pairing(NounPairing):
    """Finds the ends of every kind of cue."""

    def pair(self, look: Look) -> Pair | None:
        """The two ends that the grammar of the cue gives."""
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
            return Pair(thing, left[1], left[0]) if thing is not None and left is not None else None
        target = self._right_thing(look, fit=self._target) or self._right_value(look, look.match.end)
        left = self._left(look, fit=self._subject) if target is not None else None
        return Pair(left[1], target, left[0]) if target is not None and left is not None else None

    def loose(self, look: Look) -> Pair | None:
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
        return Pair(left, right, end) if subject_first else Pair(right, left, end)

    def _lacks_object(self, look: Look) -> bool:
        return look.cue.form == "object_first" and look.clause.is_passive(look.match.start)

    def _left(self, look: Look, *, fit: Fit) -> tuple[Left, Mention] | None:
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

    def _is_a(self, look: Look) -> Left | None:
        for name in look.left[:2]:
            if nouns.IS_A.fullmatch(look.text, name.end, look.match.start) or nouns.HAS_A.fullmatch(
                look.text, name.end, look.match.start
            ):
                return Left(name, name.end) if look.clause.is_apposed(name, look.match.start) else None
        found = look.clause.left(look.match.start, is_active=True, is_participle=False)
        return found if found is not None and found.mention.end < found.group else None

    def _right_thing(self, look: Look, *, fit: Fit, is_event: bool = False) -> Mention | None:
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

    def _around_event(self, look: Look) -> Pair | None:
        """`Acme was founded in 1999`, `Anna founded Acme in 1999`, `In 1999 Acme was founded`: the thing and when."""
        active = self._active_event(look)
        if active is not None:
            return active
        left = self._left(look, fit=self._subject)
        if left is None:
            return None
        target = self._right_value(look, look.match.end) or self._right_thing(look, fit=self._target, is_event=True)
        if target is None and look.left and left[0].mention is look.left[-1]:
            target = self._opening_date(look)
        return Pair(left[1], target, left[0]) if target is not None else None

    def _active_event(self, look: Look) -> Pair | None:
        direct = look.right[0] if look.right and look.right[0].kind != "literal" else None
        if direct is None or look.clause.is_passive(look.match.start) or look.clause.owns(direct):
            return None
        doer = look.clause.left(look.match.start, is_active=True, is_participle=False)
        if doer is None or not look.clause.reaches(look.match.end, direct):
            return None
        subject = self._subject(direct, look.cue.property)
        value = self._right_value(look, direct.end)
        if value is None and doer.mention is look.left[-1]:
            value = self._opening_date(look)
        return Pair(subject, value, doer) if value is not None and subject is not None else None

    def _opening_date(self, look: Look) -> Mention | None:
        scene = look.scene
        first = scene.mentions[0] if scene.mentions else None
        if first is None or first.kind != "literal" or first.start >= look.match.start or not is_date(first.datatype):
            return None
        name = look.left[-1] if look.left else None
        if name is None or not _OPENING_DATE.fullmatch(look.text, scene.sentence.start, first.start):
            return None
        return (
            self._fit_object(first, look.cue.property)
            if _AFTER_DATE.fullmatch(look.text, first.end, name.start)
            else None
        )

    def _around_pattern(self, look: Look) -> Pair | None:
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
        return Pair(left, right, found) if subject_first else Pair(right, left, found)


def _folded_before(text: str, end: int) -> str:
    return " ".join(text[max(0, end - 80) : end].lower().split())


def _folded_after(text: str, start: int) -> str:
    return " ".join(text[start : start + 80].lower().split())
