"""Any supported file to a document. Text is read here; other kinds in a child process that can be stopped."""

import codecs
import mimetypes
import os
import re
from collections.abc import Iterator
from pathlib import Path

from sameas.extraction.text.document import Document
from sameas.extraction.text.inputs import docx, html, markdown, pdf
from sameas.extraction.text.inputs.assembly import InputLimits, SizeMeter
from sameas.extraction.text.inputs.errors import DamagedDocumentError, DocumentLimitError, UnsupportedDocumentError

TEXT = "text/plain"
_BY_SUFFIX = {
    ".txt": TEXT,
    ".text": TEXT,
    ".md": markdown.MEDIA_TYPE,
    ".markdown": markdown.MEDIA_TYPE,
    ".html": html.MEDIA_TYPE,
    ".htm": html.MEDIA_TYPE,
    ".xhtml": html.MEDIA_TYPE,
    ".pdf": pdf.MEDIA_TYPE,
    ".docx": docx.MEDIA_TYPE,
}
SUPPORTED = (TEXT, markdown.MEDIA_TYPE, html.MEDIA_TYPE, pdf.MEDIA_TYPE, docx.MEDIA_TYPE)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s{0,9}=\s{0,9}[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_HEAD = 4096


def readable_files(folder: Path) -> Iterator[Path]:
    """The files of a folder and its folders that can be read, hidden ones and links left out."""
    for place, folders, files in os.walk(folder, onerror=_raise_unless_gone):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for path in (Path(place, name) for name in files if not name.startswith(".")):
            if path.is_symlink() or not path.is_file():
                continue
            try:
                guess_media_type(path.name)
            except UnsupportedDocumentError:
                continue
            yield path


def _raise_unless_gone(error: OSError) -> None:
    # Others may empty a folder while it is looked through, and keep some of it to themselves.
    if not isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError):
        raise error


def guess_media_type(name: str, *, data: bytes = b"") -> str:
    """The kind of a file by its first bytes, or else by its name."""
    if data.startswith(b"%PDF-"):
        return pdf.MEDIA_TYPE
    known = _BY_SUFFIX.get(Path(name).suffix.lower())
    if known:
        return known
    guessed = mimetypes.guess_type(name)[0] or TEXT
    if guessed in SUPPORTED:
        return guessed
    if guessed.startswith("text/"):
        return TEXT
    raise UnsupportedDocumentError(f"{Path(name).name} is {guessed}; give text, Markdown, HTML, PDF or DOCX")


def read_document(path: Path, *, media_type: str | None = None, limits: InputLimits | None = None) -> Document:
    """The document in a file."""
    bounds = limits or InputLimits()
    size = path.stat().st_size
    if size > bounds.file_bytes:
        raise DocumentLimitError(f"{size} bytes", limit=bounds.file_bytes, unit="bytes")
    return read_bytes(path.read_bytes(), name=path.name, media_type=media_type, limits=bounds)


def read_bytes(
    data: bytes, *, name: str = "", media_type: str | None = None, limits: InputLimits | None = None
) -> Document:
    """The document in these bytes; anything but plain text is read in a child process."""
    bounds = limits or InputLimits()
    kind = media_type or guess_media_type(name or "text.txt", data=data)
    if len(data) > bounds.file_bytes:
        raise DocumentLimitError(f"{len(data)} bytes", limit=bounds.file_bytes, unit="bytes")
    if kind == TEXT:
        return convert(data, media_type=kind, limits=bounds)
    from sameas.extraction.text.inputs.isolation import read_apart

    return read_apart(data, media_type=kind, limits=bounds)


def convert(data: bytes, *, media_type: str, limits: InputLimits) -> Document:
    """The document in these bytes, read in this process."""
    meter = SizeMeter(limits)
    match media_type:
        case pdf.MEDIA_TYPE:
            return pdf.read_pdf(data, meter=meter)
        case docx.MEDIA_TYPE:
            return docx.read_docx(data, meter=meter)
        case html.MEDIA_TYPE:
            return html.read_html(decode(data, html_page=True), meter=meter)
        case markdown.MEDIA_TYPE:
            return markdown.read_markdown(decode(data), meter=meter)
        case "text/plain":
            text = decode(data)
            meter.text(len(text))
            return Document(text, media_type=TEXT)
        case _:
            raise UnsupportedDocumentError(f"{media_type} is not read; the kinds are {', '.join(SUPPORTED)}")


def decode(data: bytes, *, html_page: bool = False) -> str:
    """The characters of a text file: by its byte order mark, a page's own declaration, or UTF-8."""
    encoding = next((name for mark, name in _BOMS if data.startswith(mark)), "")
    if not encoding and html_page and (declared := _META_CHARSET.search(data[:_HEAD])):
        encoding = declared[1].decode("ascii")
    try:
        return data.decode(encoding or "utf-8")
    except (UnicodeDecodeError, LookupError) as error:
        raise DamagedDocumentError(f"the text is not {encoding or 'UTF-8'}: save it as UTF-8 ({error})") from error
