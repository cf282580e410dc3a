"""Sentences with facts, rewritten so that they assert nothing: denied, doubted, ended, asked, told by others."""

import random
import re

STANCES = ("asserted", "denied", "hedged", "ended", "asked", "attributed")
OF_KIND = {
    "negation": "denied",
    "hedge": "hedged",
    "former": "ended",
    "replaced": "ended",
    "question": "asked",
    "conditional": "asked",
    "quote": "attributed",
}

# {s}: the sentence without its stop, inside another; {S}: the same at the start.
_AROUND = {
    "en": {
        "denied": (
            "It is not true that {s}.", "The report that {s} is false.", "Contrary to what was reported, it is not the case that {s}.",
            "Nobody says that {s}.", "{S}? No.", "The claim that {s} was withdrawn.", "It is wrong to say that {s}.",
        ),
        "hedged": (
            "Rumour has it that {s}.", "It is unclear whether {s}.", "There is speculation that {s}.", "Allegedly, {s}.",
            "Perhaps {s}.", "It could not be confirmed that {s}.", "{S}, or so it is rumoured.", "It is doubtful whether {s}.",
            "It is hoped that one day it can be said that {s}.",
        ),
        "ended": ("Until 2019, {s}.", "It is no longer the case that {s}.", "Formerly, {s}.", "In the past, {s}, but that has ended."),
        "asked": (
            "Is it true that {s}?", "If {s}, much will change.", "Suppose that {s}.", "Do you know whether {s}?", "Unless {s}, nothing will happen.",
            "Would it help if {s}?", "Who told you that {s}?",
        ),
        "attributed": (
            "In the novel, {s}.", "A blog claims that {s}.", "In the film's story, {s}.", "A rival told reporters that {s}.",
            "In an alternative history, {s}.", "According to an unsigned letter, {s}.",
        ),
    },
    "de": {
        "denied": ("Es stimmt nicht: {S}.", "Falsch ist die Meldung: {S}.", "{S}? Nein.", "{S} – das trifft nicht zu."),
        "hedged": ("Gerüchten zufolge gilt: {S}.", "Angeblich: {S}.", "Unklar ist, ob das stimmt: {S}.", "{S} – so wird jedenfalls gemunkelt."),
        "ended": ("Früher galt: {S}.", "Bis 2019 hieß es: {S}. Das ist vorbei."),
        "asked": ("Stimmt es? {S}?", "Angenommen, {s}.", "Trifft es zu: {S}?"),
        "attributed": ("Im Roman heißt es: {S}.", "Ein Blog behauptet: {S}.", "Im Film: {S}."),
    },
    "fr": {
        "denied": ("Il est faux que {s}.", "{S} ? Non.", "L'information selon laquelle {s} est fausse."),
        "hedged": ("Selon la rumeur, {s}.", "Peut-être que {s}.", "On ne sait pas si {s}.", "Il paraît que {s}."),
        "ended": ("Jusqu'en 2019, {s}.", "Autrefois, {s}."),
        "asked": ("Est-ce que {s} ?", "Si {s}, tout changera.", "Est-il vrai que {s} ?"),
        "attributed": ("Dans le roman, {s}.", "Un blog prétend que {s}.", "Dans le film, {s}."),
    },
    "es": {
        "denied": ("No es cierto que {s}.", "¿{S}? No.", "Es falso que {s}."),
        "hedged": ("Se rumorea que {s}.", "Tal vez {s}.", "No está claro si {s}.", "Al parecer, {s}."),
        "ended": ("Hasta 2019, {s}.", "Antes, {s}, pero ya no."),
        "asked": ("¿Es verdad que {s}?", "Si {s}, todo cambiará.", "¿{S}?"),
        "attributed": ("En la novela, {s}.", "Un blog afirma que {s}.", "En la película, {s}."),
    },
}  # fmt: skip
# The first of these after the subject is replaced.
_INSIDE = {
    "en": {
        "is": {
            "denied": ("is not", "isn't", "is not and never was"), "hedged": ("may be", "might be", "is expected to be", "is said to be", "could soon be", "will perhaps be"),
            "ended": ("is no longer", "was once", "had been, until 2019,", "used to be"),
        },
        "was": {"denied": ("was not", "was never", "wasn't"), "hedged": ("may have been", "was reportedly", "is thought to have been", "will be", "is due to be")},
        "are": {"denied": ("are not", "aren't"), "hedged": ("may be", "might be"), "ended": ("are no longer", "used to be")},
        "were": {"denied": ("were not", "were never"), "hedged": ("may have been",)},
        "has": {"denied": ("does not have", "has no longer", "has not"), "hedged": ("may have", "would have", "plans to have", "is said to have"), "ended": ("no longer has", "used to have", "once had")},
    },
    "de": {
        "ist": {"denied": ("ist nicht", "ist keineswegs"), "hedged": ("ist angeblich", "ist vielleicht", "wird womöglich"), "ended": ("ist nicht mehr", "war bis 2019")},
        "wurde": {"denied": ("wurde nicht", "wurde nie"), "hedged": ("wurde angeblich", "wurde vielleicht")},
        "hat": {"denied": ("hat nicht", "hat niemals"), "hedged": ("hat angeblich", "hat möglicherweise"), "ended": ("hat nicht mehr",)},
        "liegt": {"denied": ("liegt nicht",), "hedged": ("liegt vermutlich",)},
    },
    "fr": {
        "est": {"denied": ("n'est pas", "n'est nullement"), "hedged": ("serait", "est peut-être"), "ended": ("n'est plus", "était jadis")},
        "a été": {"denied": ("n'a pas été", "n'a jamais été"), "hedged": ("aurait été",)},
        "a": {"denied": ("n'a pas", "n'a jamais"), "hedged": ("aurait",), "ended": ("n'a plus",)},
    },
    "es": {
        "es": {"denied": ("no es", "nunca fue"), "hedged": ("sería", "quizá es", "podría ser"), "ended": ("ya no es", "era hasta 2019")},
        "fue": {"denied": ("no fue", "nunca fue"), "hedged": ("habría sido",)},
        "está": {"denied": ("no está",), "hedged": ("estaría",), "ended": ("ya no está",)},
        "tiene": {"denied": ("no tiene",), "hedged": ("tendría",), "ended": ("ya no tiene",)},
    },
}  # fmt: skip
_PAST = re.compile(r" (?P<verb>[a-z]{3,}ed) ")
_PAST_WAYS = {
    "denied": (" never {v} ", " has not {v} ", " denies having {v} "),
    "hedged": (
        " may have {v} ",
        " is said to have {v} ",
        " reportedly {v} ",
        " nearly {v} ",
        " had hoped to have {v} ",
    ),
}
_ARTICLES = (
    "The ",
    "A ",
    "An ",
    "Der ",
    "Die ",
    "Das ",
    "Le ",
    "La ",
    "Les ",
    "El ",
    "Los ",
    "Las ",
    "In ",
    "Im ",
    "En ",
)


def _inner(sentence: str, language: str) -> str:
    if sentence.startswith(_ARTICLES):
        return sentence[0].lower() + sentence[1:]
    return sentence


def rewrite_around(sentence: str, language: str, rng: random.Random) -> tuple[str, str]:
    """The sentence inside another that takes it back, and the stance."""
    stance = rng.choice(STANCES[1:])
    body = sentence.rstrip(".! ")
    form = rng.choice(_AROUND[language][stance])
    return form.replace("{s}", _inner(body, language)).replace("{S}", body), stance


def rewrite_inside(sentence: str, subject: str, language: str, rng: random.Random) -> tuple[str, str] | None:
    """The sentence with its verb denied, doubted or ended, if the verb is one of those known."""
    at = sentence.find(subject)
    if at < 0:
        return None
    at += len(subject)
    head, rest = sentence[:at], sentence[at:]
    found = [
        (match.start(), match.end(), ways)
        for verb, ways in _INSIDE[language].items()
        if (match := re.search(rf"(?<=\s){verb}(?=\s)", rest))
    ]
    if found:
        start, end, ways = min(found, key=lambda one: (one[0], -one[1]))
        if rest[:start].count(",") or start > 40:
            return None
        stance = rng.choice(sorted(ways))
        return head + rest[:start] + rng.choice(ways[stance]) + rest[end:], stance
    past = _PAST.match(rest) if language == "en" else None
    if past is None:
        return None
    stance = rng.choice(sorted(_PAST_WAYS))
    return head + rng.choice(_PAST_WAYS[stance]).replace("{v}", past["verb"]) + rest[past.end() :], stance
