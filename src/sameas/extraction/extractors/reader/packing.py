"""Matrices in four to six bits: groups of 32 numbers of a row share a scale and a least value, both in half precision.

Byte j of a group holds the low four bits of number j in its low half and those of number j + 16 in its high half; each
further bit is a plane of its own, eight numbers to a byte. Needs numpy alone, so that training uses this very file.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

GROUP = 32
Floats = npt.NDArray[np.float32]


class Packed(NamedTuple):
    """Low halves [rows, columns / 2], further bits [planes, rows, columns / 8], scale and least value of each group."""

    bytes: npt.NDArray[np.uint8]
    planes: npt.NDArray[np.uint8]
    scales: npt.NDArray[np.float16]
    least: npt.NDArray[np.float16]


def pack(matrix: npt.NDArray[Any], bits: int = 4) -> Packed:
    """A matrix in few bits."""
    rows, columns = matrix.shape
    top = 2**bits - 1
    groups = matrix.astype(np.float32).reshape(rows, columns // GROUP, GROUP)
    least = groups.min(-1).astype(np.float16)
    scales = np.maximum((groups.max(-1) - least.astype(np.float32)) / np.float32(top), 1e-7).astype(np.float16)
    scales = np.maximum(scales, np.float16(6e-8))
    levels = np.rint((groups - least.astype(np.float32)[..., None]) / scales.astype(np.float32)[..., None])
    levels = levels.clip(0, top).astype(np.uint8)
    low = levels & 15
    joined = low[..., : GROUP // 2] | (low[..., GROUP // 2 :] << 4)
    flat = levels.reshape(rows, columns)
    planes = [np.packbits((flat >> bit) & 1, axis=-1) for bit in range(4, bits)]
    further = np.stack(planes) if planes else np.zeros((0, rows, columns // 8), np.uint8)
    return Packed(joined.reshape(rows, columns // 2), further, scales, least)


def unpack(packed: Packed) -> Floats:
    """The matrix that the bits stand for."""
    rows, halves = packed.bytes.shape
    groups = packed.bytes.reshape(rows, halves * 2 // GROUP, GROUP // 2)
    levels = np.concatenate([groups & 15, groups >> 4], -1)
    for number, plane in enumerate(packed.planes):
        levels |= np.unpackbits(plane, axis=-1).reshape(levels.shape) << (4 + number)
    matrix = levels.astype(np.float32)
    matrix *= packed.scales.astype(np.float32)[..., None]
    matrix += packed.least.astype(np.float32)[..., None]
    return matrix.reshape(rows, halves * 2)
