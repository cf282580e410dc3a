"""Who the extractors are that need no language model: names, versions and settings, and where the reader's weights lie,
known without loading one.

A replay needs the identity alone. The extractors themselves bring many patterns with them, which take longer to compile
than a replay takes.
"""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

LEXICON, LEARNED, FITTED, READER = "lexicon", "learned", "fitted", "reader"
SUFFIX = ".learned"
LEXICON_VERSION, LEARNED_VERSION, FITTED_VERSION, READER_VERSION = "9", "5", "3", "4"
_DIGEST = 32
_LONGEST_MARK = 100

_PACKAGE = "sameas_reader"
_MANIFEST = "manifest.json"


def beside(ontology: Path) -> Path:
    """Where the model of an ontology is kept."""
    return ontology.with_name(ontology.name + SUFFIX)


def learned_settings(model_version: str, *, minimum: float = 0.0) -> dict[str, Any]:
    """What identifies the answers of a learned extractor."""
    return {"model": model_version, "lexicon": LEXICON_VERSION, "minimum": minimum}


def reader_settings(weights: str) -> dict[str, Any]:
    """What identifies the answers of the reader; `weights` is their digest."""
    return {"weights": weights, "lexicon": LEXICON_VERSION}


def fitted_settings(model_version: str, weights: str) -> dict[str, Any]:
    """What identifies the answers of a reader that was fitted to examples."""
    return {"model": model_version, "weights": weights, "lexicon": LEXICON_VERSION}


def is_fitted(path: Path) -> bool:
    """Whether a learned model is the reader's; else it is one of patterns."""
    with path.open("rb") as file:
        return file.readline(_LONGEST_MARK).startswith(b"sameas fitted reader")


def saved_version(path: Path) -> str:
    """The version of the model in a file, from its head alone; empty if the file is not one."""
    with path.open("rb") as file:
        mark = file.readline(_LONGEST_MARK)
        digest = file.read(_DIGEST)
    return digest.hex() if mark.endswith(b"\n") and len(digest) == _DIGEST else ""


def find_weights() -> Path | None:
    """The folder of the package with the weights; None where it is not installed."""
    spec = find_spec(_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(folder) / _MANIFEST).is_file():
            return Path(folder)
    return None


def weights_digest(folder: Path) -> str:
    """What names the weights of a folder."""
    digest: str = json.loads((folder / _MANIFEST).read_bytes())["digest"]
    return digest
