"""Cues that share their last word: `written and directed by` says `written by` as well as `directed by`.

Rule: what is joined must be a cue of its own with that last word; a word that is none is passed over.
"""

# ruff: noqa: SIM905 (word lists and the marks of other scripts are the data here)

import re
from collections.abc import Iterable, Iterator

from sameas.extraction.extractors.lexicon.cues import Cue
from sameas.extraction.extractors.lexicon.phrases import Match, Phrases

_JOINS = tuple(f" {word} " for word in "and or & und oder et ou y o e en och".split())
_JOINED = re.compile(r"(?:[^\W\d_]+(?:,(?:\s(?:and|or|und|et|y))?|\s(?:and|or|&|und|oder|et|ou|y|o|e|en|och))\s)+\Z")
_WORD = re.compile(r"[^\W\d_]+")
_BACK = 80


def with_coordinated(folded: str, matches: Iterable[Match[Cue]], *, cues: Phrases[Cue]) -> Iterator[Match[Cue]]:
    """The matches, each followed by those of the words that are joined to its first, at the same place."""
    for match in matches:
        yield match
        if not folded.endswith(_JOINS, 0, match.start):
            continue
        first, _, last = folded[match.start : match.end].partition(" ")
        joined = _JOINED.search(folded, max(0, match.start - _BACK), match.start)
        if not last or joined is None:
            continue
        for word in dict.fromkeys(_WORD.findall(joined.group())):
            payload = cues.get(f"{word} {last}") if word != first else ()
            if payload:
                yield Match(match.start, match.end, payload)
