"""The figures of judged documents: precision, recall and F1 over all facts, by tag, language and domain, how far
confidence can be believed, and how many facts the text speaks against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from sameas.extraction.evaluation.gold import Judged

_BINS = 10


class Figures(msgspec.Struct, frozen=True):
    """Of some documents: how many facts were right, stated and there."""

    documents: int
    right: int
    stated: int
    there: int

    @property
    def precision(self) -> float:
        return self.right / self.stated if self.stated else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.there if self.there else 1.0

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


class Report(msgspec.Struct, frozen=True):
    """All figures of an evaluation."""

    whole: Figures
    domains: Mapping[str, Figures]
    languages: Mapping[str, Figures]
    tags: Mapping[str, Figures]
    against_the_text: int
    calibration_error: float

    @property
    def share_against_the_text(self) -> float:
        return self.against_the_text / self.whole.stated if self.whole.stated else 0.0


def report_of(judged: Sequence[Judged]) -> Report:
    """The figures of an evaluation."""
    return Report(
        whole=_figures(judged),
        domains=_by(judged, lambda one: (one.domain,)),
        languages=_by(judged, lambda one: (one.document.language,)),
        tags=_by(judged, lambda one: one.document.kind),
        against_the_text=sum(fact.is_against_the_text for one in judged for fact in one.stated),
        calibration_error=calibration_error((fact.confidence, fact.is_right) for one in judged for fact in one.stated),
    )


def calibration_error(stated: Iterable[tuple[float, bool]]) -> float:
    """The expected calibration error: how far confidence and share of right facts lie apart, over ten bins."""
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(_BINS)]
    for confidence, is_right in stated:
        bins[min(_BINS - 1, int(confidence * _BINS))].append((confidence, is_right))
    count = sum(map(len, bins))
    apart = sum(abs(sum(confidence - is_right for confidence, is_right in one)) for one in bins)
    return apart / count if count else 0.0


def lines_of(report: Report) -> Iterator[str]:
    """The report as a table."""
    yield f"{'':<18}{'texts':>7}{'facts':>7}{'stated':>8}{'P':>7}{'R':>7}{'F1':>7}"
    groups = (report.domains, report.languages, report.tags)
    for name, figures in [row for group in groups for row in sorted(group.items())] + [("all", report.whole)]:
        yield (
            f"{name:<18}{figures.documents:>7}{figures.there:>7}{figures.stated:>8}"
            f"{figures.precision:>7.3f}{figures.recall:>7.3f}{figures.f1:>7.3f}"
        )
    against, stated = report.against_the_text, report.whole.stated
    yield f"against the text: {against} of {stated} stated facts ({report.share_against_the_text:.3f})"
    yield f"expected calibration error: {report.calibration_error:.3f}"


def _by(judged: Sequence[Judged], groups_of: Callable[[Judged], Iterable[str]]) -> dict[str, Figures]:
    found: dict[str, list[Judged]] = {}
    for one in judged:
        for group in groups_of(one):
            found.setdefault(group, []).append(one)
    return {name: _figures(ones) for name, ones in sorted(found.items())}


def _figures(judged: Sequence[Judged]) -> Figures:
    right = sum(fact.is_right for one in judged for fact in one.stated)
    return Figures(
        len(judged), right, sum(len(one.stated) for one in judged), right + sum(one.missed for one in judged)
    )
