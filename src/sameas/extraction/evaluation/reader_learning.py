"""Learn from examples with the reader: its layers stay, its heads are fitted, cross-validation says what that is worth.

Rule: what the heads gain is measured on examples that they were not fitted to, through the whole pipeline; where they
gain nothing the reader is used as it came, and that is said. Where examples name some of the facts of their texts and
not all, what they leave out is not taught as false. Equal examples, ontology and weights give an equal model.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from sameas.extraction.evaluation.gold import Domain, GoldDocument, Judged, judge_documents
from sameas.extraction.evaluation.report import Figures
from sameas.extraction.extractors.confidence import READ_FROM
from sameas.extraction.extractors.learning.examples import Example, ExamplesError
from sameas.extraction.extractors.reader.confidence import judge, judge_fitted
from sameas.extraction.extractors.reader.extractor import Judge, ReaderExtractor
from sameas.extraction.extractors.reader.fitted import FittedContent, FittedModel
from sameas.extraction.extractors.reader.fitting import Fitted, Schedule, fit_heads
from sameas.extraction.extractors.reader.labels import Asked, ask_for
from sameas.extraction.extractors.reader.lessons import Lesson, Unused, make_lesson
from sameas.extraction.extractors.reader.reading import Reader
from sameas.extraction.outputs.context import local_name
from sameas.identity.key import normalize_text
from sameas.ontology.focus import Focuser
from sameas.ontology.index import OntologyIndex

COMPLETE = Schedule()
PARTIAL = COMPLETE._replace(unlabelled=0.02, unlabelled_tag=0.05)
_FOLDS, _FOLDS_OF_MANY, _MANY = 6, 2, 120
_FROM = (0.3, 0.4, 0.5, 0.6)
# Facts that the reader is so sure of are right three times in four; where examples know half of them or fewer, they
# do not name everything.
_SURE, _NAMED, _FEW = 0.6, 0.5, 8
_SAMPLE = 60
# So many facts count as what is known without a property's own.
_OTHERS_SAY = 4.0
_NOWHERE = Path()


class PropertyScore(msgspec.Struct, frozen=True):
    """A property: how many facts of the examples are of it, and what was read of examples held out."""

    iri: str
    examples: int
    base: Figures
    fitted: Figures


class LearningReport(msgspec.Struct, frozen=True):
    """What came of learning."""

    examples: int
    complete: bool
    """Whether the examples name every fact of their texts."""
    base: Figures
    fitted: Figures
    properties: tuple[PropertyScore, ...]
    unused: tuple[Unused, ...]
    base_f1: float
    """The mean of F1 over several confidences to begin from: of few examples one alone says little."""
    fitted_f1: float

    @property
    def gains(self) -> bool:
        return self.fitted_f1 > self.base_f1


def learn_reader(
    examples: Sequence[Example], index: OntologyIndex, reader: Reader, *, weights: str, complete: bool | None = None
) -> tuple[FittedModel, LearningReport]:
    """The heads fitted to examples, or the reader as it came. `weights` is the digest of the reader's; `complete` says
    whether the examples name every fact of their texts, and without it the reader itself decides.
    """
    given = [Example(normalize_text(one.text), one.triples) for one in examples]
    if not any(triple.property in index.properties for one in given for triple in one.triples):
        raise ExamplesError("no example has a triple of a property in the ontology; there is nothing to learn")
    school = _School(given, index, reader.remembering())
    base = school.judged(range(len(given)), None, judge)
    if complete is None:
        complete = _names_most(base)
    schedule = COMPLETE if complete else PARTIAL
    folds = _FOLDS if len(given) <= _MANY else _FOLDS_OF_MANY
    held = [[number for number in range(len(given)) if number % folds == fold] for fold in range(folds)]
    with ThreadPoolExecutor(2) as pool:
        others = [[number for number in range(len(given)) if number % folds != fold] for fold in range(folds)]
        tries = list(pool.map(lambda numbers: school.fit(numbers, schedule), others))
    tried = [
        one
        for numbers, fitted in zip(held, tries, strict=True)
        for one in school.judged(numbers, fitted, lambda signs, iri: judge_fitted(signs))
    ]
    report = LearningReport(
        len(given),
        complete,
        figures(base),
        figures(tried),
        tuple(school.scores(base, tried)),
        school.unused,
        _mean_f1(base),
        _mean_f1(tried),
    )
    if not report.gains:
        return FittedModel(FittedContent(weights=weights, examples=len(given), complete=complete)), report
    model = FittedModel.of(
        school.fit(range(len(given)), schedule),
        reader,
        weights=weights,
        properties=list(school.properties),
        examples=len(given),
        complete=complete,
        offsets=school.offsets(tried) if complete else [],
    )
    return model, report


def fit_reader(
    examples: Sequence[Example], index: OntologyIndex, reader: Reader, *, how_sure: Judge | None = None
) -> ReaderExtractor:
    """An extractor fitted to complete examples, whatever cross-validation would say."""
    school = _School(examples, index, reader.remembering())
    fitted = school.fit(range(len(examples)), COMPLETE)
    return school.extractor(fitted, how_sure or (lambda signs, iri: judge_fitted(signs)))


def _mean_f1(judged: Sequence[Judged]) -> float:
    return round(sum(figures(judged, least=least).f1 for least in _FROM) / len(_FROM), 3)


def figures(judged: Iterable[Judged], name: str | None = None, *, least: float = READ_FROM) -> Figures:
    """What the answer would have of these texts from a confidence on, of one property or of all."""
    documents = right = stated = there = 0
    for one in judged:
        documents += 1
        facts = [fact for fact in one.stated if fact.confidence >= least and name in (None, fact.fact[1])]
        right += sum(fact.is_right for fact in facts)
        stated += len(facts)
        there += len({triple for triple in one.document.triples if name in (None, triple[1])})
    return Figures(documents, right, stated, there)


def name_everything(examples: Sequence[Example], index: OntologyIndex, reader: Reader) -> bool:
    """Whether examples seem to name every fact of their texts, by what the reader is sure of in the first of them."""
    some = [Example(normalize_text(one.text), one.triples) for one in examples[:_SAMPLE]]
    return _names_most(_School(some, index, reader).judged(range(len(some)), None, judge))


def _names_most(base: Sequence[Judged]) -> bool:
    sure = [fact for one in base if one.document.triples for fact in one.stated if fact.confidence >= _SURE]
    return len(sure) < _FEW or sum(fact.is_right for fact in sure) > _NAMED * len(sure)


class _School:
    """The examples of one ontology, encoded once."""

    def __init__(self, examples: Sequence[Example], index: OntologyIndex, reader: Reader) -> None:
        self._index, self._reader = index, reader
        self.properties = tuple(sorted(index.properties))
        columns = {iri: number for number, iri in enumerate(self.properties)}
        focuser = Focuser(index)
        self._lessons: list[Lesson | None] = []
        unused: list[Unused] = []
        self._texts: dict[str, str] = {}
        for number, example in enumerate(examples):
            asked = self._asked(example, focuser)
            lesson, left = make_lesson(example, number, asked, columns, reader, index)
            self._lessons.append(lesson)
            self._texts.update(zip(asked.properties, asked.property_texts, strict=True))
            unused += left
        self.unused = tuple(unused)
        self._documents = [
            GoldDocument(
                one.text, tuple((triple.subject, local_name(triple.property), triple.object) for triple in one.triples)
            )
            for one in examples
        ]
        self._counts = Counter(triple.property for one in examples for triple in one.triples)

    def _asked(self, example: Example, focuser: Focuser) -> Asked:
        focus = focuser.focus(example.text)
        named = (triple.property for triple in example.triples if triple.property in self._index.properties)
        missing = [iri for iri in dict.fromkeys(named) if iri not in focus.properties]
        return ask_for(self._index, (*missing, *focus.properties), focus.classes)

    def fit(self, numbers: Iterable[int], schedule: Schedule) -> Fitted:
        lessons = [lesson for number in numbers if (lesson := self._lessons[number]) is not None]
        return fit_heads(lessons, self._reader.network.heads, len(self.properties), schedule)

    def judged(self, numbers: Iterable[int], fitted: Fitted | None, how_sure: Judge) -> list[Judged]:
        """What the pipeline reads of examples."""
        documents = tuple(self._documents[number] for number in numbers)
        domain = Domain("examples", _NOWHERE, documents, None)
        return asyncio.run(judge_documents(domain, self._index, self.extractor(fitted, how_sure)))

    def extractor(self, fitted: Fitted | None, how_sure: Judge) -> ReaderExtractor:
        reader = self._reader
        if fitted is not None:
            changes = {
                self._texts[iri]: (fitted.queries[at], float(fitted.biases[at]))
                for at, iri in enumerate(self.properties)
                if iri in self._texts
            }
            reader = reader.fitted(fitted.heads, changes)
        return ReaderExtractor(self._index, reader, digest="", judge_signs=how_sure)

    def scores(self, base: Sequence[Judged], tried: Sequence[Judged]) -> Iterable[PropertyScore]:
        for iri in self.properties:
            name = local_name(iri)
            of_base, of_tried = figures(base, name), figures(tried, name)
            if self._counts[iri] or of_base.stated or of_tried.stated:
                yield PropertyScore(iri, self._counts[iri], of_base, of_tried)

    def offsets(self, tried: Iterable[Judged]) -> list[tuple[str, float]]:
        """How much more or less often a property's facts are right than their confidence says."""
        apart: dict[str, float] = defaultdict(float)
        weight: dict[str, float] = defaultdict(float)
        for one in tried:
            for fact in one.stated:
                name, sure = fact.fact[1], fact.confidence
                apart[name] += fact.is_right - sure
                weight[name] += sure * (1 - sure)
        found = ((iri, local_name(iri)) for iri in self.properties)
        return [(iri, round(apart[name] / (weight[name] + _OTHERS_SAY), 3)) for iri, name in found if name in apart]
