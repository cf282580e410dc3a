"""What a caller knows of a document beside its text: its names, where it lies, and its pages and paragraphs.

Rule: none of it belongs to a run, because equal texts under different names share one. It is said anew for each caller
and never stored with a result.
"""

import mimetypes
import os
import re
from bisect import bisect_right
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sameas.extraction.text.document import Document, Span

_BREAK = re.compile(r"\n(?:[ \t]*\n)+")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
# RFC 3987, but for addresses of version 6: no brackets, nothing private, and a port is a number.
_SIGN = (
    r"(?:[^\x00-\x20<>\"{}|\\^`\[\]#%\x7f-\x9f\ud800-\uf8ff\ufdd0-\ufdef\ufff0-\uffff"
    r"\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0003fffe-\U0010ffff]|%[0-9A-Fa-f]{2})"
)
_AUTHORITY = r"(?:(?!//)|(?=//(?:[^/?#@]*@)?[^/?#:@]*(?::[0-9]*)?(?:[/?#]|\Z)))"
_IRI = re.compile(rf"[A-Za-z][A-Za-z0-9+.-]*:{_AUTHORITY}{_SIGN}*(?:#{_SIGN}*)?\Z")


def is_iri(text: str) -> bool:
    """Whether a text is an absolute IRI: one that is not cannot be written, and would spoil what it stands in."""
    return _IRI.match(text) is not None


def readable_path(path: str | os.PathLike[str]) -> str:
    """A path as text that can be written anywhere: what of it is no UTF-8 is escaped."""
    return os.fspath(path).encode("utf-8", "backslashreplace").decode()


class DocumentSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One file or address that a document was read from. `location` is an IRI, `modified_at` a time of ISO 8601."""

    name: str = ""
    location: str = ""
    title: str = ""
    media_type: str = ""
    size: int | None = None
    modified_at: str = ""

    def __post_init__(self) -> None:
        if self.location and not is_iri(self.location):
            raise ValueError(f"the location {self.location!r} is not an IRI; percent-encode it, or leave it out")

    @classmethod
    def of_file(cls, path: Path, document: Document | None = None) -> "DocumentSource":
        """What a file says of itself; `document` is what was read from it, where that is at hand."""
        about = path.stat()
        guessed = mimetypes.guess_type(path.name)[0] or "text/plain"
        return cls(
            name=readable_path(path.name),
            location=path.resolve().as_uri(),
            title="" if document is None else document.title,
            media_type=guessed if document is None else document.media_type,
            size=about.st_size,
            modified_at=_instant(about.st_mtime),
        )

    @classmethod
    def of_name(cls, name: str, *, media_type: str = "", size: int | None = None, title: str = "") -> "DocumentSource":
        """A document by the name, the path or the address that somebody gave it."""
        return cls(name=_last_part(name), location=_iri(name), title=title, media_type=media_type, size=size)

    @classmethod
    def of_metadata(cls, metadata: Mapping[str, Any]) -> "DocumentSource":
        """What the metadata of LangChain and LlamaIndex documents say, by the names that their loaders use."""
        where = _first(metadata, "source", "url", "file_path", "path", "id")
        size = metadata.get("file_size")
        return cls(
            name=_first(metadata, "file_name", "filename", "name") or _last_part(where),
            location=_iri(where),
            title=_first(metadata, "title"),
            media_type=_first(metadata, "media_type", "mime_type", "file_type", "content_type"),
            size=size if isinstance(size, int) else None,
            modified_at=_moment(_first(metadata, "last_modified_date", "last_modified", "modified_at", "moddate")),
        )


class TextPlace(NamedTuple):
    """Where in its source a stretch of text begins, counted from 1, as far as the source counts."""

    page: int | None = None
    paragraph: int | None = None


class DocumentPlaces:
    """The pages and paragraphs of a document, by offsets of its normalised text."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._offsets = document.offsets()
        self._paragraphs: list[int] = []
        if document.unit == "text":
            self._paragraphs = [0, *(found.end() for found in _BREAK.finditer(document.normalized))]
        self.of = lru_cache(maxsize=4096)(self._of)

    def _of(self, start: int, end: int) -> TextPlace:
        if self._document.unit == "text":
            return TextPlace(paragraph=bisect_right(self._paragraphs, start))
        found = self._document.places(Span(start, end), offsets=self._offsets)
        if not found:
            return TextPlace()
        part = found[0].part
        return TextPlace(page=part) if self._document.unit == "page" else TextPlace(paragraph=part)


def _first(metadata: Mapping[str, Any], *names: str) -> str:
    return next((found for name in names if isinstance(found := metadata.get(name), str) and found), "")


def _last_part(name: str) -> str:
    return name.rstrip("/").replace("\\", "/").rpartition("/")[2] or name


def _iri(name: str) -> str:
    if _URL.match(name) or name.startswith("urn:"):
        return name if is_iri(name) else ""
    path = Path(name)
    return path.as_uri() if path.is_absolute() else ""


def _moment(written: str) -> str:
    """A time as somebody wrote it, in full; empty where it is none."""
    try:
        read = datetime.fromisoformat(written)
    except ValueError:
        return ""
    return read.isoformat(timespec="seconds").replace("+00:00", "Z")


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
