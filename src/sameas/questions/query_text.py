"""The text of a query, looked at before it is run: what kind it is, and that it does nothing but read.

Rule: the parser of the store has the last word on what SPARQL is; here its words are told apart from names, strings,
IRIs and comments, so that a word inside of one is never taken for a command.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from sameas.questions.errors import QueryError

_TOKEN = re.compile(
    r"(?P<comment>#[^\n\r]*)"
    r'|(?P<string>"""(?:[^"\\]|\\.|"(?!""))*"""'
    r"|'''(?:[^'\\]|\\.|'(?!''))*'''"
    r'|"(?:[^"\\\n\r]|\\.)*"'
    r"|'(?:[^'\\\n\r]|\\.)*')"
    r"|(?P<iri><[^<>\"{}|^`\\\x00-\x20]*>)"
    r"|(?P<variable>[?$]\w+)"
    # Bounded: a long run of letters and dots without a colon would be read again from each of them.
    r"|(?P<name>[^\W\d_][\w.-]{0,127}(?<!\.):[\w:%\\.-]*|:[\w:%\\.-]*|_:[\w.-]+)"
    r"|(?P<word>@?[^\W\d_][\w]*)"
    r"|(?P<number>\d[\d.eE]*)"
    r"|(?P<sign>\S)",
    re.DOTALL,
)
_FORMS = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
_WRITES = frozenset(("INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY"))
_LONGEST = 100_000


class Word(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


class ReadQuery(NamedTuple):
    """A query in its parts. `form` is SELECT, ASK, CONSTRUCT or DESCRIBE; `body` the braces of its WHERE clause."""

    text: str
    form: str
    head: str
    """What is before the form: prefixes and the base."""
    body: str
    words: tuple[Word, ...]

    @property
    def iris(self) -> list[str]:
        return [word.text[1:-1] for word in self.words if word.kind == "iri"]


def read_query(text: str) -> ReadQuery:
    """The parts of a query; raises QueryError where it is none, or could do more than read."""
    if len(text) > _LONGEST:
        raise QueryError(f"the query has {len(text)} characters; at most {_LONGEST} are read")
    if "\x00" in text:
        raise QueryError("the query has a NUL character in it")
    words = tuple(_words(text))
    form = _form(words)
    if any(_may_ask_elsewhere(word) for word in words):
        raise QueryError(
            "SERVICE asks another server; a query reads this collection only. No prefix may have that word in it"
        )
    where = next((number for number in range(form, len(words)) if words[number].text == "{"), None)
    body = "" if where is None else _braces(text, words, where)
    if words[form].text.upper() == "CONSTRUCT":
        body = _where_of_construct(text, words, form) or body
    start = words[form].start
    return ReadQuery(text, words[form].text.upper(), text[:start], body, words)


def _words(text: str) -> Iterator[Word]:
    for found in _TOKEN.finditer(text):
        if found.lastgroup == "sign" and found[0] in "\"'":
            raise QueryError("a string of the query is not closed")
        if found.lastgroup != "comment":
            yield Word(str(found.lastgroup), found[0], found.start(), found.end())


def _may_ask_elsewhere(word: Word) -> bool:
    """Whether SERVICE may be in it: the store's parser wants no blank before or after, as in `trueSERVICE:x`."""
    return word.kind in ("word", "name") and "service" in word.text.partition(":")[0].casefold()


def stated_by_query(query: ReadQuery) -> str:
    """A constant that the rows of a query would show though no graph holds it; empty where there is none."""
    words = query.words
    for number, word in enumerate(words):
        said = word.text.upper() if word.kind == "word" else ""
        if said == "SELECT":
            part = _until(words, number + 1, closing="", stops=("{", "WHERE", "FROM"))
        elif said == "BIND":
            part = _until(words, number + 1, closing=")")
        elif said == "VALUES":
            part = [one for one in _until(words, number + 1, closing="}") if one.kind not in ("iri", "name")]
        else:
            continue
        for before, one, after in zip([word, *part], part, [*part[1:], word], strict=False):
            is_function = one.kind in ("iri", "name") and after.text == "("
            is_separator = one.kind == "string" and before.text == "="
            is_truth = one.kind == "word" and one.text.casefold() in ("true", "false")
            if is_truth or (one.kind in ("string", "number", "iri", "name") and not is_function and not is_separator):
                return one.text
    return ""


def _until(words: tuple[Word, ...], start: int, *, closing: str, stops: tuple[str, ...] = ()) -> list[Word]:
    """The words from here to where the first bracket is closed, or to a stop outside of brackets."""
    found: list[Word] = []
    depth = 0
    for word in words[start:]:
        if depth == 0 and word.text.upper() in stops:
            break
        found.append(word)
        if word.kind == "sign":
            depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(word.text, 0)
            if depth == 0 and word.text == closing:
                break
    return found


def _form(words: tuple[Word, ...]) -> int:
    for number, word in enumerate(words):
        said = word.text.upper()
        if word.kind != "word":
            continue
        if said in _FORMS:
            return number
        if said in _WRITES or said == "WITH":
            raise QueryError(f"{said} changes data; a query only reads: SELECT, ASK, CONSTRUCT or DESCRIBE")
        if said not in ("PREFIX", "BASE"):
            break
    raise QueryError("the query does not begin with SELECT, ASK, CONSTRUCT or DESCRIBE")


def _where_of_construct(text: str, words: tuple[Word, ...], form: int) -> str:
    for number in range(form, len(words) - 1):
        if words[number].kind == "word" and words[number].text.upper() == "WHERE" and words[number + 1].text == "{":
            return _braces(text, words, number + 1)
    return ""


def _braces(text: str, words: tuple[Word, ...], opening: int) -> str:
    depth = 0
    for word in words[opening:]:
        depth += {"{": 1, "}": -1}.get(word.text, 0) if word.kind == "sign" else 0
        if depth == 0:
            return text[words[opening].start : word.end]
    raise QueryError("a brace of the query is not closed")
