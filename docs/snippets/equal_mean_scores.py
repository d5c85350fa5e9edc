"""A constraint of one's own: the groups' mean scores differ by at most kappa."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from fairconstrained import PartialParityClassifier
from fairconstrained.constraints import BoundConstraint, Constraint
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.views import DifferenceOfConvex, FullBatch, Stochastic


def mean_score_gap(y_true, y_score, *, sensitive_features):
    """Largest difference between the groups' mean scores: the metric that ``kappa`` bounds."""
    means = [np.mean(y_score[sensitive_features == group]) for group in np.unique(sensitive_features)]
    return max(means) - min(means)


class EqualMeanScores(Constraint):
    r"""``|mean_g(s) - mean_g'(s)| <= kappa`` for all groups g, g'.

    Parameters
    ----------
    kappa : float, default=0.1
        Bound on the metric, at least 0, in units of the score.
    """

    def __init__(self, kappa: float = 0.1) -> None:
        self.kappa = kappa

    def _bind(self, data: FairData) -> BoundEqualMeanScores:
        """Return the constraint on these data."""
        if not self.kappa >= 0:
            raise ValueError(f"kappa must be at least 0, got {self.kappa!r}.")
        return BoundEqualMeanScores(data, float(self.kappa))


@dataclass(frozen=True, eq=False)
class BoundEqualMeanScores(BoundConstraint, FullBatch, DifferenceOfConvex, Stochastic):
    """`EqualMeanScores` on data. Its components are ordered pairs of groups."""

    data: FairData
    kappa: float
    margin: float = 0.0
    name: str = "equal_mean_scores"

    @property
    def component_names(self) -> tuple[str, ...]:
        """The two groups of every component."""
        labels = self.data.labels
        return tuple(f"{self.name}[{labels[a]} - {labels[b]}]" for a, b in zip(*self._pairs(), strict=True))

    @property
    def granularity(self) -> float:
        """Tolerance of the solvers, since one row changes a mean by no fixed amount."""
        return 1e-3

    def metric(self, scores: np.ndarray) -> float:
        """The exact metric, in numpy."""
        weighted = self.data.group_weights.numpy() * scores
        means = [weighted[rows].sum() for rows in self.data.slices]
        return float(max(means) - min(means))

    def values(self, scores: torch.Tensor, aux: torch.Tensor) -> torch.Tensor:
        """One component for each ordered pair, at most 0 where the constraint holds."""
        weighted = self.data.group_weights * scores
        means = torch.stack([weighted[rows].sum() for rows in self.data.slices])
        first, second = self._pairs()
        return means[first] - means[second] - (self.kappa - self.margin)

    def plus(self, scores: torch.Tensor, aux: torch.Tensor) -> torch.Tensor:
        """`values` is linear in the scores, hence convex."""
        return self.values(scores, aux)

    def minus(self, scores: torch.Tensor, aux: torch.Tensor) -> torch.Tensor:
        """Nothing is left to subtract."""
        return 0 * self.values(scores, aux)

    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> BoundEqualMeanScores:
        """`values` is the metric already: there is no surrogate to narrow, only the margin to change."""
        return replace(self, margin=margin)

    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        return np.nonzero(~np.eye(self.data.n_groups, dtype=bool))


class EqualMeanScoresClassifier(PartialParityClassifier):
    """The package's linear classifier under this constraint; it ignores the parameters of partial parity."""

    def _constraints(self, target):
        return [EqualMeanScores(np.inf if self.kappa is None else self.kappa)]


X, y, group = make_biased_classification(1500, random_state=0)
for solver, max_iter in {"auto": 50, "switching_subgradient": 1000, "idca": 10}.items():
    model = EqualMeanScoresClassifier(kappa=0.2, solver=solver, max_iter=max_iter)
    model.fit(X, y, sensitive_features=group)
    gap = mean_score_gap(None, model.decision_function(X), sensitive_features=group)
    print(f"{solver}: {model.status_}, gap {gap:.3f}, objective {model.objective_:.4f}")
    assert gap <= 0.2 + 1e-3
    assert abs(gap - model.constraint_values_["equal_mean_scores"]) < 1e-9
