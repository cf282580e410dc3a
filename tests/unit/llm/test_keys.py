"""Keys of providers: read in one place, from their usual variables, and shown nowhere."""

import pytest

from sameas.settings import api_key_for, load_settings

CANARY = "sk-canary-0123456789"


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("openai", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("google", "GOOGLE_API_KEY"),
        ("google", "GEMINI_API_KEY"),
        ("ollama", "OLLAMA_API_KEY"),
        ("compatible", "SAMEAS_API_KEY"),
    ],
)
def test_each_provider_has_its_usual_variable(provider, variable):
    assert api_key_for(provider, {variable: CANARY}) == CANARY
    assert api_key_for(provider, {}) is None
    assert api_key_for(provider, {variable: ""}) is None


def test_a_server_of_ones_own_is_never_sent_the_key_of_a_provider():
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"), CANARY)
    assert api_key_for("compatible", keys) is None
    assert api_key_for("openai", {"SAMEAS_API_KEY": CANARY}) is None


def test_keys_are_no_settings_and_are_not_shown(tmp_path):
    settings = load_settings({"SAMEAS_API_KEY": CANARY, "OPENAI_API_KEY": CANARY}, folder=tmp_path)
    assert CANARY not in repr(settings)
    assert CANARY not in repr(settings.shown())


def test_a_file_of_prices_is_a_setting(tmp_path):
    assert load_settings({"SAMEAS_PRICES": "mine.toml"}, folder=tmp_path).prices == "mine.toml"
