"""A candidate is written in every style, with words around it, and the examples say which."""

from collections import Counter

import pytest

from sameas.extraction.extractors.learning import Example, Triple
from sameas.extraction.extractors.learning.schema import Property, Schema
from sameas.extraction.extractors.learning.spans import find_spans
from sameas.extraction.extractors.learning.styles import AFFIX, SEPARATOR, settle_order, write_span, writings
from sameas.extraction.extractors.learning.tokens import tokenize
from sameas.extraction.extractors.learning.train import learn

SCHEMA = Schema(
    (
        Property(id="founded", label="founding date", domain="Firm", datatype="date"),
        Property(id="staff", label="staff", domain="Firm", datatype="integer"),
    ),
    {"Firm": "firm"},
)
NAMES = "Altar Bryne Cendro Dovan Elvar Fenra Gavel Hexan Inova Jasen Keldo Lumen Morva Nexor".split()


def _quoted(text: str) -> str:
    return f'"{text}"'


def _months_first(number: int) -> Example:
    day, month, year = 1 + number % 12, 1 + (number * 5 + 2) % 12, 1950 + number
    text = f"{NAMES[number]} Foods was founded on {month:02d}/{day:02d}/{year}."
    return Example(text, (Triple(f"{NAMES[number]} Foods", "founded", f"{year}-{month:02d}-{day:02d}"),))


def _in_quotes(number: int) -> Example:
    day, year, staff = 1 + number, 1950 + number, 1210 + 7 * number
    text = f"{NAMES[number]} Foods was founded on {day} March {year} and employs {staff:,} people."
    name = f"{NAMES[number]} Foods"
    facts = (Triple(name, "founded", f'"{year}-03-{day:02d}"'), Triple(name, "staff", f'"{staff}"'))
    return Example(text, facts)


@pytest.mark.parametrize(
    ("said", "value"),
    [("4 July 1971", '"1971-07-04"'), ("2,777", '"2777.0"'), ("2,777", '"2777"'), ("Ann Lee", '"Ann Lee"')],
)
def test_quotation_marks_are_added_to_every_style(said: str, value: str) -> None:
    tokens = tokenize(f"It was {said} then.")
    affix = SEPARATOR.join((AFFIX, '"', '"'))
    found = {written: style for span in find_spans(tokens) for style, written in writings(span, tokens, (affix,))}
    style = found[value]
    assert value in {write_span(span, tokens.slice(span.first, span.last), style) for span in find_spans(tokens)}


def test_values_in_quotation_marks_are_learned_for_dates_and_numbers() -> None:
    model = learn([_in_quotes(number) for number in range(len(NAMES))], SCHEMA)
    found = {
        t.property: t.object.value for t in model.extract("Rilke Foods was founded on May 9, 1931 and employs 480.")
    }
    assert found == {"founded": '"1931-05-09"', "staff": '"480"'}


def test_the_examples_say_whether_the_month_is_first() -> None:
    (found,) = learn([_months_first(number) for number in range(len(NAMES))], SCHEMA).extract(
        "Rilke Foods was founded on 02/09/1992."
    )
    assert found.object.value == "1992-02-09"


def test_the_order_of_day_and_month_is_one_for_all_properties() -> None:
    slashed = Counter({("founded", "day", "iso"): 3, ("founded", "day", "iso month first"): 5})
    worded = Counter(
        {("closed", "day", "iso"): 4, ("closed", "day", "iso month first"): 4, ("closed", "day", "as is"): 1}
    )
    assert settle_order(slashed + worded) == Counter(
        {
            ("founded", "day", "iso month first"): 5,
            ("closed", "day", "iso month first"): 4,
            ("closed", "day", "as is"): 1,
        }
    )
    assert ("closed", "day", "iso month first") not in settle_order(worded)


def test_the_day_is_first_where_no_example_shows_an_order() -> None:
    examples = [_in_quotes(number) for number in range(len(NAMES))]
    found = {
        t.property: t.object.value for t in learn(examples, SCHEMA).extract("Rilke Foods was founded on 02/09/1992.")
    }
    assert found["founded"] == '"1992-09-02"'
