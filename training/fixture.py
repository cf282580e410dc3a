"""Writes the fixture of the reader's test: a tiny random network, and what PyTorch reads with it.

python -m training.fixture tests/unit/extraction/extractors/reader/tiny
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from training.export import _write, export
from training.network import ReaderNetwork, Shape, round_bits

SHAPE = Shape(layers=3, width=64, heads=4, key_heads=2, head_width=16, pair=32, query=32, bits=5)
LABELS = ("company | based in | place", "company | is listed | boolean", "type: place")
TEXT = "Acme Ltd of Ülm is based in Austin."
SPANS = ((0, 7), (12, 15), (29, 34))


def main(folder: Path) -> None:
    from sameas.extraction.extractors.reader.tokenizer import Tokenizer, _byte_letters

    torch.manual_seed(3)
    rng = np.random.default_rng(3)
    qkv = (SHAPE.heads + 2 * SHAPE.key_heads) * SHAPE.head_width
    sizes = {"qkv": (qkv, 64), "out": (64, 64), "gate_up": (192, 64), "down": (64, 96)}
    stacked = {name: rng.normal(0, 0.2, (SHAPE.layers, *size)).astype(np.float32) for name, size in sizes.items()}
    stacked |= {name: rng.uniform(0.5, 1.5, (SHAPE.layers, 64)).astype(np.float32) for name in ("norm1", "norm2")}
    rows, scales = rng.integers(-127, 128, (256, 64)).astype(np.int8), np.full((256, 1), 0.01, np.float16)
    network = ReaderNetwork(SHAPE, stacked, rows.astype(np.float32) * scales.astype(np.float32)).eval()
    with torch.no_grad():
        for name in ("qkv", "out", "gate_up", "down"):
            weights = getattr(network.encoder, name)
            weights.copy_(round_bits(weights, SHAPE.bits))
        for weights in network.heads.parameters():
            weights.mul_(2).copy_(weights.half().float())
        for name in ("norm1", "norm2"):
            weights = getattr(network.encoder, name)
            weights.copy_(weights.half().float())
    settings = {
        "format": 1,
        **SHAPE.__dict__,
        "embedding_bits": 8,
        "text_offset": 64,
        "temperature": 1.0,
        "offset": 0.0,
    }
    export(network, folder, settings | {"threshold": 0.5, "threshold_80": 0.6, "threshold_85": 0.7})
    _write({"rows.0": rows, "scales.0": scales}, folder, "embeddings", None)
    letters = _byte_letters()
    (folder / "vocabulary.json").write_text(json.dumps({"vocabulary": letters, "merges": []}))
    tokenizer = Tokenizer(letters, [])
    labels = [torch.tensor(tokenizer.encode(label).ids) for label in LABELS]
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(label) for label in labels], batch_first=True).bool()
    text = torch.tensor([tokenizer.encode(TEXT).ids])
    first, last = (torch.tensor([column]) for column in zip(*SPANS, strict=True))
    batch = {
        "label_ids": torch.nn.utils.rnn.pad_sequence(labels, batch_first=True),
        "label_mask": mask, "label_kept": mask.flatten().nonzero().squeeze(1),
        "text_ids": text, "text_mask": torch.ones_like(text, dtype=torch.bool),
        "is_boolean": torch.tensor([False, True]), "span_first": first, "span_last": last,
        "span_name": torch.tensor([[0, 1, 2]]), "names": torch.tensor(3),
    }  # fmt: skip
    with torch.no_grad():
        found = network(batch, torch.float32, rounded=False)
        scores, kinds = network.score(found, batch)
    told = {
        "tags": found["tags"].softmax(-1),
        "stance": found["stance"].softmax(-1),
        "scores": scores,
        "kinds": kinds,
        "hidden": found["text"],
    }
    np.savez_compressed(folder / "expected.npz", **{name: one[0].numpy() for name, one in told.items()})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
