"""HTML to text, with the exact place of every character in the source.

The standard library's tokenizer is used because it tells the offset of each piece of text; tree builders such
as Beautiful Soup and lxml repair the tree and lose it. Scripts, styles and the like are left out; block
elements end lines; a character reference maps to all of its source characters.
"""

# ruff: noqa: SIM905 (word lists and the marks of other scripts are the data here)

import re
from html import unescape
from html.parser import HTMLParser

from sameas.extraction.text.document import Document
from sameas.extraction.text.inputs.assembly import Assembly, SizeMeter

MEDIA_TYPE = "text/html"
_SKIPPED = frozenset("script style template noscript title svg math iframe object canvas select datalist".split())
_PARAGRAPHS = frozenset(
    "p div section article aside main header footer nav h1 h2 h3 h4 h5 h6 ul ol dl table blockquote pre figure form "
    "fieldset hr address details li tr dt".split()
)
_LINES = frozenset("br dd figcaption caption summary option legend".split())
_CELLS = frozenset(("td", "th"))
_BLANKS = re.compile(r"[ \t\n\r\f]+")
_FEED = 1 << 16


def read_html(source: str, *, meter: SizeMeter) -> Document:
    """The text of an HTML page."""
    reader = _Reader(source, meter)
    for at in range(0, len(source), _FEED):
        reader.feed(source[at : at + _FEED])
        meter.tick()
    reader.close()
    return reader.out.document()


class _Reader(HTMLParser):
    def __init__(self, source: str, meter: SizeMeter) -> None:
        super().__init__(convert_charrefs=False)
        self.out = Assembly(meter, media_type=MEDIA_TYPE)
        self._source = source
        self._meter = meter
        self._skipping: list[str] = []
        self._preformatted = 0
        # `getpos` counts lines; the offset of each line turns that into an offset of the source.
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", source))]

    def _at(self) -> int:
        line, column = self.getpos()
        return self._line_starts[line - 1] + column

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._meter.objects()
        if self._skipping:
            if tag == self._skipping[-1]:
                self._skipping.append(tag)
            return
        if tag in _SKIPPED:
            self._skipping.append(tag)
        elif tag == "pre":
            self._preformatted += 1
        self._block(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._skipping:
            self._block(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._skipping:
            if tag == self._skipping[-1]:
                self._skipping.pop()
            return
        if tag == "pre":
            self._preformatted = max(0, self._preformatted - 1)
        self._block(tag)

    def handle_data(self, data: str) -> None:
        if self._skipping:
            self._titled(data)
            return
        at = self._at()
        if self._preformatted:
            self.out.add(data, at=at)
            return
        place = 0
        for blank in _BLANKS.finditer(data):
            self.out.add(data[place : blank.start()], at=at + place)
            self.out.space()
            place = blank.end()
        self.out.add(data[place:], at=at + place)

    def handle_entityref(self, name: str) -> None:
        self._reference(f"&{name}")

    def handle_charref(self, name: str) -> None:
        self._reference(f"&#{name}")

    def _reference(self, said: str) -> None:
        if self._skipping:
            self._titled(unescape(f"{said};"))
            return
        at = self._at()
        if self._source.startswith(";", at + len(said)):
            said += ";"
        text = unescape(said)
        if text.isspace() and text != "\u00a0":
            self.out.space()
        else:
            self.out.add(text.replace("\u00a0", " "), at=at, source_length=len(said), exact=False)

    def _titled(self, text: str) -> None:
        # The title of the page; a drawing may have one of its own.
        if self._skipping == ["title"]:
            self.out.title += text

    def _block(self, tag: str) -> None:
        if tag in _PARAGRAPHS:
            self.out.line_break(blank_lines=1)
        elif tag in _LINES:
            self.out.line_break()
        elif tag in _CELLS:
            self.out.space()
