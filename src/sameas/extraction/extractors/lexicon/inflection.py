"""Other forms of an English label: `works for` also as `worked for`, `director` also as `directed by`.

Rule: forms are made by regular endings and a short list of irregular verbs; a form that no text contains
costs nothing. Labels in other languages are used as they are.
"""

from collections.abc import Iterator

_IRREGULAR = {
    "write": ("wrote", "written"),
    "win": ("won", "won"),
    "lead": ("led", "led"),
    "hold": ("held", "held"),
    "become": ("became", "become"),
    "buy": ("bought", "bought"),
    "sell": ("sold", "sold"),
    "make": ("made", "made"),
    "take": ("took", "taken"),
    "give": ("gave", "given"),
    "build": ("built", "built"),
    "teach": ("taught", "taught"),
    "sing": ("sang", "sung"),
    "run": ("ran", "run"),
    "speak": ("spoke", "spoken"),
    "grow": ("grew", "grown"),
    "know": ("knew", "known"),
    "draw": ("drew", "drawn"),
    "begin": ("began", "begun"),
    "leave": ("left", "left"),
    "meet": ("met", "met"),
    "lie": ("lay", "lain"),
    "flow": ("flowed", "flowed"),
    "drive": ("drove", "driven"),
    "fly": ("flew", "flown"),
    "bear": ("bore", "born"),
    "have": ("had", "had"),
    "spend": ("spent", "spent"),
    "bring": ("brought", "brought"),
    "think": ("thought", "thought"),
    "choose": ("chose", "chosen"),
    "fight": ("fought", "fought"),
    "pay": ("paid", "paid"),
    "send": ("sent", "sent"),
    "wear": ("wore", "worn"),
}
_BACK = {form: base for base, forms in _IRREGULAR.items() for form in forms}
# What an agent does, where the ending alone does not tell.
_AGENTS = {
    "author": "write",
    "writer": "write",
    "screenwriter": "write",
    "spouse": "marry",
    "player": "play",
    "architect": "design",
    "artist": "create",
    "leader": "lead",
    "winner": "win",
    "builder": "build",
    "singer": "sing",
    "teacher": "teach",
}
# What is said of a thing where the label names the event, its date or place: labels of Wikidata and schema.org.
EVENT_VERBS = {
    "birth": ("born",),
    "death": ("died",),
    "inception": ("founded", "established", "created", "formed"),
    "founding": ("founded", "established"),
    "foundation": ("founded", "established"),
    "publication": ("published", "released"),
    "release": ("released",),
    "employer": ("works for", "works at", "employed by"),
    "employee": ("employs",),
    "location": ("located in", "based in", "situated in"),
    "headquarters": ("headquartered in", "based in"),
    "residence": ("lives in", "resides in"),
    "membership": ("member of",),
    "affiliation": ("affiliated with",),
    "ownership": ("owns",),
    "marriage": ("married",),
    "acquisition": ("acquired",),
    "education": ("studied at", "educated at", "graduated from"),
    "educated": ("studied at", "graduated from"),
}
_VOWELS = "aeiou"
_SHORTEST_STEM = 3
# `found` is what somebody found more often than what somebody founds.
_OTHER_WORDS = frozenset(("found",))


def verb_forms(verb: str) -> tuple[str, ...]:
    """The base, -s, -ed, past participle and -ing forms of a verb in any of its forms."""
    forms: dict[str, None] = {}
    for base in _bases(verb):
        past, participle = _IRREGULAR.get(base, (_with_ed(base), _with_ed(base)))
        forms.update(dict.fromkeys((base, _with_s(base), past, participle, _with_ing(base))))
    return tuple(form for form in forms if form not in _OTHER_WORDS)


def participles(verb: str) -> tuple[str, ...]:
    """The past participle of a verb in any of its forms."""
    found = (_IRREGULAR[base][1] if base in _IRREGULAR else _with_ed(base) for base in _bases(verb))
    return tuple(dict.fromkeys(found))


def is_past(word: str) -> bool:
    """Whether a word is a past form, as far as its ending or the list of irregular verbs tells."""
    return word in _BACK or (word.endswith("ed") and len(word) > _SHORTEST_STEM + 1)


def _bases(verb: str) -> tuple[str, ...]:
    """The base, and the same with an e where endings do not tell: `acquired` may be of `acquir` or of `acquire`."""
    base = base_form(verb)
    if verb.endswith(("ed", "ing")) and base == verb.removesuffix("ing").removesuffix("ed") and base not in _IRREGULAR:
        return base, base + "e"
    return (base,)


def base_form(verb: str) -> str:
    """The base of a verb form, as far as endings tell; it need not be a word, only the same for all forms."""
    if verb in _BACK:
        return _BACK[verb]
    for ending, instead in (
        ("ies", "y"),
        ("ied", "y"),
        ("sses", "ss"),
        ("shes", "sh"),
        ("ches", "ch"),
        ("xes", "x"),
    ):
        if verb.endswith(ending) and len(verb) > len(ending) + 1:
            return verb.removesuffix(ending) + instead
    if verb.endswith("ss"):
        return verb
    for ending in ("ing", "ed"):
        if verb.endswith(ending) and len(verb) - len(ending) >= _SHORTEST_STEM:
            return _repaired(verb.removesuffix(ending))
    return verb.removesuffix("s") if len(verb) > _SHORTEST_STEM else verb


def passive_forms(agent: str) -> Iterator[str]:
    """How a text says who did it, from the noun of the doer: `director` gives `directed by`."""
    for participle in _participles(agent):
        yield f"{participle} by"


def active_forms(agent: str) -> Iterator[str]:
    """What the doer does, from the noun: `director` gives `directed`, `directs`."""
    verb = _AGENTS.get(agent)
    if verb:
        yield from (form for form in verb_forms(verb) if form != verb)
    else:
        for participle in _participles(agent):
            base = base_form(participle)
            yield from (participle, _with_s(base))


def _participles(agent: str) -> Iterator[str]:
    verb = _AGENTS.get(agent)
    if verb:
        yield _IRREGULAR.get(verb, ("", _with_ed(verb)))[1]
    elif agent.endswith(("or", "er")) and len(agent) - 2 >= _SHORTEST_STEM + 1:
        yield agent[:-2] + "ed"


def _repaired(stem: str) -> str:
    if len(stem) > _SHORTEST_STEM and stem[-1] == stem[-2] and stem[-1] not in "lsz" + _VOWELS:
        return stem[:-1]
    consonant_end = stem[-1] not in _VOWELS and stem[-2] in _VOWELS
    soft = stem.endswith(("c", "v", "u", "rg", "dg", "ng", "as", "es", "is", "os", "us", "at", "uc", "cr"))
    return (
        stem + "e"
        if (soft and not stem.endswith(("ss", "ing"))) or (consonant_end and stem.endswith(("iz", "is")))
        else stem
    )


def _with_s(base: str) -> str:
    if base.endswith("y") and base[-2:-1] not in _VOWELS:
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "x", "z", "ch", "sh")) else "s")


def _with_ed(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2:-1] not in _VOWELS:
        return base[:-1] + "ied"
    return base + "ed"


def _with_ing(base: str) -> str:
    return (base[:-1] if base.endswith("e") and not base.endswith("ee") else base) + "ing"
