"""Who and what belong to a noun that names a relation: `the founder of Acme is Anna`, `Acme's founder, Anna`.

Rule: only the ways in which a language says whose it is count: `of`, a possessive, `has`, and a copula or a comma
between the noun and who it is. A noun that only stands near two names (`Acme met founder Anna`) relates nothing.
"""

# ruff: noqa: RUF001 (word lists and the marks of other scripts are the data here)

import re

OF = re.compile(
    r"\s+(?:of|de|du|des|von|vom|der|di|del|della|do|da|at|for)\s+(?:(?:[Tt]he|la|le|el|die|der|das|den)\s+)?"
    r"(?:[a-zß-ÿ][\w-]*\s+){0,3}[\"“„«‘]?|\s+d['’]"
)
_BE = (
    "is|was|are|were|be|been|being|becomes?|became|remains?|remained|serve[sd]? as|act(?:s|ed)? as|work(?:s|ed)? as"
    "|(?:was |is |been )?(?:appointed|named|elected|made)(?: as)?|as|ist|war|wurde|wird|est|était|fut|es|fue|è|era"
)
_HAVE = (
    "has|have|had|having|with|reported|reports|posted|generated|generates|achieved|recorded|earned|earns|made|makes|holds"
    "|held|received|took|takes|obtained|completed|counts|gained|hat|hatte|mit|a|avait|avec|tiene|tuvo|con"
)
_AROUND = (
    r"(?:(?:also|now|still|then|later|soon|currently|today|already|eventually|recently|finally|once|again|never|not|no|longer"
    r"|only|even|always|just|first|to|be|have|has|had|is|was|been|may|might|could|would|should|will|can|must|plans?|planned|wants?"
    r"|wanted|hopes?|hoped|expected|intends?|aims?|likely|unlikely|said|believed|rumou?red|alleged|denie[sd]|did|does|do|used"
    r"|nicht|nie|kein|keine|pas|jamais|auch|neither|nor|set|due|about|going|seeks?|\w+ly|\w+n['’]t)\s+)*"
)
_DETERMINER = (
    r"(?:(?:the|a|an|its|his|her|their|one of the|die|der|das|ein|eine|le|la|les|un|une|el|una|no|kein|keine)\s+)?"
)
_ADJECTIVE = (
    r"(?:(?!(?:of|in|on|at|by|for|to|from|with|into|and|or|but|who|which|that|whose|deputy|vice|assistant|acting|wife|husband|son"
    r"|daughter|friend|than)\b)[a-zß-ÿ][\w'’-]*\s+){0,4}"
)
_BRACKET = r"(?:\s*\([^()]{0,60}\))?"
_RELATIVE = r"(?:,?\s+(?:who|which|that|qui)\b)?"
# From a name to a noun that says what it is.
IS_A = re.compile(
    rf"[\"”“»’]?{_BRACKET}(?:{_RELATIVE}\s+{_AROUND}(?:{_BE})\s+{_AROUND}{_DETERMINER}{_ADJECTIVE}"
    rf"|,\s+(?:as\s+)?{_DETERMINER}{_ADJECTIVE}|\s+)"
)
# From a name to a noun that it has.
HAS_A = re.compile(
    rf"[\"”“»’]?{_BRACKET}(?:,?{_RELATIVE}\s+{_AROUND}(?:{_HAVE})\s+{_AROUND}{_DETERMINER}{_ADJECTIVE}|,\s+whose\s+{_ADJECTIVE})"
)
OWNS = re.compile(rf"[\"”“»’]?['’]s?\s+{_ADJECTIVE}")
# From a noun, or from the name it belongs to, to who it is.
NAMELY = re.compile(
    rf"{_BRACKET}(?:\s*[,:–]\s*|\s+{_AROUND}(?:{_BE})\s+{_AROUND}(?P<at>(?:in|at|near|bei|à|en)\s+)?|\s+)(?:(?:the|a|an|called|named|Mr|Mrs|Ms|Dr|Prof|Herr|Frau)\.?\s+)*"
    r"[\"“„«‘]?"
)
# From a noun that a name has to what it is: "has its headquarters in".
LIES = re.compile(
    r"\s+(?:(?P<at>in|at|on|near|bei|à|en)|of|is|was|ist|are)?\s*(?:the\s+)?(?:city\s+of\s+)?[\"“„«‘]?|,\s+"
)
NOT_ALONE = re.compile(r"(?:deputy|vice|assistant|sub|non|honorary|acting|anti)[\s-]+\Z", re.IGNORECASE)
