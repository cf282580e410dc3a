"""How a property writes its values: the text as it stands, a date or number in some style, or with words
added.

Which style is learned by counting which one gives the examples' values; the commonest wins.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from sameas.extraction.extractors.learning.examples import Example
from sameas.extraction.extractors.learning.lexicon import Lexicon
from sameas.extraction.extractors.learning.schema import Property
from sameas.extraction.extractors.learning.spans import SHORTENED, WordSpan, find_spans
from sameas.extraction.extractors.learning.styles import AFFIX, AS_IS, DATE_SORTS, SEPARATOR, SORTS, sort_of, write_span
from sameas.extraction.extractors.learning.tokens import Tokens, fold, tokenize, word_set

ANY = "*"
_AFFIX_SUPPORT = 2
_DATE_TYPES = frozenset(("date", "datetime", "datetimestamp", "gyear", "gyearmonth"))
_NUMBER_TYPES = frozenset(
    (
        *("byte", "decimal", "double", "float", "int", "integer", "long", "nonnegativeinteger"),
        *("positiveinteger", "short", "unsignedint", "unsignedlong"),
    )
)
_AFFIX_TEXT = 3
_SHORTENED_SUPPORT = 2
_TITLES = word_set(
    "mr mrs ms miss dr prof professor sir dame lady lord king queen prince princess emperor empress sultan pope saint "
    "st admiral general colonel major captain lieutenant sergeant corporal commander commodore marshal brigadier field "
    "rear vice president senator governor mayor judge justice chancellor minister ambassador bishop archbishop "
    "cardinal rabbi count countess duke duchess baron earl marquis reverend father brother sister herr frau the"
)


class AffixCounter:
    """Collects words that a property's values have around what the text says: `English` -> `English
    language`.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], set[str]] = defaultdict(set)

    def note(self, name: str, value: str, texts: list[str]) -> None:
        """Note a value that no candidate gives; `texts` are the candidates' texts."""
        longest = max((text for text in texts if len(text) >= _AFFIX_TEXT and text in value), key=len, default=None)
        if longest is not None and longest != value:
            before, _, after = value.partition(longest)
            self._seen[(name, SEPARATOR.join((AFFIX, before, after)))].add(longest)

    def affixes(self) -> dict[str, tuple[str, ...]]:
        """For each property the affixes with enough support."""
        kept: dict[str, list[str]] = defaultdict(list)
        for (name, style), texts in sorted(self._seen.items()):
            if len(texts) >= _AFFIX_SUPPORT:
                kept[name].append(style)
        return {name: tuple(styles) for name, styles in kept.items()}


@dataclass(frozen=True)
class Forms:
    """The style of each property for each sort of candidate; `*` stands for properties that had no example
    of the sort.
    """

    styles: Mapping[tuple[str, str], str]

    def render(self, name: str, span: WordSpan, tokens: Tokens, lexicon: Lexicon) -> str:
        """The value as this property writes it."""
        if span.form is not None:
            return span.form
        text = tokens.slice(span.first, span.last)
        sort = sort_of(span)
        style = self.styles.get((name, sort)) or (self.styles.get((ANY, sort)) if sort != "text" else None) or AS_IS
        if style != AS_IS:
            return write_span(span, text, style) or text
        for known in lexicon.values.get(" ".join(tokens.lower[span.first : span.last]), ()):
            if known.property == name and fold(known.form) == fold(text):
                return known.form
        return text


def allowed_sorts(item: Property, forms: Forms) -> tuple[str, ...]:
    """The sorts of candidates that a property takes: those of its range, and those that its examples have."""
    datatype = (item.datatype or "").replace("#", "/").rsplit("/", 1)[-1].rsplit(":", 1)[-1].lower()
    fitting: tuple[str, ...] = SORTS
    if datatype in _DATE_TYPES:
        fitting = DATE_SORTS
    elif datatype in _NUMBER_TYPES:
        fitting = ("number",)
    elif item.range is not None:
        fitting = ("form", "text")
    return tuple(sort for sort in SORTS if sort in fitting or (item.id, sort) in forms.styles)


def choose_styles(counts: Counter[tuple[str, str, str]]) -> Forms:
    """The commonest style of each property and sort; ties go to the first in alphabetical order."""
    totals: Counter[tuple[str, str, str]] = Counter(counts)
    for (_, sort, style), count in counts.items():
        totals[(ANY, sort, style)] += count
    chosen: dict[tuple[str, str], str] = {}
    for name, sort, style in sorted(totals, key=lambda item: (-totals[item], item)):
        chosen.setdefault((name, sort), style)
    return Forms(dict(sorted(chosen.items())))


def shortens(examples: Sequence[Example], properties: Container[str]) -> bool:
    """Whether the examples call people by first and last name where the text has more: `Rosa Vega` for `Rosa María
    Vega`.
    """
    shown: set[str] = set()
    for example in examples:
        names = {
            fold(end)
            for triple in example.triples
            if triple.property in properties
            for end in (triple.subject, triple.object)
        }
        names = {name for name in names if name not in fold(example.text)}
        if names:
            tokens = tokenize(example.text)
            forms = {fold(span.form) for span in find_spans(tokens) if is_shortened(span, tokens) and span.form}
            shown |= names & forms
    return len(shown) >= _SHORTENED_SUPPORT


def is_shortened(span: WordSpan, tokens: Tokens) -> bool:
    """Whether a candidate is a name without its middle, and not a title with a last name."""
    return bool(span.kinds & SHORTENED) and span.form is not None and tokens.lower[span.first] not in _TITLES
