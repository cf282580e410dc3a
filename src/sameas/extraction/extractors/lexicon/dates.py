"""Dates and years as people write them, read into XML Schema's forms.

Reads ISO dates and times, `1 May 1999`, `1-May-1999`, `May 1st, 1999`, `the first of May 1999`, `1 May '99`, `1. Mai
1999`, `1 de mayo de 1999`, `May 1999`, `05/1999`, `5/1/1999` and `5/1/99` (day first, unless only month first is
possible for this date or for another of the text and none of the text is day first), `1999年5月1日`, `44 BC`, `1990s`
and a year alone. Of two digits for a year, those up to 29 are of this century. A day that no calendar has is not a
date.
"""

# ruff: noqa: RUF001, SIM905 (word lists and the marks of other scripts are the data here)

import re
from calendar import monthrange
from collections.abc import Iterator

from sameas.extraction.extractors.lexicon.phrases import plain_case
from sameas.extraction.extractors.lexicon.stretches import around_digits, from_digits
from sameas.extraction.graph.model import Mention

XSD = "http://www.w3.org/2001/XMLSchema#"

_MONTHS_BY_LANGUAGE = (
    "january february march april may june july august september october november december",
    "jan feb mar apr may jun jul aug sep oct nov dec",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "januari februari maart april mei juni juli augustus september oktober november december",
)
_MONTHS = {name: number for names in _MONTHS_BY_LANGUAGE for number, name in enumerate(names.split(), 1)} | {"sept": 9}
_MONTH = "(?:" + "|".join(sorted(_MONTHS, key=lambda name: (-len(name), name))) + r")\b\.?"
_INITIALS = "".join(sorted({name[0] for name in _MONTHS} | {"a"} | set("fsten")))
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth twenty-first twenty-second twenty-third twenty-fourth "
    "twenty-fifth twenty-sixth twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first"
).split()
_ORDINAL = "|".join(sorted(_ORDINALS, key=lambda name: (-len(name), name)))
_DAY = r"\d{1,2}(?:st|nd|rd|th|er|º|ª|\.)?"
# The longest first: `first` also stands in `twenty-first`.
_DAYS = sorted(((name, day) for day, name in enumerate(_ORDINALS, 1)), key=lambda one: (-len(one[0]), one[0]))
_SHORT = r"(?:\d{4}|['’]\d{2})"
_OF = r"(?:\s+(?:of|de|d'|del|do))?\s+"

_DATES = re.compile(
    rf"(?=[\d{_INITIALS}])(?<![\w.,/-])(?:"
    rf"(?P<stamp>\d{{4}}-\d{{2}}-\d{{2}}[T ]\d{{2}}:\d{{2}}(?::\d{{2}}(?:\.\d{{1,9}})?)?(?:Z|[+-]\d{{2}}:\d{{2}})?)"
    rf"|(?P<ymd>\d{{4}}(?P<ysep>[-/.])\d{{1,2}}(?P=ysep)\d{{1,2}})"
    rf"|(?P<dmy>\d{{1,2}}(?P<dsep>[-/.])\d{{1,2}}(?P=dsep)\d{{4}}|\d{{1,2}}/\d{{1,2}}/\d{{2}})"
    rf"|(?P<dmonthy>(?:{_DAY}{_OF}{_MONTH},?(?:\s+(?:of|de|del))?\s+{_SHORT}"
    rf"|\d{{1,2}}(?P<msep>[-/ ]){_MONTH}(?P=msep)\d{{4}}))"
    rf"|(?P<ordinal>(?:{_ORDINAL})\s+(?:of\s+)?{_MONTH},?\s+\d{{4}})"
    rf"|(?P<monthdy>{_MONTH}\s+(?:the\s+)?\d{{1,2}}(?:st|nd|rd|th)?(?:\s*,\s*|\s+){_SHORT})"
    rf"|(?P<monthordinal>{_MONTH}\s+(?:the\s+)?(?:{_ORDINAL}),?\s+\d{{4}})"
    rf"|(?P<monthy>{_MONTH},?{_OF}\d{{4}})"
    rf"|(?P<dmonth>{_DAY}{_OF}{_MONTH}|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?)"
    rf"|(?P<yearmonth>\d{{4}}-(?:0[1-9]|1[0-2]))"
    rf"|(?P<monthyear>(?:0[1-9]|1[0-2])/(?:1\d{{3}}|20\d{{2}}))"
    rf"|(?P<decade>\d{{3}}0s)"
    rf"|(?P<era>(?:AD\s+\d{{1,4}}|\d{{1,4}}\s+(?:BCE|BC|CE|AD)))"
    rf"|(?P<year>1\d{{3}}|20\d{{2}}|21\d{{2}})"
    rf")(?![\w%°]|[.,/-]?\d)",
    re.IGNORECASE,
)
# Without this and the name of a month a date begins with digits.
_AD = re.compile(r"\bad\s+\d")
_WIDE = re.compile(r"(?<!\d)(\d{4})\s?年(?:\s?(\d{1,2})\s?月(?:\s?(\d{1,2})\s?日)?)?")
_NUMBERS = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]{3,}")
_NUMERIC = re.compile(r"(?<![\w.,/-])(\d{1,2})/(\d{1,2})/(?:\d{4}|\d{2})(?![\w/-])")
_LAST_MONTH = 12
_THIS_CENTURY = 29


def find_dates(text: str) -> Iterator[Mention]:
    """Every date said in the text, as a literal; dates do not overlap."""
    month_first = _is_month_first(text)
    for near in around_digits(text):
        said = plain_case(text[near.start : near.end])
        has_words = any(name in said for name in _MONTHS) or ("ad" in said and _AD.search(said))
        search = _DATES.finditer(text, near.start, near.end) if has_words else from_digits(_DATES, text, near)
        for match in search:
            read = _read(match, month_first=month_first)
            if read is not None:
                value, datatype = read
                # A stop after the month's name, at the end, is more often the sentence's than an abbreviation's.
                end = match.end() - match.group().endswith(".")
                yield _literal(match.start(), end, text, value, datatype)
    for match in _WIDE.finditer(text) if "年" in text else ():
        year, month, day = (int(part) if part else 0 for part in match.groups())
        found = _calendar(year, month, day)
        if found is not None:
            yield _literal(match.start(), match.end(), text, *found)


def _literal(start: int, end: int, text: str, value: str, datatype: str) -> Mention:
    return Mention(start, end, text[start:end], kind="literal", value=value, datatype=XSD + datatype)


def _is_month_first(text: str) -> bool:
    """Whether the dates with slashes in a text show that it writes the month first, and none shows the contrary."""
    written = [(int(first), int(second)) for first, second in _NUMERIC.findall(text)] if "/" in text else []
    return any(second > _LAST_MONTH >= first for first, second in written) and not any(
        first > _LAST_MONTH for first, _ in written
    )


def _year(number: int, digits: str) -> int:
    """A year that may be written with its last two digits."""
    if len(digits) > len("99"):
        return number
    return number + (2000 if number <= _THIS_CENTURY else 1900)


def _read(match: re.Match[str], *, month_first: bool) -> tuple[str, str] | None:
    kind = next(
        (name for name in ("ymd", "dmy", "dmonthy", "monthdy") if match[name]),
        str(match.lastgroup),
    )
    said = match.group()
    numbers = [int(number) for number in _NUMBERS.findall(said)]
    match kind:
        case "stamp":
            return _stamp(said, numbers)
        case "ymd" | "yearmonth":
            return _calendar(*numbers)
        case "dmy":
            slashed = match["dsep"] in ("/", None)
            turned = numbers[1] > _LAST_MONTH or (month_first and slashed and numbers[0] <= _LAST_MONTH)
            day, month = (numbers[1], numbers[0]) if turned else (numbers[0], numbers[1])
            return _calendar(_year(numbers[2], _NUMBERS.findall(said)[2]), month, day)
        case "dmonthy" | "monthdy":
            return _calendar(_year(numbers[1], _NUMBERS.findall(said)[1]), _month(said), numbers[0])
        case "ordinal" | "monthordinal":
            lower = plain_case(said)
            day = next(number for name, number in _DAYS if name in lower)
            return _calendar(numbers[0], _month(said), day)
        case "monthyear":
            return _calendar(numbers[1], numbers[0])
        case "monthy":
            return _calendar(numbers[0], _month(said))
        case "dmonth":
            month = _month(said)
            if said[0].islower():
                return None
            # 2000 was a leap year: any day that some year has.
            return (f"--{month:02d}-{numbers[0]:02d}", "gMonthDay") if _calendar(2000, month, numbers[0]) else None
        case "decade":
            return said.lower(), "string"
        case "era":
            before = "b" in said.lower()
            # XML Schema 1.1: the year before 1 is 0.
            return (f"-{numbers[0] - 1:04d}" if before and numbers[0] > 1 else f"{numbers[0] - before:04d}"), "gYear"
        case _:
            return _calendar(numbers[0])


def _month(said: str) -> int:
    return next(_MONTHS[word] for word in _WORD.findall(plain_case(said)) if word in _MONTHS)


def _stamp(said: str, numbers: list[int]) -> tuple[str, str] | None:
    hour, minute = numbers[3], numbers[4]
    if _calendar(*numbers[:3]) is None or hour > 23 or minute > 59:
        return None
    value = said.replace(" ", "T", 1).replace("t", "T").replace("z", "Z")
    seconds = value[16:17] == ":"
    return (value if seconds else f"{value[:16]}:00{value[16:]}"), "dateTime"


def _calendar(year: int, month: int = 0, day: int = 0) -> tuple[str, str] | None:
    if month > _LAST_MONTH or (day and not month) or not year > 0:
        return None
    if day:
        if day > monthrange(year, month)[1]:
            return None
        return f"{year:04d}-{month:02d}-{day:02d}", "date"
    return (f"{year:04d}-{month:02d}", "gYearMonth") if month else (f"{year:04d}", "gYear")
