"""What the arguments of `extract` stand for: files, patterns of files, standard input, or a text itself.

Rule: an argument that is a file is that file. One with blanks, or with the full stop of a script without blanks, is
a text; everything else was meant as a file and is refused if there is none.
"""

from __future__ import annotations

import codecs
import glob
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from sameas.cli.errors import CliError, ExitCode

_PATTERN = re.compile(r"[*?\[]")
_SENTENCE = re.compile(r"\s|[。！？｡]")  # noqa: RUF001
_FILE_LIKE = re.compile(r"[^\s]\.(?:txt|text|md|markdown|html?|xhtml|pdf|docx)\Z", re.IGNORECASE)
STDIN = "-"
# Text files above this are read in pieces, so that memory does not follow their size.
LONG = 16 * 1024 * 1024
_BLOCK = 1 << 20


class Source(msgspec.Struct, frozen=True):
    """A document to be read: a file, or a text that is already there."""

    name: str
    path: Path | None = None
    text: str = ""


def find_sources(arguments: Sequence[str]) -> list[Source]:
    """The documents that the arguments name, in order, each once."""
    found: dict[str, Source] = {}
    texts = 0
    for argument in arguments:
        if argument == STDIN:
            found.setdefault(STDIN, Source("stdin"))
        elif (path := _existing(argument)) is not None:
            found.setdefault(str(path), _file(path))
        elif _PATTERN.search(argument) and (paths := sorted(glob.glob(argument, recursive=True))):  # noqa: PTH207
            for each in paths:
                if Path(each).is_file():
                    found.setdefault(each, _file(Path(each)))
        elif _SENTENCE.search(argument) and not _FILE_LIKE.search(argument):
            texts += 1
            found.setdefault(f"text {argument}", Source(f"text {texts}", text=argument))
        elif _PATTERN.search(argument):
            raise CliError(f"no file fits {argument!r}", todo="Check the pattern and the folder")
        else:
            raise CliError(
                f"{argument!r} is not a file",
                todo="Give a file, '-' for standard input, or a sentence in quotes",
            )
    if not found:
        raise CliError("there is no document", todo="Give files, '-' or a text in quotes", code=ExitCode.USAGE)
    return list(found.values())


def read_source(source: Source) -> str | Iterator[str]:
    """The text of a document, in pieces if it is a long one; PDF, DOCX, HTML and Markdown become text."""
    if source.path is not None:
        from sameas.extraction.inputs.reader import TEXT, guess_media_type, read_document

        if source.path.stat().st_size > LONG and guess_media_type(source.path.name) == TEXT and _is_utf8(source.path):
            return _pieces(source.path)
        text = read_document(source.path).text
    elif source.text:
        text = source.text
    else:
        from sameas.extraction.inputs.reader import decode

        text = decode(sys.stdin.buffer.read())
    if not text.strip():
        raise CliError(f"{source.name} is empty", todo="Give a document with some text in it")
    return text


def _is_utf8(path: Path) -> bool:
    """Whether nothing speaks against it: no byte order mark of another encoding, and not a PDF by its first bytes."""
    with path.open("rb") as file:
        return not file.read(5).startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE, b"%PDF-"))


def _pieces(path: Path) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield _decoded(decoder, block, path, final=False)
    yield _decoded(decoder, b"", path, final=True)


def _decoded(decoder: codecs.IncrementalDecoder, block: bytes, path: Path, *, final: bool) -> str:
    try:
        return decoder.decode(block, final)
    except UnicodeDecodeError as error:
        raise CliError(f"{path} is not UTF-8: {error}", todo="Save it as UTF-8") from error


def _existing(argument: str) -> Path | None:
    path = Path(argument)
    try:
        return path if path.exists() else None
    except (OSError, ValueError):
        # A sentence can be longer than a file name may be.
        return None


def _file(path: Path) -> Source:
    if path.is_dir():
        raise CliError(f"{path} is a folder", todo=f"Name its files, such as '{path}/*.txt'")
    return Source(str(path), path=path)
