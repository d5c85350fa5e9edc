"""AUC fairness: a classifier whose AUCs between groups differ by no more than ``kappa``."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from fairconstrained.constraints import AUCGap, Constraint, QuadraticAUCGap
from fairconstrained.data import FairData
from fairconstrained.estimators._bounded import TakesConstraint
from fairconstrained.estimators._held_out import HoldsOut
from fairconstrained.estimators._outcome import Target
from fairconstrained.estimators._partial_fit import AUCStreaming
from fairconstrained.estimators._published import FollowsPaper
from fairconstrained.estimators.linear import FairClassifierMixin, ModuleScores
from fairconstrained.estimators.parameters import (
    HandlesSmallGroups,
    HasIntercept,
    Iterates,
    StartsWarm,
    parameter,
    with_parameters,
)
from fairconstrained.metrics.auc_sets import AUC_METRICS
from fairconstrained.models.layers import ACTIVATIONS
from fairconstrained.objectives import Logistic, Objective, PairwiseAUC
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import Callback, MomentSolver, Solver, SolverResult

__all__ = ["AUCFairClassifier", "BaseAUCFairClassifier"]

#: Values of ``surrogate``: the constraint, and the loss of a pair that stands for the AUC as the objective.
SURROGATES: dict[str, tuple[type[Constraint], str]] = {
    "ramp": (AUCGap, "logistic"),
    "quadratic": (QuadraticAUCGap, "quadratic"),
}
#: Values of ``objective``.
OBJECTIVES: dict[str, Callable[[str], Objective]] = {
    "logistic": lambda pair_loss: Logistic(),
    "auc": PairwiseAUC,
}

#: Settings that the experiments of the paper have in common (section 6).
_PAPERS_PROBLEM = {"surrogate": "quadratic", "objective": "auc", "alpha": 0.0}


@with_parameters
class BaseAUCFairClassifier(
    HoldsOut,
    FairClassifierMixin,
    TakesConstraint,
    ModuleScores,
    HasIntercept,
    HandlesSmallGroups,
    Iterates,
    FollowsPaper,
):
    """Classifier with bounds on AUC gaps of its scores; a subclass says where kappa comes from.

    Parameters
    ----------
    constraint : str, callable, sequence of four masks, Constraint or list of (str, Constraint), default="inter_group"
        "group_auc", "inter_group" (xAUC), "intra_group", "positive_equality", "negative_equality" or "bpsn_bnsp", or
        another name of these metrics (:doc:`/guide/metrics`); see `fairconstrained.constraints.AUCGap` for their sets.
        Or a function ``sets(positive, groups)`` of two arrays that returns four boolean masks
        :math:`G_1, G_1', G_2, G_2'`, or these masks themselves, for the rows that are given to `fit` (a function also
        works in cross-validation). Or constraints of `fairconstrained.constraints`, see `PartialParityClassifier`.
    protected : object or None, default=None
        The label of the protected group, which is compared with all other rows. None compares every pair of groups, or
        every group with all rows, depending on the constraint; all of these gaps are bounded.
    objective : {"logistic", "auc"}, default="logistic"
        "logistic": the logistic loss of every row. "auc": a loss of every pair of a positive and a negative, logistic
        with the ramp and quadratic with the quadratic surrogate (the paper's).
    surrogate : {"ramp", "quadratic"}, default="ramp"
        Smooth function in place of the gap while training, see above. The ramp narrows until the exact gap is within
        ``kappa``.
    solver : str, default="auto"
        "auto" is "moments" where objective and constraint are quadratic and the scores are linear; "cross_fitted" for
        linear scores of 9 to 1,000 features, if the smallest compared set has 50 rows and more, but fewer than eight
        for each feature; "adam_lagrangian" for modules with dropout or batch normalisation; and
        "augmented_lagrangian" otherwise. "level_set", "iqrc", "mirror_descent" and "moments" need
        ``surrogate="quadratic"``; "level_set" and "moments" also need linear scores, "moments" ``objective="auc"`` as
        well. "proxy_lagrangian" takes everything.
    solver_options : dict or "paper", optional
        Options of the solver, see its class in `fairconstrained.solvers`. "paper" is the paper's experiment with
        "level_set" or "iqrc": in place of this estimator's own, ``surrogate="quadratic"``, ``objective="auc"`` and
        ``alpha=0``; for "iqrc" a hidden layer of ten sigmoid units.
    hidden_layer_sizes : sequence of int, optional
        Widths of the hidden layers of a perceptron; the paper's network has one layer of 10.
    activation : {"logistic", "relu", "tanh", "silu", "softplus"}, default="logistic"
        Activation function of the hidden layers.
    fit_intercept : bool, default=True
        Whether the scores have an intercept. AUCs do not depend on it; with ``objective="auc"`` it is chosen for the
        training accuracy.
    alpha : float, default=0.0
        Weight of the l2 penalty on the coefficients. Its effect depends on the units of the features; with 0, linear
        scores do not depend on them.
    validation_fraction : float or None, default=None
        Share of every group and class that is set aside; of the solver's recorded iterates, the feasible one with the
        best AUC on these rows is the result, as in the paper. None: the solver's own result, on all rows.
    max_iter : int or None, default=None
        Iterations of the solver; None is the solver's own default.
    tol : float, default=5e-4
        Relative change of the objective at which "augmented_lagrangian" stops.

    Attributes
    ----------
    constraint_values_ : dict
        The *exact* AUC gap on the training data, by the constraint's name. After `partial_fit`, which keeps no rows,
        the surrogate (for instance "inter_group_surrogate").

    Raises
    ------
    ValueError
        From `fit`: if a set of rows that the metric compares is empty (with the counts), ``protected`` is not among
        the groups, or ``kappa`` is out of its range.
    """

    constraint: Any = parameter("inter_group", [str, Constraint, callable, "array-like"])
    protected: Hashable | None = parameter(None)
    objective: str = parameter("logistic", [StrOptions(set(OBJECTIVES))])
    surrogate: str = parameter("ramp", [StrOptions(set(SURROGATES))])
    activation: str = parameter("logistic", [StrOptions(set(ACTIVATIONS))])
    alpha: float = parameter(0.0, [Interval(Real, 0, None, closed="left")])
    validation_fraction: float | None = parameter(None, [Interval(Real, 0, 1, closed="neither"), None])

    _constraint_names = tuple(AUC_METRICS)
    _published: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "level_set": _PAPERS_PROBLEM,
        "iqrc": _PAPERS_PROBLEM | {"module": None, "hidden_layer_sizes": (10,), "activation": "logistic"},
    }

    def _objective(self) -> Objective:
        return OBJECTIVES[self.objective](SURROGATES[self.surrogate][1])

    def _constraint_named(self, name: Any) -> Constraint:
        return SURROGATES[self.surrogate][0](self.kappa, constraint=name, protected=self.protected)

    def _other_sequence(self) -> None:
        """Masks, which the constraint checks."""

    def _constraints(self, target: Target) -> list[Constraint]:
        if self._has_masks():
            lengths, n_rows = sorted({np.size(mask) for mask in self.constraint}), target.values.size
            if lengths != [n_rows]:
                raise ValueError(
                    f"constraint has masks of {lengths} entries, but there are {n_rows} rows. In cross-validation, "
                    "where the rows differ from fit to fit, give a function that returns the masks."
                )
        return super()._constraints(target)

    def _has_masks(self) -> bool:
        named = isinstance(self.constraint, str | Constraint) or callable(self.constraint)
        return not named and self._pairs() is None

    def _holds_vacuously(self, data: FairData) -> bool:
        """Implement `BaseFairEstimator._holds_vacuously`; masks need no groups."""
        return not (callable(self.constraint) or self._has_masks()) and super()._holds_vacuously(data)

    def _auto_solver(self, problem: Problem) -> str:
        if MomentSolver.name in problem.working_solvers():
            return MomentSolver.name
        # a held-out part chooses among the iterates of one run
        return super()._auto_solver(problem) if self.validation_fraction is None else self._default_solver

    def _held_out_share(self) -> float | None:
        return self.validation_fraction

    def _run(
        self,
        solver: Solver,
        problem: Problem,
        start: Start | None,
        rng: np.random.Generator,
        watch: Callback | None,
    ) -> SolverResult:
        """Implement `WatchesSolver._run`; with a validation part, the feasible iterate of best AUC on it."""
        if self._held_out is None:
            return super()._run(solver, problem, start, rng, watch)
        return self._held_out.solve(solver, problem, start, rng, watch)


@with_parameters
class AUCFairClassifier(AUCStreaming, BaseAUCFairClassifier, StartsWarm):
    r"""Classifier with a bound on the difference of two AUCs, which does not depend on a threshold.

    .. math:: \min_w \; f(h_w) + \frac{\alpha}{2} \|w\|^2 \quad \text{s.t.} \quad
              \left| \mathrm{AUC}(G_1, G_1') - \mathrm{AUC}(G_2, G_2') \right| \le \kappa,

    where :math:`\mathrm{AUC}(G, G')` is the probability that a row of G has a higher score than a row of G', ties
    counting one half, and the sets are given by ``constraint``. With ``surrogate="ramp"``, ``kappa`` bounds exactly
    this difference on the training rows. The quadratic surrogate of the paper,

    .. math:: E_{G_1, G_1'}\, \ell(h_w(x') - h_w(x)) + E_{G_2, G_2'}\, \ell(h_w(x) - h_w(x')) \le 1 + \kappa
              \quad \text{(and with the AUCs exchanged)}, \qquad \ell(t) = \tfrac{1}{2} (t - 1)^2,

    is convex for linear scores, depends on the data only through moments, and can be trained on a stream; but it bounds
    the variance of the scores more than the gap.

    Parameters
    ----------
    kappa : float or None, default=0.05
        Largest gap that is allowed. With ``surrogate="ramp"`` it bounds the gap *measured on the training data*, in
        [0, 0.5]. With ``surrogate="quadratic"`` it bounds the surrogate, at least 0 (the paper uses up to 10), which
        promises nothing about the gap; ``constraint_values_`` has the gap. None: unconstrained, for comparison.

    References
    ----------
    Yao, Lin, Yang, Stochastic Methods for AUC Optimization subject to AUC-based Fairness Constraints, AISTATS 2023,
    arXiv:2212.12603: eqs. 2 and 6.

    Examples
    --------
    >>> from fairconstrained import AUCFairClassifier
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=2000, random_state=0)
    >>> model = AUCFairClassifier(kappa=0.02).fit(X, y, sensitive_features=group)
    >>> model.constraint_values_["inter_group"] <= 0.0201
    True
    """

    kappa: float | None = parameter(0.05, [Interval(Real, 0, None, closed="left"), None], kw_only=False)

    def _adopt(self, problem: Problem, result: SolverResult, target: Target, labels: tuple) -> dict[str, float]:
        """Implement `BaseFairEstimator._adopt`; a stream before this fit is forgotten."""
        self._stream = None
        return super()._adopt(problem, result, target, labels)
