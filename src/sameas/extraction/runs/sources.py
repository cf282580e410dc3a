"""What a run was made from, kept beside its result: the normalised text and the ontology of its version.

Rule: the text lies in the run's folder and goes with it; it is believed where it has the digest that the metadata
gives. An ontology lies once for all runs of its version. Either may be missing (a result that came back from a
database, a run of an earlier release); then whoever asks is told so, and nothing is guessed.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from sameas.extraction.runs.durable_file import writing
from sameas.extraction.runs.folder import RunFolder
from sameas.extraction.runs.metadata import RunMetadata
from sameas.identity.key import normalize_text
from sameas.ontology.model import Ontology

TEXT = "text.txt"
ONTOLOGIES = ".ontologies"
# The layout of what is kept of an ontology; another one is not read.
_LAYOUT = b"sameas-ontology-1\n"
_decoder = msgspec.msgpack.Decoder(Ontology)


def keep_text(folder: RunFolder, text: str | Iterable[str]) -> None:
    """Write the text, which is normalised where it comes in pieces."""
    pieces = (normalize_text(text),) if isinstance(text, str) else text
    # Not forced to the disk: what a power cut leaves has another digest, and is not believed.
    unready = folder.path / f".{TEXT}.writing"
    with unready.open("wb") as target:
        for piece in pieces:
            target.write(piece.encode("utf-8", "surrogatepass"))
    unready.replace(folder.path / TEXT)


def read_text(folder: RunFolder, metadata: RunMetadata) -> str | None:
    """The text that offsets of the run refer to; None where it is not there, or is not the run's."""
    try:
        data = (folder.path / TEXT).read_bytes()
    except FileNotFoundError:
        return None
    return data.decode() if hashlib.sha256(data).hexdigest() == metadata.text_hash else None


def keep_ontology(runs: Path, ontology: Ontology) -> Path:
    """Write an ontology, unless this version is there; gives its file."""
    path = ontology_file(runs, ontology.version)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with writing(path) as target:
            target.write(_LAYOUT + msgspec.msgpack.encode(ontology))
    return path


def read_ontology(runs: Path, version: str) -> Ontology | None:
    """The ontology of a version; None where it is not there, or was written by another release."""
    try:
        data = ontology_file(runs, version).read_bytes()
    except FileNotFoundError:
        return None
    if not data.startswith(_LAYOUT):
        return None
    try:
        return _decoder.decode(data[len(_LAYOUT) :])
    except msgspec.DecodeError:
        return None


def forget_ontologies(runs: Path, *, needed: Iterable[str]) -> None:
    """Delete the ontologies of all other versions."""
    kept = {ontology_file(runs, version).name for version in needed}
    for path in (runs / ONTOLOGIES).glob("*"):
        if path.name not in kept:
            path.unlink(missing_ok=True)


def ontology_file(runs: Path, version: str) -> Path:
    """Where the ontology of a version lies."""
    # A version may be any text that somebody else computed; its digest is a harmless name.
    return runs / ONTOLOGIES / hashlib.sha256(version.encode("utf-8", "surrogatepass")).hexdigest()
