"""Plain words that names stand beside: where names have no capital, these say where one begins and ends.

They are learned from examples whose subjects are written in lower case (`quimab inhibits renin`), and are taken only
there: elsewhere capitals tell more. The words of a property's label end a name as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from sameas.extraction.extractors.learning.examples import Example
from sameas.extraction.extractors.learning.labels import Cues, stem
from sameas.extraction.extractors.learning.lexicon import Known, Lexicon, Table, key_of
from sameas.extraction.extractors.learning.spans import OPENING_ENDS, STOPWORDS
from sameas.extraction.extractors.learning.tokens import Tokens, tokenize

BEFORE, AFTER, CUE = "before", "after", "cue"
_START, _END = "<s>", "</s>"
# The share of facts with a subject in lower case from which such names are looked for.
_SHARE = 0.1
_LONGEST = 5


def learn_edges(examples: Sequence[Example], properties: Sequence[str], cues: Cues) -> Table:
    """The words beside the ends of facts, and the stems of labels; nothing where subjects have capitals."""
    found: dict[tuple[str, str], set[int]] = defaultdict(set)
    facts = plain = 0
    for number, example in enumerate(examples):
        lower = tokenize(example.text).lower
        for triple in example.triples:
            if triple.property not in properties:
                continue
            facts += 1
            plain += triple.subject[:1].islower()
            for end in (triple.subject, triple.object):
                for first, last in _places(key_of(end).split(" "), lower) if end[:1].islower() else ():
                    found[(lower[first - 1] if first else _START, BEFORE)].add(number)
                    found[(lower[last] if last < len(lower) else _END, AFTER)].add(number)
    if plain < _SHARE * facts:
        return {}
    rows: dict[str, list[Known]] = defaultdict(list)
    for (said, side), numbers in sorted(found.items()):
        rows[said].append(Known(side, "", len(numbers), frozenset(numbers)))
    for key, items in cues.items():
        if any(kind == "l" for kind, _ in items):
            rows[key].append(Known(CUE, "", 1))
    return {key: tuple(rows[key]) for key in sorted(rows)}


def _places(words: list[str], lower: Sequence[str]) -> Iterator[tuple[int, int]]:
    size = len(words)
    for first in range(len(lower) - size + 1):
        if list(lower[first : first + size]) == words:
            yield first, first + size


def plain_names(tokens: Tokens, lexicon: Lexicon, *, without: int) -> Iterator[tuple[int, int]]:
    """The runs of plain words between two edges that have none inside."""
    if not lexicon.edges:
        return
    lower, count = tokens.lower, len(tokens)

    def sides(said: str) -> set[str]:
        found = {known.form for known in lexicon.edges.get(said, ()) if known.count_without(without) > 0}
        if any(known.form == CUE for known in lexicon.edges.get(stem(said), ())):
            found |= {BEFORE, AFTER}
        if said in OPENING_ENDS:
            found.add(AFTER)
        return found - {CUE}

    edges = [sides(said) for said in lower]
    inner = [
        not edge and said not in STOPWORDS and (said[0].isalnum() or said == "-")
        for edge, said in zip(edges, lower, strict=True)
    ]
    for first in range(count):
        if not inner[first] or lower[first] == "-" or (first and BEFORE not in edges[first - 1]):
            continue
        for last in range(first + 1, min(count, first + _LONGEST) + 1):
            if not inner[last - 1]:
                break
            if lower[last - 1] != "-" and (last == count or AFTER in edges[last]):
                yield first, last
