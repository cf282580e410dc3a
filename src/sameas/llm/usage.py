"""Whether a server's count of tokens can be true.

Rule: a count is believed unless it is impossible, by bounds that hold for every tokenizer: a token stands for at least
one byte, no vocabulary packs ordinary text many times better than another, and nothing comes out beyond what was
allowed. An impossible count is replaced by our own, input and output together: who errs in one is not trusted with the
other.
"""

import json
from collections.abc import Callable

from sameas.llm.models import Ask, Usage

# Marks around messages, and what a provider adds of its own to have its reply fit a schema.
ADDED_TOKENS = 4_096
# A few marks at the end of a reply may count on top of what was allowed.
END_MARKS = 16
# Vocabularies differ by less than this in how much text a token holds.
PACKING = 8

Count = Callable[[str], int]


def own_usage(ask: Ask, text: str, *, count: Count) -> Usage:
    """The tokens of a call as they are counted here."""
    return Usage(count_input(ask, count=count), count(text) if text else 0, reported=False)


def count_input(ask: Ask, *, count: Count) -> int:
    """The tokens that go in: the messages and the schema."""
    return sum(count(message.content) for message in ask.messages) + count(_schema_text(ask))


def believable(ask: Ask, text: str, *, input_tokens: int, output_tokens: int, count: Count) -> Usage:
    """What was reported, where it can be true; else what is counted here."""
    own = own_usage(ask, text, count=count)
    said = sum(len(message.content.encode("utf-8", "surrogatepass")) for message in ask.messages)
    most_in = said + len(_schema_text(ask).encode()) + ADDED_TOKENS
    # The schema may not be counted by a server that turns it into a grammar.
    least_in = sum(count(message.content) for message in ask.messages) // PACKING
    # A server that overlooks the limit may really say more: then there is more text.
    most_out = max(ask.max_output_tokens, own.output_tokens * PACKING) + END_MARKS
    least_out = own.output_tokens // PACKING
    # Nothing at all went in or came out: nothing was reported.
    is_told = input_tokens > 0 and (output_tokens > 0 or not text)
    if is_told and least_in <= input_tokens <= most_in and least_out <= output_tokens <= most_out:
        return Usage(input_tokens, output_tokens, reported=True)
    return own


def _schema_text(ask: Ask) -> str:
    return json.dumps(ask.schema, separators=(",", ":"), ensure_ascii=False)
