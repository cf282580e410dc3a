"""What may stand between a cue and the value that it gives, by the kind of value.

Rule: a date may follow after other times and places (`founded by Anna Keller in Bremen in 1999`), a number and a text
only after words that say how much or that it is so. `by` and `from` before a number tell of a change, not of a value.
"""

# ruff: noqa: RUF001 (the marks of other scripts are the data here)

import re

from sameas.extraction.extractors.lexicon.dates import XSD
from sameas.extraction.graph.model import Mention

_DATES = frozenset(XSD + name for name in ("date", "dateTime", "gYear", "gYearMonth", "gMonthDay"))
_NUMBERS = re.compile(r"integer|decimal|double|float|int|long|short|byte|unsigned\w+|\w+Integer")
_DATE_GAP = re.compile(
    r"(?:,?\s+(?:in|on|at|of|the|a|an|around|about|circa|ca\.|since|during|early|late|mid|by|near|as|back|was|is|im|am|seit|le"
    r"|en|am|zum|\w+ly|(?:and|und|et|&)(?=\s+[^\W\d_a-z])|[^\Wa-z_][\w.'’&/-]*))*,?\s*[(:]?\s*"
)
_NUMBER_GAP = re.compile(
    r"(?:\s+(?:of|about|around|approximately|roughly|nearly|almost|over|more|than|some|circa|ca\.|at|least|up|to|a|an|total|the"
    r"|was|is|were|are|has|been|reached|amounted|amounts|totalled|totaled|stood|stands|came|rose|grew|fell|declined|increased"
    r"|dropped|currently|now|still|exceeded|just|well|as|many|much|only|von|ist|war|beträgt|betrug|rund|etwa|de|est|environ|es"
    r"|unos|not|never))*\s*[:(]?\s*"
)
_TEXT_GAP = re.compile(
    r"(?:,?\s+(?:of|is|was|has|been|reads|read|the|a|simply|now|not|ist|war|lautet|est|es|era))*\s*[:,]?\s*[\"“„«‘'「『《]?"
)


def is_date(datatype: str) -> bool:
    """Whether a datatype is one of times."""
    return datatype in _DATES


def reaches_value(text: str, start: int, value: Mention, *, datatype: str) -> bool:
    """Whether what stands from a place up to a value lets it be the value, wanted in this datatype."""
    if datatype in _DATES:
        gap = _DATE_GAP
    elif _NUMBERS.fullmatch(datatype.removeprefix(XSD)):
        gap = _NUMBER_GAP
    else:
        gap = _TEXT_GAP
    return start <= value.start and gap.fullmatch(text, start, value.start) is not None
