"""What the arguments of `extract` stand for: files, patterns of files, standard input, or a text itself.

Rule: an argument that is a file is that file. One with blanks, or with the full stop of a script without blanks, is
a text; everything else was meant as a file and is an error if there is none.
"""

from __future__ import annotations

import codecs
import glob
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import msgspec

from sameas.cli.errors import CliError, ExitCode
from sameas.extraction.text.document import Document, readable_path

_PATTERN = re.compile(r"[*?\[]")
_SENTENCE = re.compile(r"\s|[。！？｡]")  # noqa: RUF001
_FILE_LIKE = re.compile(r"[^\s]\.(?:txt|text|md|markdown|html?|xhtml|pdf|docx)\Z", re.IGNORECASE)
STDIN = "-"
# Text files above this are read in pieces, so that memory does not follow their size.
LONG = 16 * 1024 * 1024
_BLOCK = 1 << 20
# Enough to see a byte order mark, or that it is a PDF.
_BEGIN = 5


class Source(msgspec.Struct, frozen=True):
    """A document to be read: a file, or a text that is already there. `error` says why it cannot be."""

    name: str
    path: Path | None = None
    text: str = ""
    error: str = ""


def find_sources(arguments: Sequence[str]) -> list[Source]:
    """The documents that the arguments name, in order, each once."""
    found: dict[str, Source] = {}
    texts = 0
    for argument in arguments:
        if argument == STDIN:
            found.setdefault(STDIN, Source("stdin"))
        elif (path := _existing(argument)) is not None:
            files = _files_in(path) if path.is_dir() else [path]
            if not files:
                found.setdefault(str(path), Source(str(path), error=f"{path} holds no file that can be read"))
            for file in files:
                found.setdefault(str(file), Source(readable_path(file), path=file))
        elif _PATTERN.search(argument) and (paths := sorted(glob.glob(argument, recursive=True))):  # noqa: PTH207
            for each in paths:
                if Path(each).is_file():
                    found.setdefault(each, Source(readable_path(each), path=Path(each)))
        elif _SENTENCE.search(argument) and not _FILE_LIKE.search(argument):
            texts += 1
            found.setdefault(f"text {argument}", Source(f"text {texts}", text=argument))
        elif _PATTERN.search(argument):
            error = f"no file fits {argument!r}. Check the pattern and the folder"
            found.setdefault(argument, Source(argument, error=error))
        else:
            error = f"{argument!r} is not a file. Give a file, '-' for standard input, or a sentence in quotes"
            found.setdefault(argument, Source(argument, error=error))
    sources = list(found.values())
    if not sources:
        raise CliError("there is no document", todo="Give files, '-' or a text in quotes", code=ExitCode.USAGE)
    # One bad document of many does not cost the others: it says so when it is read.
    if all(source.error for source in sources):
        raise CliError(sources[0].error)
    return sources


def _files_in(folder: Path) -> list[Path]:
    """The files of a folder and its folders that can be read, hidden ones left out."""
    from sameas.extraction.text.inputs.reader import readable_files

    return sorted(readable_files(folder))


def read_source(source: Source) -> Document | Iterator[str]:
    """A document, or the pieces of a long text; PDF, DOCX, HTML and Markdown become text."""
    from sameas.extraction.text.inputs.reader import TEXT, decode, guess_media_type, read_document

    if source.error:
        raise CliError(source.error)
    if source.path is not None:
        path = source.path
        if path.stat().st_size > LONG and guess_media_type(path.name) == TEXT:
            with path.open("rb") as file:
                begin = file.read(_BEGIN)
            if _is_utf8(begin):
                return _file_pieces(path)
        document = read_document(path)
    elif source.text:
        document = Document(source.text)
    else:
        begin = sys.stdin.buffer.read(LONG + 1)
        if len(begin) > LONG and _is_utf8(begin):
            return _pieces(begin, sys.stdin.buffer, "standard input")
        document = Document(decode(begin + sys.stdin.buffer.read()))
    if not document.text.strip():
        raise CliError(f"{source.name} is empty", todo="Give a document with some text in it")
    return document


def _is_utf8(begin: bytes) -> bool:
    """Whether nothing speaks against it: no byte order mark of another encoding, and not a PDF by its first bytes."""
    return not begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE, b"%PDF-"))


def _file_pieces(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        yield from _pieces(b"", file, str(path))


def _pieces(begin: bytes, file: IO[bytes], name: str) -> Iterator[str]:
    """A text in pieces, so that memory does not follow its size."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    yield _decoded(decoder, begin, name, final=False)
    while block := file.read(_BLOCK):
        yield _decoded(decoder, block, name, final=False)
    yield _decoded(decoder, b"", name, final=True)


def _decoded(decoder: codecs.IncrementalDecoder, block: bytes, name: str, *, final: bool) -> str:
    try:
        return decoder.decode(block, final)
    except UnicodeDecodeError as error:
        raise CliError(f"{name} is not UTF-8: {error}", todo="Save it as UTF-8") from error


def _existing(argument: str) -> Path | None:
    path = Path(argument)
    try:
        return path if path.exists() else None
    except (OSError, ValueError):
        # A sentence can be longer than a file name may be.
        return None
