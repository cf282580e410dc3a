"""Numbers are read exactly, with their units, and written in the style asked for."""

from decimal import Decimal

import pytest

from sameas.extraction.learning.quantities import Quantity, find_quantities, write_quantity


@pytest.mark.parametrize(
    ("text", "quantity"),
    [
        ("a runway of 2,777 metres", Quantity(Decimal(2777), "metres")),
        ("it cost $2.5 million", Quantity(Decimal("2500000.0"))),
        ("3.5km away", Quantity(Decimal("3.5"), "km")),
        ("a 98 minute film", Quantity(Decimal(98), "minute")),
        ("at -12.5 degrees", Quantity(Decimal("-12.5"), "degrees")),
        ("45% of", Quantity(Decimal(45))),
        ("700 and more", Quantity(Decimal(700))),
        ("it has twelve islands", Quantity(Decimal(12))),
    ],
)
def test_numbers_are_read_with_their_units(text: str, quantity: Quantity) -> None:
    assert [mention.quantity for mention in find_quantities(text)] == [quantity]


@pytest.mark.parametrize(
    ("style", "written"),
    [
        ("plain", "2777"),
        ("decimal", "2777.0"),
        ("grouped", "2,777"),
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
