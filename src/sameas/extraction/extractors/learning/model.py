"""A learned extractor: small, fast, saved in one file, the same answer for the same sentence everywhere.

It proposes only properties of its schema, and every subject and object has its place in the sentence.
Applying it needs numpy alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from sameas.extraction.extractors.learning.candidates import find_candidates
from sameas.extraction.extractors.learning.clauses import clause_features
from sameas.extraction.extractors.learning.container import digest_of, pack, unpack, write_file
from sameas.extraction.extractors.learning.decoding import LearnedMention, LearnedTriple, Thresholds, choose
from sameas.extraction.extractors.learning.forms import Forms, is_shortened
from sameas.extraction.extractors.learning.hashing import word
from sameas.extraction.extractors.learning.labels import Cues
from sameas.extraction.extractors.learning.lexicon import Known, Lexicon, Table
from sameas.extraction.extractors.learning.lists import carry, find_lists
from sameas.extraction.extractors.learning.object_features import object_features
from sameas.extraction.extractors.learning.spans import KNOWN, SHORTENED, WordSpan
from sameas.extraction.extractors.learning.styles import SORTS, sort_of
from sameas.extraction.extractors.learning.subject_features import (
    Standing,
    SubjectFeatures,
    absent_feature,
    pair_features,
    place_of,
    property_features,
    subject_features,
)
from sameas.extraction.extractors.learning.tokens import Tokens, fold, tokenize

MARK = b"sameas learned extractor 1\n"
_FLOOR = 0.004
_PAIRS = 24
_SECOND_SUBJECT = 0.45
_LONGEST = 2000
_SORT_ROWS = {sort: i for i, sort in enumerate(SORTS)}

Rows = list[tuple[str, list[tuple[str, str, int]]]]
# A subject, its weight as seen from an object, where it stands from there, and what sort of thing it is.
_Beside = tuple[LearnedMention, float, Standing, Sequence[int]]


class ModelContent(msgspec.Struct, frozen=True):
    """The file's layout."""

    properties: list[str]
    sorts: list[list[str]]
    values: Rows
    subjects: Rows
    heads: Rows
    aliases: Rows
    cues: list[tuple[str, list[tuple[str, str]]]]
    styles: list[tuple[str, str, str]]
    object_keys: bytes
    object_weights: bytes
    object_scales: list[float]
    subject_keys: bytes
    subject_weights: bytes
    best: float
    other: float
    examples: int
    prior: str
    shortens: bool = False
    carried: list[tuple[str, str]] = msgspec.field(default_factory=list)
    edges: Rows = msgspec.field(default_factory=list)
    trusted: list[str] = msgspec.field(default_factory=list)


def _rows(table: Table) -> Rows:
    return [(key, [(k.form, k.property, k.count) for k in knowns]) for key, knowns in sorted(table.items())]


def _table(rows: Rows) -> Table:
    return {key: tuple(Known(form, name, count) for form, name, count in knowns) for key, knowns in rows}


def pack_lexicon(lexicon: Lexicon) -> dict[str, Rows]:
    """The lexicon's tables as the file has them."""
    return {
        "values": _rows(lexicon.values),
        "subjects": _rows(lexicon.subjects),
        "heads": _rows(lexicon.heads),
        "aliases": _rows(lexicon.aliases),
        "edges": _rows(lexicon.edges),
    }


class LearnedModel:
    """Extracts facts from sentences as it learned from examples; made by `learn` or `load`."""

    def __init__(self, content: ModelContent) -> None:
        self.content = content
        self.version = digest_of(content)
        self.properties = tuple(content.properties)
        self.thresholds = Thresholds(content.best, content.other)
        self._lexicon = Lexicon(
            _table(content.values),
            _table(content.subjects),
            _table(content.heads),
            _table(content.aliases),
            _table(content.edges),
        )
        self._cues: Cues = {key: tuple(items) for key, items in content.cues}
        self._forms = Forms({(name, sort): style for name, sort, style in content.styles})
        keys: list[int] = np.frombuffer(content.object_keys, np.uint32).tolist()
        width = len(self.properties)
        small = np.frombuffer(content.object_weights, np.int8).reshape(len(keys), width)
        scales = np.array(content.object_scales, np.float32)
        # The first row is for candidates none of whose features is known.
        self._weights = np.vstack([np.zeros((1, width), np.float32), small.astype(np.float32) * scales])
        self._row = {key: i for i, key in enumerate(keys, 1)}
        subject_keys = np.frombuffer(content.subject_keys, np.uint32).tolist()
        subject_weights = np.frombuffer(content.subject_weights, np.float16).astype(np.float64).tolist()
        self._subject: dict[int, float] = dict(zip(subject_keys, subject_weights, strict=True))
        self._carried = frozenset((name, end) for name, end in content.carried)
        # A row for each sort, a column for each property.
        self._takes = np.array([[sort in sorts for sorts in content.sorts] for sort in SORTS], bool)
        self._names = [word(name) for name in self.properties]

    def extract(self, sentence: str) -> list[LearnedTriple]:
        """The facts that the sentence states, best first."""
        tokens, spans = self._read(sentence)
        chosen = choose(self._guess(tokens, spans, self.thresholds), self.thresholds)
        if not chosen or not self._carried:
            return chosen

        def mention(span: WordSpan, name: str | None) -> LearnedMention:
            return _mention(tokens, span) if name is None else self._object_mention(tokens, span, name)

        return carry(chosen, find_lists(tokens, spans), self._carried, tokens=tokens, mention=mention)

    def guess(self, sentence: str) -> list[LearnedTriple]:
        """All facts worth a thought, whatever the thresholds."""
        return self._guess(*self._read(sentence), Thresholds(_FLOOR, _FLOOR))

    def _read(self, sentence: str) -> tuple[Tokens, list[WordSpan]]:
        # A text of this length is no sentence; its beginning is read.
        tokens = tokenize(sentence[:_LONGEST])
        return tokens, [span for span in find_candidates(tokens, self._lexicon) if self._is_taught(span, tokens)]

    def _guess(self, tokens: Tokens, spans: list[WordSpan], bar: Thresholds) -> list[LearnedTriple]:
        if not spans or not self.properties:
            return []
        scores = self._object_scores(tokens, spans)
        scores *= self._takes[[_SORT_ROWS[sort_of(span)] for span in spans]]
        likely = np.flatnonzero(scores >= bar.best)
        if not len(likely):
            return []
        # The best first; of equals the one that stands first.
        ranked = sorted(zip((-scores.ravel()[likely]).tolist(), likely.tolist(), strict=True))[:_PAIRS]
        chooser = _Chooser(tokens, subject_features(tokens, spans, self._lexicon), self._subject)
        guesses: list[LearnedTriple] = []
        best = 0.0
        for less, at in ranked:
            score = -less
            # A subject only lowers the confidence: what comes now can be neither the best nor above the
            # other bar.
            if score < bar.other and score <= best:
                break
            place, column = divmod(at, len(self.properties))
            target, name = spans[place], self.properties[column]
            mention = self._object_mention(tokens, target, name)
            for subject, share in chooser.subjects_of(target, self._names[column]):
                if fold(subject.value) != fold(mention.value):
                    guesses.append(LearnedTriple(name, subject, mention, score * share))
                    best = max(best, score * share)
        return guesses

    def _is_taught(self, span: WordSpan, tokens: Tokens) -> bool:
        """Whether the examples have shown this way to a normal form."""
        if not span.kinds & SHORTENED or span.kinds & KNOWN:
            return True
        return self.content.shortens and is_shortened(span, tokens)

    def _object_scores(self, tokens: Tokens, spans: list[WordSpan]) -> NDArray[np.float32]:
        features = object_features(tokens, spans, self._lexicon, self._cues)
        row_of = self._row.get
        flat: list[int] = []
        starts = []
        for row in features.rows:
            starts.append(len(flat))
            flat.append(0)
            flat += filter(None, map(row_of, row))
        sums = np.add.reduceat(self._weights.take(flat, axis=0), starts, axis=0)
        shared = list(filter(None, map(row_of, features.shared)))
        sums += self._weights[shared].sum(axis=0)
        found: NDArray[np.float32] = np.float32(0.5) * (np.float32(1) + np.tanh(np.float32(0.5) * sums))
        return found

    def _object_mention(self, tokens: Tokens, span: WordSpan, name: str) -> LearnedMention:
        text = tokens.slice(span.first, span.last)
        form = self._forms.render(name, span, tokens, self._lexicon)
        start, end = tokens.starts[span.first], tokens.ends[span.last - 1]
        return LearnedMention(text, start, end, None if form == text else form)

    @property
    def trusted(self) -> frozenset[str]:
        """The properties of which the lexicon may speak too."""
        return frozenset(self.content.trusted)

    def trusting(self, properties: Sequence[str]) -> LearnedModel:
        """The same model, which leaves these properties to the lexicon where it is unsure."""
        return LearnedModel(msgspec.structs.replace(self.content, trusted=list(properties)))

    def save(self, path: Path) -> None:
        """Write the model to a file; a crash leaves the old file or the new one."""
        write_file(path, pack(self.content, mark=MARK))

    @classmethod
    def load(cls, path: Path) -> LearnedModel:
        """Read a model from a file."""
        return cls(unpack(path.read_bytes(), ModelContent, mark=MARK, source=path.name))


class _Chooser:
    """Chooses subjects in one sentence; what does not depend on the object or property is weighed once."""

    def __init__(self, tokens: Tokens, subjects: SubjectFeatures, weights: dict[int, float]) -> None:
        self._subjects = subjects
        self._mentions = [_mention(tokens, span) for span in subjects.spans]
        self._weigh = weights.get
        self._static = [self._sum(row) for row in subjects.rows]
        self._absent = self._sum(subjects.absent)
        self._beside: dict[tuple[int, int], list[_Beside]] = {}

    def _sum(self, row: Sequence[int]) -> float:
        return sum(filter(None, map(self._weigh, row)), 0.0)

    def _seen_from(self, target: WordSpan) -> list[_Beside]:
        at = (target.first, target.last)
        found = self._beside.get(at)
        if found is None:
            found = self._beside[at] = []
            subjects = self._subjects
            for span, mention, base, look in zip(
                subjects.spans, self._mentions, self._static, subjects.looks, strict=True
            ):
                if (span.first, span.last) != at:
                    place = place_of(span, target, subjects.names)
                    pair = pair_features(place, span.kinds) + clause_features(subjects.clauses, span, target)
                    found.append((mention, base + self._sum(pair), place, look))
        return found

    def subjects_of(self, target: WordSpan, name: int) -> list[tuple[LearnedMention, float]]:
        """The likely subjects of a fact with this object and property, each with its share of the
        probability.
        """
        seen = self._seen_from(target)
        scores = [self._absent + self._weigh(absent_feature(name), 0.0)]
        scores += [base + self._sum(property_features(place, look, name)) for _, base, place, look in seen]
        top = max(scores)
        powers = [math.exp(score - top) for score in scores]
        total = sum(powers)
        return _pool([item[0] for item in seen], [power / total for power in powers[1:]])


def _mention(tokens: Tokens, span: WordSpan) -> LearnedMention:
    start, end = tokens.starts[span.first], tokens.ends[span.last - 1]
    return LearnedMention(tokens.text[start:end], start, end, span.form)


def _pool(mentions: Sequence[LearnedMention], shares: Sequence[float]) -> list[tuple[LearnedMention, float]]:
    """The likeliest subject, mentions of one name taken together, and others nearly as likely."""
    total: dict[str, float] = defaultdict(float)
    best: dict[str, tuple[float, LearnedMention]] = {}
    for mention, share in zip(mentions, shares, strict=True):
        key = mention.value.lower()
        total[key] += share
        if key not in best or share > best[key][0]:
            best[key] = (share, mention)
    least = min(_SECOND_SUBJECT, max(total.values(), default=0.0))
    likely = [key for key, share in total.items() if share >= least]
    ranked = sorted(likely, key=lambda key: (-total[key], best[key][1].start, key))
    kept: list[tuple[LearnedMention, float]] = []
    for key in ranked:
        mention = best[key][1]
        if kept and (total[key] < _SECOND_SUBJECT or any(mention.overlaps(other) for other, _ in kept)):
            break
        kept.append((mention, total[key]))
    return kept
