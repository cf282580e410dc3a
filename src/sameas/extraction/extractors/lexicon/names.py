"""Names by their shape: runs of capitalised words with the particles between them, in scripts that have
capitals.

Rule: a shape is a guess and has no class yet; titles, legal forms and the words before a name only say which
of three kinds (person, organisation, place) it looks like. A word that also stands in small letters in the
same chunk is no name where it opens a sentence.
"""

# ruff: noqa: RUF001, SIM905 (word lists and the marks of other scripts are the data here)

import re
from collections.abc import Iterator
from typing import NamedTuple

from sameas.extraction.extractors.lexicon.given_names import GIVEN_NAMES
from sameas.extraction.graph.class_kinds import ShapeKind
from sameas.extraction.text.document import Span


class NameShape(NamedTuple):
    """A name's place and what it looks like; `title` is where a title such as `Ms` begins, if there is
    one.
    """

    start: int
    end: int
    looks_like: ShapeKind
    title: int


_UPPER = "A-ZÀ-ÖØ-ÞĀĂĄĆĈĊČĎĐĒĔĖĘĚĜĞĠĢĤĦĨĪĬĮİĲĴĶĹĻĽĿŁŃŅŇŊŌŎŐŒŔŖŘŚŜŞŠŢŤŦŨŪŬŮŰŲŴŶŸŹŻŽȘȚΑ-ΫΆΈ-ΏА-ЯЁЂ-ЏԱ-Ֆ"
_TITLES = (
    "Mr Mrs Ms Mx Miss Dr Prof Professor Sir Dame Lady Lord Herr Frau Monsieur Madame Señor Señora Sra Mme Mlle Dra"
).split()
_TITLE = rf"(?P<title>(?:{'|'.join(_TITLES)})\b\.?[ \n])?"
# Possessive throughout: a run of initials can be cut into words in very many ways, and one is enough.
_WORD = (
    rf"(?:[{_UPPER}]\.(?:[ ]?[{_UPPER}]\.)*+"
    rf"|[{_UPPER}](?:[\w\u0300-\u036f]|['’](?=[{_UPPER}a-zß-ÿ]{{2}})|-(?=\w))*+)"
)
_PARTICLE = (
    r"(?:of the|of|the|de la|de los|de las|de|del|della|di|da|do|dos|das|du|des|d'|van der|van den|van|von der|von|zu|"
    r"bin|ibn|al-|el-|ten|ter|af|av|&)"
)
# "Report A. The source ...": a letter with a full stop is no initial before a word that begins sentences.
_NEXT_SENTENCE = r"(?!(?<=\.[ \n])(?:The|It|Its|He|She|They|This|That|His|Her|In|On|At|After|Der|Die|Das|Le|La|El)\b)"
_NAME = re.compile(
    rf"(?<![\w.]){_TITLE}(?P<name>{_WORD}(?:(?:[ \n]{_PARTICLE}[ \n]?|[ \n]){_NEXT_SENTENCE}"
    rf"(?!(?:{'|'.join(_TITLES)})\b)(?:{_WORD}|\d{{1,4}}(?![\w:/]|[.,]\d))){{0,7}})"
)
# "Acme Robotics, Inc.": a legal form after a comma belongs to the name, and so does one in small letters.
_LEGAL_FORM = re.compile(r",[ ](?:Inc|Ltd|LLC|PLC|plc|Corp|Co|GmbH|SA|SpA|BV|NV|AB|Pty)\b\.?(?=[\s,;:)]|\Z)|[ ]plc\b")
# "Acme AG CEO Anna Keller": a legal form ends the name, save before a second one.
_ENDS_NAME = re.compile(
    r"(?<=[ \n])(?:GmbH|AG|SE|KG|KGaA|Inc|Ltd|LLC|PLC|plc|Corp|SA|SAS|SARL|SpA|BV|NV|Oy|Pty)(?=[ \n])"
    r"(?![ \n](?:&|GmbH|AG|SE|KG|KGaA|Inc|Ltd|LLC|PLC|Corp|SA|Co|Group|Holding)\b)(?![ \n]&)"
)
# "Bremen-based Acme": where it is, is not its name.
_BASED = re.compile(r"[\w-]+-(?:based|born|owned|listed|led|headquartered|made)[ \n]")
_AND_CO = re.compile(r"\.?[ ](?:KG|KGaA|OHG)\b")
# "Drug Testing and Analysis is ...": a sentence's subject in the singular is one name, small words included.
_SMALL = "(?:of|the|and|for|in|on|to|a|an|&|de|la|du|von|van)"
_TOPIC = re.compile(
    rf"(?:The[ \n])?(?P<name>{_WORD}(?:(?:[ ]?[,:]|(?:[ ]{_SMALL}){{1,2}})?[ ]"
    rf"(?:{_WORD}|\d{{1,4}})(?![\w])){{1,9}})(?=[ ](?:\([^()]{{0,120}}\)[ ])?(?:is|was|ist|war|est|es|fue)[ ])"
)
# Small words that open sentences, and what a calendar has: never a name by themselves.
_NO_NAMES = frozenset(
    """a an the this that these those i he she it we you they his her its our your their my one two three some
    any all each every both in on at by for from to of with without within as after before during since
    until while when where why how who whom whose which what if but and or nor so yet because although
    though however moreover also then there here now today yesterday tomorrow not no yes many most more few
    several other another such under over between among about into through against although despite thus
    hence founded born located based directed written published following according once upon only just even
    still instead meanwhile january february march april may june july august september october november
    december monday tuesday wednesday thursday friday saturday sunday der die das ein eine er sie es wir ihr
    und oder aber in im am an auf bei mit nach von vor zu als wenn le la les un une il elle ils elles nous
    vous et ou mais dans sur avec pour par en de du au aux ce cette el los las una uno ella ellos y o pero
    con para por del al lo gli uno nel neither nor either nobody nothing none is are was were has have had do does did
    can could will would may might shall should must whether unless unlike like together perhaps maybe reportedly
    allegedly apparently supposedly never not suppose imagine assume assuming consider yesterday lately recently
    formerly previously according last next weder nicht kein keine wenn falls ob ni si no nunca jamais""".split()
)
# The stop after these belongs to them, wherever they stand.
_ABBREVIATED = ("Inc", "Corp", "Co", "Bros")
_ABBREVIATED_INSIDE = ("Ltd", "Jr", "Sr", "Assoc", "Dept", "Univ")
_GOES_ON = re.compile(r"\.(?:[ ]+[a-zß-ÿ(]|['’,;:)])")
_PERSON_WORDS = re.compile(rf"[{_UPPER}][\w'’.-]*(?: (?:{_PARTICLE} ?)?[{_UPPER}][\w'’.-]*){{1,3}}")
_INITIAL = re.compile(rf"[{_UPPER}]\. ?(?:[{_UPPER}]\. ?)*(?=[{_UPPER}])")
_ORGANISATION = re.compile(
    r"(?:\b(?:Inc|Ltd|Limited|LLC|PLC|plc|Corp|Corporation|Company|Co|GmbH|AG|SE|KG|SA|SAS|SARL|SpA|BV|NV|AB|Oy|AS|Pty"
    r"|Group|Holdings?"
    r"|Bank|University|Universität|Université|Universidad|College|School|Institute?|Academy|Foundation"
    r"|Association|Society|Agency|Ministry"
    r"|Department|Council|Committee|Commission|Party|Union|League|Club|Museum|Orchestra|Laborator(?:y|ies)"
    r"|Labs?|Studios?|Records|Press"
    r"|Airlines|Motors|Systems|Technologies|Industries|Partners|Organi[sz]ation|FC|United)\.?)\Z"
    r"|^(?:University|Universität|Université|Universidad|Institute|Ministry|Department"
    r"|Bank|Museum|Academy|Council) (?:of|de|der|für)\b"
)
_PLACE = re.compile(
    r"^(?:Mount|Mt|Lake|River|Cape|Port|Fort|San|Santa|São|Los|Las|Saint|St|New|North|South|East|West|Upper|Lower"
    r"|Republic of|Kingdom of"
    r"|Province of|City of|Isle of|Gulf of|Bay of)\b"
    r"|\b(?:River|Lake|Mountains?|Island|Islands|Sea|Ocean|Bay|Valley|City|County|Province|District|Street"
    r"|Avenue|Square|Park|Republic"
    r"|Kingdom|Desert|Peninsula|Airport|Bridge|Village|Town)\Z"
)
_BEFORE_PLACE = re.compile(
    r"(?:\b(?:in|near|towards|into|through|across|outside|around|aus|nach|à|en)[ \n](?:the[ \n])?)\Z"
)
_POSSESSIVE = re.compile(r"['’]s?\Z")
_COMMON_AFTER = re.compile(r"[ \n]([a-z][a-z-]{2,})")
_ARTICLE_BEFORE = re.compile(r"(?:\b(?:an?|An?)|\d)[ \n]\Z")
_DEMONYMS = ("ish", "ese", "ian", "ean", "ican", "ench", "erman", "utch", "eek", "wiss", "raeli", "aqi")
_VERBS = frozenset(
    (
        "is was are were has had have will would can could became becomes won wrote said left lives lived "
        "works worked made"
    ).split()
)
# Lines that are wrapped are about this long, or longer.
_FULL_LINE = 40
_OPENERS = '"“„«‘('


def find_names(text: str, sentences: tuple[Span, ...]) -> Iterator[NameShape]:
    """Every run that looks like a name, from left to right."""
    openings = {span.start for span in sentences}
    topics = {topic.start("name"): topic for span in sentences if (topic := _TOPIC.match(text, span.start, span.end))}
    place = 0
    while match := _NAME.search(text, place):
        start, end = match.span("name")
        end = _end_in_lines(text, start, end)
        word_end = _word_end(text, start, end)
        word = text[start:word_end]
        opens = start in openings or (start > 0 and start - 1 in openings and text[start - 1] in _OPENERS)
        if word.lower() in _NO_NAMES or (opens and word_end == end and _is_common(text, word)):
            place = word_end
            continue
        if start in topics:
            end = max(end, topics[start].end("name"))
        based = _BASED.match(text, start, end)
        start = based.end() if based is not None else start
        end = _cut(text, start, end)
        legal_form = _LEGAL_FORM.match(text, end)
        if legal_form is not None:
            end = legal_form.end()
        elif _has_stop(text, start, end):
            end += 1
        place = end
        if word_end == end and _is_adjective(text, start, end):
            continue
        possessive = _POSSESSIVE.search(text, start, end)
        end = possessive.start() if possessive else end
        if end - start < 2:
            continue
        title = match.start("title")
        yield NameShape(start, end, looks_like(text, start, end, titled=title >= 0), title)


def _end_in_lines(text: str, start: int, end: int) -> int:
    """Where a name ends that a line break closes: it goes on in the next line only where the line is full, so that
    the next word had no room in it (`Name: Laura Bennett` above `Date of birth: ...` is no wrapped line).
    """
    at = text.find("\n", start, end)
    if at >= 0 and text.startswith(":", end):
        # A word before a colon is the label of its own line.
        end = text.rfind("\n", start, end)
    while 0 <= at < end:
        line = at - (text.rfind("\n", 0, at) + 1)
        if line + 1 + _word_end(text, at + 1, end) - (at + 1) <= _FULL_LINE:
            return at
        at = text.find("\n", at + 1, end)
    return end


def _cut(text: str, start: int, end: int) -> int:
    """Where a name ends that a legal form closes, or a person's before the place or company they are `of`."""
    of = text.find(" of ", start, end)
    if of > 0 and _is_person(text[start:of]):
        return of
    form = _ENDS_NAME.search(text, start, end)
    if form is not None:
        end = form.end()
    co = _AND_CO.match(text, end) if text.endswith("& Co", start, end) else None
    return end if co is None else co.end()


def _has_stop(text: str, start: int, end: int) -> bool:
    """Whether the stop after a name is that of an abbreviation at its end."""
    if text[end : end + 1] != ".":
        return False
    last = text[start:end].rpartition(" ")[2]
    return last in _ABBREVIATED or (last in _ABBREVIATED_INSIDE and _GOES_ON.match(text, end) is not None)


def _word_end(text: str, start: int, end: int) -> int:
    at = start
    while at < end and not text[at].isspace():
        at += 1
    return at


def _is_common(text: str, word: str) -> bool:
    lower = word.lower()
    if lower == word or not word[1:].islower():
        return False
    at = text.find(lower)
    while at >= 0:
        after = at + len(lower)
        if not (at and text[at - 1].isalnum()) and not (after < len(text) and text[after].isalnum()):
            return True
        at = text.find(lower, at + 1)
    return False


def _is_adjective(text: str, start: int, end: int) -> bool:
    """`a 2008 Israeli drama film`: one word before a common noun, after an article, a year or with a
    demonym's ending.
    """
    after = _COMMON_AFTER.match(text, end)
    if after is None or after[1] in _NO_NAMES or after[1] in _VERBS:
        return False
    return bool(_ARTICLE_BEFORE.search(text, max(0, start - 8), start)) or text.endswith(_DEMONYMS, start, end)


def looks_like(text: str, start: int, end: int, *, titled: bool = False) -> ShapeKind:
    """The kind of thing that a name seems to be of, by its own words and the one before it."""
    name = text[start:end]
    if titled:
        return "person"
    if _ORGANISATION.search(name):
        return "organisation"
    if _PLACE.search(name):
        return "place"
    if _is_person(name):
        return "person"
    return "somewhere" if _BEFORE_PLACE.search(text, max(0, start - 14), start) else ""


def _is_person(name: str) -> bool:
    """Whether a name of two to four words begins with a given name or initials."""
    if _PERSON_WORDS.fullmatch(name.replace("\n", " ")) is None:
        return False
    first = name.split(maxsplit=1)[0]
    return first.partition("-")[0] in GIVEN_NAMES or _INITIAL.match(name) is not None
