"""Passive cues whose doer stands apart: `founded in 1950 by` says `founded by`.

Rule: between the participle and `by` stand only dates, places and manners. Everything else ends the search.
"""

# ruff: noqa: RUF001 (the marks of other scripts are the data here)

import re
from collections.abc import Iterable, Iterator

from sameas.extraction.extractors.lexicon.cues import Cue
from sameas.extraction.extractors.lexicon.phrases import Match, Phrases

_BY = re.compile(
    r"(?:,?\s+(?:in|on|at|as|near|around|about|during|since|early|late|the|a|an|of|and(?=\s+[^\Wa-z_])|jointly|together|later"
    r"|first|originally|back|\w+ly|[^\Wa-z_][\w.'’/-]*))+?,?\s+(?=by\s)"
)
_MANNER = re.compile(
    r",?\s+(?:in|on|at|as|near|around|about|during|since|early|late|jointly|together|later|first|back|\w+ly)\b"
)
_FAR = 90
_DOER = "by"


def with_separated(
    text: str, folded: str, matches: Iterable[Match[Cue]], *, cues: Phrases[Cue]
) -> Iterator[Match[Cue]]:
    """The matches, and after each the passive cue that its first word begins and a later `by` completes."""
    done = -1
    for match in matches:
        yield match
        if match.start == done or not folded.find(" by ", match.start, match.end + _FAR) > 0:
            continue
        word_end = folded.find(" ", match.start, match.end)
        word_end = match.end if word_end < 0 else word_end
        payload = cues.get(f"{folded[match.start : word_end]} {_DOER}")
        if not payload or not _MANNER.match(text, word_end):
            continue
        between = _BY.match(text, word_end, word_end + _FAR)
        if between is not None:
            done = match.start
            yield Match(match.start, between.end() + len(_DOER), payload, word_end)
