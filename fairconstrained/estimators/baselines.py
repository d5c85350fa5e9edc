"""Classifiers of the partial fairness paper's comparison: other constraints, and a penalty in place of a constraint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from fairconstrained.constraints import Constraint, DemographicParity, PairwiseParity, StatisticalParity
from fairconstrained.constraints.pairwise_auc import PAIRWISE_NOTIONS
from fairconstrained.estimators._base import Target
from fairconstrained.estimators._parity import OBJECTIVE_CHECKS, OBJECTIVE_PARAMETERS, OBJECTIVES, PARITY_PARAMETERS
from fairconstrained.estimators._penalty import WeighsUnfairness
from fairconstrained.estimators.linear import FairClassifierMixin, LinearScores
from fairconstrained.objectives import Objective
from fairconstrained.problem import Problem
from fairconstrained.solvers import PenalizedSubgradient, Solver, SolverResult, Status

__all__ = ["PairwiseParityClassifier", "RegularizedParityClassifier"]

#: What ``constraint`` of the regularised classifier may be: those of eqs. 114 and 119.
PENALIZED_PARITIES: dict[str, type[Constraint]] = {
    "statistical_parity": StatisticalParity,
    "demographic_parity": DemographicParity,
}


class PairwiseParityClassifier(FairClassifierMixin, LinearScores):
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
        Bound on the *surrogate*, at least 0; useful values depend on the data and reach 15 in the paper. It promises
        nothing about the AUC gap, which ``constraint_values_`` gives. None: unconstrained, for comparison.
    constraint : {"group_auc", "inter_group", "intra_group"}, default="group_auc"
        The AUC gap that is meant: `fairconstrained.metrics.partial_group_auc_gap` on all ranks,
        ``inter_group_auc_gap`` or ``intra_group_auc_gap``.
    threshold : float, default=0.0
        Score above which the positive class is predicted.
    objective : {"logistic", "truncated_logistic", "hinge", "squared", "zero_one", "auc"}, default="logistic"
        What is minimised, see `PartialParityClassifier`.
    group_interactions : bool, default=False
        One coefficient vector and intercept per group; prediction then needs ``sensitive_features``.
    fit_intercept : bool, default=True
    alpha : float, default=1e-4
        Weight of the l2 penalty on the coefficients. What it shrinks depends on the units of the features; with 0 they
        do not matter to linear scores.
    truncation : float, default=0.5
        The ``a`` of the truncated logistic loss ``a log(1 + l / a)``.
    auc_loss, auc_interval
        Of ``objective="auc"``, see `PartialParityClassifier`.
    solver : str, default="projected_gradient"
        The paper's "projected_gradient" needs clarabel (``pip install 'fairconstrained[baselines]'``) as soon as there
        are two groups. "augmented_lagrangian", "idca" and "switching_subgradient" work too.
    solver_options : dict, optional
        Options of the solver, see its class.
    max_iter : int or None, default=None
        Iterations of the solver; None is the solver's own default, 1000 for "projected_gradient".
    tol : float, default=1e-5
        Relative improvement of the objective over ten iterations below which "projected_gradient" stops.
    random_state : int, RandomState instance or None, default=None
        Seeds stochastic solvers, and what many rows begin with. None is another seed every time; numpy's global
        generator is left alone.
    verbose : int, default=0
        Positive: print a line per iteration.
    warm_start : bool, default=False
        Start from the last fit.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_groups, n_features)
    intercept_ : ndarray of shape (1,) or (n_groups,)
    classes_ : ndarray of shape (2,)
        The second one is the positive class.
    groups_ : ndarray of shape (n_groups,)
        The groups, in the order of the rows of ``coef_``; empty if none were given.
    status_ : {"optimal", "max_iter", "infeasible"}
        "optimal": the surrogate is within kappa, and the objective has settled; "max_iter": not settled;
        "infeasible": the surrogate is not within kappa.
    constraint_values_ : dict
        The *exact* AUC gap on the training data, by its name. ``kappa`` does not bound it.
    violation_ : float
        What the *surrogate* exceeds ``kappa`` by, at least 0.
    objective_ : float
        Objective with its penalty at the solution of the solver.
    multipliers_ : dict or None
        Multipliers of the active components: objective per unit of ``kappa``; None where the solver has none.
    granularity_, prices_ : dict
        See `PartialParityClassifier`.
    n_iter_, n_evaluations_ : int
        Iterations and full-batch evaluations.
    history_ : list of dict
        One record per iteration.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only for input with string column names.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530: section G.3, eqs. 102-110.

    Examples
    --------
    >>> from fairconstrained import PairwiseParityClassifier
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=2000, random_state=0)
    >>> model = PairwiseParityClassifier(kappa=0.5, solver="augmented_lagrangian")
    >>> model.fit(X, y, sensitive_features=group).status_
    'optimal'
    """

    _default_solver: ClassVar[str] = "projected_gradient"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearScores._parameter_constraints,
        "kappa": [Interval(Real, 0, None, closed="left"), None],
        "constraint": [StrOptions(set(PAIRWISE_NOTIONS))],
        "threshold": [Interval(Real, None, None, closed="neither")],
        **OBJECTIVE_PARAMETERS,
    }
    _parameter_checks = OBJECTIVE_CHECKS

    def __init__(
        self,
        kappa: float | None = 1.0,
        *,
        constraint: str = "group_auc",
        threshold: float = 0.0,
        objective: str = "logistic",
        group_interactions: bool = False,
        fit_intercept: bool = True,
        alpha: float = 1e-4,
        truncation: float = 0.5,
        auc_loss: str = "logistic",
        auc_interval: Any = (0.0, 1.0),
        solver: str = "projected_gradient",
        solver_options: Mapping[str, Any] | None = None,
        max_iter: int | None = None,
        tol: float = 1e-5,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.kappa = kappa
        self.constraint = constraint
        self.threshold = threshold
        self.objective = objective
        self.group_interactions = group_interactions
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.truncation = truncation
        self.auc_loss = auc_loss
        self.auc_interval = auc_interval
        self.solver = solver
        self.solver_options = solver_options
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def _objective(self) -> Objective:
        return OBJECTIVES[self.objective](self)

    def _constraints(self, target: Target) -> list[Constraint]:
        return [PairwiseParity(self.kappa, notion=self.constraint)]


class RegularizedParityClassifier(FairClassifierMixin, WeighsUnfairness, LinearScores):
    r"""Linear classifier with a *penalty* on the partial parity gap of its scores: a baseline.

    .. math:: \min_{w, \theta} \; \frac{1}{n} \sum_i \ell(h_w(x_i), y_i) + \frac{\alpha}{2} \|w\|^2
              + \frac{2 \lambda}{\beta - \alpha} \max_p \max_k
              \left| \frac{1}{n_k} \sum_{i \in k} \sigma(h_w(x_i) - \theta_p) - p \right|

    for statistical parity (eq. 114), and for demographic parity (eq. 119) with :math:`\lambda / (\beta - \alpha)` times
    the largest difference, over pairs of groups, of :math:`\min(m_k, \beta) - \min(m_k, \alpha)` with the smooth
    positive rate :math:`m_k = \frac{1}{n_k} \sum_{i \in k} \sigma(h_w(x_i) - \hat\theta)`.

    There is no ``kappa`` and nothing is promised: which gap a weight leads to is known after the fit.

    Parameters
    ----------
    weight : float, default=0.1
        The weight :math:`\lambda` of the penalty, at least 0; 0 is the unconstrained fit by the same solver.
    interval, normalize, threshold, n_levels
        As in `PartialParityClassifier`. ``normalize=False`` takes 1 for :math:`\beta - \alpha`.
    constraint : {"statistical_parity", "demographic_parity"}, default="statistical_parity"
        Whose gap is penalised.
    objective, group_interactions, fit_intercept, alpha, truncation, auc_loss, auc_interval
        As in `PartialParityClassifier`.
    surrogate : {"smoothstep", "logistic", "ramp"}, default="smoothstep"
        What stands in for the indicator, :math:`\sigma`.
    surrogate_width : float or "auto", default="auto"
        Width of the surrogate in units of the score; "auto" is 1, the paper's.
    solver_options : dict, optional
        Options of `fairconstrained.solvers.PenalizedSubgradient`: ``step``, one or several to
        choose from. The method needs features on similar scales.
    max_iter : int or None, default=None
        Iterations for every step; None is 2000.
    verbose : int, default=0
        Positive: print a line per recorded iteration.
    warm_start : bool, default=False
        Start from the last fit.

    Attributes
    ----------
    coef_, intercept_, classes_, groups_, objective_, n_iter_, n_evaluations_, history_
        As in `PartialParityClassifier`; ``objective_`` is without the penalty on the gap, ``history_`` with it.
    status_ : {"completed"}
    constraint_values_ : dict
        The *exact* gap on the training data, by the constraint's name.
    violation_ : float
        0: there is no bound to violate.
    multipliers_ : None
        A weight has no multipliers.
    granularity_, prices_ : dict
        See `PartialParityClassifier`; the price is NaN, as a weight has none.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only for input with string column names.

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

    # Not parameters: the penalty is that solver's, which has neither a tolerance nor random numbers.
    solver: ClassVar[str] = PenalizedSubgradient.name
    tol: ClassVar[None] = None
    random_state: ClassVar[None] = None
    _unconstrained: ClassVar[str] = "weight=0"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearScores._parameter_constraints,
        "weight": [Interval(Real, 0, None, closed="left")],
        "constraint": [StrOptions(set(PENALIZED_PARITIES))],
        **PARITY_PARAMETERS,
        **OBJECTIVE_PARAMETERS,
    }
    _parameter_checks = OBJECTIVE_CHECKS

    def __init__(
        self,
        weight: float = 0.1,
        *,
        interval: Any = (0.0, 1.0),
        constraint: str = "statistical_parity",
        normalize: bool = True,
        threshold: float = 0.0,
        objective: str = "logistic",
        group_interactions: bool = False,
        fit_intercept: bool = True,
        alpha: float = 1e-4,
        truncation: float = 0.5,
        auc_loss: str = "logistic",
        auc_interval: Any = (0.0, 1.0),
        surrogate: str = "smoothstep",
        surrogate_width: float | str = "auto",
        n_levels: int | str = "auto",
        solver_options: Mapping[str, Any] | None = None,
        max_iter: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.weight = weight
        self.interval = interval
        self.constraint = constraint
        self.normalize = normalize
        self.threshold = threshold
        self.objective = objective
        self.group_interactions = group_interactions
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.truncation = truncation
        self.auc_loss = auc_loss
        self.auc_interval = auc_interval
        self.surrogate = surrogate
        self.surrogate_width = surrogate_width
        self.n_levels = n_levels
        self.solver_options = solver_options
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start

    def _objective(self) -> Objective:
        return OBJECTIVES[self.objective](self)

    def _constraints(self, target: Target) -> list[Constraint]:
        # The penalty is what exceeds zero; without a penalty the gap is only reported.
        values = {**self.get_params(deep=False), "kappa": 0.0 if self.weight > 0 else None}
        notion = PENALIZED_PARITIES[self.constraint]
        return [notion(**{name: values[name] for name in notion().get_params()})]

    def _solver(self, problem: Problem, **special: Any) -> Solver:
        return replace(cast(PenalizedSubgradient, super()._solver(problem)), weight=self.weight)

    def _report(self, problem: Problem, params: np.ndarray, result: SolverResult, target: Target) -> dict[str, float]:
        """See `BaseFairEstimator._report`; a penalty promises nothing that could be exceeded."""
        super()._report(problem, params, result, target)
        self.status_, self.violation_ = Status.COMPLETED.value, 0.0
        return {}
