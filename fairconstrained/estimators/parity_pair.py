"""Classification with a bound against accepting one group and rejecting another, within a ball of coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from fairconstrained.constraints import Constraint, ParityPair
from fairconstrained.data import FairData
from fairconstrained.domains import Domain, L2Ball
from fairconstrained.estimators._balls import AUTO, enlarged, within
from fairconstrained.estimators._bounded import ANY_CONSTRAINT, TakesConstraint
from fairconstrained.estimators._outcome import Target
from fairconstrained.estimators._stationarity import TellsStationarity
from fairconstrained.estimators.linear import FairClassifierMixin, LinearScores
from fairconstrained.estimators.parameters import (
    ChoosesSolver,
    HandlesSmallGroups,
    HasIntercept,
    Iterates,
    StartsWarm,
    parameter,
    with_parameters,
)
from fairconstrained.metrics.shares import POSITIVE_RATES
from fairconstrained.objectives import Objective, TruncatedLogistic
from fairconstrained.problem import Problem
from fairconstrained.solvers import SolverResult, StoppedBy

__all__ = ["ParityPairClassifier"]

#: Radius for standardised features.
_RADIUS = 10.0


@with_parameters
class ParityPairClassifier(
    FairClassifierMixin,
    TakesConstraint,
    TellsStationarity,
    LinearScores,
    HasIntercept,
    Iterates,
    StartsWarm,
    HandlesSmallGroups,
    ChoosesSolver,
):
    r"""Linear classifier with a bound against accepting one group and rejecting another.

    .. math:: \min_{\|w\|_2 \le \lambda} \; \frac{1}{n} \sum_i a \log \Bigl( 1 + \tfrac{1}{a}
              \log \bigl( 1 + e^{-y_i h_w(x_i)} \bigr) \Bigr) \quad \text{s.t.} \quad
              \mathbb{E}_g \, r(h_w(x)) + \beta \, \mathbb{E}_{g'} \bigl( 1 - r(h_w(x)) \bigr) \le \kappa
              \quad \text{for all groups } g \ne g'

    with scores :math:`h_w(x) = \langle w, x \rangle + b` and means :math:`\mathbb{E}_g` over the rows of a group. For
    two groups these are the two constraints of the paper, where :math:`1 - r(s) = r(-s)` for the sigmoid.

    Where both groups have the positive rate p, the left side is :math:`p + \beta (1 - p)`. So with :math:`\beta = 1`
    and :math:`\kappa = 1 + \epsilon` positive rates differ by at most :math:`\epsilon`; other values of :math:`\beta`
    also bound the rates themselves.

    Parameters
    ----------
    kappa : float or None, default=1.05
        The bound (r in the paper), at least 0, on the value that `fairconstrained.metrics.parity_pair` measures with
        this ``beta`` and ``rate`` on the training data. With ``solver="auto"`` the fitted model keeps it, up to 1e-6
        for the sigmoid and up to the share of one row for the indicator, or `fit` warns and ``status_`` says so. None:
        unconstrained, for comparison.
    constraint : str, Constraint or list of (str, Constraint), default="parity_pair"
        Gaps that are bounded: the left sides above, or constraints of `fairconstrained.constraints`, see
        `PartialParityClassifier`; then their own parameters count, and ``kappa``, ``beta`` and ``rate`` are ignored.
    beta : float, default=1.0
        Weight :math:`\beta` of the second mean in the constraint, positive.
    radius : float, "auto" or None, default="auto"
        :math:`\lambda`, a limit on the Euclidean norm of the coefficients; the intercept is free. "auto": 10, for the
        coefficients of the standardised features, so that the units of the features do not matter. A number is a limit
        on the coefficients themselves, as in the paper; features should have similar scales then. None: no limit.
    truncation : float, default=2.0
        The number a in the objective, positive: losses larger than a grow only like a logarithm, so that outliers
        count less.
    rate : {"sigmoid", "indicator"}, default="sigmoid"
        The function r of a score s: :math:`1 / (1 + e^{-s})`, as in the paper, or whether the prediction is positive.
    solver : str, default="auto"
        "auto" is "augmented_lagrangian", or as in `PartialParityClassifier` with ``radius=None``. "ipc" is the method
        of the paper; it and "online_subgradient" bound the sigmoid's rates, whatever ``rate`` is. "exact_penalty" takes
        no ``radius``.

    Attributes
    ----------
    exact_values_ : dict
        The largest left side for the predictions themselves, by constraint, whatever the ``rate`` is.

    References
    ----------
    Ma, Lin, Yang, Proximally Constrained Methods for Weakly Convex Optimization with Weakly Convex Constraints,
    arXiv:1908.01871, section 1.1, Learning Data-Driven Constraints.

    Examples
    --------
    >>> from fairconstrained import ParityPairClassifier
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=1000, random_state=0)
    >>> model = ParityPairClassifier(1.02, radius=3.0).fit(X, y, sensitive_features=group)
    >>> model.constraint_values_["parity_pair"] <= 1.02 + 1e-6
    True
    """

    kappa: float | None = parameter(1.05, [Interval(Real, 0, None, closed="left"), None], kw_only=False)
    constraint: str | Constraint | Sequence[tuple[str, Constraint]] = parameter("parity_pair", ANY_CONSTRAINT)
    beta: float = parameter(1.0, [Interval(Real, 0, None, closed="neither")])
    radius: float | str | None = parameter(AUTO, [Interval(Real, 0, None, closed="neither"), StrOptions({AUTO}), None])
    truncation: float = parameter(2.0, [Interval(Real, 0, None, closed="neither")])
    rate: str = parameter("sigmoid", [StrOptions(set(POSITIVE_RATES))])
    alpha: float = parameter(0.0, [Interval(Real, 0, None, closed="left")])

    _constraint_names = ("parity_pair",)

    def _remedy(self, data: FairData, stopped_by: StoppedBy) -> str:
        return f"Raise kappa{enlarged('radius', self.radius)}, or {self._longer(stopped_by)}."

    def _objective(self) -> Objective:
        return TruncatedLogistic(self.truncation)

    def _constraint_named(self, name: str) -> Constraint:
        return ParityPair(self.kappa, beta=self.beta, rate=self.rate)

    def _domain(self, data: FairData) -> Domain | None:
        return within(L2Ball, self.radius, _RADIUS, data, self.fit_intercept)

    def _report(self, problem: Problem, params: np.ndarray, result: SolverResult, target: Target) -> dict[str, float]:
        """Implement `BaseFairEstimator._report`; also the value of the predictions themselves."""
        excess = super()._report(problem, params, result, target)
        self.exact_values_ = self._values_of_decisions(problem.data, problem.scores(params))
        return excess
