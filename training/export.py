"""A trained network as files of at most 16 MiB, and, with SmolLM2's embeddings and vocabulary, the reader's folder.

On the device: `export`. Afterwards, where the GGUF file is:

    python -m training.export FILES_FROM_THE_DEVICE --out FOLDER
"""

import argparse
import hashlib
import io
import json
from pathlib import Path

import numpy as np

from training.house import packing

LIMIT = 15 * 2**20
MATRICES = ("qkv", "out", "gate_up", "down")


def export(network, folder: Path, settings: dict) -> list[Path]:
    """Layers in few bits, norms and heads in half precision, settings as JSON; in parts."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {name: one.detach().float().cpu().numpy() for name, one in network.state_dict().items()}
    arrays: dict[str, np.ndarray] = {}
    for name, array in state.items():
        kind = name.removeprefix("encoder.")
        if kind in MATRICES:
            for number, matrix in enumerate(array):
                packed = packing.pack(matrix, settings["bits"])
                for field, part in zip(packed._fields, packed, strict=True):
                    arrays[f"layer.{number}.{kind}.{field}"] = part
        else:
            arrays[name] = array.astype(np.float16)
    return _write(arrays, folder, "reader", settings)


def _write(arrays: dict[str, np.ndarray], folder: Path, name: str, settings: dict | None) -> list[Path]:
    parts: list[dict[str, np.ndarray]] = [{}]
    size = 0
    for key, array in arrays.items():
        if size + array.nbytes + 512 > LIMIT and parts[-1]:
            parts.append({})
            size = 0
        parts[-1][key] = array
        size += array.nbytes + 512
    if settings is not None:
        parts[0]["settings"] = np.frombuffer(json.dumps(settings).encode(), np.uint8)
    written = []
    for number, part in enumerate(parts):
        path = folder / f"{name}-{number}.npz"
        buffer = io.BytesIO()
        np.savez(buffer, **part)
        path.write_bytes(buffer.getvalue())
        written.append(path)
    return written


def add_vocabulary(folder: Path, gguf: Path, bits: int) -> None:
    """The embeddings of the full vocabulary, and the words and merges of the tokenizer."""
    from training.base_model import BaseModel

    base = BaseModel(gguf)
    rows, scales = base.embeddings()
    arrays: dict[str, np.ndarray] = {}
    step = LIMIT // 640
    for start in range(0, len(rows), step):
        piece, some = rows[start : start + step], scales[start : start + step]
        if bits == 8:
            arrays |= {f"rows.{start}": piece, f"scales.{start}": some}
        else:
            packed = packing.pack(piece.astype(np.float32) * some.astype(np.float32))
            arrays |= {f"{field}.{start}": part for field, part in zip(packed._fields, packed, strict=True)}
    _write(arrays, folder, "embeddings", None)
    with (folder / "vocabulary.json").open("w", encoding="utf-8") as file:
        json.dump(
            {"vocabulary": base.vocabulary(), "merges": base.merges()}, file, ensure_ascii=False, separators=(",", ":")
        )


def write_manifest(folder: Path) -> None:
    """The digest of each file and, of these, the one that is a part of every extraction's key."""
    files = sorted((*folder.glob("*.npz"), folder / "vocabulary.json"))
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    whole = hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps({"digest": whole, "files": digests}, indent=1) + "\n", "utf-8")


def main() -> None:
    from training.base_model import default_path

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path)
    parser.add_argument("--gguf", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    told = parser.parse_args()
    told.out.mkdir(parents=True, exist_ok=True)
    for path in sorted(told.files.glob("reader-*.npz")):
        (told.out / path.name).write_bytes(path.read_bytes())
    settings = json.loads(bytes(np.load(told.out / "reader-0.npz")["settings"]))
    add_vocabulary(told.out, told.gguf or default_path(), settings["embedding_bits"])
    write_manifest(told.out)
    files = sorted(told.out.iterdir())
    print(*(f"{path.name} {path.stat().st_size / 2**20:.1f} MiB" for path in files), sep="\n")
    print(f"{sum(path.stat().st_size for path in files) / 1e6:.1f} MB in all")


if __name__ == "__main__":
    main()
