"""A strict reader of Cypher's tokens: what is not one of them, or is not ended, is an error."""

import re
from typing import NamedTuple


class Token(NamedTuple):
    """A word, a number, a quoted name, a string (unescaped) or a sign."""

    kind: str
    text: str


_TOKEN = re.compile(
    r"(?P<blank>[ \n]+)|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>\d+(?:\.\d+)?)|(?P<name>`[A-Za-z0-9_]+`)"
    r"|(?P<string>'(?:[^'\\\x00-\x1f\x7f-\x9f\u2028\u2029]|\\(?:[\\'nrt]|u[0-9A-F]{4}))*')"
    r"|(?P<sign>->|[()\[\]{}:,.=;<>-])"
)
_ESCAPE = re.compile(r"\\(u([0-9A-F]{4})|.)")
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'"}


def tokenize(text: str) -> list[Token]:
    """All tokens of a text."""
    tokens: list[Token] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"not Cypher at {place}: {text[place : place + 30]!r}")
        place = match.end()
        kind = str(match.lastgroup)
        if kind == "string":
            said = _ESCAPE.sub(lambda one: chr(int(one[2], 16)) if one[2] else _PLAIN[one[1]], match[0][1:-1])
            tokens.append(Token(kind, said))
        elif kind != "blank":
            tokens.append(Token(kind, match[0]))
    return tokens
