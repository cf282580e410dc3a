"""Whether a server's count of tokens can be true.

Rule: a count is believed unless it is impossible, by bounds that hold for every tokenizer: a token stands for at least
one byte, and on the average of a text for no more than a few words; nothing comes out beyond what was allowed. The
bounds need no tokenizer, so that a reply costs no count. An impossible count is replaced by our own, input and output
together: who errs in one is not trusted with the other.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from sameas.llm.models import Ask, Usage

# Marks around messages, and what a provider adds of its own to have its reply fit a schema.
ADDED_TOKENS = 4_096
# A few marks at the end of a reply may count on top of what was allowed.
END_MARKS = 16
# The best vocabularies hold four to five bytes of prose in a token.
MOST_BYTES = 40

Count = Callable[[str], int]


def own_usage(ask: Ask, text: str, *, count: Count) -> Usage:
    """The tokens of a call as they are counted here."""
    return Usage(count_input(ask, count=count), count(text) if text else 0, reported=False)


def count_input(ask: Ask, *, count: Count) -> int:
    """The tokens that go in: the messages and the schema."""
    return sum(count(message.content) for message in ask.messages) + count(schema_text(ask.schema))


def believable(
    ask: Ask,
    text: str,
    *,
    input_tokens: int,
    output_tokens: int,
    count: Count,
    cached_tokens: int = 0,
    cache_write_tokens: int = 0,
) -> Usage:
    """What was reported, where it can be true; else what is counted here."""
    prompt_bytes = sum(_size(message.content) for message in ask.messages)
    # The schema may not be counted by a server that turns it into a grammar.
    can_go_in = range(
        max(1, prompt_bytes // MOST_BYTES), prompt_bytes + _size(schema_text(ask.schema)) + ADDED_TOKENS + 1
    )
    # A server that overlooks the limit may really say more: then there is more text.
    least, most = -(-_size(text) // MOST_BYTES), max(ask.max_output_tokens, _size(text)) + END_MARKS
    if input_tokens in can_go_in and least <= output_tokens <= most:
        # What of the prompt came from a cache is believed as far as it can be.
        cached = min(max(0, cached_tokens), input_tokens)
        written = min(max(0, cache_write_tokens), input_tokens - cached)
        return Usage(input_tokens, output_tokens, reported=True, cached_tokens=cached, cache_write_tokens=written)
    return own_usage(ask, text, count=count)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def schema_text(schema: Mapping[str, Any]) -> str:
    """A schema as compact JSON, its parts in the order in which it names them."""
    return msgspec.json.encode(schema).decode()
