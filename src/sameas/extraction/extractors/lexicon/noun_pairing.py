"""The two ends of a relation around a noun, and what every kind of cue needs to find an end."""

import re
from collections.abc import Callable

from sameas.extraction.extractors.lexicon import nouns
from sameas.extraction.extractors.lexicon.clause import Left
from sameas.extraction.extractors.lexicon.cues import Cue
from sameas.extraction.extractors.lexicon.look import Look, Pair
from sameas.extraction.extractors.lexicon.phrases import Match
from sameas.extraction.extractors.lexicon.pronouns import Antecedents
from sameas.extraction.extractors.lexicon.value_gaps import reaches_value
from sameas.extraction.graph.model import Mention

Fit = Callable[[Mention, str], Mention | None]


class NounPairing:
    """Finds the ends of nouns. `fit_subject` and `fit_object` say what a property accepts, and in which form;
    `is_open` says that an end was not accepted only because several classes fit.
    """

    def __init__(
        self,
        *,
        fit_subject: Fit,
        fit_object: Fit,
        is_open: Callable[[Mention, str], bool],
        antecedents: Antecedents,
    ) -> None:
        self._fit_subject = fit_subject
        self._fit_object = fit_object
        self._is_open = is_open
        self._antecedents = antecedents

    def _around_noun(self, look: Look) -> Pair | None:
        text, match, iri = look.text, look.match, look.cue.property
        if nouns.NOT_ALONE.search(text, max(0, match.start - 12), match.start):
            return None
        return self._counted(look) or self._noun_of(look, text, match, iri) or self._owned_noun(look, text, match, iri)

    def _counted(self, look: Look) -> Pair | None:
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
                    return Pair(subject, fitted, found) if subject is not None else None
                gap = text[name.end : value.start]
                if not (nouns.HAS_A.fullmatch(gap) or _has_about(gap)) or look.clause.is_complement(name):
                    return None
                subject = self._subject(name, look.cue.property)
                return Pair(subject, fitted, Left(name, name.end)) if subject is not None else None
        return None

    def _noun_of(self, look: Look, text: str, match: Match[Cue], iri: str) -> Pair | None:
        """`the founder of Acme is Anna`, and `Anna is the founder of Acme`."""
        whose = look.right[0] if look.right and look.right[0].kind != "literal" else None
        if whose is None or not nouns.OF.fullmatch(text, match.end, whose.start) or look.clause.owns(whose):
            return None
        subject = self._subject(whose, iri)
        if subject is None:
            return None
        value = self._right_value(look, whose.end)
        if value is not None:
            return Pair(subject, value)
        name = look.left[0] if look.left else None
        if name is not None and nouns.IS_A.fullmatch(text, name.end, match.start):
            target = self._target(name, iri) if look.clause.is_apposed(name, match.start) else None
            return Pair(subject, target, Left(name, name.end)) if target is not None else None
        who = look.right[1] if len(look.right) > 1 else None
        if who is not None:
            is_list = text[whose.end : who.start].strip() in ("", ",") and not look.opens_sentence()
            target = self._namely(look, whose.end, who, nouns.NAMELY) if not is_list else None
            return Pair(subject, target) if target is not None else None
        return None

    def _namely(self, look: Look, start: int, who: Mention, *gaps: re.Pattern[str]) -> Mention | None:
        """Who or what a noun is, where one of the gaps leads to it; only a place is said with `in`."""
        for gap in gaps:
            found = gap.fullmatch(look.text, start, who.start)
            if found is None or look.clause.owns(who):
                continue
            target = self._target(who, look.cue.property)
            if target is not None and (not found["at"] or self._antecedents.kind_of(target) == "place"):
                return target
        return None

    def _owned_noun(self, look: Look, text: str, match: Match[Cue], iri: str) -> Pair | None:
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
            return Pair(subject, value, found)
        who = look.right[0] if look.right else None
        target = self._namely(look, match.end, who, gap, nouns.LIES) if who is not None else None
        if target is not None:
            return Pair(subject, target, found)
        earlier = look.left[1] if owner is not None and len(look.left) > 1 else None
        if earlier is not None and owner is not None and nouns.IS_A.fullmatch(text, earlier.end, owner.start):
            # "Anna is Acme's founder".
            target = self._target(earlier, iri) if not look.clause.is_complement(earlier) else None
            return Pair(subject, target, Left(earlier, earlier.end)) if target is not None else None
        return None

    def _before(self, look: Look, fit: Fit) -> Left | None:
        """The one name of the sentence before that a pronoun at the sentence's beginning can mean."""
        if look.left:
            return None
        opening = look.clause.opens(look.match.start) or ""
        one = self._antecedents.of(
            opening, look.scene.earlier, fits=lambda name: fit(name, look.cue.property) is not None
        )
        return Left(one, look.scene.sentence.start) if one is not None else None

    def _right_value(self, look: Look, start: int) -> Mention | None:
        for one in look.right:
            if one.start < start or one.kind != "literal":
                continue
            fitted = self._fit_object(one, look.cue.property)
            if fitted is None or fitted.kind != "literal":
                continue
            return fitted if reaches_value(look.text, start, one, datatype=fitted.datatype) else None
        return None

    def _subject(self, mention: Mention, iri: str) -> Mention | None:
        return self._fit_subject(mention, iri) or self._open(mention, iri)

    def _target(self, mention: Mention, iri: str) -> Mention | None:
        return self._fit_object(mention, iri) or self._open(mention, iri)

    def _open(self, mention: Mention, iri: str) -> Mention | None:
        return mention if not mention.types and mention.kind == "name" and self._is_open(mention, iri) else None


def _has_about(gap: str) -> bool:
    """`has more than`: words of measure between having and the number."""
    words = gap.lower().split()
    while words and words[-1] in (
        "about",
        "around",
        "some",
        "over",
        "more",
        "than",
        "nearly",
        "roughly",
        "almost",
        "least",
        "at",
    ):
        words.pop()
    return bool(words) and bool(nouns.HAS_A.fullmatch(" " + " ".join(words) + " "))
