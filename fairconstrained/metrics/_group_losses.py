"""Mean losses of groups, and what tells how far apart they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

__all__ = ["NOTIONS", "ROW_LOSSES", "LossNotion", "Reference", "loss_gaps", "mean_losses", "signed_losses"]

Reference = Literal["pairwise", "overall"]

#: Losses of a row, of its score and its target (-1 or +1).
ROW_LOSSES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "log_loss": lambda s, y: np.logaddexp(0.0, -y * s),
    "hinge": lambda s, y: np.maximum(1.0 - y * s, 0.0),
    "absolute": lambda s, y: np.abs(s - y),
    "squared": lambda s, y: (s - y) ** 2 / 2,
}


class LossNotion(NamedTuple):
    """Which rows of the groups are compared.

    Attributes
    ----------
    targets : tuple of float or None
        The mean losses of the rows of each of these targets are compared, and their gaps added up. None: all rows.
    signs : ndarray of shape (n_signs, n_blocks)
        One block for every target. A sum of absolute values is the largest of the sums with these signs, or of
        their negatives.
    """

    targets: tuple[float, ...] | None
    signs: np.ndarray


#: Table 1 of the paper.
NOTIONS: dict[str, LossNotion] = {
    "demographic_parity": LossNotion(None, np.ones((1, 1))),
    "equal_opportunity": LossNotion((1.0,), np.ones((1, 1))),
    "equalized_odds": LossNotion((1.0, -1.0), np.array([[1.0, 1.0], [1.0, -1.0]])),
}


def mean_losses(losses: np.ndarray, cells: np.ndarray, weights: np.ndarray, n_cells: int) -> np.ndarray:
    """Weighted mean loss of every cell, NaN for an empty one; ndarray of shape (n_cells,).

    Parameters
    ----------
    losses, weights : ndarray of shape (n_samples,)
    cells : ndarray of shape (n_samples,)
        In ``0 .. n_cells``; rows of cell ``n_cells`` are left out.
    n_cells : int
    """
    mass = np.bincount(cells, weights, minlength=n_cells + 1)[:n_cells]
    total = np.bincount(cells, weights * losses, minlength=n_cells + 1)[:n_cells]
    return np.divide(total, mass, out=np.full(n_cells, np.nan), where=mass > 0)


def signed_losses(means: np.ndarray, notion: LossNotion) -> np.ndarray:
    """The sums over the blocks whose ranges are gaps; ndarray of shape (n_signs, n_groups).

    Parameters
    ----------
    means : ndarray of shape (n_blocks, n_groups)
    notion : LossNotion
    """
    return notion.signs @ means


def loss_gaps(means: np.ndarray, overall: np.ndarray, notion: LossNotion, reference: Reference) -> np.ndarray:
    """How far every group is from the one that it differs from most, or from all rows; shape (n_groups,).

    The sum of the absolute differences of two groups over the blocks is the largest difference of their signed sums,
    so that no pair of groups has to be formed.

    Parameters
    ----------
    means : ndarray of shape (n_blocks, n_groups)
    overall : ndarray of shape (n_blocks,)
        Of all rows.
    notion : LossNotion
    reference : {"pairwise", "overall"}
    """
    signed = signed_losses(means, notion)
    if reference == "overall":
        return np.abs(signed - (notion.signs @ overall)[:, None]).max(axis=0)
    return np.maximum(signed.max(axis=1, keepdims=True) - signed, signed - signed.min(axis=1, keepdims=True)).max(
        axis=0
    )
