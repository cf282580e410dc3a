"""What a person types to name a model, taken apart: `openai:gpt-5-mini`, `http://localhost:8000/v1#qwen3`.

Rule: the name of a model is its identity in keys, so an address leads to it but is no part of it. Secrets are refused
here: a key goes into `api_key`, which nothing prints.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args
from urllib.parse import urlsplit

import msgspec

Provider: TypeAlias = Literal["openai", "anthropic", "google", "ollama", "compatible"]

PROVIDERS: tuple[Provider, ...] = get_args(Provider)
# Where each provider answers, unless told otherwise.
URLS: Mapping[Provider, str] = MappingProxyType(
    {
        "openai": "https://api.openai.com/v1",
        "anthropic": "https://api.anthropic.com",
        "google": "https://generativelanguage.googleapis.com",
        "ollama": "http://127.0.0.1:11434/v1",
    }
)
# They answer nobody without a key.
NEED_KEYS: frozenset[Provider] = frozenset({"openai", "anthropic", "google"})

# They answer a batch of questions within a day; so do some servers on OpenAI's interface.
TAKE_BATCHES: frozenset[Provider] = frozenset({"openai", "anthropic", "compatible"})

_FORMS = "openai:NAME, anthropic:NAME, google:NAME, ollama:NAME or http://host:port/v1#NAME"
_LOOPBACK = ("127.", "localhost", "::1")


class ModelAddress(msgspec.Struct, frozen=True):
    """A model and where it is."""

    provider: Provider
    model: str
    url: str

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}"

    @property
    def host(self) -> str:
        """Host and port, without what a URL may hold of credentials."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine, where no proxy may come between."""
        return (urlsplit(self.url).hostname or "").startswith(_LOOPBACK)

    @property
    def is_own(self) -> bool:
        """Whether it is a server of one's own, such as Ollama or llama.cpp, and not a provider's account."""
        return self.provider == "ollama" or (self.provider == "compatible" and self.is_local)


def parse_address(address: str, *, url: str | None = None) -> ModelAddress:
    """Take an address apart; `url` leads to the provider by another way, such as a gateway."""
    text = address.strip()
    scheme, colon, model = text.partition(":")
    if scheme in ("http", "https"):
        if url is not None:
            raise ValueError("an address with http:// says where the model is: leave the url out")
        text, _, model = text.partition("#")
        return ModelAddress("compatible", _checked_name(model, address), _checked_url(text))
    providers: Mapping[str, Provider] = {known: known for known in URLS}
    provider = providers.get(scheme)
    if provider is None or not colon:
        raise ValueError(f"{hidden(address)!r} names no model: use {_FORMS}")
    return ModelAddress(provider, _checked_name(model, address), _checked_url(url or URLS[provider]))


def hidden(address: str) -> str:
    """An address without what may be a secret in it, for messages."""
    head, at, tail = address.rpartition("@")
    return f"{head.partition('://')[0]}://***@{tail}" if at and "://" in head else address


def _checked_name(model: str, address: str) -> str:
    if not model or any(character.isspace() or not character.isprintable() for character in model):
        raise ValueError(f"{hidden(address)!r} names no model: use {_FORMS}")
    return model


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
        parts = urlsplit("")
    if not is_usable:
        raise ValueError(f"{hidden(url)!r} is no address of a model server: it must be like http://host:port/v1")
    if parts.username or parts.password or parts.query:
        raise ValueError(f"{parts.hostname}: the address of a model must hold no login or query; give a key as api_key")
    return url.rstrip("/")
