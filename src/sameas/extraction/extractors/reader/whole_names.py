"""Names are whole: where a name that was read ends too early, begins too late or takes in what is none of it.

Rule: a name grows over the capitalised words that the lexicon reads as one with it, over an article that is part of a
title, and over the halves of a name that a conjunction joins; it gives back a preposition, a date or a heading at its
edge. It never takes in a word in small letters before a name, and no line but its own.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from sameas.extraction.extractors.lexicon.given_names import GIVEN_NAMES
from sameas.extraction.extractors.reader.ends import Place
from sameas.extraction.extractors.reader.foreign_words import Language, language_of
from sameas.extraction.extractors.reader.rivals import Fact, name_of
from sameas.extraction.graph.model import Mention


class Classes(Protocol):
    """What the names of a text seem to be."""

    def kind_of(self, place: Place) -> str:
        """`work`, `person` or anything else that a place seems to name."""
        ...

    def is_called(self, place: Place, noun: str, language: Language) -> bool:
        """Whether a noun is what the class of a place is called."""
        ...


_NO_NAME, _A_NAME = 0.02, 0.5
_SMALL_END = re.compile(
    r"\s+(?:on|in|at|by|of|the|and|or|to|for|from|with|is|was|has|had|im|am|an|und|der|die|das|von|de|du|des|la|le|et|y|en"
    r"|el|del|(?:du|le|el|am|on|since|in|seit|depuis|desde)\s+\d.*)\Z"
)
# The chief of Acme is not Acme.
_OFFICE_OF = re.compile(
    r"(?:Geschäftsführer(?:in)?|Chef(?:in)?|Leiter(?:in)?|Direktor(?:in)?|Präsident(?:in)?|Vorsitzende[rn]?|Bürgermeister(?:in)?"
    r"|Gründer(?:in)?|Inhaber(?:in)?|Eigentümer(?:in)?|(?:chief\s+executive|CEO|head|director|president|founder|owner|chair(?:man|woman)?)"
    r"|(?:directeur|directrice|président|présidente|fondateur|fondatrice|director|directora|presidente|presidenta|fundador|fundadora)"
    r"(?:\s+g[ée]n[ée]ral[e]?)?)\s+(?:of|von|der|des|de|du|del)\s+(?:the\s+|la\s+)?(?-i:(?=[^\W\d_a-z]))",
    re.IGNORECASE,
)
_HEADING = re.compile(r"\A[^\n:]{2,20}:\s+(?=\S)")
_GIVEN = re.compile(r"(?<![\w-])(?P<name>[^\W\d_a-z][\w'\u2019-]+)\s\Z")
_KEY_LINE = re.compile(
    r"(?:^|\n)[-*•\s]*[^\W\d_][^\n:.;]{1,25}:[ \t]+(?P<rest>(?P<first>[^\W\d_a-z]\w*)(?:\s+(?:the|a|of|in|on|to|and|for"
    r"|with|at|by|from|der|die|das|dem|den|und|im|am|le|la|les|de|du|des|et|el|los|las|del|y))*\s+)\Z"
)
_CAPITALISED = re.compile(
    r"(?:[^\W\d_a-z][\w'\u2019&.-]*|\d+(?:\.\d+)*)(?:[ ](?:[^\W\d_a-z][\w'\u2019&.-]*|\d+(?:\.\d+)*))*"
)
_JOINT = re.compile(r"(?P<apostrophe>['\u2019]?)\s(?:and|&|or|und|oder|et|ou|y|o|e)\s\Z")
_ONE_THING = re.compile(
    r"(?:\b(?:the|a|der|die|das|den|dem|le|la|un|une|el|una|del|al|du|au|im)\s|\bl['\u2019])(?P<noun>[^\W\d_]{3,})\s[\"“„«']?\Z",
    re.IGNORECASE,
)
_NUMBER_SIGN = re.compile(r"(?:\A|\s)(?:Nr|No|N°|Nº|n°|nº)\Z")
_NUMBER_AFTER = re.compile(r"\.?\s?\d[\w/-]*")
_ONLY_NUMBER = re.compile(r"(?:Nr|No)\.?\s?\d[\w/-]*")
_NAMED_BY_NUMBER = re.compile(r"(?:^|\s)(?P<noun>[^\W\d_a-z][\w-]{3,})\s\Z")
_NAME_WORD = re.compile(r"[^\s,]+")
_INITIAL = 3
# "le tunnel de Rocamal" is called so; "la ville de Lyon" is Lyon.
_GENERIC = re.compile(
    r"(?i:\b(?:le|la|les|el|los|un|une|una|du|au|al|del)\s|\b[ld]['\u2019])(?P<noun>(?!(?:ville|pays|région|commune|village|province|département"
    r"|société|entreprise|groupe|ciudad|país|región|pueblo|municipio|provincia|empresa|compañía|grupo)\b)[a-zà-ÿ]{4,})"
    r"(?:\sde\s[a-zà-ÿ]+)?\s(?:(?:de|du|des|del|de la|de los|de las)\s|d['\u2019]|de l['\u2019])?\Z"
)
_GERMAN_GENERIC = re.compile(
    r"(?:Firma|Serie|Fernsehserie|Film|Roman|Programm|Software|Bibliothek|App|Band|Zeitschrift|Zeitung|Stadt|Gemeinde|Fluss"
    r"|Medikament|Wirkstoff|Dokumentation|Reederei|Kaufmann|Ausstellung)\s(?=[^\W\d_a-z])"
)
_THE = re.compile(r"\bThe\s\Z")
_HIS_OWN_S = re.compile(r"['\u2019]s(?=\s(?:is|was|has|had|offers|runs)\b|\))")


def whole_names(text: str, facts: Sequence[Fact], seen: Iterable[Mention], classes: Classes) -> list[Fact]:
    """The facts with whole names; of a fact that two parts of one name share, the surest."""
    parts = {(place.start, place.end): place for fact in facts for place in (fact.subject, fact.object) if place}
    language = language_of(text)
    names = [(one.start, one.end) for one in seen if one.kind != "literal"]
    spans = {span: _whole(text, place, names, classes, language) for span, place in parts.items()}
    spans = _joined(text, spans)
    whole = {
        span: place
        if spans[span] == span
        else msgspec.structs.replace(
            place, start=spans[span][0], end=spans[span][1], name=text[slice(*spans[span])].casefold()
        )
        for span, place in parts.items()
    }
    swallowing = _swallowing(parts, spans)
    best: dict[tuple[object, ...], Fact] = {}
    for fact in facts:
        if not swallowing.isdisjoint((one.start, one.end) for one in (fact.subject, fact.object) if one):
            continue
        subject = whole[fact.subject.start, fact.subject.end]
        target = fact.object and whole[fact.object.start, fact.object.end]
        if target is not None and (name_of(subject) == name_of(target)):
            continue
        key = (fact.property, subject.name, fact.truth, target and (target.start, target.end))
        if key not in best or fact.score > best[key].score:
            best[key] = fact._replace(subject=subject, object=target)
    return list(best.values())


def _swallowing(
    parts: Mapping[tuple[int, int], Place], spans: Mapping[tuple[int, int], tuple[int, int]]
) -> set[tuple[int, int]]:
    """Stretches that the reader takes for no name, around one that it is sure of: `Mai Geschäftsführer von Acme`."""
    return {
        span
        for span, place in parts.items()
        if place.score < _NO_NAME
        and all(other == span or whole != spans[span] for other, whole in spans.items())
        and any(
            span[0] <= other[0] and other[1] <= span[1] and other != span and one.score >= _A_NAME
            for other, one in parts.items()
        )
    }


def _whole(
    text: str, place: Place, names: Sequence[tuple[int, int]], classes: Classes, language: Language
) -> tuple[int, int]:
    start, end = place.start, place.end
    if not text[start:end].strip() or text[start].isdigit():
        return start, end
    start, end = _without_edges(text, start, end)
    for low, high in names:
        if low <= start and end <= high and (low, high) != (start, end):
            before, after = text[low:start], text[end:high]
            if before and (classes.kind_of(place) == "person" or not _CAPITALISED.fullmatch(before.rstrip())):
                continue
            if after and not _CAPITALISED.fullmatch(after.lstrip(" ")):
                continue
            if language == "de" or (before and not before.endswith(" ")):
                continue
            start, end = low, high
            break
    given = _GIVEN.search(text, max(0, start - 30), start)
    if given is not None and given["name"] in GIVEN_NAMES and " " not in text[start:end] and text[start].isupper():
        start = given.start("name")
    if classes.kind_of(place) == "person":
        start = _without_title(text, start, end)
    generic = _GENERIC.search(text, max(0, start - 50), start) if language in ("fr", "es") else None
    if generic is not None and classes.is_called(place, generic["noun"], language):
        start = generic.start("noun")
    if language == "de" and (firm := _GERMAN_GENERIC.match(text, start, end)) is not None:
        start = firm.end()
    start, end = _with_number(text, start, end)
    line = _KEY_LINE.search(text[max(0, start - 60) : start])
    if line is not None and text[end : end + 1] in ("", "\n") and not text[start].isdigit():
        start -= len(line["rest"])
    if classes.kind_of(place) == "work":
        the = _THE.search(text, max(0, start - 4), start)
        start = the.start() if the is not None and text[start].isupper() else start
    own = _HIS_OWN_S.match(text, end)
    if (
        own is not None
        and text[start].isupper()
        and not re.search(rf"{re.escape(text[start:end])}(?!['\u2019]s|\w)", text)
    ):
        end = own.end()
    return start, end


def _with_number(text: str, start: int, end: int) -> tuple[int, int]:
    """`Mietvertrag Nr. 18` and `contrat P-204` are whole; `Nr. 18` and `Heidehonig Nr` are halves."""
    number = _NUMBER_AFTER.match(text, end) if _NUMBER_SIGN.search(text, start, end) else None
    if number is not None:
        end = number.end()
    named = (
        _NAMED_BY_NUMBER.search(text, max(0, start - 40), start) if _ONLY_NUMBER.fullmatch(text, start, end) else None
    )
    return (start if named is None else named.start("noun")), end


def _without_title(text: str, start: int, end: int) -> int:
    """Where a person's given name begins that a title or an occupation stands before: `Ingenieur Karl Ehm`."""
    words = list(_NAME_WORD.finditer(text, start, end))
    for number, word in enumerate(words[1:-1], 1):
        if word[0] in GIVEN_NAMES:
            before = words[:number]
            if all(one[0] not in GIVEN_NAMES and len(one[0].rstrip(".")) > _INITIAL for one in before):
                return word.start()
            break
    return start


def _without_edges(text: str, start: int, end: int) -> tuple[int, int]:
    office = _OFFICE_OF.match(text, start, end)
    if office is not None:
        start = office.end()
    heading = _HEADING.match(text, start, end)
    if heading is not None:
        start = heading.end()
    while (small := _SMALL_END.search(text, start + 1, end)) is not None and text[start].isupper():
        end = small.start()
    return start, end


def _joined(text: str, spans: dict[tuple[int, int], tuple[int, int]]) -> dict[tuple[int, int], tuple[int, int]]:
    """Two halves of one name: `the quiz Double or Dust`, `Farmers' and Merchants' Bank`."""
    ordered = sorted(set(spans.values()))
    joined: dict[tuple[int, int], tuple[int, int]] = {}
    for one in ordered:
        for other in ordered:
            if not 0 < other[0] - one[1] <= 6 or one in joined or other in joined:
                continue
            between = _JOINT.fullmatch(text, one[1], other[0])
            if between is None or not (text[one[0]].isupper() and text[other[0]].isupper()):
                continue
            thing = _ONE_THING.search(text[max(0, one[0] - 40) : one[0]])
            one_thing = (
                thing is not None
                and not thing["noun"].casefold().endswith(("s", "en", "x"))
                and " " not in text[one[0] : one[1]]
                and " " not in text[other[0] : other[1]]
            )
            if one_thing or between["apostrophe"] or text[one[1] - 1] in "'\u2019":
                joined[one] = joined[other] = (one[0], other[1])
    return {span: joined.get(whole, whole) for span, whole in spans.items()}
