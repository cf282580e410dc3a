"""Where the ends of a relation may stand around a cue, by the small words of the sentence.

Rule: an end is taken only from a place that belongs to it. What follows a preposition (`the son of Anna`), what owns
something (`Anna's brother`) and what stands in a bracketed clause is not the subject of the verb after it, and a name
behind another noun (`a stake in Acme`) is not its object. Where two readings are possible, there is none.
"""

# ruff: noqa: RUF001, SIM905 (word lists and the marks of other scripts are the data here)

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sameas.extraction.graph.model import Mention

_AUXILIARIES = frozenset(
    """is was are were be been being am has have had having do does did got gets will would shall should may might can
    could must ought ist war sind waren wird wurde wurden hat haben hatte est était sont fut a été es fue está
    ha sido è fu era""".split()
)
_GROUP = _AUXILIARIES | frozenset(
    """also now still then later soon currently today first already eventually recently finally once again ever never
    not no longer only even just always often since both jointly together itself himself herself themselves all
    thus therefore however instead almost nearly hardly barely about due set likely unlikely going ready able
    unable willing plans plan planned planning intends intended intend wants want wanted hopes hoped expects
    expected considers considered considering seeks seeking sought aims aimed tries tried trying attempted
    attempts offered offers proposed proposes agreed agrees prepares preparing believed thought said says
    reported reports announced announces confirmed confirms stated rumoured rumored alleged claimed claims known
    denied denies denying refused refuses declined declines failed fails used ceased stopped appears appeared
    seems seemed went on managed proceeded came began begins started continues continued helped to without nicht
    nie niemals auch kein keine pas jamais ne no nunca non mai would-be""".split()
)
_SPOKE = frozenset(
    """that said says reported announced announces confirmed confirms stated claimed claims denied denies believes
    thinks hopes""".split()
)
_PRONOUNS = frozenset("it he she er sie es il elle él ella".split())
_RELATIVES = frozenset("who which that qui que".split())
_CONJUNCTIONS = frozenset("and but or und aber oder et ou mais y o pero e ma".split())
_BLOCKED = (
    "of|in|on|at|by|for|to|from|with|as|into|onto|about|through|under|over|against|between|among|near|behind|within|and|or"
    "|but|nor|than|who|which|that|whose|whom|where|when|while|because|it|he|she|they|we|you|is|was|are|were|be|been|has"
    "|have|had|will|would|von|vom|bei|mit|aus|nach|für|im|und|oder|de|du|des|par|et|por|con|y"
)
_DEMONYM = r"[^\W\d_a-z]\w*(?:ish|ese|ian|ean|ican|ench|erman|utch|eek|wiss)"
_TITLE = r"(?:Mr|Mrs|Ms|Mx|Dr|Prof|Professor|Sir|Dame|Lady|Lord|Herr|Frau|Madame|Monsieur)\.?"
_PLAIN = rf"(?:(?!(?:{_BLOCKED})\b)[a-zß-ÿ][\w'’-]*|\d+|[^\W\d_]\w*-[a-z]\w+|{_DEMONYM}|{_TITLE})"
OPENING_MARKS = r"[\"“„«‘'(]"
# "acquired the Bremen-based rival Weser Glas": what may stand between a verb and its object.
_OBJECT_GAP = re.compile(rf"\s*(?:{_PLAIN}\s+){{0,6}}{OPENING_MARKS}?")
_CLASS_OF = re.compile(
    rf"\s*(?:{_PLAIN}\s+){{0,4}}(?P<word>[a-zß-ÿ][\w-]*)\s+(?:of|von|de)\s+(?:the\s+)?{OPENING_MARKS}?"
)
_EVENT_GAP = re.compile(
    rf"(?:\s+(?:in|on|im)\s+(?:\w+\s+){{0,2}}\d{{4}},?)?\s+(?:in|at|near|bei|à|en)\s+(?:{_PLAIN}\s+){{0,3}}{OPENING_MARKS}?"
)
_POSSESSOR = re.compile(r"[\"”“»’']?(?:['’]s?\b(?=\s)|['’](?=\s))")
_OWNED = re.compile(
    r"\s+(?:shares?|stocks?|stakes?|assets?|bonds?|debts?|technolog(?:y|ies)|patents?|units?|divisions?|business(?:es)?"
    r"|brands?|products?|staff|engineers?|employees|workers?|managers?|executives?|spokes(?:man|woman|person)|rivals?"
    r"|competitors?|suppliers?|subsidiar(?:y|ies)|founders?|bosse?s?|chiefs?|customers?|software|sites?|offices?"
    r"|deals?|bid|offer|takeover|merger)\b"
)
_PREPOSED = re.compile(
    r"(?:\A|(?<=\W))(?P<word>of|for|at|from|with|by|in|on|to|against|near|between|among|like|unlike|under|about|than|via|per"
    r"|behind|von|vom|bei|mit|aus|für|im|gegen|par|avec|chez|con|por)\s+(?:(?:the|its|his|her|their|a|an|der|dem|den|die"
    r"|das|la|le|el|both)\s+)?(?:(?:[a-zß-ÿ][\w-]*)\s+){0,2}" + OPENING_MARKS + r"?\Z",
    re.IGNORECASE,
)
_CLASS_BEFORE = re.compile(r"(?P<word>[\w-]+)\s*\Z")
_DESCRIBED = re.compile(
    r"(?:\s*\([^()]{0,80}\))?(?:,?\s+(?:is|was|are|were|became|ist|war|est|es|fue|è)\s+(?:also\s+|now\s+|still\s+)?"
    r"(?:an?|the|one\s+of\s+the|ein|eine|un|une|una)\s+[^.;:!?]{1,100}|,\s+(?:an?|the|ein|eine|un|une|una)\s+[^,.;:!?]{1,80})\s+\Z"
)
_BREAKS = re.compile(r"\b(?:who|which|that|whose|while|because|when|where|although|said|says|if)\b|;", re.IGNORECASE)
_JOINED = re.compile(r"(?:\s*,\s*|\s+)(?:and|or|&|und|oder|et|y)\s+(?:the\s+)?\Z|\s*,\s*\Z", re.IGNORECASE)
# "Acme of Bremen": a place that is no mention.
_WHICH = re.compile(r"\s(?:of|from|in|aus)\s+[^\W\d_a-z][\w-]*(?:\s[^\W\d_a-z][\w-]*)?\s+\Z")
_COMMA = re.compile(r"\s*,\s*")
_CLAUSE_BEGINS = re.compile(
    r"(?:\A|[,;:–]\s*|\b(?:that|when|while|after|before|because|where|both|as|since|in\s+\d{4}|dass|weil)\s+)"
    r"(?:(?:the|both|der|die|das|la|le|el|beide)\s+)?(?:[a-zß-ÿ][\w-]*\s+)?" + OPENING_MARKS + r"?\Z",
    re.IGNORECASE,
)
_LONGEST_GROUP = 10


class Left(NamedTuple):
    """The name that a cue speaks of from the left, and where the words begin that govern the cue."""

    mention: Mention
    group: int


class Clause:
    """The text around one cue of a sentence, with the names on its left, nearest first."""

    def __init__(
        self, text: str, start: int, *, names: Sequence[Mention], is_class: Callable[[str], bool], last: Left | None
    ) -> None:
        self._text = text
        self._start = start
        self._names = names
        self._is_class = is_class
        self._last = last
        self._groups: dict[int, int] = {}

    def opens(self, at: int) -> str | None:
        """What the sentence has before a place that no name stands before: a pronoun or the like, or nothing."""
        place = self.group(at)
        return self._text[self._start : place].strip()

    def group(self, at: int) -> int:
        """Where the auxiliaries, adverbs and governing verbs before a place begin."""
        known = self._groups.get(at)
        if known is None:
            known = self._groups[at] = self._find_group(at)
        return known

    def _find_group(self, at: int) -> int:
        place = at
        for _ in range(_LONGEST_GROUP):
            word, start = self._word(place)
            lower = word.lower()
            if not word or not (lower in _GROUP or lower.endswith("n't") or (word.islower() and lower.endswith("ly"))):
                return place
            place = start
        return place

    def is_passive(self, at: int) -> bool:
        """Whether a form of `to be` governs the participle at a place."""
        words = self._text[self.group(at) : at].lower().split()
        return any(
            word in ("is", "was", "are", "were", "be", "been", "being", "got", "wurde", "wird", "wurden")
            for word in words
        )

    def left(self, at: int, *, is_active: bool, is_participle: bool) -> Left | None:
        """The name that stands where the subject of the cue at a place belongs."""
        group = self.group(at)
        word, start = self._word(group)
        if word.lower() in _PRONOUNS and start > self._start:
            before, before_at = self._word(start)
            if before.lower() in _SPOKE:
                group = self.group(before_at if before.lower() == "that" else start)
                return self._adjacent(group, group)
            group = start
            word, start = before, before_at
        lower = word.lower()
        if word.endswith("("):
            name = self._name_before(start + len(word) - 1)
            return Left(name, group) if name is not None else None
        if lower in _RELATIVES:
            name = self._name_before(start, comma=True)
            if name is not None and self.is_complement(name) and "," not in self._text[name.end : start]:
                # "the only rival of Acme that": who is meant is not plain.
                return None
            return Left(name, start) if name is not None else self._described(start, group=start)
        if word.endswith(","):
            finite = is_active or any(one in _AUXILIARIES for one in self._text[group:at].lower().split())
            return self._after_comma(group, finite=finite)
        if lower in _CONJUNCTIONS:
            return self._shared(start, group)
        found = self._adjacent(group, group)
        if found is None and is_participle and self._name_before(group) is None:
            return self._described(group, group=group)
        return found

    def is_apposed(self, name: Mention, at: int) -> bool:
        """Whether what stands at a place says what a name is: it follows a comma, or the name is no complement."""
        of = _PREPOSED.search(self._text, max(self._start, name.start - 48), name.start)
        follows = self._text[name.end : at].lstrip().startswith(",")
        return not self.is_complement(name) or (follows and of is not None and of["word"].lower() not in ("of", "von"))

    def is_complement(self, name: Mention) -> bool:
        """Whether a name follows a preposition, and so belongs to the noun or verb before it."""
        found = _PREPOSED.search(self._text, max(self._start, name.start - 48), name.start)
        if found is None:
            return False
        head = _CLASS_BEFORE.search(self._text, max(self._start, found.start() - 40), found.start())
        word = head["word"] if head is not None else ""
        return not (found["word"].lower() in ("of", "von") and word.islower() and self._is_class(word))

    def owns(self, name: Mention) -> bool:
        """Whether a name is followed by a possessive or by a noun that makes it only a part of a longer one."""
        return bool(_POSSESSOR.match(self._text, name.end) or _OWNED.match(self._text, name.end))

    def reaches(self, start: int, name: Mention, *, is_event: bool = False) -> bool:
        """Whether a name is the object of what ends at a place."""
        text = self._text
        if _OBJECT_GAP.fullmatch(text, start, name.start):
            return True
        if is_event and _EVENT_GAP.fullmatch(text, start, name.start):
            return True
        of = _CLASS_OF.fullmatch(text, start, name.start)
        return of is not None and self._is_class(of["word"])

    def after_possessor(self, name: Mention) -> int:
        """Where the text goes on behind `Acme's`, or -1 if nothing is owned."""
        found = _POSSESSOR.match(self._text, name.end)
        return found.end() if found else -1

    def _word(self, end: int) -> tuple[str, int]:
        text, begin = self._text, self._start
        while end > begin and text[end - 1].isspace():
            end -= 1
        start = end
        while start > begin and not text[start - 1].isspace():
            start -= 1
        return text[start:end], start

    def _name_before(self, end: int, *, comma: bool = False) -> Mention | None:
        text = self._text
        while end > self._start and (text[end - 1].isspace() or text[end - 1] in '"”“»’'):
            end -= 1
        if comma and end > self._start and text[end - 1] == ",":
            end -= 1
        if text[end - 1 : end] == ")":
            end = max(self._start, text.rfind("(", self._start, end))
            while end > self._start and text[end - 1].isspace():
                end -= 1
        while end > self._start and text[end - 1] in '"”“»’':
            end -= 1
        found = self._name_at(end)
        if found is None and text[end - 1 : end].islower():
            # "the Deichwerk plant": what it is may follow the name.
            word, start = self._word(end)
            found = self._name_at(start - 1) if self._is_class(word) else None
        return found

    def _name_at(self, end: int) -> Mention | None:
        return next((name for name in self._names if name.end == end), None)

    def _adjacent(self, end: int, group: int) -> Left | None:
        name = self._name_before(end)
        if name is None:
            which = _WHICH.search(self._text, max(self._start, end - 60), end)
            name = self._name_before(which.start()) if which is not None else None
        if name is None:
            return None
        head = self._head(name)
        if not self.is_complement(head):
            return Left(name, group)
        if head is not name:
            return None
        # "Anna Keller of Acme": what follows the preposition only says which Anna Keller.
        found = _PREPOSED.search(self._text, max(self._start, name.start - 48), name.start)
        outer = self._name_before(found.start()) if found is not None else None
        return Left(outer, group) if outer is not None and not self.is_complement(outer) else None

    def _head(self, name: Mention) -> Mention:
        """The first member of the list that a name ends."""
        names = self._names
        at = names.index(name)
        if at + 1 < len(names) and _COMMA.fullmatch(self._text, names[at + 1].end, names[at].start):
            return name
        while at + 1 < len(names) and _JOINED.fullmatch(self._text, names[at + 1].end, names[at].start):
            at += 1
        return names[at]

    def begins(self, name: Mention) -> bool:
        """Whether nothing before a name can have it for its object: it opens the sentence or a clause."""
        return bool(_CLAUSE_BEGINS.search(self._text, self._start, name.start)) and not self.is_complement(name)

    def _after_comma(self, end: int, *, finite: bool) -> Left | None:
        text = self._text
        comma = text.rfind(",", self._start, end)
        earlier = text.rfind(",", self._start, comma)
        outer = self._name_before(earlier) if earlier >= 0 else None
        inner = self._name_before(comma)
        apposed = inner is not None and earlier >= 0 and _COMMA.fullmatch(text, earlier, inner.start) is not None
        if finite:
            if inner is not None and apposed and (outer is None or self.is_complement(outer)):
                # "The founder of Acme, Anna Keller, was": the name says who the noun before it is.
                return Left(inner, end)
            if outer is not None:
                return Left(outer, end) if not self.is_complement(outer) else None
            return self._shared(comma, end)
        if outer is not None and inner is not None and self.is_complement(inner):
            return None
        name = inner or outer
        return Left(name, end) if name is not None else None

    def _shared(self, end: int, group: int) -> Left | None:
        """The subject of the clause before, which a second verb shares."""
        last = self._last
        if last is None:
            first = self._names[-1] if self._names else None
            if first is None or self.is_complement(first) or self.owns(first):
                return None
            last = Left(first, first.end)
            if self._text[self._start : first.start].count(","):
                return None
        if _BREAKS.search(self._text, last.group, end):
            return None
        between = [name for name in self._names if last.group <= name.start and name.end <= end]
        if any(not self.is_complement(self._head(name)) and name is not self._names[-1] for name in between):
            return None
        return Left(last.mention, group)

    def _described(self, end: int, *, group: int) -> Left | None:
        """`Acme is a maker of glass founded by`: the name that the description is about."""
        for name in self._names:
            if _DESCRIBED.fullmatch(self._text, name.end, end):
                return Left(name, group) if not self.is_complement(name) else None
        return None
