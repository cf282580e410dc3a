"""Dates are read in every usual form and written in the style asked for."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameas.extraction.extractors.learning.dates import STYLES, Date, find_dates, write_date

DAY, MONTH, YEAR = Date(1971, 7, 4), Date(1971, 7), Date(1971)
USUAL = {
    "4 July 1971": DAY,
    "04 July 1971": DAY,
    "4 July, 1971": DAY,
    "4th July 1971": DAY,
    "4th of July, 1971": DAY,
    "fourth of July 1971": DAY,
    "July 4, 1971": DAY,
    "July 4 1971": DAY,
    "July 4th, 1971": DAY,
    "July the 4th, 1971": DAY,
    "4 Jul 1971": DAY,
    "Jul. 4, 1971": DAY,
    "4-Jul-1971": DAY,
    "4-July-1971": DAY,
    "04-JUL-1971": DAY,
    "4 July '71": DAY,
    "1971-07-04": DAY,
    "1971-7-4": DAY,
    "1971/07/04": DAY,
    "1971.07.04": DAY,
    "1971-07-04T10:00:00Z": DAY,
    "1971-07-04T10:00:00+02:00": DAY,
    "04/07/1971": DAY,
    "4/7/1971": DAY,
    "04-07-1971": DAY,
    "04.07.1971": DAY,
    "4.7.1971": DAY,
    "7/25/1971": Date(1971, 7, 25),
    "07/25/71": Date(1971, 7, 25),
    "25/07/71": Date(1971, 7, 25),
    "4. Juli 1971": DAY,
    "4 juillet 1971": DAY,
    "1er juillet 1971": Date(1971, 7, 1),
    "4 de julio de 1971": DAY,
    "4 luglio 1971": DAY,
    "4 juli 1971": DAY,
    "1971年7月4日": DAY,
    "July 1971": MONTH,
    "July, 1971": MONTH,
    "July of 1971": MONTH,
    "Jul. 1971": MONTH,
    "Sept. 1971": Date(1971, 9),
    "juillet 1971": MONTH,
    "1971-07": MONTH,
    "07/1971": MONTH,
    "1971年7月": MONTH,
    "1971": YEAR,
    "1971年": YEAR,
    "44 BC": Date(-44),
    "44 BCE": Date(-44),
    "AD 79": Date(79),
    "79 AD": Date(79),
}


@pytest.mark.parametrize("around", ["{}", "It began on {}.", "The firm ({}) is old", "It ran from {} on, and well"])
@pytest.mark.parametrize(("said", "date"), USUAL.items())
def test_every_usual_form_is_read(said: str, date: Date, around: str) -> None:
    text = around.format(said)
    assert [(text[mention.start : mention.end], mention.date) for mention in find_dates(text)] == [(said, date)]


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("Bizet (1838-1875)", [1838, 1875]),
        ("from 1901\u20131902", [1901, 1902]),
        ("the 2005-06 season", [2005]),
        ("a mid-1969 session", [1969]),
        ("c.1620", [1620]),
    ],
)
def test_the_years_of_a_range_are_read(text: str, years: list[int]) -> None:
    assert [mention.date for mention in find_dates(text)] == [Date(year) for year in years]


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("02/09/1992", "either"),
        ("02-09-1992", "either"),
        ("25/09/1992", "day"),
        ("09/25/1992", "month"),
        ("02.09.1992", None),
        ("2 September 1992", None),
        ("09/09/1992", None),
    ],
)
def test_a_date_shows_whether_its_day_is_first(text: str, order: str | None) -> None:
    (mention,) = find_dates(text)
    assert mention.date.order == order


def test_a_date_that_may_be_meant_in_two_ways_is_written_in_both() -> None:
    (mention,) = find_dates("02/09/1992")
    assert write_date(mention.date, style="iso") == "1992-09-02"
    assert write_date(mention.date, style="iso month first") == "1992-02-09"
    (sure,) = find_dates("25/09/1992")
    assert write_date(sure.date, style="iso month first") == "1992-09-25"


def test_a_year_before_our_era_is_written_as_people_and_as_xml_schema_do() -> None:
    assert write_date(Date(-44), style="year") == "44 BC"
    assert write_date(Date(-44), style="year-iso") == "-0043"


@pytest.mark.parametrize("text", ["32/01/1999", "room 123", "3,1971 men", "1971%", "a0123b", ""])
def test_what_no_calendar_has_is_no_day(text: str) -> None:
    assert all(mention.date.day is None for mention in find_dates(text))


def test_the_mention_is_where_the_text_says_it() -> None:
    text = "From 1 May 1999 to June 2001."
    assert [text[m.start : m.end] for m in find_dates(text)] == ["1 May 1999", "June 2001"]


def test_a_year_can_be_filled_up_to_a_day() -> None:
    assert write_date(Date(1971), style="padded-filled") == "01 January 1971"
    assert write_date(Date(1971), style="padded") is None


def test_an_unknown_style_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="the known ones are iso"):
        write_date(Date(1971), style="roman")


@given(st.dates(min_value=dt.date(1000, 1, 1)), st.sampled_from(STYLES[:6]))
def test_what_is_written_is_read_back(day: dt.date, style: str) -> None:
    date = Date(day.year, day.month, day.day)
    written = write_date(date, style=style)
    assert written is not None
    assert [mention.date for mention in find_dates(written)] == [date]
