"""Problems of the trial: an estimator, its data, and its bounds and objective, computed independently."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.trial.gaps import heaviest_share
from benchmarks.trial.objectives import Objective
from benchmarks.trial.rows import Rows

__all__ = ["KAPPAS", "ORDER", "THRESHOLD", "VALUES", "Bound", "Problem"]

KAPPAS = (0.0, 0.005, 0.02, 0.05, 0.1, 0.3)
#: Property of the scores that a bound is about: their order, which of them exceed a threshold, or their values.
ORDER, THRESHOLD, VALUES = "order", "threshold", "values"
#: The least kappa that rows may be too few for: a row may weigh this much of a compared cell, or kappa if that is more.
_FINEST = 0.02


@dataclass(frozen=True)
class Bound:
    """A bounded quantity, as the trial computes it.

    Attributes
    ----------
    name : str
        Name in ``constraint_values_``.
    kappa : float or None
    gap : callable
        Function of the scores that kappa bounds.
    depends_on : {"order", "threshold", "values"}
    cells : list of ndarray of bool
        The sets of rows that are compared.
    lengths : list of float
        Lengths of the intervals, for every cell.
    threshold : float
    is_vacuous : bool
        Whether there are fewer than two cells to compare, so that nothing is bounded or reported.
    """

    name: str
    kappa: float | None
    gap: Callable[[np.ndarray], float]
    depends_on: str
    cells: list[np.ndarray]
    lengths: list[float]
    threshold: float = 0.0
    is_vacuous: bool = False

    @property
    def finest(self) -> float:
        """The share of a compared cell that one row may weigh, and by which kappa may be missed at most."""
        return np.inf if self.kappa is None else max(self.kappa, _FINEST)

    def holds(self, scores: np.ndarray, slack: float = 0.0) -> bool:
        """Whether the gap is within kappa."""
        return self.kappa is None or self.gap(scores) <= self.kappa + slack


@dataclass(frozen=True)
class Problem:
    """One fit and all that is needed to judge it.

    Attributes
    ----------
    seed : int
    estimator, notion, loss : str
        Names in the table of results.
    make : callable
        Function that returns the estimator.
    rows : Rows
    target : ndarray of shape (n_samples,)
        The ``y`` of ``fit``.
    fit_params : dict
        Further arguments of ``fit``.
    scores_of : callable
        Function of a fitted estimator that returns its scores, of shape (n_samples,), or (n_samples, n_classes).
    bounds : list of Bound
    objective : Objective or None
        None where there is none to restate.
    alpha : float
        Weight of the penalty on the coefficients.
    is_linear, has_intercept : bool
        Whether the scores are linear, and have an intercept.
    direction : float or ndarray
        Change of the scores for one unit more of an intercept.
    constants : callable, optional
        Function of a number that returns the constant scores that belong to it; by default all are that number.
    counts_errors : bool
        Whether the objective stands for the error rate.
    threshold : float
        Score above which a row is positive.
    weights : ndarray of shape (n_samples,)
    """

    seed: int
    estimator: str
    notion: str
    loss: str
    make: Callable[[], Any]
    rows: Rows
    target: np.ndarray
    fit_params: dict[str, Any]
    scores_of: Callable[[Any], np.ndarray]
    bounds: list[Bound]
    objective: Objective | None
    weights: np.ndarray
    alpha: float = 0.0
    is_linear: bool = True
    has_intercept: bool = True
    direction: Any = 1.0
    constants: Callable[[float], list[np.ndarray]] | None = None
    counts_errors: bool = False
    threshold: float = 0.0
    words: list[str] = field(default_factory=list)

    @property
    def kappa(self) -> float | None:
        """The least of the bounds."""
        return min((b.kappa for b in self.bounds if b.kappa is not None), default=None)

    def penalty(self, model: Any) -> float:
        """``alpha / 2 |w|^2`` of the coefficients."""
        return self.alpha / 2 * float(np.sum(np.asarray(model.coef_) ** 2)) if self.alpha else 0.0

    def constant_scores(self, value: float) -> list[np.ndarray]:
        """Constant scores that a model of this kind may have."""
        if self.constants is not None:
            return self.constants(value)
        return [np.full(self.target.size, float(value))]

    @property
    def too_heavy(self) -> bool:
        """Whether one row weighs more than it may in a compared cell, so that refusing the problem is right."""
        bounds = [b for b in self.bounds if not b.is_vacuous]
        return any(heaviest_share(b.cells, self.weights, b.lengths) > b.finest * (1 - 1e-9) for b in bounds)
