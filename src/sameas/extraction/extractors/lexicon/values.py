"""Which value a property takes: a date, number or quoted text in the datatype that the range wants. A quoted text
stands between quotation marks of any usual kind, on one line and not too long.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from sameas.extraction.extractors.lexicon.dates import XSD
from sameas.extraction.graph.model import Mention
from sameas.ontology.index import OntologyIndex
from sameas.ontology.lexicon import words_of_label

# ruff: noqa: RUF001 (the marks of other scripts are the data here)


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

# ruff: noqa: SIM905 (word lists and the marks of other scripts are the data here)


STRING = XSD + "string"
_DATES = frozenset(XSD + name for name in ("date", "dateTime", "gYear", "gYearMonth", "gMonthDay"))
_NUMBERS = frozenset(XSD + name for name in ("integer", "decimal"))
_DATE_WORDS = frozenset(
    "date year time day born birth death inception founded established since founding datum jahr fecha année".split()
)
_NUMBER_WORDS = frozenset(
    (
        "number count population area height length width weight mass size cost budget price revenue age "
        "capacity elevation duration amount total percentage rate score distance speed temperature employees "
        "runtime anzahl"
    ).split()
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


class ValueFit:
    """Fits literals to the ranges of an ontology's properties; answers are remembered."""

    def __init__(self, index: OntologyIndex) -> None:
        self._index = index
        self._accepted: dict[str, tuple[str, ...] | None] = {}
        self._hinted: dict[str, frozenset[str]] = {}

    def takes_values(self, property_iri: str) -> bool:
        return self.accepted(property_iri) is not None

    def takes_things(self, property_iri: str) -> bool:
        one = self._index.properties[property_iri]
        if one.kind == "datatype":
            return False
        groups = self._index.expected_range(property_iri)
        if not groups:
            return not self.hints(property_iri)
        return any(not self._index.is_datatype(name) for group in groups for name in group)

    def accepted(self, property_iri: str) -> tuple[str, ...] | None:
        """The datatypes of the range; an empty tuple for any, None if the property takes no values."""
        if property_iri not in self._accepted:
            one = self._index.properties[property_iri]
            groups = self._index.expected_range(property_iri)
            named = tuple(sorted({name for group in groups for name in group if self._index.is_datatype(name)}))
            closed = one.kind == "object" and groups
            self._accepted[property_iri] = None if closed or (groups and not named) else named
        return self._accepted[property_iri]

    def hints(self, property_iri: str) -> frozenset[str]:
        """The datatypes that the labels of a property without a range speak of."""
        if property_iri not in self._hinted:
            one = self._index.properties[property_iri]
            labels = [text.value for text in (*one.labels, *one.alt_labels)]
            words = {word for label in labels for word in (words_of_label(label) or label).lower().split()}
            dates = _DATES if words & _DATE_WORDS else frozenset[str]()
            numbers = _NUMBERS if words & _NUMBER_WORDS else frozenset[str]()
            self._hinted[property_iri] = dates | numbers
        return self._hinted[property_iri]

    def fit(self, mention: Mention, property_iri: str) -> Mention | None:
        """The literal in a datatype of the property's range, or None."""
        accepted = self.accepted(property_iri)
        if accepted is None:
            return None
        if not accepted:
            hints = self.hints(property_iri)
            wanted = mention.datatype in hints if hints else mention.datatype == STRING
            return mention if wanted else None
        return self._fit_any(mention, accepted)

    def _fit_any(self, mention: Mention, accepted: Iterable[str]) -> Mention | None:
        tree = self._index.datatype_tree
        plain = {name for iri in accepted for name in tree.same(iri)} | set(accepted)
        if mention.datatype in plain or not tree.above(mention.datatype).isdisjoint(plain):
            return mention
        for target in sorted(plain):
            value = _converted(mention, target.removeprefix(XSD))
            if value is not None:
                return msgspec.structs.replace(mention, value=value, datatype=target)
        return None


def _converted(mention: Mention, target: str) -> str | None:
    source = mention.datatype.removeprefix(XSD)
    value = mention.value
    match source, target:
        case "date", "dateTime":
            return f"{value}T00:00:00"
        case "date" | "gYearMonth" | "dateTime", "gYear":
            return value[:4]
        case "date", "gYearMonth":
            return value[:7]
        case "dateTime", "date":
            return value[:10]
        case "integer" | "decimal", "double" | "float":
            return value
        case "gYear", "integer" | "int" | "long" | "short" | "decimal":
            return str(int(value))
        case "integer", "int" | "long" | "short" | "byte":
            return value
        case "integer", "nonNegativeInteger" | "positiveInteger" | "unsignedInt" | "unsignedLong":
            return value if int(value) >= target.startswith("positive") else None
        case _, "string" if source != "string":
            return mention.text
        case "string", "anyURI" if value.startswith(("http://", "https://")):
            return value
        case _:
            return None
