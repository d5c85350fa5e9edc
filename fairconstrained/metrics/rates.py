"""Aggregates of gaps between groups, which make one number of them. Array functions only."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import product
from typing import Literal

import numpy as np

__all__ = [
    "AGGREGATES",
    "OVER_LABELS",
    "Aggregate",
    "AggregateLabels",
    "aggregate_pairs",
    "block_signs",
]

Aggregate = Literal["max", "mean"]
AGGREGATES: dict[str, Callable[..., np.floating]] = {"max": np.max, "mean": np.mean}

#: Aggregates of the gaps of two groups over labels; some papers call "sum" equalized odds.
AggregateLabels = Literal["max", "sum"]
OVER_LABELS: dict[str, Callable[..., np.ndarray]] = {"max": np.max, "sum": np.sum}


@lru_cache
def block_signs(agg_labels: AggregateLabels, n_blocks: int) -> np.ndarray:
    """Signs of blocks, such as labels, in sums of a group's rates; ndarray of shape (n_signs, n_blocks).

    A gap is the largest of the gaps between these sums: with one block in each, the largest gap of a block; with all
    signs, the sum of the blocks' absolute gaps. So the largest one over all pairs of groups needs no pairs.
    """
    if agg_labels == "max":
        signs = np.eye(n_blocks)
    else:
        signs = np.array([(1.0, *others) for others in product((1.0, -1.0), repeat=n_blocks - 1)])
    signs.flags.writeable = False
    return signs


def aggregate_pairs(gaps: np.ndarray, agg: Aggregate) -> float:
    """Return the aggregate of a symmetric matrix of gaps between groups; NaN for a single group, or if any gap is."""
    n_groups = gaps.shape[0]
    if n_groups == 1:
        return float("nan")
    return float(AGGREGATES[agg](gaps[np.triu_indices(n_groups, 1)]))
