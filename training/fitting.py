"""The loop: losses, learning rate by the share of the time that has passed, rounding to few bits in the later part."""

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from training.network import ReaderNetwork


@dataclass(frozen=True)
class Schedule:
    """How long and how fast. The part done is the larger of time and steps used, so that a run always ends in time."""

    seconds: float
    steps: int = 10**9
    rate: float = 2.5e-4
    head_rate: float = 8e-4
    warm_up: float = 0.04
    floor: float = 0.02
    rounded_from: float = 0.45
    decay: float = 0.05


def losses(network: ReaderNetwork, batch: dict[str, Tensor], dtype: torch.dtype, *, rounded: bool) -> dict[str, Tensor]:
    """Tags, pairs, types and stance; their sum is `loss`."""
    found = network(batch, dtype, rounded=rounded)
    scores, kinds = network.score(found, batch)
    tags = F.cross_entropy(found["tags"].transpose(1, 2), batch["tags"], reduction="none")
    tag_loss = (tags * batch["tag_weight"]).sum() / batch["tag_weight"].sum().clamp_min(1)
    pairs = F.binary_cross_entropy_with_logits(scores, batch["target"], reduction="none")
    pair_loss = (pairs * batch["weight"]).sum() / (20 * len(scores))
    types = F.binary_cross_entropy_with_logits(kinds, batch["kind_target"], reduction="none")
    type_loss = (types * batch["kind_weight"]).sum() / batch["kind_weight"].sum().clamp_min(1)
    stance = F.cross_entropy(found["stance"].transpose(1, 2), batch["stance"], ignore_index=-1, reduction="sum")
    stance_loss = stance / (batch["stance"] >= 0).sum().clamp_min(1)
    loss = tag_loss + pair_loss + 0.3 * type_loss + 0.2 * stance_loss
    return {"loss": loss, "tags": tag_loss, "pairs": pair_loss, "types": type_loss, "stance": stance_loss}


def make_optimizer(network: ReaderNetwork, schedule: Schedule) -> torch.optim.Optimizer:
    """AdamW with one rate for the layers and one for the heads."""
    encoder = [one for one in network.encoder.parameters() if one.requires_grad]
    heads = list(network.heads.parameters())
    groups = [
        {"params": encoder, "lr": schedule.rate, "peak": schedule.rate, "weight_decay": schedule.decay},
        {"params": heads, "lr": schedule.head_rate, "peak": schedule.head_rate, "weight_decay": 0.01},
    ]
    return torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=next(network.parameters()).is_cuda)


def _rate(done: float, schedule: Schedule) -> float:
    if done < schedule.warm_up:
        return done / schedule.warm_up
    rest = (done - schedule.warm_up) / (1 - schedule.warm_up)
    return schedule.floor + (1 - schedule.floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, rest)))


def to_device(batch: dict[str, Tensor], device: torch.device) -> dict[str, Tensor]:
    # The count of names stays here: reading it back would make the processor wait.
    return {name: one if name == "names" else one.to(device, non_blocking=True) for name, one in batch.items()}


def fit(
    network: ReaderNetwork,
    batches: Iterable[dict[str, Tensor]] | Iterator[dict[str, Tensor]],
    schedule: Schedule,
    *,
    dtype: torch.dtype,
    name: str = "",
    top: int | None = None,
) -> dict[str, float]:
    """Trains until the schedule's time or steps are used up.

    `top` leaves all but the last layers as they are, which needs a schedule without decay.
    """
    assert top is None or schedule.decay == 0
    device = next(network.parameters()).device
    optimizer = make_optimizer(network, schedule)
    network.train()
    began, step, rounded = time.monotonic(), 0, False
    told_at, told_step, sums = began, 0, {}
    means: dict[str, float] = {}
    for batch in batches:
        done = max((time.monotonic() - began) / schedule.seconds, step / schedule.steps)
        if done >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * max(_rate(done, schedule), 1e-3)
        rounded = done >= schedule.rounded_from
        parts = losses(network, to_device(batch, device), dtype, rounded=rounded)
        optimizer.zero_grad(set_to_none=True)
        parts["loss"].backward()
        if top is not None:
            _keep_lower(network, top)
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        step += 1
        for key, value in parts.items():
            sums[key] = sums.get(key, 0.0) + value.detach()
        if time.monotonic() - told_at > 10:
            told_at = time.monotonic()
            means = {key: round(float(value) / (step - told_step), 4) for key, value in sums.items()}
            told_step, sums = step, {}
            print(
                f"[{name}] {done:4.0%} step {step} {step / (told_at - began):.1f}/s rounded {rounded} {means}",
                flush=True,
            )
            if not math.isfinite(means["loss"]):
                raise FloatingPointError(f"the loss of {name} is no number after {step} steps")
    if step > told_step:
        means = {key: round(float(value) / (step - told_step), 4) for key, value in sums.items()}
    return {"steps": step, "seconds": round(time.monotonic() - began, 1), **means}


def _keep_lower(network: ReaderNetwork, top: int) -> None:
    for one in network.encoder.parameters():
        if one.dim() > 1 and one.grad is not None:
            one.grad[: len(one) - top] = 0
