"""The reader's folder: layers in few bits, heads, embeddings, vocabulary and settings, as training exported them."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from sameas.extraction.extractors.reader.packing import Floats, Packed, unpack
from sameas.extraction.extractors.reader.tokenizer import Tokenizer
from sameas.identity.errors import SameasError

_FORMAT = 1
_MATRICES = ("qkv", "out", "gate_up", "down")


class ReaderFilesError(SameasError):
    """The reader's files are missing or not of a form that this version reads."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes of a network, and what its scores mean."""

    format: int
    layers: int
    width: int
    heads: int
    key_heads: int
    head_width: int
    pair: int
    query: int
    bits: int
    embedding_bits: int
    text_offset: int
    temperature: float
    offset: float
    threshold: float
    threshold_80: float
    threshold_85: float


class Layer(msgspec.Struct, frozen=True):
    """A layer's matrices, turned for rows of tokens; the norms are already in those they come before."""

    qkv: Floats
    out: Floats
    gate_up: Floats
    down: Floats


class Weights(msgspec.Struct, frozen=True):
    """Everything that was trained."""

    settings: Settings
    layers: tuple[Layer, ...]
    norm: Floats
    heads: dict[str, Floats]


def _arrays(folder: Path, pattern: str) -> dict[str, npt.NDArray[Any]]:
    found: dict[str, npt.NDArray[Any]] = {}
    for path in sorted(folder.glob(pattern)):
        with np.load(path, allow_pickle=False) as file:
            found |= {name: file[name] for name in file.files}
    if not found:
        raise ReaderFilesError(f"no {pattern} in {folder}: it is not the folder of a reader")
    return found


def _matrix(arrays: dict[str, npt.NDArray[Any]], name: str) -> Floats:
    return unpack(Packed(*(arrays[f"{name}.{field}"] for field in Packed._fields)))


def load_weights(folder: Path) -> Weights:
    """The layers and heads of a reader's folder, in single precision."""
    arrays = _arrays(folder, "reader-*.npz")
    try:
        settings = msgspec.json.decode(arrays["settings"].tobytes(), type=Settings)
        if settings.format != _FORMAT:
            raise ReaderFilesError(f"{folder} has format {settings.format}, this version reads {_FORMAT}")
        norm1, norm2 = (arrays[f"encoder.norm{number}"].astype(np.float32) for number in (1, 2))
        layers = []
        for number in range(settings.layers):
            qkv, out, gate_up, down = (_matrix(arrays, f"layer.{number}.{name}") for name in _MATRICES)
            qkv *= norm1[number]
            gate_up *= norm2[number]
            layers.append(Layer(qkv.T, out.T, gate_up.T, down.T))
        heads = {
            name.removeprefix("heads."): array.astype(np.float32)
            for name, array in arrays.items()
            if name.startswith("heads.")
        }
        return Weights(settings, tuple(layers), arrays["encoder.norm"].astype(np.float32), heads)
    except (KeyError, msgspec.DecodeError) as error:
        raise ReaderFilesError(f"the files of the reader in {folder} are not whole: {error}") from error


class Embeddings:
    """The vector of each token, kept as small as it came."""

    def __init__(self, arrays: dict[str, npt.NDArray[Any]], bits: int) -> None:
        names = ("rows", "scales") if bits == 8 else Packed._fields
        starts = sorted(int(name.split(".")[1]) for name in arrays if name.startswith(f"{names[0]}."))
        parts = {name: [arrays[f"{name}.{start}"] for start in starts] for name in names}
        self._parts = [np.concatenate(some, axis=1 if name == "planes" else 0) for name, some in parts.items()]
        self._bits = bits

    def __call__(self, ids: npt.NDArray[np.int64]) -> Floats:
        if self._bits == 8:
            rows, scales = self._parts
            vectors: Floats = rows[ids].astype(np.float32) * scales[ids].astype(np.float32)
            return vectors
        low, _, scales, least = (part[ids] if part.ndim == 2 else part[:, ids] for part in self._parts)
        return unpack(Packed(low, np.zeros((0, len(ids), 0), np.uint8), scales, least))


def load_embeddings(folder: Path, settings: Settings) -> Embeddings:
    """The embeddings of a reader's folder."""
    return Embeddings(_arrays(folder, "embeddings-*.npz"), settings.embedding_bits)


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a reader's folder."""
    try:
        with (folder / "vocabulary.json").open(encoding="utf-8") as file:
            told = json.load(file)
    except (OSError, ValueError) as error:
        raise ReaderFilesError(f"the reader's vocabulary in {folder} cannot be read: {error}") from error
    return Tokenizer(told["vocabulary"], told["merges"])
