"""Classifiers of the partial fairness paper's comparison: other constraints, and a penalty in place of a constraint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from fairconstrained.constraints import Constraint, DemographicParity, PairwiseParity, StatisticalParity
from fairconstrained.constraints.pairwise_auc import PAIRWISE_TERMS
from fairconstrained.estimators._outcome import Target
from fairconstrained.estimators._parity import ChoosesObjective, OnRanks
from fairconstrained.estimators._penalty import WeighsUnfairness
from fairconstrained.estimators.linear import FairClassifierMixin, LinearScores
from fairconstrained.estimators.parameters import (
    ChoosesSolver,
    HasGroupModels,
    HasIntercept,
    HasThreshold,
    Iterates,
    Reports,
    StartsWarm,
    parameter,
    with_parameters,
)
from fairconstrained.problem import Problem
from fairconstrained.solvers import PenalizedSubgradient, Solver, SolverResult, Status

__all__ = ["PairwiseParityClassifier", "RegularizedParityClassifier"]

#: Values of ``constraint`` of the regularised classifier: those of eqs. 114 and 119.
PENALIZED_PARITIES: dict[str, type[Constraint]] = {
    "statistical_parity": StatisticalParity,
    "demographic_parity": DemographicParity,
}


@with_parameters
class PairwiseParityClassifier(
    FairClassifierMixin,
    ChoosesObjective,
    LinearScores,
    HasThreshold,
    HasGroupModels,
    HasIntercept,
    Iterates,
    StartsWarm,
    ChoosesSolver,
):
    r"""Linear classifier with a bound on a *quadratic surrogate* of a pairwise AUC gap: a baseline.

    .. math:: \min_w \; \frac{1}{n} \sum_i \ell(h_w(x_i), y_i) + \frac{\alpha}{2} \|w\|^2
              \quad \text{s.t.} \quad E_{k, k'}\, \sigma(h_w(x) - h_w(x')) - \tfrac{1}{2} \le \kappa
              \quad \forall k \ne k', \qquad \sigma(t) = \tfrac{1}{2} (1 + t)^2

    with the mean over all pairs of a row of group k and one of group k' (``constraint="group_auc"``, eq. 102), or the
    sums of two such means over cells of group and label that `fairconstrained.constraints.PairwiseParity` gives
    (eqs. 105 and 107). The problem is convex for a convex objective.

    Parameters
    ----------
    kappa : float or None, default=1.0
        Bound on the *surrogate*, at least 0; useful values depend on the data and reach 15 in the paper. It does not
        bound the AUC gap, which is in ``constraint_values_``. None: unconstrained, for comparison.
    constraint : {"group_auc", "inter_group", "intra_group"}, default="group_auc"
        Name of the AUC gap: `fairconstrained.metrics.partial_group_auc_gap` on all ranks, ``inter_group_auc_gap`` or
        ``intra_group_auc_gap``.
    solver : str, default="projected_gradient"
        The paper's "projected_gradient", or another one: "augmented_lagrangian", "idca" or "switching_subgradient".
    max_iter : int or None, default=None
        Iterations of the solver; None is the solver's own default, 1000 for "projected_gradient".
    tol : float, default=1e-5
        Relative improvement of the objective over ten iterations below which "projected_gradient" stops.

    Attributes
    ----------
    status_ : {"optimal", "max_iter", "infeasible"}
        "optimal": the surrogate is within kappa, and the objective has settled; "max_iter": not settled;
        "infeasible": the surrogate is not within kappa.
    constraint_values_ : dict
        The *exact* AUC gap on the training data, by its name. ``kappa`` does not bound it.
    violation_ : float
        Excess of the *surrogate* over ``kappa``, at least 0.
    objective_ : float
        Objective with its penalty at the solution of the solver.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530: section G.3, eqs. 102-110.

    Examples
    --------
    >>> from fairconstrained import PairwiseParityClassifier
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=2000, random_state=0)
    >>> model = PairwiseParityClassifier(kappa=0.5)
    >>> model.fit(X, y, sensitive_features=group).status_
    'optimal'
    """

    kappa: float | None = parameter(1.0, [Interval(Real, 0, None, closed="left"), None], kw_only=False)
    constraint: str = parameter("group_auc", [StrOptions(set(PAIRWISE_TERMS))])
    solver: str = parameter("projected_gradient", [str])
    tol: float = parameter(1e-5, [Interval(Real, 0, None, closed="left")])

    _default_solver: ClassVar[str] = "projected_gradient"

    def _constraints(self, target: Target) -> list[Constraint]:
        return [PairwiseParity(self.kappa, constraint=self.constraint)]


@with_parameters
class RegularizedParityClassifier(
    FairClassifierMixin,
    WeighsUnfairness,
    ChoosesObjective,
    LinearScores,
    OnRanks,
    HasThreshold,
    HasGroupModels,
    HasIntercept,
    StartsWarm,
    Reports,
):
    r"""Linear classifier with a *penalty* on the partial parity gap of its scores: a baseline.

    .. math:: \min_{w, \theta} \; \frac{1}{n} \sum_i \ell(h_w(x_i), y_i) + \frac{\alpha}{2} \|w\|^2
              + \frac{2 \lambda}{\beta - \alpha} \max_p \max_k
              \left| \frac{1}{n_k} \sum_{i \in k} \sigma(h_w(x_i) - \theta_p) - p \right|

    for statistical parity (eq. 114), and for demographic parity (eq. 119) with :math:`\lambda / (\beta - \alpha)` times
    the largest difference, over pairs of groups, of :math:`\min(m_k, \beta) - \min(m_k, \alpha)` with the smooth
    positive rate :math:`m_k = \frac{1}{n_k} \sum_{i \in k} \sigma(h_w(x_i) - \hat\theta)`.

    There is no ``kappa`` and no bound: the gap that results from a weight is known only after the fit.

    Parameters
    ----------
    normalize
        Whether the gap is divided by the length of the interval, as in `PartialParityClassifier`. ``normalize=False``
        takes 1 for :math:`\beta - \alpha`.
    constraint : {"statistical_parity", "demographic_parity"}, default="statistical_parity"
        Name of the constraint whose gap is penalised.
    surrogate_width : float or "auto", default="auto"
        Width of the surrogate in units of the score; "auto" is 1, the paper's.
    solver_options : dict, optional
        Options of `fairconstrained.solvers.PenalizedSubgradient`: ``step``, one or several to
        choose from. The method needs features on similar scales.
    max_iter : int or None, default=None
        Iterations for every step; None is 2000.

    Attributes
    ----------
    objective_, history_
        Objective and history as in `PartialParityClassifier`, without the penalty on the gap; ``penalised_objective``
        in ``history_`` has it.
    status_ : {"completed", "unconstrained"}
        "unconstrained": there is only one group, and nothing to penalise.
    constraint_values_ : dict
        The *exact* gap on the training data, by the constraint's name.
    multipliers_ : None
        A weight has no multipliers.
    prices_ : dict
        See `PartialParityClassifier`; the price is NaN, as a weight has none.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530: section G.4, eqs. 111-119.

    Examples
    --------
    >>> from fairconstrained import RegularizedParityClassifier
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=500, random_state=0)
    >>> model = RegularizedParityClassifier(weight=0.3, interval=(0.0, 0.3), max_iter=100)
    >>> model.fit(X, y, sensitive_features=group).status_
    'completed'
    """

    constraint: str = parameter("statistical_parity", [StrOptions(set(PENALIZED_PARITIES))])
    solver_options: Mapping[str, Any] | None = parameter(None, [Mapping, None])
    max_iter: int | None = parameter(None, [Interval(Integral, 1, None, closed="left"), None])

    # Not parameters: the penalty is that solver's, which has neither a tolerance nor random numbers.
    solver: ClassVar[str] = PenalizedSubgradient.name
    tol: ClassVar[None] = None
    random_state: ClassVar[None] = None

    def _constraints(self, target: Target) -> list[Constraint]:
        # The penalty is what exceeds zero; without a penalty the gap is only reported.
        values = {**self.get_params(deep=False), "kappa": 0.0 if self.weight > 0 else None}
        notion = PENALIZED_PARITIES[self.constraint]
        return [notion(**{name: values[name] for name in notion().get_params()})]

    def _solver(self, problem: Problem, **special: Any) -> Solver:
        return replace(cast(PenalizedSubgradient, super()._solver(problem)), weight=self.weight)

    def _report(self, problem: Problem, params: np.ndarray, result: SolverResult, target: Target) -> dict[str, float]:
        """Implement `BaseFairEstimator._report`; a penalty promises nothing that could be exceeded."""
        super()._report(problem, params, result, target)
        self.violation_ = 0.0
        if self.status_ != Status.UNCONSTRAINED:
            self.status_ = Status.COMPLETED.value
        return {}
