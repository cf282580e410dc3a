"""What was learned for an ontology, as a file: how the reader's heads differ from those that it came with.

Rule: the file names the weights that it was fitted to and is refused with others. A model that says nothing but that
examples gained nothing is one, too: it reads as the reader does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from sameas.extraction.extractors.learning.container import digest_of, pack, unpack, write_file

if TYPE_CHECKING:
    from sameas.extraction.extractors.reader.extractor import Judge
    from sameas.extraction.extractors.reader.fitting import Fitted
    from sameas.extraction.extractors.reader.reading import Reader
    from sameas.ontology.index import OntologyIndex

MARK = b"sameas fitted reader 1\n"


class FittedContent(msgspec.Struct, frozen=True):
    """The file's layout; changes are numbers of two bytes."""

    weights: str
    """The digest of the reader's weights."""
    examples: int
    complete: bool
    properties: list[str] = msgspec.field(default_factory=list)
    heads: list[tuple[str, tuple[int, ...], bytes]] = msgspec.field(default_factory=list)
    queries: bytes = b""
    biases: list[float] = msgspec.field(default_factory=list)
    offsets: list[tuple[str, float]] = msgspec.field(default_factory=list)
    """What cross-validation adds to the confidence of a property's facts, before the sigmoid."""


class FittedModel:
    """Changes of the reader's heads for one ontology; made by `reader.learning` or loaded."""

    def __init__(self, content: FittedContent) -> None:
        self.content = content
        self.version = digest_of(content)

    @property
    def is_base(self) -> bool:
        """Whether examples gained nothing, and the reader reads as it came."""
        return not self.content.heads

    @classmethod
    def of(
        cls,
        fitted: Fitted,
        reader: Reader,
        *,
        weights: str,
        properties: list[str],
        examples: int,
        complete: bool,
        offsets: list[tuple[str, float]],
    ) -> FittedModel:
        """The model of fitted heads."""
        import numpy as np

        base = reader.network.heads
        changes = ((name, (array - base[name]).astype(np.float16)) for name, array in sorted(fitted.heads.items()))
        return cls(
            FittedContent(
                weights=weights,
                examples=examples,
                complete=complete,
                properties=properties,
                heads=[(name, change.shape, change.tobytes()) for name, change in changes],
                queries=fitted.queries.astype(np.float16).tobytes(),
                biases=[round(float(one), 4) for one in fitted.biases],
                offsets=offsets,
            )
        )

    def apply(self, reader: Reader, index: OntologyIndex) -> Reader:
        """The reader with these changes, for the ontology they were learned for."""
        if self.is_base:
            return reader
        import numpy as np

        from sameas.extraction.extractors.reader.labels import describe_property

        content, base = self.content, reader.network.heads
        heads = {
            name: base[name] + np.frombuffer(data, np.float16).reshape(shape).astype(np.float32)
            for name, shape, data in content.heads
        }
        queries = np.frombuffer(content.queries, np.float16).reshape(len(content.properties), -1).astype(np.float32)
        changes = {
            describe_property(index, iri): (query, bias)
            for iri, query, bias in zip(content.properties, queries, content.biases, strict=True)
            if iri in index.properties
        }
        return reader.fitted(heads, changes)

    def judge(self) -> Judge:
        """How sure facts are that the changed reader reads."""
        from sameas.extraction.extractors.reader.confidence import judge, judge_fitted

        if self.is_base:
            return judge
        offsets = dict(self.content.offsets)
        return lambda signs, iri: judge_fitted(signs, offsets.get(iri, 0.0))

    def save(self, path: Path) -> None:
        """Write the model to a file; a crash leaves the old file or the new one."""
        write_file(path, pack(self.content, mark=MARK))

    @classmethod
    def load(cls, path: Path) -> FittedModel:
        """Read a model from a file."""
        return cls(unpack(path.read_bytes(), FittedContent, mark=MARK, source=path.name))
