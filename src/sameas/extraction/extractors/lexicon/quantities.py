"""Numbers with and without units, read into an exact decimal value.

Reads `2,777 metres`, `$2 million`, `3.5 km²`, `1.234.567,89 €`, `45 %`, `-12.5 °C`, `12,5 Millionen`, `US$299m`,
`EUR 1.2bn`, `4bn euros`, `three`. A word after a number is a unit only if it is a known one; `747-400` is no number. A
letter such as m or k is a scale only beside a currency, else a unit: `299m` are metres.
"""

# ruff: noqa: RUF001, SIM905 (word lists and the marks of other scripts are the data here)

import re
from collections.abc import Iterator
from decimal import Decimal

import msgspec

from sameas.extraction.extractors.lexicon.dates import XSD
from sameas.extraction.extractors.lexicon.phrases import plain_case
from sameas.extraction.extractors.lexicon.stretches import around_digits, from_digits
from sameas.extraction.graph.model import Mention

_SCALES = {
    "hundred": 2, "thousand": 3, "tausend": 3, "mille": 3, "million": 6, "millions": 6, "millionen": 6,
    "millones": 6, "milione": 6, "milioni": 6, "mn": 6, "billion": 9, "billions": 9, "bn": 9, "milliarden": 9,
    "milliards": 9, "trillion": 12, "trillions": 12, "mio": 6, "mrd": 9,
}  # fmt: skip
_UNIT_NAMES = {
    "%": "% percent per_cent prozent pourcent",
    "km": "km kilometre kilometres kilometer kilometers kilomètres",
    "m": "m metre metres meter meters mètres metros metri",
    "cm": "cm centimetre centimetres centimeter centimeters",
    "mm": "mm millimetre millimetres millimeter millimeters",
    "mi": "mi mile miles",
    "ft": "ft foot feet",
    "in": "inch inches",
    "km²": "km² km2 sq_km square_kilometre square_kilometres square_kilometers quadratkilometer",
    "m²": "m² m2 sq_m square_metres square_meters quadratmeter",
    "ha": "ha hectare hectares hektar",
    "sq mi": "sq_mi square_mile square_miles",
    "m³": "m³ m3 cubic_metres cubic_meters",
    "l": "l litre litres liter liters",
    "ml": "ml millilitre millilitres milliliter milliliters",
    "kg": "kg kilogram kilograms kilogramme kilogrammes kilo kilos",
    "g": "g gram grams gramme grammes",
    "mg": "mg milligram milligrams",
    "t": "t tonne tonnes ton tons tonnen",
    "lb": "lb lbs pound_weight",
    "s": "s sec secs second seconds sekunden",
    "min": "min mins minute minutes minuten",
    "h": "h hr hrs hour hours stunden heures",
    "d": "day days tage jours",
    "wk": "week weeks wochen",
    "mo": "month months monate mois",
    "a": "year years jahre ans años anni",
    "°C": "°c ℃ degrees_celsius",
    "°F": "°f degrees_fahrenheit",
    "K": "kelvin",
    "km/h": "km/h kph",
    "mph": "mph",
    "m/s": "m/s",
    "W": "w watt watts",
    "kW": "kw kilowatt kilowatts",
    "MW": "mw megawatt megawatts",
    "GW": "gw gigawatt gigawatts",
    "kWh": "kwh",
    "V": "v volt volts",
    "Hz": "hz hertz",
    "GHz": "ghz",
    "MHz": "mhz",
    "MB": "mb megabyte megabytes",
    "GB": "gb gigabyte gigabytes",
    "TB": "tb terabyte terabytes",
    "USD": "usd us$ $ dollar dollars",
    "EUR": "eur € euro euros",
    "GBP": "gbp £ pound pounds",
    "JPY": "jpy ¥ yen 円",
    "CNY": "cny rmb yuan 元",
    "CHF": "chf franken",
    "INR": "inr ₹ rupee rupees",
    "people": "people persons inhabitants residents einwohner habitants",
    "employees": "employees staff workers mitarbeiter",
}
_UNITS = {name.replace("_", " "): unit for unit, names in _UNIT_NAMES.items() for name in names.split()}
_SYMBOLS = {"US$": "USD", "$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR"}
_CODES = "USD EUR GBP JPY CNY CHF INR CAD AUD SEK NOK DKK PLN CZK BRL KRW RMB".split()
_CURRENCIES = {**_SYMBOLS, "C$": "CAD", "A$": "AUD", **{code: code for code in _CODES}, "RMB": "CNY"}
# Written right at an amount of money: `£4bn`, `EUR 1.2m`.
_GLUED = {"k": 3, "m": 6, "mn": 6, "mio": 6, "mm": 6, "mrd": 9, "b": 9, "bn": 9, "tn": 12, "trn": 12}
_ZERO_TO_TWENTY = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_WORDS = {word: number for number, word in enumerate(_ZERO_TO_TWENTY)}
_WORDS |= {word: 10 * number for number, word in enumerate(_TENS, 2)}

_PLAIN_NUMBER = (
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}(?:\.\d{3})+,\d+"
    r"|\d{1,3}(?:[\u00a0\u202f\u2009' ]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:\.\d+|,\d{1,2}(?!\d))?"
)
_SCALE = "|".join(sorted(_SCALES, key=lambda name: (-len(name), name)))
_LETTER_UNITS = "|".join(re.escape(name) for name in sorted(_UNITS, key=lambda name: (-len(name), name)))
_QUANTITY = re.compile(
    rf"(?=[\d+−-])(?<![\w.,/$€£¥₹])(?<!\w[-−])(?P<sign>[-−+])?(?P<number>{_PLAIN_NUMBER})(?![.,]?\d)"
    rf"(?:[\s\u00a0-](?P<scale>{_SCALE})\b)?(?:[\s\u00a0\u202f-]?(?P<unit>{_LETTER_UNITS})(?!\w))?(?![\w/]|-\w)",
    re.IGNORECASE,
)
# `15.000 Besucher` is a decimal number in English alone: which words the text is written with tells, and letters that
# English words do not have.
_GROUP = r"[1-9]\d{0,2}\.\d{3}(?![.,]?\d)"
_ONE_GROUP = re.compile(rf"(?<![\w.,]){_GROUP}")
_WITH_DOTS = re.compile(
    r"\b(?:der|die|das|und|ist|hat|von|im|mit|für|den|ein|eine|es|la|el|los|las|del|de|en|con|por|su|una?|al|que|il|di|e|le|les|des|est|et)\b"
    r"|[^\W\d_]*[äöüßñáéíóúàèùçêâîôûœ][^\W\d_]*",
    re.IGNORECASE,
)
_ENGLISH = re.compile(r"\b(?:the|of|and|is|has|with|for|in|by|its|was|to|an?)\b", re.IGNORECASE)
# Where words tell nothing: neither money nor what is counted has thousandths, and some units are not English.
_WHOLE = re.compile(
    rf"(?<=[€$£]){_GROUP}|(?<=[€$£][\s\u00a0]){_GROUP}|{_ONE_GROUP.pattern}(?=[\s\u00a0]?(?:[€$£]"
    r"|(?:eur|euros?|dollars?|chf|franken|people|persons|inhabitants|residents|einwohner|habitants|employees|staff|workers"
    r"|mitarbeiter|metros|mètres|metri|litros|hektar|tonnen)\b"
    r"|(?-i:Liter|Meter|Kilometer|Kilogramm|Gramm|Personen|Stück)\b))",
    re.IGNORECASE,
)
_AFTER_AMOUNT = {name: unit for name, unit in _UNITS.items() if unit in _CURRENCIES.values()}
_CURRENCY = "|".join(re.escape(name) for name in sorted(_CURRENCIES, key=lambda name: (-len(name), name)))
_SCALE_LETTERS = "|".join(sorted(_GLUED, key=lambda name: (-len(name), name)))
_MONEY_AFTER = "|".join(re.escape(name) for name in sorted(_AFTER_AMOUNT, key=lambda name: (-len(name), name)))
_BLANK = r"[\s\u00a0\u202f]"
_MONEY = re.compile(
    rf"(?<![\w.,/$])(?:(?P<sign>[-−])?(?:(?P<symbol>{_CURRENCY}){_BLANK}?)(?P<sign_inside>[-−])?"
    rf"(?P<number>{_PLAIN_NUMBER})(?![.,]?\d)(?:[\s\u00a0\u202f-]?(?P<glued>{_SCALE_LETTERS})\b"
    rf"|[\s\u00a0-](?P<scale>{_SCALE})\b)?"
    rf"|(?P<number_first>{_PLAIN_NUMBER})(?:{_BLANK}?(?P<glued_first>{_SCALE_LETTERS})\.?){_BLANK}?"
    rf"(?P<unit_after>{_MONEY_AFTER}|{_CURRENCY})(?!\w))(?![\w/]|-\w)",
    re.IGNORECASE,
)
_MONEY_NAMES = sorted({name.casefold() for name in (*_CURRENCIES, *_AFTER_AMOUNT)})
_LETTERS = re.compile(r"[^\W\d_]+")
_INITIALS = "".join(sorted({word[0] for word in _WORDS}))
_NUMBER_WORD = re.compile(
    rf"\b(?=[{_INITIALS}])(?P<word>(?:{'|'.join(_TENS)})-(?:{'|'.join(_ZERO_TO_TWENTY[1:10])})"
    rf"|{'|'.join(sorted(_WORDS, key=lambda word: (-len(word), word)))})\b"
    rf"(?:[ -](?P<scale>hundred|thousand|million|billion)\b)?(?:[ -](?P<unit>{_LETTER_UNITS})(?!\w))?",
    re.IGNORECASE,
)


def is_money(quantity: Mention) -> bool:
    """Whether a quantity begins with the sign or code of its currency, which looks like a name elsewhere."""
    return quantity.unit in _CURRENCIES.values() and not quantity.text[0].isdigit()


def find_quantities(text: str) -> Iterator[Mention]:
    """Every number said in the text, as a literal with its unit."""
    grouped = _grouped_by_dots(text)
    if grouped is None:
        yield from _find(text)
        return
    for one in _find(grouped.sub(_with_apostrophe, text)):
        yield msgspec.structs.replace(one, text=text[one.start : one.end])


def _grouped_by_dots(text: str) -> re.Pattern[str] | None:
    """Which numbers with three digits behind a dot are thousands."""
    if _ONE_GROUP.search(text) is None:
        return None
    others, english = len(_WITH_DOTS.findall(text)), len(_ENGLISH.findall(text))
    return None if others < english else _WHOLE if others == english else _ONE_GROUP


def _with_apostrophe(match: re.Match[str]) -> str:
    return match[0].replace(".", "'")


def _find(text: str) -> Iterator[Mention]:
    for near in around_digits(text):
        said = plain_case(text[near.start : near.end])
        has_money = any(name in said for name in _MONEY_NAMES)
        money = [_amount(text, match) for match in _MONEY.finditer(text, near.start, near.end)] if has_money else []
        yield from money
        for match in from_digits(_QUANTITY, text, near, signs="+-−"):
            if any(one.start < match.end() and match.start() < one.end for one in money):
                continue
            value = _decimal(match["number"])
            if match["sign"] and match["sign"] != "+":
                value = -value
            yield _literal(text, match, value, unit="")
    if _WORDS.keys().isdisjoint(_LETTERS.findall(plain_case(text))):
        return
    for match in _NUMBER_WORD.finditer(text):
        number = sum(_WORDS[part] for part in plain_case(match["word"]).split("-"))
        yield _literal(text, match, Decimal(number), unit="")


def _literal(text: str, match: re.Match[str], value: Decimal, *, unit: str) -> Mention:
    if match["scale"]:
        value = value.scaleb(_SCALES[plain_case(match["scale"])])
    if match["unit"]:
        unit = _UNITS[plain_case(match["unit"])]
    return _mention(text, match, value, unit=unit)


def _amount(text: str, match: re.Match[str]) -> Mention:
    """An amount of money, with its scale and currency."""
    value = _decimal(match["number"] or match["number_first"])
    if match["sign"] or match["sign_inside"]:
        value = -value
    glued = match["glued"] or match["glued_first"]
    if glued:
        value = value.scaleb(_GLUED[plain_case(glued)])
    elif match["scale"]:
        value = value.scaleb(_SCALES[plain_case(match["scale"])])
    said = match["symbol"] or match["unit_after"]
    unit = _CURRENCIES.get(plain_case(said).upper()) or _AFTER_AMOUNT[plain_case(said)]
    return _mention(text, match, value, unit=unit)


def _mention(text: str, match: re.Match[str], value: Decimal, *, unit: str) -> Mention:
    plain = format(value, "f")
    if "." in plain:
        plain = plain.rstrip("0").rstrip(".")
    datatype = XSD + ("decimal" if "." in plain else "integer")
    start, end = match.span()
    return Mention(start, end, text[start:end], kind="literal", value=plain, datatype=datatype, unit=unit)


def _decimal(said: str) -> Decimal:
    for blank in "\u00a0\u202f\u2009' ":
        said = said.replace(blank, "")
    last_dot, last_comma = said.rfind("."), said.rfind(",")
    if last_comma > last_dot:
        grouped = last_dot < 0 and re.fullmatch(r"\d{1,3}(?:,\d{3})+", said)
        said = said.replace(",", "") if grouped else said.replace(".", "").replace(",", ".")
    elif said.count(".") > 1:
        said = said.replace(".", "")
    else:
        said = said.replace(",", "")
    return Decimal(said)
