"""`owl:imports`, answered from a folder. An address is never fetched: a file of the folder stands for it,
or nobody does.

A file answers an address if its name is the last part of the address, with or without an extension, or if
the ontology in it declares that address as its own or its version's IRI. Circles of imports end by
themselves.
"""

import hashlib
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sameas.ontology import vocabulary as v
from sameas.ontology.errors import OntologyError, OntologyNotFoundError, OntologyTooLargeError
from sameas.ontology.facts import Facts, is_blank
from sameas.ontology.limits import Limits
from sameas.ontology.model import Import
from sameas.ontology.notation import EXTENSIONS
from sameas.ontology.parse import Statement, parse_statements, read_bounded


class ImportsFolder:
    """The files of a folder, not of its subfolders, by the addresses they answer."""

    def __init__(self, folder: Path, *, limits: Limits) -> None:
        if not folder.is_dir():
            raise OntologyNotFoundError(
                what="the imports folder is not there",
                file=str(folder),
                todo="Make it or leave the option out",
            )
        self._limits = limits
        self._files = sorted(path for path in folder.iterdir() if path.suffix.lower() in EXTENSIONS and path.is_file())
        self._declared: dict[str, Path] | None = None

    def digest(self) -> str:
        """Changes when any file of the folder changes, comes or goes."""
        whole = hashlib.sha256()
        for path in self._files:
            content = hashlib.sha256(read_bounded(path, limits=self._limits)).hexdigest()
            whole.update(f"{len(path.name)}:{path.name}{content}".encode())
        return whole.hexdigest()

    def find(self, iri: str) -> Path | None:
        """The file that answers an address."""
        name = unquote(urlsplit(iri.rstrip("#/")).path).rsplit("/", 1)[-1] or urlsplit(iri).netloc
        exact = [path for path in self._files if path.name == name]
        by_name = exact or [path for path in self._files if name and path.stem == name]
        return by_name[0] if by_name else self._names().get(iri.rstrip("#"))

    def _names(self) -> dict[str, Path]:
        if self._declared is None:
            self._declared = {}
            for path in self._files:
                for iri in self._declared_by(path):
                    self._declared.setdefault(iri.rstrip("#"), path)
        return self._declared

    def _declared_by(self, path: Path) -> set[str]:
        try:
            statements = parse_statements(
                read_bounded(path, limits=self._limits),
                extension=path.suffix,
                file=str(path),
                limits=self._limits,
                keep=frozenset({v.TYPE, v.VERSION_IRI}),
            )
        except OntologyError:
            # A broken file that nothing imports by name is nobody's concern.
            return set()
        facts = Facts(statements)
        own = {iri for iri in facts.of_type(v.ONTOLOGY) if not is_blank(iri)}
        return own | {version for iri in own for version in facts.iris(iri, v.VERSION_IRI)}


def follow_imports(
    statements: list[Statement], *, folder: ImportsFolder | None, limits: Limits
) -> tuple[list[Statement], tuple[Import, ...]]:
    """All statements with those of the imported files, and what became of each import."""
    everything = list(statements)
    answered: dict[str, Import] = {}
    read: set[Path] = set()
    waiting = _imported(statements)
    while waiting:
        iri = waiting.pop(0)
        if iri in answered:
            continue
        path = folder.find(iri) if folder is not None else None
        answered[iri] = Import(iri, path.name if path is not None else "")
        if len(answered) > limits.imports:
            raise OntologyTooLargeError(
                what=f"more than {limits.imports} imports", todo="Merge the files, or raise the limit imports"
            )
        if path is None or path in read:
            continue
        read.add(path)
        more = parse_statements(
            read_bounded(path, limits=limits), extension=path.suffix, file=str(path), base=iri, limits=limits
        )
        everything.extend(_apart(more, len(read)))
        if len(everything) > limits.statements:
            raise OntologyTooLargeError(what=f"more than {limits.statements} statements with all imports")
        waiting.extend(_imported(more))
    return everything, tuple(sorted(answered.values()))


def _imported(statements: list[Statement]) -> list[str]:
    found = {node for _, predicate, node in statements if predicate == v.IMPORTS and isinstance(node, str)}
    return sorted(iri for iri in found if not is_blank(iri))


def _apart(statements: list[Statement], number: int) -> list[Statement]:
    """Blank nodes of different files are different, even if their names are equal."""

    def rename(node: str) -> str:
        return f"_:i{number}.{node[2:]}" if is_blank(node) else node

    return [(rename(s), p, rename(o) if isinstance(o, str) else o) for s, p, o in statements]
