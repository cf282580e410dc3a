"""Whether a sentence states a relation, or denies, doubts, plans or asks about it.

Rule: what stands between the ends of a claim, what governs them before and what takes them back after decides. A
doubt is enough: a claim that may be one goes to the ledger with its reason, not into the graph. Negation in a clause
beside it does not count. `not only` denies nothing, and `went on to found` is a fact.
"""

# ruff: noqa: RUF001 (the marks of other scripts are the data here)

import re
from functools import lru_cache
from typing import Literal, TypeAlias

Stance: TypeAlias = Literal["", "negated", "hedged", "no_longer"]

_NO_LONGER = re.compile(
    r"\b(?:no longer|any ?more|any longer|nicht mehr|former|formerly|erstwhile|one-?time|used to|ceased to|stopped"
    r"|ehemalig\w*|vormals|ancien(?:ne)?s?|anciennement|antigu[oa])\b|\bex-",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:not(?!\s+only\b)|never|neither|nor|no(?!\.)|nobody|none|nothing|without|instead of|rather than|hardly|barely"
    r"|scarcely|cannot|den(?:y|ie[sd]|ying)|refus(?:e[sd]?|ing)|declin(?:e[sd]?|ing)\s+to\s+[a-z]|fail(?:s|ed|ing)?\s+to"
    r"|rejected|unable|nicht|kein\w*|nie|niemals|ohne|weder|noch|ne|pas|jamais|sans|nunca|jamás|sin|non(?!-)|senza"
    r"|niet|geen|nooit)\b|n't\b|\bn'",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"\b(?:(?-i:may)|might|could|would|should|shall|will|can|must|ought|plan(?:s|ned|ning)?|intend(?:s|ed|ing)?"
    r"|want(?:s|ed)?|wish(?:es|ed)?|hop(?:es?|ed|ing)|expect(?:s|ed|ing)?|consider(?:s|ed|ing)?|seeks?|seeking|sought"
    r"|aim(?:s|ed|ing)?|try|tries|tried|trying|attempt(?:s|ed|ing)?|offer(?:s|ed|ing)?\s+to|bid|propos(?:es?|ed|ing)"
    r"|prepar(?:es?|ed|ing)|agree[sd]?\s+to|about\s+to|set\s+to|due\s+to|in\s+talks|going\s+to|threaten(?:s|ed)?"
    r"|likely|unlikely|possibl[ey]|potential(?:ly)?|perhaps|maybe|probabl[ey]|presumably|apparently|allegedly|reportedly"
    r"|supposedly|purported(?:ly)?|alleged|supposed|rumou?red|believed|thought|said\s+to|reported\s+to|claim(?:s|ed|ing)?"
    r"|speculat\w+|suspected|accused|appear(?:s|ed)?\s+to|seem(?:s|ed)?\s+to|if|whether|unless|future|prospective"
    r"|would-be|aspiring|designate|incoming|hypothetical|being|könnten?|würden?|möchten?"
    r"|soll(?:en|te|ten)?|plant|falls|wenn|ob|vielleicht|angeblich|möglicherweise|künftig\w*|pourrai\w*|voudrai\w*"
    r"|devrai\w*|peut-être|envisage|podrían?|quizás?|planea)\b|\b'(?:d|ll)\b",
    re.IGNORECASE,
)
# "went on to found": the infinitive tells what happened.
_TO = re.compile(r"\bto\s+(?:(?:be|have|have\s+been|\w+ly)\s+)*\Z", re.IGNORECASE)
_IT_HAPPENED = re.compile(
    r"\b(?:went\s+on|goes\s+on|managed|proceeded|came|began|begins|started|starts|continue[sd]?|help(?:s|ed)?|first|last"
    r"|happy|proud)\s+to\s+(?:(?:be|have|have\s+been|\w+ly)\s+)*\Z",
    re.IGNORECASE,
)
_ALMOST = re.compile(r"\b(?:almost|nearly|beinahe|fast|presque|casi)\s+(?:\w+\s+)?\Z", re.IGNORECASE)
_DENIED_BEFORE = re.compile(
    r"\b(?:not|nicht)\s+(?:the\s+|die\s+|der\s+|das\s+)?\Z|\b(?:neither|weder)\b[^,;]*\Z"
    r"|\b(?:den(?:y|ie[sd]|ying)|not\s+true|untrue|false|disput\w+|refut\w+|no\s+evidence|not\s+the\s+case)\b[^;]*\Z",
    re.IGNORECASE,
)
_DOUBTED_BEFORE = re.compile(
    r"\b(?:if|whether|unless|suppos\w+|assum\w+|imagin\w+|in\s+case|falls|wenn|sofern|angenommen)\b[^;]*\Z"
    r"|\b(?:legend|myth|fiction|in\s+(?:the|a|his|her)\s+(?:film|movie|novel|book|story|series|play|game))\b[^;]*\Z"
    r"|^\W*(?:had|were|should|did|does|do)\s+(?:the\s+)?\Z"
    r"|\b(?:perhaps|maybe|allegedly|reportedly|supposedly|rumou?r\w*|claim\w*|alleg\w+|believ\w+|think\w*|thought"
    r"|speculat\w+|suspect\w*|possib\w+|probab\w+|likely|unlikely|doubt\w*|hop(?:es?|ed|ing)|fear\w*|expect\w*|would|could"
    r"|(?-i:may)|might|should|will|plan(?:s|ned|ning)?|wish\w*|want\w*|propos\w+|predict\w*|forecast\w*|vielleicht"
    r"|angeblich|ob)\b[^;]*\Z",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\bis\s+(?:false|untrue|wrong|not\s+true)\b|\bwas\s+(?:false|denied|untrue)\b|\bfell\s+through\b", re.IGNORECASE
)
_DOUBTED_AFTER = re.compile(
    r"\b(?:allegedly|reportedly|supposedly|rumou?r\w*|unless|angeblich)\b|\b(?:only\s+)?if\b|,\s*perhaps\b|\bis\s+unlikely\b",
    re.IGNORECASE,
)
_OVER_AFTER = re.compile(
    r"\A\W*(?:\w+\s+){0,2}(?:any ?more|no longer|any longer|nicht mehr|until|till)\b", re.IGNORECASE
)
_DENIED_AFTER = re.compile(r"\A\s+nicht\b", re.IGNORECASE)
_QUESTION = re.compile(r"[?？؟]\W*\Z")


def stance_of(lead: str, inner: str, trail: str, *, group: str = "") -> Stance:
    """What a sentence does with a claim; empty if it states it.

    `lead` is what stands before the claim's first end, `inner` what stands between its ends, the cue left out, `group`
    the words right before a verb, and `trail` the rest of the sentence.
    """
    first, second, third = _between(inner), _before(lead), _after(trail)
    answers: tuple[Stance, ...] = ("no_longer", "negated", "hedged")
    for answer in answers:
        if answer in (first, second, third):
            return answer
    return "hedged" if _ALMOST.search(group) or (_TO.search(group) and not _IT_HAPPENED.search(group)) else ""


# The same few words stand between most ends.
@lru_cache(maxsize=4096)
def _between(inner: str) -> Stance:
    if _NO_LONGER.search(inner):
        return "no_longer"
    if _NEGATED.search(inner):
        return "negated"
    return "hedged" if _HEDGED.search(inner) else ""


@lru_cache(maxsize=4096)
def _before(lead: str) -> Stance:
    if _DENIED_BEFORE.search(lead):
        return "negated"
    return "hedged" if _DOUBTED_BEFORE.search(lead) else ""


@lru_cache(maxsize=4096)
def _after(trail: str) -> Stance:
    if _OVER_AFTER.match(trail):
        return "no_longer"
    if _DENIED_AFTER.match(trail) or _TAKEN_BACK.search(trail):
        return "negated"
    return "hedged" if _DOUBTED_AFTER.search(trail) or _QUESTION.search(trail) else ""
