"""Dates, numbers and quoted texts as people write them."""

import pytest

from sameas.extraction.extractors.lexicon.dates import XSD, find_dates
from sameas.extraction.extractors.lexicon.quantities import find_quantities
from sameas.extraction.extractors.lexicon.values import find_quotes


@pytest.mark.parametrize(
    ("said", "value", "datatype"),
    [
        ("1 May 1999", "1999-05-01", "date"),
        ("1st of May, 1999", "1999-05-01", "date"),
        ("May 2nd, 2001", "2001-05-02", "date"),
        ("Sept. 3, 2010", "2010-09-03", "date"),
        ("3. Mai 2003", "2003-05-03", "date"),
        ("1er janvier 2000", "2000-01-01", "date"),
        ("15 de marzo de 1987", "1987-03-15", "date"),
        ("2001-02-03", "2001-02-03", "date"),
        ("2001/02/03", "2001-02-03", "date"),
        ("31.12.1999", "1999-12-31", "date"),
        ("5/13/1999", "1999-05-13", "date"),
        ("1999年5月1日", "1999-05-01", "date"),
        ("2001-02-03T10:20:30Z", "2001-02-03T10:20:30Z", "dateTime"),
        ("2001-02-03 10:20", "2001-02-03T10:20:00", "dateTime"),
        ("May 1999", "1999-05", "gYearMonth"),
        ("1999年5月", "1999-05", "gYearMonth"),
        ("1984", "1984", "gYear"),
        ("44 BC", "-0043", "gYear"),
        ("AD 79", "0079", "gYear"),
        ("1 BC", "0000", "gYear"),
        ("4 July", "--07-04", "gMonthDay"),
        ("4-May-1970", "1970-05-04", "date"),
        ("05/14/70", "1970-05-14", "date"),
        ("14/5/21", "2021-05-14", "date"),
        ("4 May '70", "1970-05-04", "date"),
        ("May 4, '70", "1970-05-04", "date"),
        ("fourth of May 1970", "1970-05-04", "date"),
        ("May the twenty-first, 1970", "1970-05-21", "date"),
        ("05/1970", "1970-05", "gYearMonth"),
        ("1990s", "1990s", "string"),
        # Letters that a pattern takes for the same without regard to case.
        ("3 ſept 2010", "2010-09-03", "date"),
        ("3 APRİL 2010", "2010-04-03", "date"),
        ("3 aprıl 2010", "2010-04-03", "date"),
    ],
)
def test_a_date_is_read(said: str, value: str, datatype: str) -> None:
    text = f"It was ({said}) then."
    (found,) = find_dates(text)
    assert (found.value, found.datatype) == (value, XSD + datatype)
    assert text[found.start : found.end] == found.text == said


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3/4/1999", ["1999-04-03"]),
        ("3/4/1999, then 05/14/1970", ["1999-03-04", "1970-05-14"]),
        ("3/4/1999, then 14/05/1970", ["1999-04-03", "1970-05-14"]),
        ("3/4/1999, then 05/14/1970 and 14/05/1970", ["1999-04-03", "1970-05-14", "1970-05-14"]),
    ],
)
def test_a_date_that_can_only_be_month_first_tells_how_its_text_writes_dates(text: str, values: list[str]) -> None:
    assert [date.value for date in find_dates(text)] == values


@pytest.mark.parametrize(
    "said", ["31 February 2000", "2001-13-03", "2001-02-30", "12345", "1.2.3", "we may 5 times", "2000 m2x", "25:61"]
)
def test_what_is_no_date_is_left_alone(said: str) -> None:
    assert not [found for found in find_dates(said) if not found.datatype.endswith("gYear")]


@pytest.mark.parametrize(
    ("said", "value", "unit"),
    [
        ("2,777 metres", "2777", "m"),
        ("$2 million", "2000000", "USD"),
        ("US$ 10.5 billion", "10500000000", "USD"),
        ("3.5 km²", "3.5", "km²"),
        ("1.234.567,89 €", "1234567.89", "EUR"),
        ("3,5 kg", "3.5", "kg"),
        ("45 %", "45", "%"),
        ("-12.5 °C", "-12.5", "°C"),
        ("12,5 Millionen", "12500000", ""),
        ("98 minutes", "98", "min"),
        ("10'000 CHF", "10000", "CHF"),
        ("three", "3", ""),
        ("two hundred", "200", ""),
        ("3,400 people", "3400", "people"),
        ("0.50", "0.5", ""),
        ("US$299m", "299000000", "USD"),
        ("EUR 1.2m", "1200000", "EUR"),
        ("€1.2M", "1200000", "EUR"),
        ("£4bn", "4000000000", "GBP"),
        ("$5k", "5000", "USD"),
        ("€3 tn", "3000000000000", "EUR"),
        ("1.2m euros", "1200000", "EUR"),
        ("12,5 Mio. Euro", "12500000", "EUR"),
        ("299m", "299", "m"),
        ("10 000 kg", "10000", "kg"),
        ("5 mıllıon mıles", "5000000", "mi"),
        ("5 \u212am", "5", "km"),
        ("ſix hundred mıles", "600", "mi"),
        ("ſEK 5 mıo", "5000000", "SEK"),
    ],
)
def test_a_quantity_is_read(said: str, value: str, unit: str) -> None:
    text = f"It has {said}, they say."
    (found,) = find_quantities(text)
    assert (found.value, found.unit) == (value, unit)
    assert text[found.start : found.end] == found.text == said


@pytest.mark.parametrize("said", ["Boeing 747-400", "version 1.2.3", "B52", "10:30am"])
def test_a_number_inside_a_name_is_no_quantity(said: str) -> None:
    assert [found.text for found in find_quantities(said) if found.text in ("400", "3", "52", "30")] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('He said "Hello world," twice', "Hello world"),
        ("the “Hamlet” play", "Hamlet"),
        ("le roman «Les Misérables»", "Les Misérables"),
        ("das Buch „Faust“ ist", "Faust"),
        ("小说《红楼梦》很长", "红楼梦"),
        ("don't say ‘no way’ now", "no way"),
        ("it's called 'Otto's way' now", "Otto's way"),
        ("the motto 'Glass for boys'.", "Glass for boys"),
    ],
)
def test_a_quoted_text_is_read_without_its_marks(text: str, said: str) -> None:
    (found,) = find_quotes(text)
    assert found.text == said
    assert text[found.start : found.end] == said


def test_inches_and_apostrophes_are_no_quotes() -> None:
    assert list(find_quotes("""a 5" by 6" board; it's Bob's""")) == []
    assert list(find_quotes("the workers' union, the owners' club, rock 'n' roll, 'twas the boys' night in '70")) == []


@pytest.mark.parametrize("apart", [1, 47, 48, 49, 95, 96, 97, 200])
def test_dates_and_numbers_are_found_whole_however_far_apart_they_stand(apart: int) -> None:
    text = f"{'x' * apart} September the 1st, 1999 {'x ' * apart}cost 12.5 million square kilometers{' x' * apart}."
    assert [date.value for date in find_dates(text)] == ["1999-09-01"]
    quantities = [(one.value, one.unit) for one in find_quantities(text) if one.unit]
    assert quantities == [("12500000", "km²")]


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("Das Haus hat 61.000 Besucher im Jahr.", "61000", ""),
        ("Cuenta con 15.000 visitantes al año.", "15000", ""),
        ("Das Haus kostet 450.000 € und ist alt.", "450000", "EUR"),
        ("It is 3.141 times the length of the other.", "3.141", ""),
        ("Die Dichte ist 0.125 und bleibt es.", "0.125", ""),
        ("Kaution: 1.560 Euro", "1560", "EUR"),
        ("Kaution: € 1.560, kalt", "1560", "EUR"),
        ("Tank: 2.500 Liter", "2500", "l"),
        ("Altura: 1.800 metros", "1800", "m"),
        ("Höhe: 1.800", "1800", ""),
        ("weight: 2.500 kg", "2.5", "kg"),
        ("The tank holds 2.500 liters of oil.", "2.5", "l"),
    ],
)
def test_one_point_groups_thousands_where_the_text_is_in_a_language_that_writes_so(text, value, unit):
    found = [one for one in find_quantities(text) if any(map(str.isdigit, one.text))]
    assert [(one.value, one.unit) for one in found] == [(value, unit)]
    assert all(text[one.start : one.end] == one.text for one in found)
