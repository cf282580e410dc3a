"""What calls cost: a table with a date, and the truth about what is not in it."""

from decimal import Decimal

import pytest

from sameas.llm.models import open_model
from sameas.llm.prices import Price, load_prices


def test_a_cost_is_exact():
    price = Price(Decimal("0.25"), Decimal(2))
    assert price.cost(input_tokens=1_000_000, output_tokens=3) == Decimal("0.250006")


def test_the_table_has_a_date_and_every_price_a_provider():
    table = load_prices()
    assert table.as_of.year >= 2026
    assert {name.partition(":")[0] for name in table.models} == {"openai", "anthropic", "google"}


@pytest.mark.parametrize(
    "name", ["openai:gpt-5-mini", "openai:gpt-5-mini-2025-08-07", "anthropic:claude-haiku-4-5-20251001"]
)
def test_a_dated_release_costs_what_its_model_costs(name):
    assert load_prices().price_of(name) is not None


@pytest.mark.parametrize("name", ["ollama:qwen3", "compatible:smollm2", "openai:gpt-5-mini-turbo", "openai:gpt-99"])
def test_a_model_that_is_not_in_the_table_has_no_price(name):
    assert load_prices().price_of(name) is None


def test_own_prices_stand_over_the_table(tmp_path):
    own = tmp_path / "prices.toml"
    lines = ["as_of = 2030-01-01", "[models]", '"compatible:smollm2" = { input = 0.01, output = 0 }']
    own.write_text("\n".join([*lines, '"openai:gpt-5" = { input = 0.5, output = 4 }']))
    table = load_prices(own)
    assert table.price_of("openai:gpt-5") == Price(Decimal("0.5"), Decimal(4))
    assert table.price_of("compatible:smollm2") == Price(Decimal("0.01"), Decimal(0))
    assert table.price_of("openai:gpt-5-mini") == load_prices().price_of("openai:gpt-5-mini")
    assert table.as_of.year == 2030


@pytest.mark.parametrize(
    "content",
    [
        "",
        "as_of = 2030-01-01",
        "as_of = 'soon'\n[models]",
        'as_of = 2030-01-01\n[models]\n"a:b" = { input = -1, output = 0 }',
        'as_of = 2030-01-01\n[models]\n"a:b" = { input = nan, output = 0 }',
        'as_of = 2030-01-01\n[models]\n"a:b" = { in = 1, output = 0 }',
        "\x00",
    ],
)
def test_a_file_that_is_no_table_is_refused_with_what_it_needs(tmp_path, content):
    own = tmp_path / "prices.toml"
    own.write_text(content)
    with pytest.raises(ValueError, match="is no table of prices"):
        load_prices(own)


def test_a_model_knows_its_price_and_takes_another():
    own = Price(Decimal(1), Decimal(1))
    assert open_model("openai:gpt-5-mini", api_key="k").price == load_prices().price_of("openai:gpt-5-mini")
    assert open_model("openai:gpt-5-mini", api_key="k", price=own).price == own
    assert open_model("ollama:qwen3").price is None
