"""Words that mean one thing and do not look alike: irregular forms, and the few everyday words that ontologies name
otherwise than texts do.

A family is known by the first letters of its words, the root that regular forms share. Rule: general English only, and
no word that is at home in two families; a word of one ontology's trade belongs into that ontology as `skos:altLabel`.
"""

from types import MappingProxyType

ROOT = 5
"""Letters that "founded" and "founder" share, or "director" and "directed"."""

_LITTLE = "a an and as at be by for from had has have in into is it of on or s that the this to was were which with"
LITTLE = frozenset(_LITTLE.split())
"""Words that say nothing of what a label or a text is about."""

# What texts say, and what terms are called.
_FAMILIES = (
    "birth born",
    "death die died dies dying dead",
    "write wrote written writing writer author",
    "movie film",
    "employ works work worked working",
    "spouse marry married marri wife husband",
    "child son daughter",
    "parent father mother",
    "sibling brother sister",
    "headquarter based located location",
    "lead led leader leading",
    "make made making maker manufacture",
    "build built building builder",
    "begin began begun start",
    "end ended ending finish",
    "win won winner winning",
    "teach taught",
    "sell sold seller",
    "buy bought acquire",
    "speak spoke spoken language",
    "sing sang sung singer song",
    "study studied studi educate graduate alumni",
    "star starring cast actor actress",
    "release publish premiere",
    "found establish create",
    "belong member",
    "play player",
    "country nation national",
    "city town village",
    "company firm corporation",
)


def root_of(word: str) -> str:
    """What a word and its other forms have in common."""
    root = word[:ROOT]
    return FAMILIES.get(root, root)


FAMILIES = MappingProxyType({word[:ROOT]: words.split()[0][:ROOT] for words in _FAMILIES for word in words.split()})
