"""Dates and years as people write them, read into XML Schema's forms.

Reads ISO dates and times, `1 May 1999`, `May 1st, 1999`, `1. Mai 1999`, `1 de mayo de 1999`, `May 1999`,
`5/1/1999` (day first unless only month first is possible), `1999年5月1日`, `44 BC`, `1990s` and a year alone. A
day that no calendar has is not a date.
"""

import re
from calendar import monthrange
from collections.abc import Iterator

from sameas.extraction.graph import Mention
from sameas.extraction.lexicon.stretches import around_digits

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
_INITIALS = "".join(sorted({name[0] for name in _MONTHS} | {"a"}))
_DAY = r"\d{1,2}(?:st|nd|rd|th|er|º|ª|\.)?"
_OF = r"(?:\s+(?:of|de|d'|del|do))?\s+"

_DATES = re.compile(
    rf"(?=[\d{_INITIALS}])(?<![\w.,/-])(?:"
    rf"(?P<stamp>\d{{4}}-\d{{2}}-\d{{2}}[T ]\d{{2}}:\d{{2}}(?::\d{{2}}(?:\.\d{{1,9}})?)?(?:Z|[+-]\d{{2}}:\d{{2}})?)"
    rf"|(?P<ymd>\d{{4}}(?P<ysep>[-/.])\d{{1,2}}(?P=ysep)\d{{1,2}})"
    rf"|(?P<dmy>\d{{1,2}}(?P<dsep>[-/.])\d{{1,2}}(?P=dsep)\d{{4}})"
    rf"|(?P<dmonthy>{_DAY}{_OF}{_MONTH},?(?:\s+(?:of|de|del))?\s+\d{{4}})"
    rf"|(?P<monthdy>{_MONTH}\s+(?:the\s+)?\d{{1,2}}(?:st|nd|rd|th)?(?:\s*,\s*|\s+)\d{{4}})"
    rf"|(?P<monthy>{_MONTH},?{_OF}\d{{4}})"
    rf"|(?P<dmonth>{_DAY}{_OF}{_MONTH}|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?)"
    rf"|(?P<yearmonth>\d{{4}}-(?:0[1-9]|1[0-2]))"
    rf"|(?P<decade>\d{{3}}0s)"
    rf"|(?P<era>(?:AD\s+\d{{1,4}}|\d{{1,4}}\s+(?:BCE|BC|CE|AD)))"
    rf"|(?P<year>1\d{{3}}|20\d{{2}}|21\d{{2}})"
    rf")(?![\w%°]|[.,/-]?\d)",
    re.IGNORECASE,
)
_WIDE = re.compile(r"(?<!\d)(\d{4})\s?年(?:\s?(\d{1,2})\s?月(?:\s?(\d{1,2})\s?日)?)?")
_NUMBERS = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]{3,}")
_LAST_MONTH = 12


def find_dates(text: str) -> Iterator[Mention]:
    """Every date said in the text, as a literal; dates do not overlap."""
    for near in around_digits(text):
        for match in _DATES.finditer(text, near.start, near.end):
            read = _read(match)
            if read is not None:
                value, datatype = read
                # A stop after the month's name, at the end, is more often the sentence's than an abbreviation's.
                end = match.end() - match.group().endswith(".")
                yield _literal(match.start(), end, text, value, datatype)
    for match in _WIDE.finditer(text):
        year, month, day = (int(part) if part else 0 for part in match.groups())
        found = _calendar(year, month, day)
        if found is not None:
            yield _literal(match.start(), match.end(), text, *found)


def _literal(start: int, end: int, text: str, value: str, datatype: str) -> Mention:
    return Mention(start, end, text[start:end], kind="literal", value=value, datatype=XSD + datatype)


def _read(match: re.Match[str]) -> tuple[str, str] | None:
    kind = str(match.lastgroup)
    if match["ymd"]:
        kind = "ymd"
    elif match["dmy"]:
        kind = "dmy"
    said = match.group()
    numbers = [int(number) for number in _NUMBERS.findall(said)]
    match kind:
        case "stamp":
            return _stamp(said, numbers)
        case "ymd" | "yearmonth":
            return _calendar(*numbers)
        case "dmy":
            day, month = numbers[:2] if numbers[1] <= _LAST_MONTH else (numbers[1], numbers[0])
            return _calendar(numbers[2], month, day)
        case "dmonthy" | "monthdy":
            return _calendar(numbers[1], _month(said), numbers[0])
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
    return next(_MONTHS[word] for word in _WORD.findall(said.lower()) if word in _MONTHS)


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
