"""What models cost, in US dollars per million tokens: a table with a date, and a file of one's own over it.

Rule: a model that is in neither has no price, and its cost is unknown; it is never taken for free. Prices change
without notice, so the date of the table belongs beside every sum.
"""

import re
import tomllib
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

import msgspec

MILLION = 1_000_000
TABLE = Path(__file__).with_name("prices.toml")

# A release of a model by its date costs what the model costs.
_RELEASE = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$")


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars per million tokens that go in and come out; `cached` for those that the provider read from its cache
    of prompts, `cache_write` for those that it wrote there. Without these two they cost what all input costs.

    Raises ValueError for a price that cannot be; its calls raise nothing.
    """

    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    cache_write: Decimal | None = None

    def __post_init__(self) -> None:
        parts = (self.input, self.output, self.cached, self.cache_write)
        if not all(part is None or (part.is_finite() and part >= 0) for part in parts):
            raise ValueError("a price must be a number that is not negative")

    def cost(
        self, *, input_tokens: int, output_tokens: int, cached_tokens: int = 0, cache_write_tokens: int = 0
    ) -> Decimal:
        """What so many tokens cost, in US dollars; cached and written ones are among those that go in."""
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.cache_write is None else self.cache_write
        plain = input_tokens - cached_tokens - cache_write_tokens
        goes_in = self.input * plain + cached * cached_tokens + written * cache_write_tokens
        return (goes_in + self.output * output_tokens) / MILLION

    def most(self, *, input_tokens: int, output_tokens: int) -> Decimal:
        """What so many tokens cost if the provider writes all of the prompt to its cache, where that costs more."""
        dearest = max(self.input, self.cache_write or self.input)
        return (dearest * input_tokens + self.output * output_tokens) / MILLION

    @property
    def half(self) -> "Price":
        """That of a batch, which OpenAI and Anthropic do at half the price."""
        halved = (None if part is None else part / 2 for part in (self.cached, self.cache_write))
        return Price(self.input / 2, self.output / 2, *halved)


class PriceTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices by the names of models, and the day on which they were true."""

    as_of: date
    models: Mapping[str, Price]

    def price_of(self, name: str) -> Price | None:
        """The price of a model such as `openai:gpt-5-mini`; None where it is not known."""
        return self.models.get(name) or self.models.get(_RELEASE.sub("", name))


@lru_cache(maxsize=8)
def load_prices(own: Path | None = None) -> PriceTable:
    """The table, with the prices of a file of one's own over it."""
    table = _read(TABLE)
    if own is None:
        return table
    mine = _read(own)
    return PriceTable(mine.as_of, {**table.models, **mine.models})


def _read(file: Path) -> PriceTable:
    try:
        with file.open("rb") as content:
            return msgspec.convert(tomllib.load(content, parse_float=Decimal), PriceTable, strict=False)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ValueError(
            f"{file} is no table of prices: {error}. It needs a date, as_of, and under [models] lines such as "
            '"openai:gpt-5-mini" = { input = 0.25, output = 2 }'
        ) from error
