"""Numbers are read exactly, with their units, and written in the style asked for."""

from decimal import Decimal

import pytest

from sameas.extraction.extractors.learning.quantities import Quantity, find_quantities, write_quantity


@pytest.mark.parametrize(
    ("text", "quantity"),
    [
        ("a runway of 2,777 metres", Quantity(Decimal(2777), "metres")),
        ("it cost $2.5 million", Quantity(Decimal(2_500_000), "USD")),
        ("sold for £4bn in", Quantity(Decimal(4_000_000_000), "GBP")),
        ("€1.2m", Quantity(Decimal(1_200_000), "EUR")),
        ("a debt of 180 million euros", Quantity(Decimal(180_000_000), "euros")),
        ("12k people", Quantity(Decimal(12_000), "people")),
        ("3.5km away", Quantity(Decimal("3.5"), "km")),
        ("3,5 km away", Quantity(Decimal("3.5"), "km")),
        ("1 200 of", Quantity(Decimal(1200))),
        ("1'200 of", Quantity(Decimal(1200))),
        ("melts at 60 °C.", Quantity(Decimal(60), "°C")),
        ("20 mg/day", Quantity(Decimal(20), "mg/day")),
        ("two million people", Quantity(Decimal(2_000_000), "people")),
        ("twenty-five of", Quantity(Decimal(25))),
        ("thirty-two people", Quantity(Decimal(32), "people")),
        ("it has 12 islands", Quantity(Decimal(12), "islands")),
        ("a 98 minute film", Quantity(Decimal(98), "minute")),
        ("at -12.5 degrees", Quantity(Decimal("-12.5"), "degrees")),
        ("45% of", Quantity(Decimal(45), "%")),
        ("700 and more", Quantity(Decimal(700))),
        ("it has twelve islands", Quantity(Decimal(12))),
    ],
)
def test_numbers_are_read_with_their_units(text: str, quantity: Quantity) -> None:
    assert [mention.quantity for mention in find_quantities(text)] == [quantity]


@pytest.mark.parametrize(
    ("text", "whole", "number"),
    [
        ("a runway of 2,777 metres", "2,777 metres", "2,777"),
        ("it cost US$ 10.5 billion", "US$ 10.5 billion", "10.5 billion"),
        ("two million people", "two million people", "two million"),
        ("the Boeing 747 flew", "747 flew", "747"),
    ],
)
def test_the_number_is_known_apart_from_its_unit(text: str, whole: str, number: str) -> None:
    (mention,) = find_quantities(text)
    assert text[mention.start : mention.end] == whole
    assert text[mention.number_start : mention.number_end] == number


def test_digits_that_are_part_of_something_are_read() -> None:
    assert [mention.quantity.value for mention in find_quantities("Boeing 747-400")] == [747, 400]


@pytest.mark.parametrize(
    ("style", "written"),
    [
        ("plain", "2777"),
        ("decimal", "2777.0"),
        ("grouped", "2,777"),
        ("scientific", "2.777E3"),
        ("unit", "2777 metres"),
        ("decimal-unit", "2777.0 metres"),
    ],
)
def test_a_number_is_written_in_the_style_asked_for(style: str, written: str) -> None:
    assert write_quantity(Quantity(Decimal(2777), "metres"), style=style) == written


def test_a_style_with_a_unit_needs_one() -> None:
    assert write_quantity(Quantity(Decimal(5)), style="unit") is None


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown number style"):
        write_quantity(Quantity(Decimal(5)), style="roman")
