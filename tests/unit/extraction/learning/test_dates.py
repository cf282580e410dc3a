"""Dates are read in every usual form and written in the style asked for."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameas.extraction.learning.dates import STYLES, Date, find_dates, write_date


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("born on 4 July 1971 in", Date(1971, 7, 4)),
        ("born on July 4, 1971.", Date(1971, 7, 4)),
        ("the 4th of July, 1971", Date(1971, 7, 4)),
        ("July 4th 1971", Date(1971, 7, 4)),
        ("on 1971-07-04 at", Date(1971, 7, 4)),
        ("on 1971-07-04T10:00:00Z", Date(1971, 7, 4)),
        ("on 04/07/1971", Date(1971, 7, 4)),
        ("on 04.07.1971", Date(1971, 7, 4)),
        ("on 7/25/1971", Date(1971, 7, 25)),
        ("in Sept. 1971", Date(1971, 9)),
        ("in July of 1971", Date(1971, 7)),
        ("a 1971 film", Date(1971)),
    ],
)
def test_every_usual_form_is_read(text: str, date: Date) -> None:
    assert [mention.date for mention in find_dates(text)] == [date]


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
