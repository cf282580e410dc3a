"""Files become text, every character with its place in the source; traps cost a child process and no more."""

import io
import sys
import zipfile
from pathlib import Path

import docx
import pytest

from sameas.extraction.text.document import Document, Span
from sameas.extraction.text.inputs import (
    DamagedDocumentError,
    DocumentLimitError,
    InputLimits,
    MissingExtraError,
    UnsupportedDocumentError,
    guess_media_type,
    read_bytes,
    read_document,
)
from sameas.extraction.text.inputs.assembly import SizeMeter
from sameas.extraction.text.inputs.html import read_html
from sameas.extraction.text.inputs.markdown import read_markdown
from sameas.extraction.text.inputs.reader import convert, decode

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PDF = "application/pdf"
LIMITS = InputLimits()


def meter() -> SizeMeter:
    return SizeMeter(InputLimits())


def source_of(document: Document, source: str, words: str) -> str:
    """What stands in the source where these words of the text come from."""
    start = document.normalized.index(words)
    (place,) = document.places(Span(start, start + len(words)))
    return source[place.start : place.end]


PAGE = """<!doctype html><html><head><title>No</title><style>p {}</style></head><body>
<h1>Acme &amp; Co</h1><p>Alice <b>Stone</b> works\r\n for   Acme&nbsp;Ltd &#8212; since
1999.</p><script>bad("Alice")</script><ul><li>one<li>東京 👩\u200d🚀</ul><pre>a  b</pre>
<table><tr><td>x<td>y</table><p>Caf&eacute; last</body></html>"""


def test_html_text_is_what_a_reader_sees() -> None:
    text = read_html(PAGE, meter=meter()).normalized
    assert (
        text
        == "Acme & Co\n\nAlice Stone works for Acme Ltd — since 1999.\n\none\n\n東京 👩\u200d🚀\n\na  b\n\nx y\n\nCafé last"
    )


@pytest.mark.parametrize(
    ("words", "source"),
    [
        ("Stone", "Stone"),
        ("東京 👩\u200d🚀", "東京 👩\u200d🚀"),
        ("Alice Stone works", "Alice <b>Stone</b> works"),
        ("Acme Ltd", "Acme&nbsp;Ltd"),
        ("Café", "Caf&eacute;"),
        ("—", "&#8212;"),
    ],
)
def test_html_words_are_found_in_the_source(words: str, source: str) -> None:
    assert source_of(read_html(PAGE, meter=meter()), PAGE, words) == source


NOTES = """# Report: *Acme*\r
\r
Alice **Stone** works\r
for [Acme](http://acme.example "x") &amp; others \\* now.\r
\r
- first `item`\r
- second\r
\r
> A quote.\r
\r
| a | b |\r
|---|---|\r
| c | d |\r
\r
```python\r
code = 1\r
more = 2\r
```\r
<div>html</div>\r
"""


def test_markdown_text_has_no_marks() -> None:
    text = read_markdown(NOTES, meter=meter()).normalized
    assert "Alice Stone works for Acme & others * now." in text
    assert "first item\n\nsecond" in text
    assert "code = 1\nmore = 2" in text
    assert "http" not in text
    assert "<div>" not in text


@pytest.mark.parametrize("words", ["Acme", "Stone", "second", "item", "A quote.", "d", "code = 1"])
def test_markdown_words_are_found_in_the_source(words: str) -> None:
    document = read_markdown(NOTES, meter=meter())
    assert source_of(document, NOTES, words) == words


def test_a_docx_is_read_by_paragraph(tmp_path: Path) -> None:
    made = docx.Document()
    made.add_heading("Report", 1)
    made.add_paragraph("Alice Stone works for Acme.")
    table = made.add_table(1, 2)
    table.cell(0, 0).text = "left"
    table.cell(0, 1).text = "right"
    made.add_paragraph("The end.")
    made.save(str(tmp_path / "a.docx"))
    document = read_document(tmp_path / "a.docx")
    assert convert((tmp_path / "a.docx").read_bytes(), media_type=DOCX, limits=LIMITS) == document
    assert document.normalized == "Report\n\nAlice Stone works for Acme.\nleft\nright\n\nThe end."
    start = document.normalized.index("Stone")
    (place,) = document.places(Span(start, start + 5))
    assert (place.unit, place.part, place.start, place.end) == ("paragraph", 2, 6, 11)


def pdf_of(*pages: str) -> bytes:
    """A small PDF with a line of text on each page, written by hand."""
    bodies = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{' '.join(f'{4 + 2 * n} 0 R' for n in range(len(pages)))}] >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        bodies.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        stream = f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode()
        bodies.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(bodies, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(bodies) + 1))
    for place in places:
        out.write(b"%010d 00000 n \n" % place)
    out.write(b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(bodies) + 1, start))
    return out.getvalue()


def test_a_pdf_is_read_by_page() -> None:
    document = read_bytes(pdf_of("Alice Stone", "works for Acme"), name="x.bin")
    assert document.normalized == "Alice Stone\n\nworks for Acme"
    start = document.normalized.index("Acme")
    (place,) = document.places(Span(start, start + 4))
    assert (place.unit, place.part, place.start, place.end) == ("page", 2, 10, 14)


def test_a_span_over_two_pages_has_two_places() -> None:
    document = convert(pdf_of("Alice Stone", "works for Acme"), media_type=PDF, limits=LIMITS)
    places = document.places(Span(6, 18))
    assert [(place.part, place.start, place.end) for place in places] == [(1, 6, 11), (2, 0, 5)]


def test_too_many_pages_are_refused() -> None:
    with pytest.raises(DocumentLimitError, match="3 pages"):
        convert(pdf_of("a", "b", "c"), media_type=PDF, limits=InputLimits(pages=2))


@pytest.mark.parametrize("media_type", [PDF, DOCX])
@pytest.mark.parametrize("data", [b"", b"%PDF-1.4 rubbish", b"PK\x03\x04 rubbish", b"\x00" * 100])
def test_rubbish_is_refused_as_damaged(media_type: str, data: bytes) -> None:
    with pytest.raises(DamagedDocumentError):
        convert(data, media_type=media_type, limits=LIMITS)


def zip_of(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def test_a_zip_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = zip_of({"word/document.xml": b"\x00" * 5_000_000})
    assert len(bomb) < 20_000
    with pytest.raises(DocumentLimitError, match="unpacked"):
        convert(bomb, media_type=DOCX, limits=InputLimits(decompressed_bytes=1_000_000))


def test_entities_in_a_docx_are_refused() -> None:
    trap = zip_of({"word/document.xml": b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'})
    with pytest.raises(DamagedDocumentError, match="document type"):
        convert(trap, media_type=DOCX, limits=LIMITS)


def test_an_error_crosses_the_process_with_its_message() -> None:
    with pytest.raises(DocumentLimitError, match="3 pages"):
        read_bytes(pdf_of("a", "b", "c"), name="a.pdf", limits=InputLimits(pages=2))


def test_a_reader_that_needs_too_much_memory_is_stopped() -> None:
    with pytest.raises((DocumentLimitError, DamagedDocumentError), match="memory"):
        read_bytes(b"<p>" + b"a b " * 4_000_000, name="a.html", limits=InputLimits(memory_bytes=120_000_000))


def test_too_much_text_and_too_large_a_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentLimitError, match="characters"):
        read_bytes(b"word " * 100, name="a.txt", limits=InputLimits(characters=50))
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 100)
    with pytest.raises(DocumentLimitError, match="100 bytes"):
        read_document(path, limits=InputLimits(file_bytes=99))


def test_a_deep_page_is_read_without_recursion() -> None:
    text = read_html("<div>" * 50_000 + "deep" + "</div>" * 50_000, meter=meter()).normalized
    assert text == "deep"


@pytest.mark.parametrize("before", range(65_525, 65_540))
def test_html_is_exact_where_the_source_is_cut_for_reading(before: int) -> None:
    page = "<p>" + "x" * (before - 3) + " A&amp;B <b>Stone</b> end"
    document = read_html(page, meter=meter())
    assert document.normalized == "x" * (before - 3) + " A&B Stone end"
    assert source_of(document, page, "A&B Stone") == "A&amp;B <b>Stone"


def test_parts_that_are_no_text_are_left_out() -> None:
    page = "<title>T</title><p>a<br/>b<svg><svg></svg>x</svg><hr/>c &copy d&zwnj;e &#x20;f<iframe>g</iframe>"
    assert read_html(page, meter=meter()).normalized == "a\nb\n\nc © d\u200ce f"


def test_too_many_elements_are_refused() -> None:
    with pytest.raises(DocumentLimitError, match="objects"):
        read_html("<p>" * 1000, meter=SizeMeter(InputLimits(objects=100)))


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, media_type in (("pypdf", PDF), ("docx", DOCX), ("markdown_it", "text/markdown")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingExtraError, match=r"sameas\[documents\]"):
            convert(b"x", media_type=media_type, limits=LIMITS)


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a.TXT", "text/plain"),
        ("a.md", "text/markdown"),
        ("a.htm", "text/html"),
        ("a.docx", DOCX),
        ("notes", "text/plain"),
        ("data.csv", "text/plain"),
    ],
)
def test_the_kind_of_a_file_is_told_by_its_name(name: str, media_type: str) -> None:
    assert guess_media_type(name) == media_type


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UnsupportedDocumentError, match=r"photo\.png"):
        guess_media_type("photo.png")
    with pytest.raises(UnsupportedDocumentError):
        convert(b"", media_type="image/png", limits=LIMITS)


@pytest.mark.parametrize(
    ("data", "page", "text"),
    [
        ("héllo".encode(), False, "héllo"),
        ("héllo".encode("utf-8-sig"), False, "héllo"),
        ("héllo".encode("utf-16"), False, "héllo"),
        (b'<meta charset="latin-1">h\xe9llo', True, '<meta charset="latin-1">héllo'),
    ],
)
def test_a_text_says_how_it_is_encoded(data: bytes, page: bool, text: str) -> None:
    assert decode(data, html_page=page) == text


def test_a_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(DamagedDocumentError, match="UTF-8"):
        decode(b"h\xe9llo")


def test_limits_must_make_sense() -> None:
    with pytest.raises(ValueError, match="above zero"):
        InputLimits(pages=0)
