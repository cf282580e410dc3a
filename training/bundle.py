"""The two files that prep.py writes, put together again, and SmolLM2's layers as plain matrices."""

import lzma
import pickle
from pathlib import Path

import numpy as np

HEADS, KEY_HEADS, HEAD_WIDTH, WIDTH = 9, 3, 64, 576
# The file pairs neighbours for rotation; we pair the halves of a head, which is one operation less.
_HALVES = np.concatenate([np.arange(0, HEAD_WIDTH, 2), np.arange(1, HEAD_WIDTH, 2)])


def load_bundle(folder: Path) -> dict:
    """Texts, ontologies, embeddings and as many layers as lie in the folder."""
    with lzma.open(folder / "partA.pickle.xz") as file:
        bundle = pickle.load(file)
    rest = folder / "partB.pickle.xz"
    if rest.exists():
        with lzma.open(rest) as file:
            bundle["layers"] |= pickle.load(file)["layers"]
    return bundle


def _matrix(raw: np.ndarray) -> np.ndarray:
    """Q4_1: blocks of a half-precision scale, a half-precision minimum, and 16 bytes of low then high halves."""
    rows = raw.shape[0]
    blocks = np.ascontiguousarray(raw).view(np.uint8).reshape(-1, 20)
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    least = blocks[:, 2:4].copy().view(np.float16).astype(np.float32)
    levels = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], 1).astype(np.float32)
    return (levels * scale + least).reshape(rows, -1)


def _halves(matrix: np.ndarray) -> np.ndarray:
    heads = matrix.reshape(-1, HEAD_WIDTH, matrix.shape[1])
    return heads[:, _HALVES].reshape(matrix.shape)


def stack_layers(layers: dict[int, dict[str, np.ndarray]], count: int) -> dict[str, np.ndarray]:
    """The first layers as one array for each matrix: joined query-key-value, output, gate-up, down, and the norms."""
    stacked: dict[str, list[np.ndarray]] = {name: [] for name in ("qkv", "out", "gate_up", "down", "norm1", "norm2")}
    for number in range(count):
        layer = layers[number]
        query, key, value = (_matrix(layer[f"attn_{name}"]) for name in "qkv")
        stacked["qkv"].append(np.concatenate([_halves(query), _halves(key), value]))
        stacked["out"].append(_matrix(layer["attn_output"]))
        stacked["gate_up"].append(np.concatenate([_matrix(layer["ffn_gate"]), _matrix(layer["ffn_up"])]))
        stacked["down"].append(_matrix(layer["ffn_down"]))
        stacked["norm1"].append(layer["attn_norm"])
        stacked["norm2"].append(layer["ffn_norm"])
    return {name: np.stack(one).astype(np.float32) for name, one in stacked.items()}
