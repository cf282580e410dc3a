"""Who the extractors are that need no language model: names, versions and settings, known without loading one.

A replay needs the identity alone. The extractors themselves bring many patterns with them, which take longer to
compile than a replay takes.
"""

from pathlib import Path
from typing import Any

LEXICON, LEARNED = "lexicon", "learned"
SUFFIX = ".learned"
LEXICON_VERSION, LEARNED_VERSION = "6", "3"
_DIGEST = 32
_LONGEST_MARK = 100


def beside(ontology: Path) -> Path:
    """Where the model of an ontology is kept."""
    return ontology.with_name(ontology.name + SUFFIX)


def learned_settings(model_version: str, *, minimum: float = 0.0) -> dict[str, Any]:
    """What identifies the answers of a learned extractor."""
    return {"model": model_version, "lexicon": LEXICON_VERSION, "minimum": minimum}


def saved_version(path: Path) -> str:
    """The version of the model in a file, from its head alone; empty if the file is not one."""
    with path.open("rb") as file:
        mark = file.readline(_LONGEST_MARK)
        digest = file.read(_DIGEST)
    return digest.hex() if mark.endswith(b"\n") and len(digest) == _DIGEST else ""
