"""The way in: a file, or a file's bytes, to an ontology, with its version computed and its imports answered; from the
cache if a folder for one holds it. A miss is never an error.

The key in the cache is the content: the file's bytes, the imports folder's bytes, the limits, and the version of the
model's layout, so nothing is ever stale. Writes are atomic. A torn, foreign or older file is taken for a miss and
written anew.
"""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import get_args

import msgspec

from sameas.ontology.errors import OntologyError
from sameas.ontology.limits import DEFAULT_LIMITS, Limits
from sameas.ontology.model import Ontology
from sameas.ontology.notation import Notation, detect_notation
from sameas.ontology.parse import read_bounded
from sameas.ontology.version import MODEL_VERSION, version_of

LAYOUT = 2
"""Goes up when the encoding of the model changes."""
MAGIC = b"sameas-ontology\n"
DIGEST_BYTES = 32


class OntologyCache:
    """A folder of encoded ontologies."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def key(self, data: bytes, *, notation: str, imports: str, limits: Limits) -> str:
        """The name of what the content parses to."""
        return _key(hashlib.sha256(data).digest(), notation=notation, imports=imports, limits=limits)

    def remove(self, content_digest: str, *, limits: Limits) -> None:
        """Delete what content with this SHA-256 parses to without imports, in whatever notation it is."""
        for notation in get_args(Notation):
            key = _key(bytes.fromhex(content_digest), notation=notation, imports="", limits=limits)
            self._path(key).unlink(missing_ok=True)

    def get(self, key: str) -> Ontology | None:
        """The ontology, or None if it is not there or not whole."""
        try:
            content = self._path(key).read_bytes()
        except OSError:
            return None
        body = content[len(MAGIC) + DIGEST_BYTES :]
        digest = content[len(MAGIC) : len(MAGIC) + DIGEST_BYTES]
        if not content.startswith(MAGIC) or hashlib.sha256(body).digest() != digest:
            return None
        try:
            return msgspec.msgpack.decode(body, type=Ontology)
        except (msgspec.DecodeError, msgspec.ValidationError):
            return None

    def put(self, key: str, ontology: Ontology) -> None:
        """Keep it; a folder that cannot be written costs the cache, not the ontology."""
        body = msgspec.msgpack.encode(ontology)
        content = MAGIC + hashlib.sha256(body).digest() + body
        temporary: str | None = None
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._folder, prefix=".writing-")
            with os.fdopen(handle, "wb") as target:
                target.write(content)
                target.flush()
                os.fsync(target.fileno())
            Path(temporary).replace(self._path(key))
        except OSError:
            if temporary is not None:
                Path(temporary).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.ontology"


def _key(content_digest: bytes, *, notation: str, imports: str, limits: Limits) -> str:
    digest = hashlib.sha256(content_digest)
    for part in (str(LAYOUT), str(MODEL_VERSION), notation, imports, msgspec.json.encode(limits).decode()):
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()


def load_ontology(
    path: Path | str, *, imports_dir: Path | str | None = None, cache_dir: Path | str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Ontology:  # fmt: skip
    """The ontology of a file in any notation; from the cache, if a folder for one is given and holds it.

    Raises OntologyNotFoundError, OntologyFormatError for a notation that is not known, OntologySyntaxError,
    OntologyRefusedError and OntologyTooLargeError for what is not safe to read, OntologyExtraError if a package is
    missing; all are OntologyErrors.
    """
    path = Path(path)
    return read_ontology(
        read_bounded(path, limits=limits),
        extension=path.suffix,
        file=str(path),
        imports_dir=imports_dir,
        cache_dir=cache_dir,
        limits=limits,
    )


def read_ontology(  # all but the first are keywords
    data: bytes, *, extension: str = "", file: str | None = None, imports_dir: Path | str | None = None,
    cache_dir: Path | str | None = None, limits: Limits = DEFAULT_LIMITS,
) -> Ontology:  # fmt: skip
    """The same from bytes; the extension, if given, helps to tell the notation. Raises what `load_ontology` raises."""
    folder = Path(imports_dir) if imports_dir is not None else None
    try:
        notation = detect_notation(data, extension=extension, file=file)
        if cache_dir is None:
            return _read(data, notation, file, folder, limits)
        cache = OntologyCache(Path(cache_dir))
        key = cache.key(data, notation=notation, imports=_imports_digest(folder, limits), limits=limits)
        ontology = cache.get(key)
        if ontology is None:
            ontology = _read(data, notation, file, folder, limits)
            cache.put(key, ontology)
    except OntologyError as error:
        raise error.located(file) from error.__cause__
    return ontology


def forget_ontology(content_digest: str, *, cache_dir: Path | str, limits: Limits = DEFAULT_LIMITS) -> None:
    """Delete from the cache what the content with this SHA-256 was read to, without imports."""
    OntologyCache(Path(cache_dir)).remove(content_digest, limits=limits)


def _imports_digest(folder: Path | None, limits: Limits) -> str:
    if folder is None:
        return ""
    from sameas.ontology.imports import ImportsFolder

    return ImportsFolder(folder, limits=limits).digest()


def _read(data: bytes, notation: Notation, file: str | None, folder: Path | None, limits: Limits) -> Ontology:
    # Parsers load here and not above: an ontology that comes from the cache needs none of them.
    from sameas.ontology.assemble import assemble
    from sameas.ontology.facts import Facts
    from sameas.ontology.imports import ImportsFolder, follow_imports
    from sameas.ontology.limits import check_terms
    from sameas.ontology.parse import parse_statements
    from sameas.ontology.text2kgbench import read_text2kgbench

    if notation == "text2kgbench":
        ontology = read_text2kgbench(data, file=file, limits=limits)
    else:
        statements = parse_statements(data, notation=notation, file=file, limits=limits)
        source = ImportsFolder(folder, limits=limits) if folder is not None else None
        everything, imports = follow_imports(statements, folder=source, limits=limits)
        facts = Facts(everything)
        root = facts if len(everything) == len(statements) else Facts(statements)
        ontology = assemble(facts, limits=limits, root=root, imports=imports)
    check_terms(ontology, limits=limits, file=file)
    return msgspec.structs.replace(ontology, version=version_of(ontology))
