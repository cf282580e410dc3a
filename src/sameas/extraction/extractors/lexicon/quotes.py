"""Quoted values: what stands between quotation marks of any usual kind, on one line and not too long."""

# ruff: noqa: RUF001 (the marks of other scripts are the data here)

import re
from collections.abc import Iterator
from itertools import chain

from sameas.extraction.extractors.lexicon.dates import XSD
from sameas.extraction.graph.model import Mention

_LONGEST = 160
_MARKS = '"…" “…” „…“ „…” «…» »…« ‹…› ›…‹ 「…」 『…』 《…》 〈…〉 ”…” ‚…‘ ‘…’'
_PAIRS = tuple(pair.split("…") for pair in _MARKS.split())
_QUOTED = re.compile(
    "|".join(
        # A single quote that follows a letter is an apostrophe.
        rf"{'(?<!' + chr(92) + 'w)' if left in chr(34) + '‘' else ''}{left}([^{left}{right}\n]{{1,{_LONGEST}}}){right}"
        for left, right in _PAIRS
    )
)
_MARK = re.compile(f"[{''.join(left for left, _ in _PAIRS)}]")
# A straight single quote is an apostrophe as often: it has to open a word, not stand for what is left out of one, and
# not close behind a plural that goes on ("the owners' club").
_STRAIGHT = re.compile(
    rf"(?<![\w'])'(?!(?:t?is|twas|em|til|cause|round|bout|n)\b)([^\s'](?:[^'\n]|(?<=\w)'(?=\w)){{1,{_LONGEST}}}?)"
    r"(?:(?<=[^\s's])'(?![\w'])|(?<=s)'(?=[.,;:!?)]|\s*\Z))"
)


def find_quotes(text: str) -> Iterator[Mention]:
    """Every quoted value, without its marks and without a comma or stop that the style put inside them."""
    quoted = _QUOTED.finditer(text) if _MARK.search(text) else ()
    straight = _STRAIGHT.finditer(text) if "'" in text else ()
    for match in chain(quoted, straight):
        group = match.lastindex or 0
        said = match[group]
        inner = said.strip().rstrip(",.;")
        if inner:
            start = match.start(group) + said.index(inner[0])
            yield Mention(start, start + len(inner), inner, kind="literal", value=inner, datatype=XSD + "string")
