"""Names that a spaCy pipeline finds, added to what another extractor finds.

Rule: the other extractor comes first. A name of spaCy's is added where nothing with a class stands, and gives its
class to a name that had none; the class is that of its kind, or the one whose label is the pipeline's own (DRUG,
"drug"). A kind of name that the ontology has no class for is left out. Dates are read by their form, not believed.
spaCy's version, the pipeline's and, for one in a folder, its content are in the key, all known without
importing spaCy, so that a replay need not wait for it. Nothing is downloaded.
"""

import asyncio
import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sameas.extraction.extractors.contract import Extractor, Found, extractor_identity
from sameas.extraction.extractors.lexicon.dates import find_dates
from sameas.extraction.graph.class_kinds import ClassKinds, ShapeKind
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.text.chunking import Chunk
from sameas.identity.errors import SameasError
from sameas.ontology.focus import Focus
from sameas.ontology.index import OntologyIndex

VERSION = "1"
DEFAULT_PIPELINE = "en_core_web_sm"
# The labels of spaCy's own pipelines; those of Wikipedia's corpora say PER and LOC.
_KINDS: Mapping[str, ShapeKind] = {
    "PERSON": "person",
    "PER": "person",
    "ORG": "organisation",
    "GPE": "place",
    "LOC": "place",
    "FAC": "place",
}
_DATES = frozenset(("DATE", "TIME"))
_EDGES = re.compile(r"\A\s+|(?:['\u2019]s?)?\s*\Z")
_META = "meta.json"
_BLOCK = 1 << 20


class SpacyUnavailableError(SameasError):
    """spaCy, or the pipeline that was asked for, is not there."""


class SpacyPipeline(NamedTuple):
    """A pipeline that is there: what spaCy loads it by, and what identifies its answers."""

    source: str
    name: str
    version: str
    spacy: str
    content: str = ""
    """The digest of a folder's files; a package's version says as much."""


class SpacyNames:
    """Another extractor with the names of a spaCy pipeline. Made once, used for any number of chunks."""

    def __init__(self, inner: Extractor, index: OntologyIndex, *, pipeline: str | Path = DEFAULT_PIPELINE) -> None:
        self._inner = inner
        self._pipeline = find_pipeline(pipeline)
        self._kinds = ClassKinds(index)
        self._labelled = {
            " ".join(entry.text.lower().split()): entry.iri
            for entry in reversed(index.lexicon())
            if entry.kind == "class"
        }
        # spaCy's vocabulary has one writer at a time.
        self._lock = threading.Lock()
        self._language: Any = None
        self._notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self._inner.name}+spacy"

    @property
    def version(self) -> str:
        return f"{VERSION}+spacy-{self._pipeline.spacy}+{self._pipeline.name}-{self._pipeline.version}"

    @property
    def settings(self) -> Mapping[str, Any]:
        pipeline = self._pipeline
        return {
            "inner": extractor_identity(self._inner),
            "pipeline": pipeline.name,
            "pipeline_version": pipeline.version,
            "pipeline_content": pipeline.content,
            "spacy": pipeline.spacy,
        }

    async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
        """What the other extractor finds, and the names of the pipeline where that leaves room."""
        found = await self._inner.extract_entities(chunk, focus)
        # In a thread: loading takes seconds, and a chunk long enough to keep events waiting.
        named = await asyncio.to_thread(self._read, chunk.text)
        seen = [mention for label, start, end in named for mention in self._seen(chunk.text, label, start, end, focus)]
        return Found(tuple(_together(found.items, seen)), (*found.notes, *self._notes), found.claims, found.rejected)

    async def extract_relations(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> Found[Claim]:
        """The other extractor's claims, between all of the mentions."""
        return await self._inner.extract_relations(chunk, mentions, focus)

    def class_of(self, label: str) -> str:
        """The class of the ontology that a label of the pipeline stands for; empty where there is none."""
        words = label.replace("_", " ").lower()
        return self._kinds.class_for(_KINDS.get(label, "")) or self._labelled.get(words, "")

    def _seen(self, text: str, label: str, start: int, end: int, focus: Focus) -> Iterator[Mention]:
        said = text[start:end]
        if label in _DATES:
            for date in find_dates(said):
                yield msgspec.structs.replace(date, start=date.start + start, end=date.end + start)
            return
        iri = self.class_of(label)
        if iri and (focus.is_whole or iri in focus.classes):
            yield Mention(start, end, said, types=(iri,), looks_like=_KINDS.get(label, ""))

    def _read(self, text: str) -> list[tuple[str, int, int]]:
        """The labels and places of the pipeline's names, without blanks and possessives at their edges."""
        with self._lock:
            if self._language is None:
                self._language = _load(self._pipeline)
                self._notes = tuple(self._remarks())
            # The words of a text are forgotten with it: otherwise the vocabulary grows as long as there is text.
            with self._language.memory_zone():
                named = {(one.label_, one.start_char, one.end_char) for one in self._language(text).ents}
        trimmed = {(label, *_trimmed(text, start, end)) for label, start, end in named}
        return sorted((one for one in trimmed if one[1] < one[2]), key=lambda one: (one[1], -one[2], one[0]))

    def _remarks(self) -> Iterator[str]:
        language = self._language
        finders = [name for name in language.pipe_names if "doc.ents" in language.get_pipe_meta(name).assigns]
        labels = sorted({label for name in finders for label in language.pipe_labels.get(name, ())})
        if not any(self.class_of(label) or label in _DATES for label in labels):
            kinds = ", ".join(labels) or "none at all"
            yield (
                f"The ontology has no class for the kinds of names that the spaCy pipeline {self._pipeline.name} finds "
                f"({kinds}). Add classes with labels such as person, organization and place, or those of the pipeline."
            )


def find_pipeline(name: str | Path) -> SpacyPipeline:
    """The pipeline of a package's name or of a folder, without importing spaCy."""
    if find_spec("spacy") is None:
        raise SpacyUnavailableError(
            "names by spaCy need the package spacy: install sameas[spacy], then a pipeline with "
            f"'python -m spacy download {DEFAULT_PIPELINE}', or name a folder that holds one"
        )
    spacy = metadata.version("spacy")
    folder = Path(name)
    if (folder / _META).is_file():
        try:
            meta = json.loads((folder / _META).read_bytes())
            known = f"{meta['lang']}_{meta['name']}", str(meta["version"])
        except (ValueError, KeyError, TypeError) as error:
            raise SpacyUnavailableError(f"{folder / _META} does not describe a spaCy pipeline: {error!r}") from error
        return SpacyPipeline(str(folder.resolve()), *known, spacy=spacy, content=_content(folder))
    try:
        return SpacyPipeline(str(name), str(name), metadata.version(str(name)), spacy=spacy)
    except (metadata.PackageNotFoundError, ValueError):
        raise SpacyUnavailableError(
            f"there is no spaCy pipeline {str(name)!r}: get it with 'python -m spacy download {name}', or give the "
            f"path of a folder that holds one (with its {_META})"
        ) from None


def _load(pipeline: SpacyPipeline) -> Any:
    import spacy

    try:
        return spacy.load(pipeline.source)
    except (OSError, ValueError, ImportError, KeyError) as error:
        raise SpacyUnavailableError(
            f"the spaCy pipeline {pipeline.source!r} cannot be loaded by spaCy {pipeline.spacy}: {error}. Get the one "
            f"made for it with 'python -m spacy download {pipeline.name}'"
        ) from error


def _content(folder: Path) -> str:
    """A digest of all files of a folder and their names."""
    joined = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        part = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                part.update(block)
        name = path.relative_to(folder).as_posix().encode("utf-8", "surrogateescape")
        joined.update(len(name).to_bytes(8, "big") + name + part.digest())
    return joined.hexdigest()


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    said = text[start:end]
    inner = _EDGES.sub("", said)
    lead = len(said) - len(said.lstrip())
    return start + lead, start + lead + len(inner)


def _together(found: Sequence[Mention], seen: Sequence[Mention]) -> list[Mention]:
    """What was found, with what was seen where no mention with a class or a value is in the way."""
    firm = [mention for mention in found if mention.types or mention.kind == "literal"]
    added: list[Mention] = []
    for mention in seen:
        if not any(mention.start < other.end and other.start < mention.end for other in (*firm, *added)):
            added.append(mention)
    loose = [
        mention
        for mention in found
        if not (mention.types or mention.kind == "literal")
        and not any(mention.start < other.end and other.start < mention.end for other in added)
    ]
    return sorted((*firm, *loose, *added), key=lambda mention: mention.order)
