"""Addresses of models: what people type, and what is refused."""

import pytest

from sameas.llm.address import URLS, parse_address


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google", "ollama"])
def test_a_provider_and_a_name_are_enough(provider):
    address = parse_address(f"{provider}:some-model:20b")
    assert (address.name, address.url) == (f"{provider}:some-model:20b", URLS[provider])


def test_an_address_leads_to_a_model_but_is_no_part_of_its_name():
    here = parse_address("http://localhost:8000/v1/#Qwen/Qwen3-8B")
    there = parse_address("https://models.example/v1#Qwen/Qwen3-8B")
    assert here.name == there.name == "compatible:Qwen/Qwen3-8B"
    assert (here.url, there.url) == ("http://localhost:8000/v1", "https://models.example/v1")


def test_a_gateway_does_not_change_the_name():
    assert parse_address("openai:gpt-5", url="https://gateway.example/v1").name == "openai:gpt-5"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1#m", "http://localhost/v1#m", "http://[::1]:80/v1#m"])
def test_a_model_on_this_machine_is_known_as_such(url):
    assert parse_address(url).is_local
    assert not parse_address("https://models.example/v1#m").is_local


@pytest.mark.parametrize(
    "address",
    ["", "gpt-5", "openai", "openai:", "compatible:x", "mystery:x", "http://host/v1", "http://host/v1#", "openai:a b"],
)
def test_what_names_no_model_is_refused_with_what_would(address):
    with pytest.raises(ValueError, match=r"names no model: use openai:NAME"):
        parse_address(address)


@pytest.mark.parametrize("address", ["http://#m", "http://host:99999/v1#m", "http://host:0/v1#m"])
def test_an_address_without_a_server_is_refused(address):
    with pytest.raises(ValueError, match="no address of a model server"):
        parse_address(address)


@pytest.mark.parametrize(
    "address", ["http://me:canary@host/v1#m", "http://canary@host/v1#m", "http://host/v1?key=canary#m"]
)
def test_a_secret_in_an_address_is_refused_and_not_repeated(address):
    with pytest.raises(ValueError, match="give a key as api_key") as refused:
        parse_address(address)
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize("address", ["ftp://me:canary@host/v1#m", "http://me:canary@host/v1", "http://me:canary@#m"])
def test_a_bad_address_is_shown_without_its_login(address):
    with pytest.raises(ValueError) as refused:
        parse_address(address)
    assert "canary" not in str(refused.value)
