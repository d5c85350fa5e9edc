"""Means of a function of the rows in groups, such as a loss, and what tells how far apart they are."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import expit

from fairconstrained.groups import Unions, cell_sums
from fairconstrained.metrics.rates import AGGREGATES, Aggregate, AggregateLabels, aggregate_pairs

__all__ = [
    "LOSS_NOTIONS",
    "RATES",
    "RATE_NOTIONS",
    "ROW_LOSSES",
    "Notion",
    "Reference",
    "aggregated_gap",
    "blocks_of",
    "by_group",
    "cells_of",
    "gaps_of_means",
    "mean_by_cell",
    "rate_notion",
    "signed_means",
]

Reference = Literal["pairwise", "overall", "excess"]

#: Losses of a row, of its score and its target (-1 or +1).
ROW_LOSSES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "log_loss": lambda s, y: np.logaddexp(0.0, -y * s),
    "hinge": lambda s, y: np.maximum(1.0 - y * s, 0.0),
    "absolute": lambda s, y: np.abs(s - y),
    "squared": lambda s, y: (s - y) ** 2 / 2,
}
#: Rates of positive predictions, of the same two.
RATES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "indicator": lambda s, y: (s > 0).astype(float),
    "sigmoid": lambda s, y: expit(s),
    "hinge": ROW_LOSSES["hinge"],
}


class Notion(NamedTuple):
    """Rows and groups whose means are compared, and how the comparisons become one number.

    Attributes
    ----------
    targets : tuple of float or None
        The means of the rows of each of these targets are compared. None: of all rows.
    reference : {"pairwise", "overall", "excess"}
        Means that a group's mean is compared with, where the user does not choose.
    agg : {"max", "mean"}
        Aggregate of the gaps of the groups.
    agg_labels : {"max", "sum"}
        Aggregate, over the targets, of the gaps of two groups.
    """

    targets: tuple[float, ...] | None = None
    reference: Reference = "pairwise"
    agg: Aggregate = "max"
    agg_labels: AggregateLabels = "max"

    @property
    def n_blocks(self) -> int:
        """Blocks of rows whose means are compared: one for every target."""
        return 1 if self.targets is None else len(self.targets)

    @property
    def signs(self) -> np.ndarray:
        """Signs of the blocks in sums of means; ndarray of shape (n_signs, n_blocks).

        A gap is the largest of the gaps between these sums: with one block in each, the largest gap of a block; with
        all signs, the sum of the blocks' absolute gaps.
        """
        if self.agg_labels == "max":
            return np.eye(self.n_blocks)
        return np.array([(1.0, *others) for others in product((1.0, -1.0), repeat=self.n_blocks - 1)])

    @property
    def sign_names(self) -> list[str]:
        """Return the suffixes of the sums, behind the names of two groups."""
        if self.targets is None or self.n_blocks == 1:
            return [""]
        return [", sum", ", difference"] if self.agg_labels == "sum" else [f", y={y:+g}" for y in self.targets]


#: Table 1 of the paper on stochastic approximation, whose "equalized_odds" takes the sum over the labels.
LOSS_NOTIONS: dict[str, Notion] = {
    "demographic_parity": Notion(),
    "equal_opportunity": Notion((1.0,)),
    "equalized_odds": Notion((1.0, -1.0)),
}
#: Eqs. 15, 17 and 18 of the paper on proximal-perturbed Lagrangians.
RATE_NOTIONS: dict[str, Notion] = LOSS_NOTIONS | {"intersectional": Notion(reference="overall")}


def blocks_of(targets: np.ndarray, notion: Notion) -> np.ndarray:
    """Return whether each row is in each block; boolean ndarray of shape (n_blocks, n_samples)."""
    if notion.targets is None:
        return np.ones((1, targets.size), dtype=bool)
    return targets == np.array(notion.targets)[:, None]


def cells_of(parts: np.ndarray, n_parts: int, targets: np.ndarray, notion: Notion) -> np.ndarray:
    """Cell of every row, the parts of the first block first; those in none come last. Shape (n_samples,).

    Parameters
    ----------
    parts : ndarray of shape (n_samples,)
        Part of every row, in ``0 .. n_parts``; rows of part ``n_parts`` are in no cell.
    n_parts : int
    targets : ndarray of shape (n_samples,)
    notion : Notion
    """
    if notion.targets is None:
        return parts  # those left out have the number that follows already
    cells = np.full(parts.size, n_parts * len(notion.targets))
    for block, rows in enumerate(blocks_of(targets, notion)):
        chosen = rows & (parts < n_parts)
        cells[chosen] = block * n_parts + parts[chosen]
    return cells


def rate_notion(constraint: str, rate: str) -> Notion:
    """Return the notion of a rate; a hinge is a loss, of which no group may have more than all rows have."""
    notion = RATE_NOTIONS[constraint]
    return notion._replace(reference="excess") if (notion.reference, rate) == ("overall", "hinge") else notion


def mean_by_cell(
    values: np.ndarray, cells: np.ndarray, weights: np.ndarray, shape: tuple[int, int], unions: Unions | None = None
) -> np.ndarray:
    """Weighted mean of every cell, NaN for an empty one; ndarray of shape (n_blocks, n_groups).

    Parameters
    ----------
    values, weights : ndarray of shape (n_samples,)
    cells : ndarray of shape (n_samples,)
        Parts of the first block first; rows of the last number are left out.
    shape : tuple of int
        Blocks and parts.
    unions : Unions, optional
        The groups, if they are not the parts.
    """
    n_cells = shape[0] * shape[1]
    mass, total = (
        by_group(cell_sums(cells, n_cells, of_rows).reshape(shape), unions) for of_rows in (weights, weights * values)
    )
    return np.divide(total, mass, out=np.full(total.shape, np.nan), where=mass > 0)


def by_group(sums: np.ndarray, unions: Unions | None) -> np.ndarray:
    """Sums over the groups from sums over the parts, of shape (n_blocks, n_parts)."""
    return sums if unions is None else (unions.members @ sums.T).T


def signed_means(means: np.ndarray, notion: Notion) -> np.ndarray:
    """The sums over the blocks whose ranges are gaps; ndarray of shape (n_signs, n_groups).

    Parameters
    ----------
    means : ndarray of shape (n_blocks, n_groups)
    notion : Notion
    """
    return notion.signs @ means


def gaps_of_means(means: np.ndarray, overall: np.ndarray, notion: Notion) -> np.ndarray:
    """Return the gap of every group to the group it differs from most, or to all rows; shape (n_groups,).

    The sum of the absolute differences of two groups over the blocks is the largest difference of their signed sums,
    so that no pair of groups has to be formed.

    Parameters
    ----------
    means : ndarray of shape (n_blocks, n_groups)
    overall : ndarray of shape (n_blocks,)
        Means of all rows.
    notion : Notion
        The reference "excess" takes the mean of a group minus that of all rows, which is negative if the group's is
        lower.
    """
    signed = signed_means(means, notion)
    if notion.reference == "pairwise":
        above, below = signed - signed.min(axis=1, keepdims=True), signed.max(axis=1, keepdims=True) - signed
        return np.maximum(above, below).max(axis=0)
    differences = signed - (notion.signs @ overall)[:, None]
    return (np.abs(differences) if notion.reference == "overall" else differences).max(axis=0)


def aggregated_gap(gaps: np.ndarray, means: np.ndarray, notion: Notion) -> float:
    """Return the groups' gaps as one number; the mean of pairwise ones visits every pair."""
    if notion.agg == "max" or notion.reference != "pairwise":
        return float(AGGREGATES[notion.agg](gaps))
    signed = signed_means(means, notion)
    return aggregate_pairs(np.abs(signed[:, :, None] - signed[:, None, :]).max(axis=0), notion.agg)
