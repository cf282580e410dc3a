"""What holds for any ontology, learned once over many: weights of hashed features, never text.

A property is described by its label, its label's words and its range; a new property gets the sum of what its
descriptors are worth. Subjects are chosen with the same weights everywhere. `prior_training.py` makes the
file.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

import msgspec
import numpy as np
from numpy.typing import NDArray

from sameas.extraction.extractors.learning.container import digest_of, unpack
from sameas.extraction.extractors.learning.hashing import word
from sameas.extraction.extractors.learning.labels import descriptors
from sameas.extraction.extractors.learning.object_features import OWN_TEMPLATES, own_feature
from sameas.extraction.extractors.learning.schema import Schema

MARK = b"sameas prior 1\n"
FILE = "prior.bin"


class PriorContent(msgspec.Struct, frozen=True):
    """The file's layout: object weights as a sparse matrix of features by descriptors, subject weights as a
    list.
    """

    object_keys: bytes
    descriptors: bytes
    pointers: bytes
    columns: bytes
    values: bytes
    scale: float
    own: list[float]
    subject_keys: bytes
    subject_values: bytes
    subject_scale: float


class Prior:
    """The weights that learning starts from and is drawn to."""

    def __init__(self, content: PriorContent) -> None:
        self.content = content
        self.version = digest_of(content)
        self._keys: list[int] = np.frombuffer(content.object_keys, np.uint32).tolist()
        self._descriptors = {key: i for i, key in enumerate(np.frombuffer(content.descriptors, np.uint32).tolist())}
        self._pointers = np.frombuffer(content.pointers, np.uint32).astype(np.int64)
        self._columns = np.frombuffer(content.columns, np.uint16)
        self._values = np.frombuffer(content.values, np.int8).astype(np.float32) * np.float32(content.scale)
        subject_keys = np.frombuffer(content.subject_keys, np.uint32).tolist()
        subject_values = np.frombuffer(content.subject_values, np.int8).astype(np.float64) * content.subject_scale
        self.subjects: dict[int, float] = dict(zip(subject_keys, subject_values.tolist(), strict=True))

    def objects(self, schema: Schema, properties: tuple[str, ...]) -> dict[int, NDArray[np.float32]]:
        """For each feature its weight for each of the properties."""
        items = {item.id: item for item in schema.properties}
        mixing = np.zeros((len(self._descriptors), len(properties)), np.float32)
        for j, name in enumerate(properties):
            for descriptor in descriptors(schema, items[name]):
                row = self._descriptors.get(word(descriptor))
                if row is not None:
                    mixing[row, j] = 1
        spread = mixing[self._columns] * self._values[:, None]
        found: dict[int, NDArray[np.float32]] = {}
        for i, key in enumerate(self._keys):
            weights: NDArray[np.float32] = spread[self._pointers[i] : self._pointers[i + 1]].sum(axis=0)
            if weights.any():
                found[key] = weights
        for template, weight in zip(OWN_TEMPLATES, self.content.own, strict=True):
            for j, name in enumerate(properties):
                own = found.setdefault(own_feature(template, name), np.zeros(len(properties), np.float32))
                own[j] += np.float32(weight)
        return found


def read_prior(data: bytes) -> Prior:
    """A prior from the bytes of its file."""
    return Prior(unpack(data, PriorContent, mark=MARK, source=FILE))


@lru_cache(maxsize=1)
def shipped_prior() -> Prior:
    """The prior that comes with the package."""
    return read_prior(files("sameas.extraction.extractors.learning").joinpath(FILE).read_bytes())
