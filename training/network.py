"""The reader in PyTorch: labels each alone, a text that sees all labels and all of itself, and the heads.

The layers' matrices are stacked, so that quantisation, casting and the optimiser touch four tensors and not hundreds.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.house import decoding, packing

HEADS, KEY_HEADS, HEAD_WIDTH = 9, 3, 64
ROPE_BASE = 100_000.0
TEXT_OFFSET = 64
"""Where a text's positions begin: labels are shorter."""
EPSILON = 1e-5
STANCES = 6
MATRICES = ("qkv", "out", "gate_up", "down")
GROUP = packing.GROUP


@dataclass(frozen=True)
class Shape:
    """The sizes of a reader."""

    layers: int
    width: int = 576
    heads: int = HEADS
    key_heads: int = KEY_HEADS
    head_width: int = HEAD_WIDTH
    pair: int = 384
    query: int = 256
    bits: int = 4


class _Rounded(torch.autograd.Function):
    """Rounding to few bits forwards, nothing backwards."""

    @staticmethod
    def forward(context, weights: Tensor, bits: int) -> Tensor:
        groups = weights.unflatten(-1, (-1, GROUP))
        top = 2**bits - 1
        least = groups.amin(-1, keepdim=True).half().float()
        scale = ((groups.amax(-1, keepdim=True) - least) / top).clamp_min(1e-7).half().float().clamp_min(6e-8)
        return torch.round((groups - least) / scale).clamp_(0, top).mul_(scale).add_(least).flatten(-2)

    @staticmethod
    def backward(context, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


def round_bits(weights: Tensor, bits: int) -> Tensor:
    """What few bits keep of a tensor whose last dimension is in groups of 32."""
    return _Rounded.apply(weights, bits)


class Encoder(nn.Module):
    """The layers."""

    def __init__(self, shape: Shape, stacked: dict[str, np.ndarray], dropout: float) -> None:
        super().__init__()
        self.shape = shape
        for name, array in stacked.items():
            setattr(self, name, nn.Parameter(torch.tensor(array)))
        self.norm = nn.Parameter(torch.ones(shape.width))
        self.dropout = dropout

    def matrices(self, dtype: torch.dtype, *, rounded: bool) -> list[tuple[Tensor, ...]]:
        """For each layer its matrices in the dtype of computation, and its norms."""
        whole = []
        for name in MATRICES:
            weights = getattr(self, name)
            whole.append((round_bits(weights, self.shape.bits) if rounded else weights).to(dtype).unbind(0))
        return list(zip(*whole, self.norm1.unbind(0), self.norm2.unbind(0), strict=True))

    def forward(self, x: Tensor, batch: dict[str, Tensor], dtype: torch.dtype, *, rounded: bool) -> Tensor:
        shape = self.shape
        labels, label_length = batch["label_ids"].shape
        texts, text_length = batch["text_ids"].shape
        split = labels * label_length
        cos, sin = _rotation(label_length, labels, text_length, texts, shape.head_width, x.device, dtype)
        kept = batch["label_kept"]
        label_mask = _additive(batch["label_mask"], dtype)
        all_labels = batch["text_mask"].new_ones(texts, len(kept))
        seen = _additive(torch.cat([all_labels, batch["text_mask"]], 1), dtype)
        wide = shape.heads * shape.head_width
        group = shape.heads // shape.key_heads
        both = shape.heads + shape.key_heads
        for qkv, out, gate_up, down, norm1, norm2 in self.matrices(dtype, rounded=rounded):
            h = F.linear(F.rms_norm(x, (shape.width,), norm1, EPSILON).to(dtype), qkv)
            qk = h[:, : both * shape.head_width].unflatten(1, (both, shape.head_width))
            left, right = qk.chunk(2, -1)
            qk = torch.addcmul(qk * cos, torch.cat([-right, left], -1), sin)
            q = qk[:, : shape.heads]
            kv = torch.cat(
                [qk[:, shape.heads :], h[:, both * shape.head_width :].unflatten(1, (shape.key_heads, -1))], -1
            )
            alone = kv[:split].unflatten(0, (labels, label_length))
            joint = torch.cat(
                [kv.index_select(0, kept).expand(texts, -1, -1, -1), kv[split:].unflatten(0, (texts, text_length))], 1
            )
            told = _attend(q[:split].unflatten(0, (labels, label_length)), alone, label_mask, group)
            read = _attend(q[split:].unflatten(0, (texts, text_length)), joint, seen, group)
            mixed = torch.cat([told.reshape(split, wide), read.reshape(texts * text_length, wide)])
            x = x + F.dropout(F.linear(mixed, out), self.dropout, self.training)
            gate, up = F.linear(F.rms_norm(x, (shape.width,), norm2, EPSILON).to(dtype), gate_up).chunk(2, -1)
            x = x + F.dropout(F.linear(F.silu(gate) * up, down), self.dropout, self.training)
        return F.rms_norm(x, (shape.width,), self.norm, EPSILON)


def _rotation(label_length, labels, text_length, texts, width, device, dtype) -> tuple[Tensor, Tensor]:
    positions = torch.cat(
        [
            torch.arange(label_length, device=device).repeat(labels),
            torch.arange(TEXT_OFFSET, TEXT_OFFSET + text_length, device=device).repeat(texts),
        ]
    ).float()
    speeds = ROPE_BASE ** -(torch.arange(0, width, 2, device=device).float() / width)
    angles = torch.outer(positions, speeds)
    angles = torch.cat([angles, angles], -1)[:, None, :]
    return angles.cos().to(dtype), angles.sin().to(dtype)


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, float("-inf"))[:, None, None, :]


def _attend(q: Tensor, kv: Tensor, mask: Tensor, group: int) -> Tensor:
    key, value = kv.repeat_interleave(group, 2).transpose(1, 2).chunk(2, -1)
    return F.scaled_dot_product_attention(q.transpose(1, 2), key, value, attn_mask=mask).transpose(1, 2)


class Heads(nn.Module):
    """Tags, stance, pairs and types over what the encoder wrote."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        width, pair, query = shape.width, shape.pair, shape.query
        self.tags = nn.Linear(width, 3)
        self.stance = nn.Linear(width, STANCES)
        self.subject = nn.Linear(3 * width, pair)
        self.object = nn.Linear(3 * width, pair)
        self.virtual = nn.Parameter(torch.randn(2, pair) * 0.02)
        self.distance = nn.Embedding(decoding.VIRTUAL_BUCKET + 1, pair)
        self.pair1 = nn.Linear(pair, pair)
        self.pair2 = nn.Linear(pair, query)
        self.query1 = nn.Linear(width, pair)
        self.query2 = nn.Linear(pair, query)
        self.query_bias = nn.Linear(query, 1)
        self.kind1 = nn.Linear(3 * width, pair // 2)
        self.kind2 = nn.Linear(pair // 2, query)
        self.bias = nn.Parameter(torch.tensor([-3.0, -1.0]))
        self.dropout = dropout

    def queries(self, labels: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """One vector and one bias for each label, from the mean of its tokens."""
        weight = mask.to(labels.dtype)[..., None]
        mean = (labels * weight).sum(1) / weight.sum(1).clamp_min(1)
        query = self.query2(F.gelu(self.query1(mean)))
        return query, self.query_bias(query).squeeze(-1)

    def spans(self, texts: Tensor, first: Tensor, last: Tensor) -> Tensor:
        """First token, last token and mean of each span [texts, spans, 3 * width]."""
        rows = torch.arange(len(texts), device=texts.device)[:, None]
        sums = F.pad(texts.cumsum(1), (0, 0, 1, 0))
        mean = (sums[rows, last + 1] - sums[rows, first]) / (last - first + 1)[..., None]
        return torch.cat([texts[rows, first], texts[rows, last], mean], -1)

    def pairs(self, spans: Tensor, first: Tensor, query: Tensor, bias: Tensor) -> Tensor:
        """Scores [texts, spans, spans + 2, properties]; the last two objects are true and false."""
        subject, target = self.subject(spans), self.object(spans)
        target = torch.cat([target, self.virtual.to(target.dtype).expand(len(target), -1, -1)], 1)
        gap = (first[:, None, :] - first[:, :, None]).float()
        size = (torch.log2(gap.abs() + 1) / 2).clamp_max(4).floor()
        bucket = F.pad((gap.sign() * size + 4).long(), (0, 2), value=decoding.VIRTUAL_BUCKET)
        z = F.gelu(subject[:, :, None] + target[:, None] + self.distance(bucket))
        z = self.pair2(F.gelu(self.pair1(F.dropout(z, self.dropout, self.training))))
        return torch.einsum("bijd,pd->bijp", z, query) / 16 + self.bias[0] + bias

    def kinds(self, spans: Tensor, query: Tensor, bias: Tensor) -> Tensor:
        """Scores [texts, spans, classes]."""
        z = self.kind2(F.gelu(self.kind1(spans)))
        return z @ query.T / 16 + self.bias[1] + bias


class ReaderNetwork(nn.Module):
    """Frozen embeddings, encoder and heads."""

    def __init__(
        self, shape: Shape, stacked: dict[str, np.ndarray], embeddings: np.ndarray, dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("embeddings", torch.tensor(embeddings), persistent=False)
        self.encoder = Encoder(shape, stacked, dropout / 2)
        self.heads = Heads(shape, dropout)

    def forward(self, batch: dict[str, Tensor], dtype: torch.dtype, *, rounded: bool) -> dict[str, Tensor]:
        """Tags and stance of each token, pair scores between spans, types of spans; the heads work in full precision."""
        labels, label_length = batch["label_ids"].shape
        texts, text_length = batch["text_ids"].shape
        split = labels * label_length
        ids = torch.cat([batch["label_ids"].reshape(-1), batch["text_ids"].reshape(-1)])
        hidden = self.encoder(self.embeddings[ids], batch, dtype, rounded=rounded).float()
        text = hidden[split:].unflatten(0, (texts, text_length))
        query, bias = self.heads.queries(hidden[:split].unflatten(0, (labels, label_length)), batch["label_mask"])
        found = {"text": text, "query": query, "bias": bias}
        found["tags"], found["stance"] = self.heads.tags(text), self.heads.stance(text)
        return found

    def score(self, found: dict[str, Tensor], batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Scores of names [texts, names, names + 2, properties], the best pair of places of each; types of spans."""
        count = batch["is_boolean"].shape[0]
        first, last = batch["span_first"], batch["span_last"]
        spans = self.heads.spans(found["text"], first, last)
        scores = self.heads.pairs(spans, first, found["query"][:count], found["bias"][:count])
        kinds = self.heads.kinds(spans, found["query"][count:], found["bias"][count:])
        return best_of_names(scores, batch["span_name"], int(batch["names"])), kinds


def best_of_names(scores: Tensor, name_of: Tensor, names: int) -> Tensor:
    """From scores of places to scores of names; places numbered `names` are padding and fall away."""
    texts, _, objects, properties = scores.shape
    low = scores.new_full((texts, names + 1, objects, properties), -30.0)
    rows = name_of[:, :, None, None].expand(-1, -1, objects, properties)
    by_subject = low.scatter_reduce(1, rows, scores, "amax")[:, :names]
    low = scores.new_full((texts, names, names + 3, properties), -30.0)
    # true and false keep their places behind the names and the padding.
    columns = torch.cat([name_of, name_of.new_tensor([[names + 1, names + 2]]).expand(texts, 2)], 1)
    columns = columns[:, None, :, None].expand(-1, names, -1, properties)
    by_object = low.scatter_reduce(2, columns, by_subject, "amax")
    return torch.cat([by_object[:, :, :names], by_object[:, :, names + 1 :]], 2)
