"""Constraints: a module for each, with

``PARAMS`` : dict
    Parameters of `fairconstrained.LossParityClassifier` that ask for it.
``gap(y, scores, groups) -> float``
    The exact metric that kappa bounds, from labels in {-1, 1}, log-odds and the groups' names.
``differences(losses, y, member) -> Tensor``
    The gap on a mini-batch for methods in torch: signed differences, each of which is to be at most kappa, of row
    losses of shape (n,), labels in {-1, 1} of shape (n,) and memberships 0 or 1 of shape (n, n_groups).
``TITLE`` : str
    Title in figures and tables.
``PLACE`` : int, optional
    Place among the others, see `benchmarks.loss_parity.discovery`.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from benchmarks.loss_parity.discovery import modules_of

__all__ = ["constraints", "label_differences", "signed_gap", "signed_pairs"]


def constraints() -> dict[str, ModuleType]:
    """All constraints by name."""
    return modules_of("constraints")


def signed_gap(constraint: ModuleType, y: np.ndarray, scores: np.ndarray, groups: np.ndarray) -> float:
    """The gap with its sign, the second group minus the first one in alphabetical order; NaN for more than two groups.

    Where the gaps of the labels are added up, so are the signed ones.
    """
    names = np.unique(groups)
    if names.size != 2:
        return np.nan
    losses, member = np.logaddexp(0, -y * scores), (groups[:, None] == names).astype(float)
    return float(constraint.differences(*(torch.from_numpy(values) for values in (losses, y, member)))[1])


def signed_pairs(means: Tensor) -> Tensor:
    """Differences of every group to every other one, in both directions."""
    return _off_diagonal(means[:, None] - means)


def label_differences(losses: Tensor, chosen: Tensor, member: Tensor) -> Tensor:
    """`signed_pairs` of the chosen rows' mean losses; 0 where one of the two groups has none of them."""
    member = member * chosen[:, None]
    counts = member.sum(dim=0)
    there = (counts > 0).to(losses)
    means = losses @ member / counts.clamp(min=1)
    return signed_pairs(means) * _off_diagonal(there[:, None] * there)


def _off_diagonal(matrix: Tensor) -> Tensor:
    """All entries of a square matrix but those of its diagonal, as a vector."""
    size = len(matrix)
    return matrix.flatten()[1:].view(size - 1, size + 1)[:, :-1].reshape(-1)
