"""Texts with complete gold: a folder for each domain, with `ontology.ttl`, `documents.jsonl` or `texts.jsonl`, and
`examples.jsonl` to learn from.

A line is `{"text", "triples": [[subject, property, object], ...], "kind": [tags]}`; a property is given by the last
part of its IRI. What is stated in several ways in a text is listed once.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from sameas.extraction.extractors.learning.examples import ExamplesError

ONTOLOGY = "ontology.ttl"
EXAMPLES = "examples.jsonl"
_DOCUMENTS = ("documents.jsonl", "texts.jsonl")
# Tags that name a language; a document without one is English.
LANGUAGES = ("german", "french", "spanish")


class GoldDocument(msgspec.Struct, frozen=True):
    """A text and all that it asserts."""

    text: str
    triples: tuple[tuple[str, str, str], ...]
    kind: tuple[str, ...] = ()
    id: str = ""

    @property
    def language(self) -> str:
        return next((tag for tag in self.kind if tag in LANGUAGES), "english")


class Domain(msgspec.Struct, frozen=True):
    """One ontology with its documents; `examples` is a file to learn from, or None."""

    name: str
    ontology: Path
    documents: tuple[GoldDocument, ...]
    examples: Path | None


def is_domain(folder: Path) -> bool:
    return (folder / ONTOLOGY).is_file() and any((folder / name).is_file() for name in _DOCUMENTS)


def read_domains(folder: Path) -> list[Domain]:
    """The domains below a folder, or the one that it is, by name."""
    found = [folder] if is_domain(folder) else sorted(path for path in folder.iterdir() if is_domain(path))
    if not found:
        raise ExamplesError(f"{folder} holds no domain: a folder with {ONTOLOGY} and {_DOCUMENTS[0]}")
    return [_read(path) for path in found]


def _read(folder: Path) -> Domain:
    path = next(folder / name for name in _DOCUMENTS if (folder / name).is_file())
    documents = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            documents.append(msgspec.json.decode(line, type=GoldDocument))
        except msgspec.DecodeError as error:
            raise ExamplesError(f"{path}: line {number}: {error}") from None
    examples = folder / EXAMPLES
    return Domain(folder.name, folder / ONTOLOGY, tuple(documents), examples if examples.is_file() else None)
