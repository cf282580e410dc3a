"""The two fits: logistic regression for objects, a conditional choice for subjects. Both are drawn to a
prior.

Only learning needs scipy; a learned model is applied with numpy alone. Nothing here is random.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

Floats = NDArray[np.float32]
_CORRECTIONS = 8


def vocabulary(rows: Iterable[Sequence[int]], groups: Iterable[int], *, least: int) -> dict[int, int]:
    """Number the features that occur in at least so many groups (examples), in the features' own order."""
    last: dict[int, int] = {}
    counts: dict[int, int] = {}
    for row, group in zip(rows, groups, strict=True):
        for key in row:
            if last.get(key) != group:
                last[key] = group
                counts[key] = counts.get(key, 0) + 1
    return {key: i for i, key in enumerate(sorted(key for key, count in counts.items() if count >= least))}


def matrix(rows: Sequence[Sequence[int]], numbers: dict[int, int]) -> Any:
    """The rows as a sparse matrix; features without a number are left out, repeated ones count again."""
    columns: list[int] = []
    pointers = [0]
    for row in rows:
        columns.extend(numbers[key] for key in row if key in numbers)
        pointers.append(len(columns))
    data = np.ones(len(columns), np.float32)
    shape = (len(rows), max(1, len(numbers)))
    found = csr_matrix((data, np.array(columns, np.int32), np.array(pointers, np.int32)), shape=shape)
    found.sum_duplicates()
    return found


def minimize_from(function: Any, start: NDArray[np.float64], *, rounds: int) -> NDArray[np.float64]:
    """Minimise a function that returns its value and slope, from a start, by L-BFGS."""
    options = {"maxiter": rounds, "maxcor": _CORRECTIONS}
    result = minimize(function, start, jac=True, method="L-BFGS-B", options=options)
    found: NDArray[np.float64] = result.x
    return found


def fit_logistic(
    rows: Any, labels: Floats, weights: Floats, *, prior: Floats, strength: float, rounds: int = 60
) -> Floats:
    """Weights of one logistic regression a column of labels, drawn to the prior with this strength."""
    turned = rows.T.tocsr()

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        guess = flat.reshape(prior.shape).astype(np.float32)
        scores = rows @ guess
        away = guess - prior
        value = (weights * (np.logaddexp(np.float32(0), scores) - labels * scores)).sum(dtype=np.float64)
        value += 0.5 * strength * (away * away).sum(dtype=np.float64)
        slope = turned @ (weights * (sigmoid(scores) - labels)) + np.float32(strength) * away
        return float(value), slope.ravel().astype(np.float64)

    return minimize_from(loss, prior.ravel().astype(np.float64), rounds=rounds).reshape(prior.shape).astype(np.float32)


def fit_choice(
    rows: Any,
    groups: Sequence[int],
    right: Sequence[bool],
    *,
    prior: NDArray[np.float64],
    strength: float,
    rounds: int = 80,
) -> NDArray[np.float64]:
    """Weights under which the right rows of each group are the most probable; groups are given by their
    bounds.
    """
    starts = np.array(groups[:-1], np.int64)
    if not len(starts):
        return prior.copy()
    member = np.repeat(np.arange(len(starts)), np.diff(groups))
    chosen = np.array(right, np.float64)
    turned = rows.T.tocsr()

    def loss(guess: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        scores = rows @ guess
        top = np.maximum.reduceat(scores, starts)
        powers = np.exp(scores - top[member])
        whole = np.add.reduceat(powers, starts)
        part = np.add.reduceat(powers * chosen, starts)
        away = guess - prior
        value = (np.log(whole) - np.log(np.maximum(part, 1e-300))).sum() + 0.5 * strength * (away * away).sum()
        pull = powers / whole[member] - powers * chosen / np.maximum(part, 1e-300)[member]
        return float(value), turned @ pull + strength * away

    return minimize_from(loss, prior, rounds=rounds)


def sigmoid(scores: Floats) -> Floats:
    """The logistic function, without overflow."""
    found: Floats = np.float32(0.5) * (np.float32(1) + np.tanh(np.float32(0.5) * scores))
    return found
