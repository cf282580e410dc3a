"""Whether a sentence states a relation, or denies, doubts, plans or asks about it: one judgement for all extractors.

Rule: what stands between the ends of a claim, what governs them before and what takes them back after decides. A
doubt is enough: a claim that may be one goes to the ledger with its reason, not into the graph. Negation in a clause
beside it does not count. `not only` denies nothing, and `went on to found` is a fact.
"""

# ruff: noqa: RUF001 (the marks of other scripts are the data here)

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, TypeAlias

from sameas.extraction.graph import stance_words
from sameas.extraction.text.chunking import find_sentence
from sameas.extraction.text.document import Span

Stance: TypeAlias = Literal["", "negated", "hedged", "no_longer"]


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_OVER_BETWEEN, _OVER_EARLIER = _any_of(stance_words.OVER_BETWEEN), _any_of(stance_words.OVER_BEFORE)
_OVER_LATER, _DENIED_LATER = _any_of(stance_words.OVER_AFTER), _any_of(stance_words.NEGATED_AFTER)
_DENIED_BETWEEN, _DENIED_EARLIER = _any_of(stance_words.NEGATED_BETWEEN), _any_of(stance_words.NEGATED_BEFORE)
_DOUBTED_BETWEEN, _DOUBTED_EARLIER = _any_of(stance_words.HEDGED_BETWEEN), _any_of(stance_words.HEDGED_BEFORE)
_DOUBTED_LATER = _any_of(stance_words.HEDGED_AFTER)
# "Anna follows Otto as chief", "Before Anna, Otto was chief", "Otto trat als Chef von Acme zurück": Otto is no longer.
_FOLLOWED = re.compile(r"\b(?:follow(?:s|ed|ing)|folgt\w*(?:\s+auf)?)\s+\Z", re.IGNORECASE)
_IN_OFFICE = re.compile(r"\A\s+(?:as|als|comme|como)\b", re.IGNORECASE)
_BEFORE_SOMEBODY = re.compile(
    r"^\W*(?:Before|Prior to|Vor|Avant|Antes de)\s+(?!(?:Christmas|Easter|Weihnachten|Ostern|Noël|Navidad)\b)"
    r"(?:[^\W\d_a-z][\w.'-]*\s*){1,4}(?:,|\bwar|\bhatte)\s*\Z"
)
_WAS = re.compile(
    r"\A\s*(?:was|were|had|led|ran|war|hatte|était|avait|dirigeait|era|fue|tenía|dirigía)\b(?!\s+\w+ed\s+by\b)"
)
# "the late Anna was chief executive of Acme"; "the late Anna was born in Leeds" is still so.
_DEAD = re.compile(
    r"\b(?:the\s+late|(?:der|die)\s+verstorbene|feue?|le\s+regretté|la\s+regrettée|(?:el|la)\s+(?:difunt|fallecid)[oa])\s+\Z",
    re.IGNORECASE,
)
_DEAD_NAME = re.compile(r"(?:feue?|the\s+late)\s", re.IGNORECASE)
# "Wanted: a chief for Acme". "Anna wird im Mai Chefin" is a plan, "wird im Mai eröffnet" has its verb.
_WANTED = re.compile(r"\W*(?:wanted|sought|gesucht|recherché|se\s+busca)\s*:", re.IGNORECASE)
_WILL_BE = re.compile(r"\bwird\s+(?:im|am|ab|zum)\s+\Z")
_WAS_MADE = re.compile(r"\b\w*(?:ge\w{2,}|er\w{2,}|be\w{2,}|ver\w{2,})(?:t|en)\b")
_WAS_DONE = re.compile(
    r"\A\s*(?:was|were|war|fut|était|fue)\s+(?:\w+ed|born|né|née|nacid[oa]|geboren)\b", re.IGNORECASE
)
_STEPPED = re.compile(r"\btr(?:at|aten|itt)\b", re.IGNORECASE)
_BACK = re.compile(r"\A(?:\s+\w+){0,3}\s+zurück\b", re.IGNORECASE)
# "wird Bolt kaufen" is a plan, "wird von Anna geleitet" is so.
_BECOMES = re.compile(r"\bw(?:ird|erden)\b(?!.*\b(?:von|vom|durch)\b)", re.IGNORECASE)
_INFINITIVE = re.compile(
    r"\A(?:\s+\w+){0,3}\s+(?!\w*ge\w\w)(?!\w*(?:ieben|treten|liehen|halten|boten)\b)[a-zäöüß]+e[rl]?n\W*\Z"
)
_CAN = re.compile(r"\b(?:can|kann|können|peut|peuvent|puede|pueden)\b", re.IGNORECASE)
_NOW = re.compile(
    r"\b(?:now|today|currently|these\s+days|jetzt|heute|nun|inzwischen|mittlerweile|maintenant|aujourd['\u2019]hui|désormais|ahora|hoy|actualmente)\b",
    re.IGNORECASE,
)
_IS = re.compile(
    r"\b(?:takes?\s+place|runs|is\s+(?:on|at)|remains|läuft|findet|ist\s+(?:im|in|bei)|bleibt|a\s+lieu|est\s+(?:à|au)|reste|se\s+celebra)\b",
    re.IGNORECASE,
)
_OF_THE_PAST = re.compile(
    r"\b(?:former|previous|formerly|früher|ehemalig|ancien|anterior|antigu[oa]|dismissed|succe|replac|predecess|nachfolg"
    r"|vorgäng|remplac|suces)",
    re.IGNORECASE,
)
# "left York to become chief of Acme", "acquired its former rival Bolt": the leaving and the past are another's.
_LEFT_FOR = re.compile(r"\b(?:left|quit)\b[^,;]*?\bto\s+(?=become|join|lead|run|head|found)", re.IGNORECASE)

_NO_LONGER = re.compile(
    r"\b(?:no longer|any ?more|any longer|nicht mehr|former|formerly|erstwhile|one-?time|used to|ceased to|stopped"
    r"|ehemalig\w*|vormals|ancien(?:ne)?s?|anciennement|antigu[oa]|ya\s+no|ne\s+\S+\s+plus)\b|\bex-"
    r"|\b(?:fired|dismissed|sacked|ousted|deposed|resign(?:s|ed|ing)|step(?:s|ped|ping)\s+down|left|quit"
    r"|(?:was|were|been|is|are|be)\s+(?:replaced|succeeded|removed|stripped|relieved)|sold\s+(?:off|its|their|his|her)"
    r"|entlassen|zurückgetreten|abgelöst|licenci\w+|démissionn\w+|destituid[oa]|dimiti[óo])\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:not(?!\s+only\b)|never|neither|nor|no(?!\.)|nobody|none|nothing|without|instead of|rather than|hardly|barely"
    r"|scarcely|cannot|den(?:y|ie[sd]|ying)|refus(?:e[sd]?|ing)|declin(?:e[sd]?|ing)\s+to\s+[a-z]|fail(?:s|ed|ing)?\s+to"
    r"|rejected|unable|nicht|kein\w*|nie|niemals|ohne|weder|ne|pas|jamais|sans|nunca|jamás|sin|non(?!-)|senza"
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
    r"|soll(?:en|te|ten)?|plant(?=\s*,|\s+(?:den|die|das|ein\w*|für|mit|seit|zu)\b)|falls(?=\s+(?:der|die|das|es|sie|er)\b)"
    r"|wenn|ob|vielleicht|angeblich|möglicherweise|künftig\w*|pourrai\w*|voudrai\w*"
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
    r"\b(?:if|whether|unless|suppos\w+|assum\w+|imagin\w+|in\s+case|falls(?!\s+(?:in|into|under|to|within|on|from|short|for)\b)|wenn|sofern|angenommen)\b[^;]*\Z"
    r"|\b(?:(?:legend|myth|fiction)(?!\s*\Z)|in\s+(?:the|a|his|her)\s+(?:film|movie|novel|book|story|series|play|game)(?!\s+(?:industry|business|market|sector)))\b[^;]*\Z"
    r"|^\W*(?:had|were|should|did|does|do)\s+(?:the\s+)?\Z"
    r"|\b(?:perhaps|maybe|allegedly|reportedly|supposedly|rumou?r\w*|claim(?!ants?\b)\w*|alleg\w+|believ\w+|think\w*|thought"
    r"|speculat\w+|suspect(?:ed|s\s+that)|possib\w+|probab\w+|likely|unlikely|doubt\w*|hop(?:es?|ed|ing)|fear\w*|expect\w*|would|could"
    r"|(?-i:may)|might|should|will|plan(?:s|ned|ning)?|wish\w*|want\w*|propos\w+|predict\w*|forecast\w*|vielleicht"
    r"|angeblich|ob)\b[^;]*\Z"
    r"|\b(?:according\s+to|laut|selon|según)\s+"
    r"(?!its\b|their\b|the\s+(?:company|firm)\b|seine\w*\b|ihre\w*\b|sus?\b)[^;]*\Z",
    re.IGNORECASE,
)
# "Anna replaced Otto as chief": Otto is no longer. "Until 2019, ...". "Before Anna, the chief was ...".
_OVER_BEFORE = re.compile(
    r"\b(?:replac(?:es?|ed|ing)|succeed(?:s|ed|ing)|(?:took|takes|taking)\s+over\s+from|oust(?:s|ed|ing)|löste|ersetzte?"
    r"|remplac\w+|reemplaz\w+|sustituy\w+)\s+(?:the\s+|den\s+|die\s+|le\s+|la\s+|a\s+)?\Z"
    r"|\b(?:former|erstwhile|one-?time|ehemalige\w*|vormalige\w*|ancien(?:ne)?|antigu[oa])\s+(?:[\w-]+\s+){1,4}"
    r"(?:(?:of|at|for|von|der|des|de|du|del)\s+(?:the\s+)?|d['\u2019])\Z"
    r"|^\W*(?:until|till|up\s+to|bis|jusqu'(?:en|à|au)|hasta)\b"
    r"|^\W*(?:before|prior\s+to|vor|avant|antes\s+de)\s+[^,;]{1,60},\s*(?:the|its|their|his|her|der|die|das|le|la|el)\b",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\b(?:is|are|was|were|proved|turned\s+out)\s+(?:to\s+be\s+)?(?:false|untrue|wrong|not\s+true|denied|unfounded|baseless)\b"
    r"|\bfell\s+through\b",
    re.IGNORECASE,
)
_DOUBTED_AFTER = re.compile(
    r"\b(?:allegedly|reportedly|supposedly|rumou?r\w*|unless|angeblich)\b|\b(?:only\s+)?if\b|,\s*perhaps\b|\bis\s+unlikely\b",
    re.IGNORECASE,
)
_OVER_AFTER = re.compile(
    r"\A\W*(?:\w+\s+){0,2}(?:any ?more|no longer|any longer|nicht mehr|until|till|bis|jusqu'(?:en|à|au)|hasta)\b"
    r"|\A\W*(?:from\s+\d{4}\s+(?:to|until|till|through)|between\s+\d{4}\s+and|von\s+\d{4}\s+bis|de\s+\d{4}\s+[àa])\s+\d{4}\b",
    re.IGNORECASE,
)
# "The company that acquired Instagram is based in ...": what follows is said of the company.
_IN_ANOTHERS_CLAUSE = re.compile(
    r"\b(?:that|which|who)\s+(?:(?:has|had|have|later|once|also)\s+)*(?!the\b|an?\b|its\b|their\b|his\b|her\b|our\b)[a-z]+"
    r"\s+(?:the\s+)?\Z"
)
# "Acme, based in Austin, Texas, bought Bolt": who bought is named before the aside.
_TAIL_OF_ASIDE = re.compile(r",\s*(?:\w+\s+){0,2}(?:in|at|near|of|from|aus|bei|à|en|de|dans)\s+[^\W\d_a-z][^,;]*,\s*\Z")
_VERB_AFTER_ASIDE = re.compile(r"\A,\s*[^\W\d_A-Z]")
_MAIN_VERB = re.compile(r"\A,?\s*(?:is|was|are|were|has|had)\b(?!\s+(?:the\s+|an?\s+)?\Z)")
# "20 people fewer than the other": how far two apart, not how many.
_COMPARED = re.compile(
    r"\A\s*(?:[\w-]+\s+){0,2}(?:(?:fewer|less|more)\s+(?:[\w-]+\s+){0,2}than|\w{3,}er\s+than|(?:weniger|mehr)\s+als|de\s+(?:moins|plus)\s+qu[e']"
    r"|(?:menos|más)\s+que)\b|\A\s*than\b",
    re.IGNORECASE,
)
# "more than 500 employees": how many there are is not said. What a thing takes at most is its capacity.
_BOUND = re.compile(
    r"\b(?:(?:no\s+)?(?:more|fewer|less)\s+than|at\s+(?:least|most)|a\s+(?:minimum|maximum)\s+of|mehr\s+als|mindestens"
    r"|höchstens|wenigstens|maximal|weniger\s+als|(?:plus|moins)\s+d[e']|au\s+(?:moins|plus|maximum)|más\s+de|menos\s+de|al\s+menos"
    r"|como\s+(?:mucho|mínimo|máximo)|por\s+lo\s+menos|a\s+lo\s+sumo)\s+(?:a\s+)?(?:[€$£]\s?)?\Z",
    re.IGNORECASE,
)
_AT_MOST = re.compile(r"\b(?:up\s+to|bis\s+zu|jusqu['\u2019]à|hasta(?:\s+a)?)\s+(?:[€$£]\s?)?\Z", re.IGNORECASE)
_OF_THE_MOST = re.compile(
    r"capacit|maxim|limit|\btop\b|kapazität|höchst|\bmost\b|\bseats?\b|plätze|places|aforo", re.IGNORECASE
)
_COMPARED_WITH = re.compile(
    r"\b(?:(?:fewer|less|more)\s+(?:[\w-]+\s+){0,2}than|\w{3,}er\s+than|(?:weniger|mehr)\s+als|(?:moins|plus)\s+qu[e']|(?:menos|más)\s+que)"
    r"\s+(?:the\s+|der\s+|die\s+|das\s+|le\s+|la\s+|el\s+)?\Z",
    re.IGNORECASE,
)
# "Anna reported that Acme has bought Bolt": what follows is said of Acme, unless it goes back to Anna.
_REPORTED = tuple(
    (re.compile(said, re.IGNORECASE), re.compile(back, re.IGNORECASE))
    for said, back in zip(stance_words.REPORTED, stance_words.GOES_BACK, strict=True)
)
_CONJUNCTION = re.compile(r"\b(?:that|dass|que|qu)\b", re.IGNORECASE)
_ITS_SUBJECT = re.compile(
    r"\s+(?:(?i:(?:the|die|der|das|le|la|el|los|les|l['\u2019])\s*(?:(?!(?:company|firm|group|board)\b)(?-i:[a-zà-ÿ])[\w-]+\s+){0,3}"
    r"|d(?:ie|er|as)\s+[^\W\d_][\w-]+\s+))?[\"“„«]?(?P<name>[^\W\d_a-zà-ÿ][^\s,;]*(?:\s+[^\W\d_a-zà-ÿ][^\s,;]*)*)"
)
# "Anna, whose brother Otto founded Acme": the clause speaks of Otto.
_OF_A_RELATIVE = re.compile(
    r"\A,?\s*(?:whose|deren|dessen|dont\s+(?:le|la|l['\u2019])|cuy[oa])\s*"
    r"(?:(?!(?:is|are|was|were|has|had|in|of|ist|sind|war|hat|est|sont|fut|a|es|fue|era|está)\b)[^\W\d_A-Z][\w-]*\s+){1,2}[^\W\d_a-z]"
)
# "former chief executive Anna of Acme"; "the former minister Anna founded Acme" is another matter.
_FORMER_TITLE = re.compile(
    r"\b(?:former|erstwhile|one-?time|previous|then|late|ehemalige\w*|frühere\w*|vormalige\w*|ancien(?:ne)?|antigu[oa])\s+"
    r"(?:[\w-]+\s+){1,4}\Z",
    re.IGNORECASE,
)
_TITLE_OF = re.compile(r"\A,?\s+(?:of|at|from|von|der|des|de|du|del|d['\u2019])\b", re.IGNORECASE)
# "moved its seat from Leeds to York": Leeds is where it was.
_MOVED_FROM = re.compile(
    r"\b(?:mov(?:es|ed|ing)|relocat\w+|transferr?\w*|shift\w*|switch\w*|verleg\w*|zog|zieht|verlager\w*|déplac\w+|déménag\w+"
    r"|trasl\w+|mud\w+)\b.*\b(?:from|von|aus|de|depuis|desde)\s+\Z",
    re.IGNORECASE,
)
_MOVED_TO = re.compile(r"\A\s+(?:to|nach|in|à|a|vers|hacia)\s", re.IGNORECASE)
# "was based in Leeds, but it moved to Bath".
_MOVED_ON = re.compile(
    r"\A\s*,?\s*(?:but|then|before|aber|dann|mais|puis|pero|y\s+luego)\s+(?:(?:it|he|she|they|has|have|had|since|later|il|elle|er|sie|se|a)\s+)*"
    r"(?:moved|left|relocated|resigned|retired|zog|verließ|ging|déménagé\w*|quitt\w+|mudó|trasladó|dejó)\b",
    re.IGNORECASE,
)
_ALMOST_DID = re.compile(
    r"\b(?:almost|nearly|beinahe|um\s+ein\s+haar|presque|casi)\s+(?!all\b|every|entirely|exclusively|always|\d)",
    re.IGNORECASE,
)
_CAME_TO_NOTHING = re.compile(
    r"\b(?:but|then|before|aber|doch|mais|pero)\b[^.;]*\b(?:fell\s+through|(?:was|were)\s+(?:called\s+off|blocked|abandoned)"
    r"|collapsed|withdr[ae]w\w*|rescinded|cancelled|came\s+to\s+nothing|never\s+(?:happened|came)|platzte|scheiterte|échoué|fracasó)\b",
    re.IGNORECASE,
)
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
    if _NO_LONGER.search(inner) or _OVER_BETWEEN.search(inner):
        return "no_longer"
    if _NEGATED.search(inner) or _DENIED_BETWEEN.search(inner):
        return "negated"
    return "hedged" if _HEDGED.search(inner) or _DOUBTED_BETWEEN.search(inner) else ""


@lru_cache(maxsize=4096)
def _before(lead: str) -> Stance:
    if _OVER_BEFORE.search(lead) or _OVER_EARLIER.search(lead):
        return "no_longer"
    if _DENIED_BEFORE.search(lead) or _DENIED_EARLIER.search(lead):
        return "negated"
    return "hedged" if _DOUBTED_BEFORE.search(lead) or _DOUBTED_EARLIER.search(lead) else ""


@lru_cache(maxsize=4096)
def _after(trail: str) -> Stance:
    if _OVER_AFTER.search(trail) or _OVER_LATER.search(trail):
        return "no_longer"
    if _DENIED_LATER.match(trail) or _TAKEN_BACK.search(trail):
        return "negated"
    doubted = _DOUBTED_AFTER.search(trail) or _DOUBTED_LATER.search(trail) or _QUESTION.search(trail)
    return "hedged" if doubted else ""


# A clause set between commas or brackets speaks of the thing before it, not of what the sentence says.
_ASIDE = re.compile(
    r",\s*(?:which|who|whose|whom|where|der|die|das|dessen|deren|qui|dont|que|cuyo|cuya|once|formerly|previously|früher"
    r"|einst|ehemals|(?:une?\s+)?ancien(?:ne)?|autrefois|jadis|antes|antigu[oa]|(?:a|the)\s+former)\b[^,;]*,|\([^()]*\)",
    re.IGNORECASE,
)
# What begins a clause of its own after a claim's ends: what it denies is another matter.
_NEXT_CLAUSE = re.compile(
    r"[;:]|,\s*(?:but|and|while|although|though|which|who|whereas|aber|und|während|obwohl|mais|et|pero|y|aunque)\b"
    r"|\b(?:but|although|though|whereas|aber|obwohl|mais|pero|aunque)\b",
    re.IGNORECASE,
)
# "did not buy A but supplies B", "may buy A and sold B": a finite verb after the conjunction says something of its own.
_OWN_VERB = re.compile(
    r"(?:,\s*|\s)(?:but|and|aber|und|mais|et|pero|y)\s+(?:(?:also|later|then|instead|now|has|had|\w+ly)\s+)*"
    r"(?:(?:it|he|she|they|er|sie|es|il|elle|él|ella)\s+)?"
    r"(?:\w+(?:s|ed|te|ó)|is|was|are|were|has|had|bought|sold|built|led|ran|won|wrote|made|took|became|held)\b",
    re.IGNORECASE,
)


def claim_stance(
    text: str, sentences: tuple[Span, ...], first: Span, last: Span, *, words: Iterable[str], is_value: bool = False
) -> Stance:
    """What a text does with a claim whose ends stand at two places; `words` are the property's own, and judge nothing.

    Ends in two sentences are joined by a pronoun or a title: then the sentence of the later one decides. That a state
    is over takes nothing from the date at which it began (`is_value`).
    """
    if first.start > last.start:
        first, last = last, first
    sentence = sentences[find_sentence(sentences, last.start)]
    if first.start < sentence.start:
        lead, inner = "", text[sentence.start : last.start]
    else:
        lead, inner = text[sentence.start : first.start], text[first.end : last.start]
    trail = text[last.end : sentence.end]
    own = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True) if word)
    if (
        (_COMPARED.match(trail) or _is_bound(inner, own) if is_value else _COMPARED_WITH.search(inner))
        or (_IN_ANOTHERS_CLAUSE.search(lead) and _MAIN_VERB.match(inner))
        or (_TAIL_OF_ASIDE.search(lead) and _VERB_AFTER_ASIDE.match(inner))
        or _WANTED.match(lead)
        or (_WILL_BE.search(text[sentence.start : last.start]) and not _WAS_MADE.search(trail))
        or (_WILL_BE.search(lead) and not _WAS_MADE.search(trail))
        or is_said_by_another(text, sentence, first, last, own=own)
        or _OF_A_RELATIVE.search(_ASIDE.sub(" ", inner))
        or (not is_value and _ALMOST_DID.search(inner))
        or _QUESTION.search(text[sentence.start : sentence.end])
    ):
        return "hedged"
    if _CAME_TO_NOTHING.search(trail):
        return "negated"
    said = inner
    if own and _is_an_honour(text[sentence.start : sentence.end], own):
        return "hedged"
    if (
        (_FORMER_TITLE.search(lead) and _TITLE_OF.match(inner))
        or (_MOVED_FROM.search(inner) and _MOVED_TO.match(trail))
        or (_FOLLOWED.search(lead) and _IN_OFFICE.match(inner))
        or (_BEFORE_SOMEBODY.search(lead) and (lead.rstrip().endswith(("war", "hatte")) or _WAS.match(inner)))
        or (_STEPPED.search(inner) and _BACK.match(trail))
        or (not is_value and _MOVED_ON.match(trail))
        or (
            (_DEAD.search(lead) or _DEAD_NAME.match(text, first.start))
            and _WAS.match(inner)
            and not _WAS_DONE.match(inner)
        )
    ):
        return "no_longer"
    if _BECOMES.search(inner) and _INFINITIVE.match(trail):
        return "hedged"
    inner = _LEFT_FOR.sub(" ", _last_verb(_ASIDE.sub(" ", inner)))
    if own:
        inner = re.sub(rf"\b((?:{own})\s+(?:\w+\s+){{0,2}})former\s", r"\1", inner, flags=re.IGNORECASE)
        inner = re.sub(rf"\b(?:{own})\b", " ", inner, flags=re.IGNORECASE)
    if is_value:
        # What it can do or hold is so.
        inner = _CAN.sub(" ", inner)
    stance = stance_of(_last_clause(lead), inner, _first_clause(trail))
    if stance == "no_longer" and not _between(inner) and (_NOW.search(said) or _IS.search(said)):
        # "Until 2016 Otto led the unit, which is now led by Anna"; "is on show until May".
        stance = "" if _before(_last_clause(lead)) != "negated" else "negated"
    if not stance and first.start < sentence.start:
        # What begins the sentence of the later end governs it, too; the words of a question stand at its very start.
        clause = _last_clause(inner)
        governed = _before(clause if said.startswith(clause) else f"and {clause}")
        stance = "" if governed == "no_longer" else governed
    # A former name is one: a property of the past speaks of what is over.
    if stance == "no_longer" and own and _OF_THE_PAST.search(own):
        return ""
    return "" if is_value and stance == "no_longer" and not _NO_LONGER.search(inner) else stance


def is_said_by_another(text: str, sentence: Span, first: Span, last: Span, *, own: str = "") -> bool:
    """Whether one place is of who reports something, or hears it, and the other of what is reported of somebody else.

    `own` are the words of the property, joined by `|`: who says what a property of saying says is its subject.
    """
    if first.start > last.start:
        first, last = last, first
    if first.start < sentence.start or _CONJUNCTION.search(text, first.end, last.start) is None:
        return False
    for said, goes_back in _REPORTED:
        for report in said.finditer(text, sentence.start, last.start):
            if first.end > report.end() or (own and re.search(rf"\b(?:{own})\b", report[0], re.IGNORECASE)):
                continue
            subject = _ITS_SUBJECT.match(text, report.end(), sentence.end)
            if subject is None:
                continue
            # Its subject may be anything of the reporter's, another place only what is called so before.
            end = sentence.end if last.start < subject.end() else last.start
            back = goes_back.search(text, report.end(), sentence.end)
            if back is None or back.start() >= end:
                return True
    return False


def _is_bound(inner: str, own: str) -> bool:
    return _BOUND.search(inner) is not None or (
        _AT_MOST.search(inner) is not None and _OF_THE_MOST.search(own) is None and _OF_THE_MOST.search(inner) is None
    )


def _is_an_honour(sentence: str, own: str) -> bool:
    """Whether a property's words are said of the year alone: "was named CEO of the Year"."""
    honour = rf"\b(?:{own})\s+of\s+the\s+(?:year|month|week|decade|century|season)\b"
    rest, count = re.subn(honour, " ", sentence, flags=re.IGNORECASE)
    return count > 0 and re.search(rf"\b(?:{own})\b", rest, re.IGNORECASE) is None


def _last_verb(inner: str) -> str:
    begins = [match.start() for match in _OWN_VERB.finditer(inner)]
    return inner[begins[-1] :] if begins else inner


def _last_clause(lead: str) -> str:
    ends = [match.end() for match in _NEXT_CLAUSE.finditer(lead)]
    return lead[ends[-1] :] if ends else lead


def _first_clause(trail: str) -> str:
    """Up to the next clause; whether it is a question is seen at the very end."""
    end = _NEXT_CLAUSE.search(trail)
    if end is None:
        return trail
    return trail[: end.start()] + ("?" if _QUESTION.search(trail) else "")


def clause_around(text: str, sentence: Span, first: Span, last: Span) -> Span:
    """The part of a sentence that says something of two places: without the clauses before and after them."""
    low, high = min(first.start, last.start), max(first.end, last.end)
    start = max((match.end() for match in _NEXT_CLAUSE.finditer(text, sentence.start, low)), default=sentence.start)
    after = _NEXT_CLAUSE.search(text, high, sentence.end)
    end = after.start() if after is not None else sentence.end
    said = text[start:end]
    return Span(start + len(said) - len(said.lstrip()), start + len(said.rstrip()))
