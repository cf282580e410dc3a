"""Parsed ontologies on disk, in a folder of their own. A miss is never an error.

The key is the content: the file's bytes, the imports folder's bytes, the limits, and the version of the
model's layout, so nothing is ever stale. Writes are atomic. A torn, foreign or older file is taken for a
miss and written anew.
"""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import get_args

import msgspec

from sameas.ontology.limits import Limits
from sameas.ontology.model import Ontology
from sameas.ontology.notation import Notation
from sameas.ontology.version import MODEL_VERSION

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
