"""How far extraction can be trusted, on texts with complete gold: `./run bench trust [FOLDER]`.

Every extractor that is installed reads the documents of the five development domains, without examples and with the 30
of each domain. These domains guided choices, so the figures are development figures; those wanted are for others.
"""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench import public
from sameas.cli.extractors import EXTRACTORS, is_installed
from sameas.cli.trials import GoldTrial, judge_all
from sameas.extraction.evaluation import Report, read_domains, report_of

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "trust"


class Wanted(NamedTuple):
    """What is wanted of documents that nobody tuned on."""

    precision: float
    recall: float


ZERO, FEW, FOREIGN = Wanted(0.80, 0.55), Wanted(0.85, 0.65), Wanted(0.70, 0.40)
MOST_AGAINST, MOST_ERROR = 0.02, 0.06


def lines(name: str, report: Report, wanted: Wanted) -> Iterator[str]:
    foreign = [one for language, one in report.languages.items() if language != "english"]
    right, stated, there = (sum(getattr(one, part) for one in foreign) for part in ("right", "stated", "there"))
    yield (
        f"{name:<24}{report.whole.precision:>7.3f}{report.whole.recall:>7.3f}{report.whole.f1:>7.3f}"
        f"  (wanted {wanted.precision:.2f} / {wanted.recall:.2f})"
    )
    if there:
        yield (
            f"{'  other languages':<24}{right / max(1, stated):>7.3f}{right / there:>7.3f}{'':>7}"
            f"  (wanted {FOREIGN.precision:.2f} / {FOREIGN.recall:.2f})"
        )
    yield f"{'  against the text':<24}{report.share_against_the_text:>7.3f}{'':>14}  (at most {MOST_AGAINST})"
    yield f"{'  calibration error':<24}{report.calibration_error:>7.3f}{'':>14}  (at most {MOST_ERROR})"


def main(folder: str = str(SHARED)) -> int:
    """Print the figures of each extractor."""
    if not Path(folder).is_dir():
        print(f"no data in {folder}; name a folder of domains with complete gold", file=sys.stderr)
        return 1
    domains = read_domains(Path(folder))
    print(f"{'extractor':<24}{'P':>7}{'R':>7}{'F1':>7}")
    for name in EXTRACTORS:
        for learn in (False, True):
            if not is_installed(name) or (name != "learned" and learn) or (name == "learned" and not learn):
                continue
            trial = GoldTrial(extractor=name, learn=learn)
            report = report_of(asyncio.run(judge_all(domains, trial)))
            title = f"{name}, 30 examples" if learn else f"{name}, no examples"
            print(*lines(title, report, FEW if learn else ZERO), sep="\n", flush=True)
    return public.main() if public.SHARED.is_dir() else 0
