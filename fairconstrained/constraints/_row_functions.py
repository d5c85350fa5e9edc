"""Bounds on sums or means of a function of every row, such as a loss or a rate."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, cast

import numpy as np
import torch
from typing_extensions import override

from fairconstrained.constraints._blur import within_reach
from fairconstrained.constraints.base import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.metrics.cell_means import ROW_FUNCTIONS, ROW_LOSSES
from fairconstrained.metrics.classes import class_log_loss
from fairconstrained.objectives import (
    ROW_LOSS_OBJECTIVES,
    CorrectRate,
    DecisionRate,
    ErrorRate,
    Loss,
    MultinomialLogistic,
    NegativeRate,
    PositiveRate,
    Score,
)
from fairconstrained.views import RowLosses, Stochastic

__all__ = ["RATE_FUNCTIONS", "TOLERANCE", "BoundRowFunction", "RowFunction", "log_loss_of_classes"]

#: Tolerance of a smooth metric above ``kappa``; the augmented Lagrangian comes that close.
TOLERANCE = 1e-6


class RowFunction(NamedTuple):
    """Function of a row's score and target."""

    #: The function that solvers see.
    smooth: Loss
    #: The function that the metric takes, of two arrays of shape (n_samples,).
    exact: Callable[[np.ndarray, np.ndarray], np.ndarray]
    #: The decisions of which ``exact`` is a smooth surrogate, if it is one.
    decisions: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    #: Whether ``exact`` is a step. Solvers then see it blurred, corrected to the exact values at the scores of the last
    #: refinement.
    is_step: bool = False
    #: Length of a unit of the scores, or of its square for squares, in the values; other than 1 for a regressor, whose
    #: solver sees standardised targets.
    unit: float = 1.0


def _step(name: str, smooth: DecisionRate) -> RowFunction:
    return RowFunction(smooth, ROW_FUNCTIONS[name], is_step=True)


#: Functions of rows for solvers, by their names in `ROW_FUNCTIONS`.
RATE_FUNCTIONS: dict[str, RowFunction] = {
    "indicator": _step("indicator", PositiveRate()),
    "negative": _step("negative", NegativeRate()),
    "correct": _step("correct", CorrectRate()),
    "error": _step("error", ErrorRate()),
    "sigmoid": RowFunction(PositiveRate(), ROW_FUNCTIONS["sigmoid"], decisions=ROW_FUNCTIONS["indicator"]),
    "score": RowFunction(Score(), ROW_FUNCTIONS["score"]),
    **{name: RowFunction(ROW_LOSS_OBJECTIVES[name], ROW_LOSSES[name]) for name in ROW_LOSSES},
}


def log_loss_of_classes(n_classes: int) -> RowFunction:
    """The multinomial log loss, of scores of shape (n_samples, n_classes) and numbers of classes."""

    def exact(scores: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        # scores that are all alike, where a constraint begins, may come as one column
        return class_log_loss(np.broadcast_to(scores.reshape(len(scores), -1), (len(scores), n_classes)), numbers)

    return RowFunction(MultinomialLogistic(), exact)


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundRowFunction(BoundConstraint, RowLosses, Stochastic):
    """Bound on a metric that is read from the values of a function of every row."""

    data: FairData
    kappa: float
    name: str
    function: RowFunction
    #: Excess over ``kappa`` that counts as met; for a step, the change that one row makes.
    tolerance: float = TOLERANCE
    #: Difference between ``kappa`` and the tighter bound that solvers see.
    margin: float = 0.0
    #: Amounts added to the components, so that those of a step are exact at the scores of the last refinement.
    correction: Any = 0.0  # ndarray of shape (n_components,), or 0

    @abstractmethod
    def metric_of_values(self, values: np.ndarray) -> float:
        """Return the metric for values of the function; ndarray of shape (n_samples,)."""

    @property
    def granularity(self) -> float:
        """Granularity of a step; a smooth metric has none, so it is the tolerance."""
        return self.tolerance

    @override
    def metric(self, scores: np.ndarray) -> float:
        return self.metric_of_values(self._exact_values(scores))

    @override
    def of_decisions(self, scores: np.ndarray) -> float | None:
        decisions = self.function.decisions
        return None if decisions is None else self.metric_of_values(decisions(scores, self.data.y.numpy()))

    @property
    @override
    def decision_threshold(self) -> float | None:
        return 0.0 if self.function.is_step else None

    @override
    def decision_costs(self, scores: np.ndarray, multipliers: np.ndarray) -> np.ndarray | None:
        if not self.function.is_step:
            return None
        ones, targets = np.ones(self.data.n_samples), self.data.y.numpy()
        weights, _ = self.row_weights(multipliers)
        return weights * (self.function.exact(ones, targets) - self.function.exact(-ones, targets))

    @property
    @override
    def row_loss(self) -> Loss:
        return self.function.smooth

    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Self:
        """Implement `Exact.refined`; a smooth function stays as it is."""
        function = self.function
        if function.is_step:
            smooth = within_reach(cast(DecisionRate, function.smooth), scores, self.data.weights.numpy(), blur)
            function = function._replace(smooth=smooth)
        refined = self._changed(margin=margin, function=function, correction=0.0)._around(scores)
        if not function.is_step:
            return refined
        smooth_components = refined.of_losses(refined._smooth_values(scores), np.zeros(self.n_aux))
        return refined._changed(correction=refined._exact_components(scores) - smooth_components)

    @override
    def uncorrected(self) -> Self:
        return self._changed(correction=0.0)

    def _changed(self, **fields: Any) -> Self:
        """Return it with other fields. What is cached stays: who changes the rows drops it, as `BoundMeanGaps.on`."""
        # `replace` would forget what is known, and take as long as a layer of a small network
        changed = object.__new__(type(self))
        changed.__dict__.update(self.__dict__ | fields)
        return changed

    def _around(self, scores: np.ndarray) -> Self:
        """Return the constraint as a linear function of the losses that is the best one around the scores."""
        return self

    def _exact_components(self, scores: np.ndarray) -> np.ndarray:
        """Components of the exact values, with auxiliary variables of zero; ndarray of shape (n_components,)."""
        return self.of_losses(self._exact_values(scores), np.zeros(self.n_aux))

    def _smooth_values(self, scores: np.ndarray) -> np.ndarray:
        return self.function.smooth.of(torch.from_numpy(scores), self.data.y).numpy()

    def _exact_values(self, scores: np.ndarray) -> np.ndarray:
        return self.function.exact(scores, self.data.y.numpy())
