"""What models cost, in US dollars per million tokens.

Rule: a model that is not in the table has no price, and its cost is unknown; it is never taken for free.
"""

from decimal import Decimal

import msgspec

MILLION = 1_000_000


class Price(msgspec.Struct, frozen=True):
    """US dollars per million tokens that go in and come out."""

    input: Decimal
    output: Decimal

    def __post_init__(self) -> None:
        if not (self.input >= 0 and self.output >= 0):
            raise ValueError("a price must not be negative")

    def cost(self, *, input_tokens: int, output_tokens: int) -> Decimal:
        """What so many tokens cost, in US dollars."""
        return (self.input * input_tokens + self.output * output_tokens) / MILLION
