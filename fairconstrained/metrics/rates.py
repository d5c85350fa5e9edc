"""Rates within cells of groups, and how gaps between groups become one number. Array functions only."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import product
from typing import Literal

import numpy as np

from fairconstrained.cells import cell_maxima, cell_sums

__all__ = [
    "AGGREGATES",
    "OVER_LABELS",
    "Aggregate",
    "AggregateLabels",
    "aggregate_pairs",
    "block_signs",
    "conditional_rates",
    "largest_range",
    "largest_row_shares",
    "pair_differences",
]

Aggregate = Literal["max", "mean"]
AGGREGATES: dict[str, Callable[..., np.floating]] = {"max": np.max, "mean": np.mean}

#: Aggregates of the gaps of two groups over labels; some papers call "sum" equalized odds.
AggregateLabels = Literal["max", "sum"]
OVER_LABELS: dict[str, Callable[..., np.ndarray]] = {"max": np.max, "sum": np.sum}


def conditional_rates(
    event: np.ndarray,
    condition: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray,
    n_groups: int,
    n_conditions: int,
) -> np.ndarray:
    """Weighted mean of ``event`` in every cell of group and condition.

    Parameters
    ----------
    event : ndarray of shape (n_samples,)
        Booleans for a probability, or numbers for a mean.
    condition : ndarray of int or bool, of shape (n_samples,)
        Condition of every row, in ``0 .. n_conditions - 1``.
    codes, weights : ndarray of shape (n_samples,)
    n_groups, n_conditions : int

    Returns
    -------
    rates : ndarray of shape (n_groups, n_conditions)
        ``P(event | group, condition)``; NaN where a cell has no weight.
    """
    cells = codes * n_conditions + condition
    shape, size = (n_groups, n_conditions), n_groups * n_conditions
    mass = cell_sums(cells, size, weights).reshape(shape)
    hits = cell_sums(cells, size, weights * event).reshape(shape)
    return np.divide(hits, mass, out=np.full(shape, np.nan), where=mass > 0)


def largest_row_shares(codes: np.ndarray, weights: np.ndarray, n_groups: int) -> np.ndarray:
    """Share of its group that the heaviest row holds, of shape (n_groups,): the resolution of a rate."""
    return cell_maxima(codes, n_groups, weights) / cell_sums(codes, n_groups, weights)


def pair_differences(rates: np.ndarray) -> np.ndarray:
    """``|rates[g, v] - rates[g', v]|``, of shape (n_groups, n_groups, n_conditions)."""
    return np.abs(rates[:, None] - rates[None, :])


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


def largest_range(values: np.ndarray) -> float:
    """The largest difference of two groups in any column of (n_groups, n_columns); 0 for one group, NaN if any is."""
    return 0.0 if len(values) == 1 else float(np.ptp(values, axis=0).max())


def aggregate_pairs(gaps: np.ndarray, agg: Aggregate) -> float:
    """Return the aggregate of a symmetric matrix of gaps between groups; 0 for a single group, NaN if any gap is."""
    n_groups = gaps.shape[0]
    if n_groups == 1:
        return 0.0
    return float(AGGREGATES[agg](gaps[np.triu_indices(n_groups, 1)]))
