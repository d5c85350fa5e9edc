"""Gaps of mean losses, exact and on mini-batches in torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairconstrained.metrics import loss_parity_gap

__all__ = ["CONSTRAINTS", "Constraint"]


@dataclass(frozen=True)
class Constraint:
    """A bound on a gap.

    Attributes
    ----------
    title : str
        Title in figures.
    differences : callable
        The gap on a mini-batch, as signed differences each of which is to be at most kappa; from row losses of shape
        (n,), labels in {-1, 1} of shape (n,) and memberships 0 or 1 of shape (n, n_groups).
    params : dict
        Parameters of `fairconstrained.LossParityClassifier` that ask for it.
    """

    title: str
    differences: Callable[[Tensor, Tensor, Tensor], Tensor]
    params: dict[str, Any]

    def gap(self, y: np.ndarray, scores: np.ndarray, groups: np.ndarray) -> float:
        """The metric that kappa bounds, from labels in {-1, 1}, log-odds and the groups' names."""
        return loss_parity_gap(y, scores, sensitive_features=groups, **self.params)

    def signed_gap(self, y: np.ndarray, scores: np.ndarray, groups: np.ndarray) -> float:
        """The gap of the second group minus the first one in alphabetical order; NaN for more than two groups.

        Where the gaps of the labels are added up, so are the signed ones.
        """
        names = np.unique(groups)
        if names.size != 2:
            return np.nan
        losses, member = np.logaddexp(0, -y * scores), (groups[:, None] == names).astype(float)
        return float(self.differences(*(torch.from_numpy(values) for values in (losses, y, member)))[1])


def _of_groups(losses: Tensor, y: Tensor, member: Tensor) -> Tensor:
    return _signed_pairs(losses @ member / member.sum(dim=0))


def _of_positives(losses: Tensor, y: Tensor, member: Tensor) -> Tensor:
    return _label_differences(losses, y > 0, member)


def _of_both_labels(losses: Tensor, y: Tensor, member: Tensor) -> Tensor:
    """Signed sums: |a| + |b| is the largest of a + b, a - b and their negatives."""
    positive, negative = (_label_differences(losses, chosen, member) for chosen in (y > 0, y < 0))
    return torch.cat([positive + negative, positive - negative])


def _signed_pairs(means: Tensor) -> Tensor:
    """Differences of every group to every other one, in both directions."""
    return _off_diagonal(means[:, None] - means)


def _label_differences(losses: Tensor, chosen: Tensor, member: Tensor) -> Tensor:
    """Differences of the chosen rows' mean losses; 0 where one of the two groups has none of them."""
    member = member * chosen[:, None]
    counts = member.sum(dim=0)
    there = (counts > 0).to(losses)
    means = losses @ member / counts.clamp(min=1)
    return _signed_pairs(means) * _off_diagonal(there[:, None] * there)


def _off_diagonal(matrix: Tensor) -> Tensor:
    """All entries of a square matrix but those of its diagonal, as a vector."""
    size = len(matrix)
    return matrix.flatten()[1:].view(size - 1, size + 1)[:, :-1].reshape(-1)


#: Constraints by name; the first one is the paper's experiment, and the last one adds the gaps up as the paper does.
CONSTRAINTS = {
    "demographic_parity": Constraint("gap of mean losses", _of_groups, {"constraint": "demographic_parity"}),
    "equal_opportunity": Constraint(
        "gap of mean losses, positive rows", _of_positives, {"constraint": "equal_opportunity"}
    ),
    "equalized_odds": Constraint(
        "gap of mean losses, added over the labels",
        _of_both_labels,
        {"constraint": "equalized_odds", "agg_labels": "sum"},
    ),
}
