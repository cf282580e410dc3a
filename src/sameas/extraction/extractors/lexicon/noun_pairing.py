"""The two ends of a relation around a noun, and what every kind of cue needs to find an end.

Rule: only the ways in which a language says whose it is count: `of`, a possessive, `has`, and a copula or a comma
between the noun and who it is (`the founder of Acme is Anna`, `Acme's founder, Anna`). A noun that only stands near two
names (`Acme met founder Anna`) relates nothing. Between a cue and its value, a date may follow after other times and
places (`founded by Anna Keller in Bremen in 1999`), a number and a text only after words that say how much or that it
is so. `by` and `from` before a number tell of a change, not of a value.
"""

import re
from collections.abc import Callable

from sameas.extraction.extractors.lexicon.clause import Left
from sameas.extraction.extractors.lexicon.cues import Cue
from sameas.extraction.extractors.lexicon.dates import XSD
from sameas.extraction.extractors.lexicon.look import Look, Pair
from sameas.extraction.extractors.lexicon.phrases import Match
from sameas.extraction.extractors.lexicon.pronouns import Antecedents
from sameas.extraction.graph.model import Mention

# ruff: noqa: RUF001 (word lists and the marks of other scripts are the data here)


OF = re.compile(
    r"\s+(?:of|de|du|des|von|vom|der|di|del|della|do|da|at|for)\s+(?:(?:[Tt]he|la|le|el|die|der|das|den)\s+)?"
    r"(?:[a-zß-ÿ][\w-]*\s+){0,3}[\"“„«‘]?|\s+d['’]"
)
_BE = (
    "is|was|are|were|be|been|being|becomes?|became|remains?|remained|serve[sd]? as|act(?:s|ed)? as|work(?:s|ed)? as"
    "|(?:was |is |been )?(?:appointed|named|elected|made)(?: as)?|as|ist|war|wurde|wird|est|était|fut|es|fue|è|era"
)
_HAVE = (
    "has|have|had|having|with|reported|reports|posted|generated|generates|achieved|recorded|earned|earns|made|makes|holds"
    "|held|received|took|takes|obtained|completed|counts|gained|hat|hatte|mit|a|avait|avec|tiene|tuvo|con"
)
_AROUND = (
    r"(?:(?:also|now|still|then|later|soon|currently|today|already|eventually|recently|finally|once|again|never|not|no|longer"
    r"|only|even|always|just|first|to|be|have|has|had|is|was|been|may|might|could|would|should|will|can|must|plans?|planned|wants?"
    r"|wanted|hopes?|hoped|expected|intends?|aims?|likely|unlikely|said|believed|rumou?red|alleged|denie[sd]|did|does|do|used"
    r"|nicht|nie|kein|keine|pas|jamais|auch|neither|nor|set|due|about|going|seeks?|\w+ly|\w+n['’]t)\s+)*"
)
_DETERMINER = (
    r"(?:(?:the|a|an|its|his|her|their|one of the|die|der|das|ein|eine|le|la|les|un|une|el|una|no|kein|keine)\s+)?"
)
_ADJECTIVE = (
    r"(?:(?!(?:of|in|on|at|by|for|to|from|with|into|and|or|but|who|which|that|whose|deputy|vice|assistant|acting|wife|husband|son"
    r"|daughter|friend|than)\b)[a-zß-ÿ][\w'’-]*\s+){0,4}"
)
_BRACKET = r"(?:\s*\([^()]{0,60}\))?"
_RELATIVE = r"(?:,?\s+(?:who|which|that|qui)\b)?"
# From a name to a noun that says what it is.
IS_A = re.compile(
    rf"[\"”“»’]?{_BRACKET}(?:{_RELATIVE}\s+{_AROUND}(?:{_BE})\s+{_AROUND}{_DETERMINER}{_ADJECTIVE}"
    rf"|,\s+(?:as\s+)?{_DETERMINER}{_ADJECTIVE}|\s+)"
)
# From a name to a noun that it has.
HAS_A = re.compile(
    rf"[\"”“»’]?{_BRACKET}(?:,?{_RELATIVE}\s+{_AROUND}(?:{_HAVE})\s+{_AROUND}{_DETERMINER}{_ADJECTIVE}|,\s+whose\s+{_ADJECTIVE})"
)
OWNS = re.compile(rf"[\"”“»’]?['’]s?\s+{_ADJECTIVE}")
# From a noun, or from the name it belongs to, to who it is.
NAMELY = re.compile(
    rf"{_BRACKET}(?:\s*[,:–]\s*|\s+{_AROUND}(?:{_BE})\s+{_AROUND}(?P<at>(?:in|at|near|bei|à|en)\s+)?|\s+)(?:(?:the|a|an|called|named|Mr|Mrs|Ms|Dr|Prof|Herr|Frau)\.?\s+)*"
    r"[\"“„«‘]?"
)
# From a noun that a name has to what it is: "has its headquarters in".
LIES = re.compile(
    r"\s+(?:(?P<at>in|at|on|near|bei|à|en)|of|is|was|ist|are)?\s*(?:the\s+)?(?:city\s+of\s+)?[\"“„«‘]?|,\s+"
)
NOT_ALONE = re.compile(r"(?:deputy|vice|assistant|sub|non|honorary|acting|anti)[\s-]+\Z", re.IGNORECASE)

# ruff: noqa: RUF001 (the marks of other scripts are the data here)


_DATES = frozenset(XSD + name for name in ("date", "dateTime", "gYear", "gYearMonth", "gMonthDay"))
_NUMBERS = re.compile(r"integer|decimal|double|float|int|long|short|byte|unsigned\w+|\w+Integer")
_DATE_GAP = re.compile(
    r"(?:,?\s+(?:in|on|at|of|the|a|an|around|about|circa|ca\.|since|during|early|late|mid|by|near|as|back|was|is|im|am|seit|le"
    r"|en|am|zum|\w+ly|(?:and|und|et|&)(?=\s+[^\W\d_a-z])|[^\Wa-z_][\w.'’&/-]*))*,?\s*[(:]?\s*"
)
_NUMBER_GAP = re.compile(
    r"(?:\s+(?:of|about|around|approximately|roughly|nearly|almost|over|more|than|some|circa|ca\.|at|least|up|to|a|an|total|the"
    r"|was|is|were|are|has|been|reached|amounted|amounts|totalled|totaled|stood|stands|came|rose|grew|fell|declined|increased"
    r"|dropped|currently|now|still|exceeded|just|well|as|many|much|only|von|ist|war|beträgt|betrug|rund|etwa|de|est|environ|es"
    r"|unos|not|never))*\s*[:(]?\s*"
)
_TEXT_GAP = re.compile(
    r"(?:,?\s+(?:of|is|was|has|been|reads|read|the|a|simply|now|not|ist|war|lautet|est|es|era))*\s*[:,]?\s*[\"“„«‘'「『《]?"
)

Fit = Callable[[Mention, str], Mention | None]


def is_date(datatype: str) -> bool:
    """Whether a datatype is one of times."""
    return datatype in _DATES


def reaches_value(text: str, start: int, value: Mention, *, datatype: str) -> bool:
    """Whether what stands from a place up to a value lets it be the value, wanted in this datatype."""
    if datatype in _DATES:
        gap = _DATE_GAP
    elif _NUMBERS.fullmatch(datatype.removeprefix(XSD)):
        gap = _NUMBER_GAP
    else:
        gap = _TEXT_GAP
    return start <= value.start and gap.fullmatch(text, start, value.start) is not None


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
        if NOT_ALONE.search(text, max(0, match.start - 12), match.start):
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
                if not (HAS_A.fullmatch(gap) or _has_about(gap)) or look.clause.is_complement(name):
                    return None
                subject = self._subject(name, look.cue.property)
                return Pair(subject, fitted, Left(name, name.end)) if subject is not None else None
        return None

    def _noun_of(self, look: Look, text: str, match: Match[Cue], iri: str) -> Pair | None:
        """`the founder of Acme is Anna`, and `Anna is the founder of Acme`."""
        whose = look.right[0] if look.right and look.right[0].kind != "literal" else None
        if whose is None or not OF.fullmatch(text, match.end, whose.start) or look.clause.owns(whose):
            return None
        subject = self._subject(whose, iri)
        if subject is None:
            return None
        value = self._right_value(look, whose.end)
        if value is not None:
            return Pair(subject, value)
        name = look.left[0] if look.left else None
        if name is not None and IS_A.fullmatch(text, name.end, match.start):
            target = self._target(name, iri) if look.clause.is_apposed(name, match.start) else None
            return Pair(subject, target, Left(name, name.end)) if target is not None else None
        who = look.right[1] if len(look.right) > 1 else None
        if who is not None:
            is_list = text[whose.end : who.start].strip() in ("", ",") and not look.opens_sentence()
            target = self._namely(look, whose.end, who, NAMELY) if not is_list else None
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
        gap = NAMELY
        if owner is None:
            found = self._before(look, self._subject)
        elif OWNS.fullmatch(text, owner.end, match.start) or not text[owner.end : match.start].strip():
            found = Left(owner, owner.end)
        elif HAS_A.fullmatch(text, owner.end, match.start) and not look.clause.is_complement(owner):
            found, gap = Left(owner, owner.end), LIES
        subject = self._subject(found.mention, iri) if found is not None else None
        if subject is None:
            return None
        value = self._right_value(look, match.end)
        if value is not None:
            return Pair(subject, value, found)
        who = look.right[0] if look.right else None
        target = self._namely(look, match.end, who, gap, LIES) if who is not None else None
        if target is not None:
            return Pair(subject, target, found)
        earlier = look.left[1] if owner is not None and len(look.left) > 1 else None
        if earlier is not None and owner is not None and IS_A.fullmatch(text, earlier.end, owner.start):
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
    return bool(words) and bool(HAS_A.fullmatch(" " + " ".join(words) + " "))
