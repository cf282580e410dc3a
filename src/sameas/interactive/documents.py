"""What people give as a document: a path, a text, or a document of LangChain or LlamaIndex.

Rule: a string that names a file is that file; one with a blank is a text; everything else was meant as a file.
Documents of other libraries are known by their shape, so that none of them has to be installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from sameas.cli.documents import find_sources
from sameas.extraction.text.document import Document, DocumentSource, Segment
from sameas.extraction.text.inputs.reader import read_document
from sameas.identity.errors import SameasError


@runtime_checkable
class LangChainDocument(Protocol):
    """A document of LangChain."""

    page_content: str
    metadata: dict[str, Any]


@runtime_checkable
class LlamaIndexDocument(Protocol):
    """A document or a node of LlamaIndex."""

    @property
    def text(self) -> str: ...

    metadata: dict[str, Any]


GivenDocument: TypeAlias = "str | os.PathLike[str] | Document | LangChainDocument | LlamaIndexDocument"


class UnknownDocumentError(SameasError, TypeError):
    """What was given is not a document."""


class Given(msgspec.Struct, frozen=True):
    """A document that was read, and what is known of it."""

    document: Document
    source: DocumentSource


def documents_of(given: GivenDocument | Iterable[GivenDocument]) -> list[GivenDocument]:
    """The documents that were given, one or several."""
    if isinstance(given, str | os.PathLike | Document | LangChainDocument | LlamaIndexDocument):
        return [given]
    try:
        return list(given)
    except TypeError:
        raise _unknown(given) from None


def read_given(given: GivenDocument, *, number: int) -> list[Given]:
    """The document, or the documents that a pattern of file names stands for."""
    if isinstance(given, Document):
        return [Given(given, _text_source(given, f"document {number}"))]
    if isinstance(given, str):
        found = []
        for source in find_sources([given]):
            if source.path is not None:
                found.append(_file(source.path))
            else:
                document = Document(source.text)
                found.append(Given(document, _text_source(document, f"text {number}")))
        return found
    if isinstance(given, os.PathLike):
        return [_file(Path(given))]
    if isinstance(given, LangChainDocument):
        return [_of_library(given.page_content, given.metadata, number)]
    if isinstance(given, LlamaIndexDocument):
        return [_of_library(given.text, given.metadata, number)]
    raise _unknown(given)


def _file(path: Path) -> Given:
    document = read_document(path)
    return Given(document, DocumentSource.of_file(path, document))


def _text_source(document: Document, name: str) -> DocumentSource:
    size = len(document.text.encode("utf-8", "replace"))
    return DocumentSource(name=name, media_type=document.media_type, title=document.title, size=size)


def _of_library(text: str, metadata: Mapping[str, Any], number: int) -> Given:
    source = DocumentSource.of_metadata(metadata)
    if not source.name:
        source = msgspec.structs.replace(source, name=f"document {number}")
    page = _page(metadata)
    if page is None:
        return Given(Document(text), source)
    segments = (Segment(0, len(text), 0, len(text), page),)
    return Given(Document(text, unit="page", segments=segments), source)


def _page(metadata: Mapping[str, Any]) -> int | None:
    """The page that the text is, from 1: loaders count it from 0 and say beside it what is printed on it."""
    label, page = metadata.get("page_label"), metadata.get("page")
    if isinstance(label, str) and label.isdecimal():
        return int(label)
    return page + 1 if isinstance(page, int) and not isinstance(page, bool) and page >= 0 else None


def _unknown(given: object) -> UnknownDocumentError:
    return UnknownDocumentError(
        f"a {type(given).__name__} is not a document. Give a path, a text, or a document of LangChain or LlamaIndex"
    )
