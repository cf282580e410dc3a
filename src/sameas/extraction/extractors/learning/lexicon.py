"""What the examples call things: values of each property, names of subjects, head nouns, and normal forms.

A value is known by the lower-case tokens that say it. While learning, an example must not profit from its
own answer: every count can be taken without one example, given by its number.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sameas.extraction.extractors.learning.dates import find_dates
from sameas.extraction.extractors.learning.examples import Example
from sameas.extraction.extractors.learning.spans import STOPWORDS, find_spans
from sameas.extraction.extractors.learning.styles import writings
from sameas.extraction.extractors.learning.tokens import Tokens, fold, tokenize

NOBODY = -1
_ALIAS_TOKENS = 3
_ALIASES_KEPT = 5
_AKIN_PRECISION = 0.5
# Words that look nothing like the value: in so many texts, and in this share of those that have it.
_STRANGE_SUPPORT = 3
_STRANGE_SHARE = 0.5
_STEM = 4
_VALUE_TOKENS = 12


@dataclass(frozen=True, slots=True)
class Known:
    """A value (or subject) of a property: its spelling, in how many examples, and in which while learning."""

    form: str
    property: str
    count: int
    seen_in: frozenset[int] = frozenset()

    def count_without(self, example: int) -> int:
        """In how many examples other than this one."""
        return self.count - (example in self.seen_in)


Table = dict[str, tuple[Known, ...]]


@dataclass(frozen=True)
class Lexicon:
    """Tables, each from lower-case tokens joined by spaces to what is known of them."""

    values: Table
    subjects: Table
    heads: Table
    aliases: Table
    edges: Table = field(default_factory=dict)

    reach: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        reach: dict[str, int] = {}
        for key in (*self.values, *self.subjects, *self.aliases):
            words = key.split(" ")
            reach[words[0]] = max(reach.get(words[0], 0), len(words))
        object.__setattr__(self, "reach", reach)

    def knows_subject(self, key: str, *, without: int = NOBODY) -> bool:
        """Whether another example has this subject."""
        return key in self.subjects and _is_elsewhere(self.subjects[key], without)

    def knows_value(self, key: str, *, without: int = NOBODY) -> bool:
        """Whether another example has this value, of any property."""
        return key in self.values and _is_elsewhere(self.values[key], without)


def _is_elsewhere(knowns: tuple[Known, ...], without: int) -> bool:
    return any(known.count_without(without) > 0 for known in knowns)


def key_of(text: str) -> str:
    """The key under which a text is looked up."""
    return " ".join(tokenize(text).lower)


def _table(found: dict[tuple[str, str, str], set[int]]) -> Table:
    rows: dict[str, list[Known]] = defaultdict(list)
    for (key, form, name), numbers in sorted(found.items()):
        rows[key].append(Known(form, name, len(numbers), frozenset(numbers)))
    return {key: tuple(knowns) for key, knowns in rows.items()}


def _grams(tokens: Tokens) -> set[str]:
    lower = tokens.lower
    found = set()
    for size in range(1, _ALIAS_TOKENS + 1):
        for i in range(len(lower) - size + 1):
            first, last = lower[i], lower[i + size - 1]
            if first.isalpha() and last.isalnum() and first not in STOPWORDS and last not in STOPWORDS:
                found.add(" ".join(lower[i : i + size]))
    return found


def _is_said(value: str, tokens: Tokens) -> bool:
    """Whether the text spells the value, or says it as a date or number in another style."""
    if f" {key_of(value)} " in f" {' '.join(tokens.lower)} ":
        return True
    wanted = fold(value)
    return any(fold(written) == wanted for span in find_spans(tokens) for _, written in writings(span, tokens))


def _aliases(examples: Sequence[Example], properties: frozenset[str]) -> Table:
    """Words that stand for a value which the text does not spell: `Japanese` for Japan, `lieutenant` for a
    rank.

    Standing in the same texts is not enough: unless the two are akin in spelling, the words must be in most texts
    that have the value, in no text that has it not, and be no part of who has it.
    """
    texts = [tokenize(example.text) for example in examples]
    unsaid: dict[tuple[str, str], set[int]] = defaultdict(set)
    for number, example in enumerate(examples):
        for triple in example.triples:
            if triple.property not in properties or any(True for _ in find_dates(triple.object)):
                continue
            if not _is_said(triple.object, texts[number]):
                unsaid[(triple.object, triple.property)].add(number)
    if not unsaid:
        return {}
    grams = [_grams(text) for text in texts]
    spread = Counter(gram for found in grams for gram in found)
    aliases: dict[tuple[str, str, str], set[int]] = {}
    for (form, name), numbers in sorted(unsaid.items()):
        wanted = fold(form)
        near: Counter[str] = Counter()
        subjects: set[str] = set()
        for number in numbers:
            near.update(grams[number])
            subjects.update(word for triple in examples[number].triples for word in tokenize(triple.subject).lower)
        strange = max(_STRANGE_SUPPORT, _STRANGE_SHARE * len(numbers))
        ranked = []
        for gram, count in near.items():
            precision = count / spread[gram]
            joined = gram.replace(" ", "")
            akin = len(joined) >= _STEM and (joined[:_STEM] == wanted[:_STEM] or joined[: _STEM + 1] in wanted)
            is_sure = precision == 1.0 and count >= strange and _is_plain(gram) and subjects.isdisjoint(gram.split())
            if is_sure or (akin and precision >= _AKIN_PRECISION):
                worth = precision * math.log1p(count) + 0.5 * akin + 0.01 * len(gram)
                ranked.append((-worth, gram))
        for _, gram in sorted(ranked)[:_ALIASES_KEPT]:
            aliases[(gram, form, name)] = numbers
    return _table(aliases)


def _is_plain(gram: str) -> bool:
    return all(word.isalpha() for word in gram.split())


def learn_lexicon(examples: Sequence[Example], properties: Iterable[str]) -> Lexicon:
    """All that the examples name."""
    wanted = frozenset(properties)
    values: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    subjects: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    heads: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for number, example in enumerate(examples):
        for triple in example.triples:
            if triple.property not in wanted:
                continue
            words = tokenize(triple.object).lower
            if words and len(words) <= _VALUE_TOKENS:
                values[(" ".join(words), triple.object, triple.property)].add(number)
                if triple.object[0].islower():
                    heads[(words[-1], "", "")].add(number)
            named = key_of(triple.subject)
            if named:
                subjects[(named, "", triple.property)].add(number)
    return Lexicon(_table(values), _table(subjects), _table(heads), _aliases(examples, wanted))
