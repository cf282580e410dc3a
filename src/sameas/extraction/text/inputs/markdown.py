"""Markdown to text, each piece with its place in the source.

markdown-it tells the lines of a block but not the columns of its words; the words are found again in those
lines, in order. Where an escape or a character reference changed them, the whole block's place is given
instead.
"""

from typing import TYPE_CHECKING

from sameas.extraction.text.document import Document
from sameas.extraction.text.inputs.assembly import Assembly, SizeMeter
from sameas.extraction.text.inputs.errors import MissingExtraError

if TYPE_CHECKING:
    from markdown_it.token import Token

MEDIA_TYPE = "text/markdown"
_OWN_PARAGRAPH = frozenset(("paragraph_open", "heading_open", "blockquote_open", "bullet_list_open", "table_open"))
_CODE = frozenset(("fence", "code_block"))
_WORDS = frozenset(("text", "code_inline"))


def read_markdown(source: str, *, meter: SizeMeter) -> Document:
    """The text of a Markdown document: no marks, no HTML, code as it stands."""
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise MissingExtraError("markdown-it-py", kind="Markdown") from error
    out = Assembly(meter, media_type=MEDIA_TYPE)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tight = 0
    heading = False
    # The parser counts lines by "\n" after turning CR and CRLF into it: the same lines as here.
    for token in MarkdownIt("commonmark").enable("table").parse(source):
        meter.objects()
        meter.tick()
        heading = token.type == "heading_open" or (heading and token.type == "inline")
        if token.type == "list_item_open":
            tight += 1
            # Its mark is gone: without a blank line nothing would part it from the item before.
            out.line_break(blank_lines=1)
        elif token.type == "list_item_close":
            tight -= 1
        elif token.type == "tr_open":
            out.line_break(blank_lines=1)
        elif token.type in ("td_open", "th_open"):
            out.space()
        elif token.type in _OWN_PARAGRAPH and not (tight and token.hidden):
            out.line_break(blank_lines=0 if tight else 1)
        elif token.type in _CODE and token.map:
            out.line_break(blank_lines=1)
            _place(out, token.content.rstrip("\n"), source, starts, token.map, starts[token.map[0]])
        elif token.type == "inline" and token.map:
            if heading and not out.title:
                out.title = "".join(child.content for child in token.children or () if child.type in _WORDS)
            _inline(out, token, source, starts)
    return out.document()


def _inline(out: Assembly, token: "Token", source: str, starts: list[int]) -> None:
    lines = token.map or [0, 0]
    cursor = starts[lines[0]]
    for child in token.children or ():
        if child.type in ("softbreak", "hardbreak"):
            out.space() if child.type == "softbreak" else out.line_break()
        elif child.type in ("text", "code_inline") or child.type == "image":
            cursor = _place(out, child.content, source, starts, lines, cursor)


def _place(out: Assembly, text: str, source: str, starts: list[int], lines: list[int], cursor: int) -> int:
    """Write the words, found again between cursor and the end of the block; where the next search begins."""
    end = starts[min(lines[1], len(starts) - 1)]
    found = source.find(text, cursor, end) if text else -1
    if found >= 0:
        out.add(text, at=found)
        return found + len(text)
    for number, line in enumerate(text.split("\n")):
        if number:
            out.line_break()
        found = source.find(line, cursor, end) if line else -1
        if found >= 0:
            out.add(line, at=found)
            cursor = found + len(line)
        else:
            out.add(line, at=cursor, source_length=max(0, end - cursor), exact=False)
    return cursor
