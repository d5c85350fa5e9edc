"""Bounds on the mean loss of every group, and models whose worst group has the least loss."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.utils._param_validation import Interval, StrOptions
from typing_extensions import override

from fairconstrained.constraints import BoundConstraint, Constraint, GroupRates
from fairconstrained.constraints.compared_groups import AUTO, by_label, grouped_rows
from fairconstrained.data import FairData
from fairconstrained.estimators._bounded import ANY_CONSTRAINT
from fairconstrained.estimators._outcome import Target
from fairconstrained.estimators._usefulness import Usefulness
from fairconstrained.estimators._worst_loss import BOUNDED_GROUP_LOSS, MINIMAX, MinimisesWorstLoss
from fairconstrained.estimators.linear import FairClassifierMixin, FairRegressorMixin, ModuleScores
from fairconstrained.estimators.parameters import (
    ChoosesSolver,
    HandlesSmallGroups,
    HasIntercept,
    Iterates,
    StartsWarm,
    parameter,
    with_parameters,
)
from fairconstrained.metrics.cell_means import ROW_LOSSES, mean_by_cell
from fairconstrained.objectives import ROW_LOSS_OBJECTIVES, Loss
from fairconstrained.problem import Problem
from fairconstrained.solvers import AdamLagrangian, GroupWeights, InteriorPoint, Solver, SolverResult, StoppedBy

__all__ = ["BaseGroupLoss", "GroupLossClassifier", "GroupLossRegressor"]

#: Names of ``constraint`` by rate and rule; None stands for the loss of the estimator.
_NAMES: dict[str, tuple[str | None, str]] = {
    BOUNDED_GROUP_LOSS: (None, "ceiling"),
    "loss_parity": (None, "difference"),
    "mean_score_parity": ("score", "difference"),
}


@with_parameters
class BaseGroupLoss(
    MinimisesWorstLoss, ModuleScores, HasIntercept, HandlesSmallGroups, Iterates, StartsWarm, ChoosesSolver
):
    """Classifier or regressor with bounds on the mean losses of groups.

    Parameters
    ----------
    kappa : float, "minimax" or None, default=None
        Bound on the mean loss of every group *on the training rows*, at least 0, in units of the loss (the log loss of
        a coin toss is 0.69). If no coefficients keep it, `fit` warns, says the least bound that can be kept, and
        returns the model whose worst group has the least loss. "minimax" asks for that model: the largest mean loss
        with the penalty is minimised, and among the models where it is least, but for ``slack``, the mean loss of all
        rows. None: unconstrained, for comparison.
    constraint : str, Constraint or list of (str, Constraint), default="bounded_group_loss"
        Meaning of ``kappa``: the largest mean loss of a group ("bounded_group_loss"), the largest difference between
        the mean losses of two groups ("loss_parity") or between their mean scores, of a regressor its predictions
        ("mean_score_parity"). Or a constraint of `fairconstrained.constraints`, or several of them with names, see
        `PartialParityClassifier`; then their own parameters count, and ``kappa`` and ``min_group_size`` are ignored.
    min_group_size : int or "auto", default="auto"
        Rows that a group needs to be compared. "auto": as many as it takes for no row to have more than ``max(kappa,
        0.02)`` of the group's weight, and 50 with "minimax". A regressor takes ``kappa`` in standard deviations of
        ``y`` here, or in its variance where it bounds squares.
    slack : float, default=0.005
        Share of the least loss of the worst group by which that of the model may exceed it, for a lower mean loss of
        all rows, where "minimax" is solved by "interior_point". The least loss on the training rows is partly chance:
        with the default the worst group's loss *on new rows* is lower than with 0, the exact minimax, on every data set
        of the benchmarks.
    solver : str, default="auto"
        "auto" is "interior_point" for linear scores and losses that are bounded from above: it solves the problem to
        the ``duality_gap_``. Otherwise it is "group_weights" for "minimax", "adam_lagrangian" for bounds on modules,
        and as in `PartialParityClassifier` for linear scores.
    max_iter : int or None, default=None
        Iterations of the solver; None is the solver's own default.
    tol : float, default=1e-4
        Tolerance of the solver: of "interior_point" the ``duality_gap_`` as a fraction of the objective.

    Attributes
    ----------
    group_losses_ : DataFrame
        One row for each group: ``n_samples``, its ``share`` of the weight, ``loss``, its mean loss on the training
        rows, ``multiplier``, the weight that the solver gave its loss (NaN where it has none, or where something else
        is bounded), and ``compared_as``, the name under which the constraint knows it, None for a group that it leaves
        out.
    worst_group_ : object
        Label of the group with the largest mean loss, among those that are compared.
    duality_gap_ : float or None
        ``objective_`` less a lower bound on its least value under the bounds, at least 0; with "minimax" ``slack`` is a
        part of it. None where there is no such lower bound: for modules, for differences of losses, with other solvers,
        and if the bounds are not kept.
    objective_ : float
        Objective with its penalty; with "minimax" the mean loss of the worst group with the penalty.
    multipliers_ : dict or None
        Multipliers of the bounded losses, in units of the objective per unit of ``kappa``; with "minimax" the weights
        of the groups' losses, which sum to one.
    prices_ : dict
        The price of fairness: by how much ``objective_`` would fall for one unit more of ``kappa``, to first order. NaN
        where it is not known, and with "minimax".

    Notes
    -----
    ``sensitive_features`` may be a table of booleans, dense or sparse, with a column for every group: groups may then
    overlap, and rows belong to none. See `fairconstrained.groups.Membership`.
    """

    kappa: float | str | None = parameter(
        None, [Interval(Real, 0, None, closed="left"), StrOptions({MINIMAX}), None], kw_only=False
    )
    constraint: str | Constraint | Sequence[tuple[str, Constraint]] = parameter(BOUNDED_GROUP_LOSS, ANY_CONSTRAINT)
    min_group_size: int | str = parameter(AUTO, [Interval(Integral, 0, None, closed="left"), StrOptions({AUTO})])
    slack: float = parameter(0.005, [Interval(Real, 0, None, closed="left")])
    tol: float = parameter(1e-4, [Interval(Real, 0, None, closed="left")])
    if TYPE_CHECKING:
        loss: str  # the subclasses know different ones

    _takes_overlapping_groups: ClassVar[bool] = True
    _constraint_names = tuple(_NAMES)

    @override
    def _remedy(self, data: FairData, stopped_by: StoppedBy) -> str:
        has_least = self.constraint == BOUNDED_GROUP_LOSS  # the only bound that can be minimised
        least = f"set kappa={MINIMAX!r} for the least bound that can be kept, " if has_least else ""
        return f"Raise kappa, {least}or give the model more freedom ({self._more_freedom})."

    def _objective(self) -> Loss:
        return ROW_LOSS_OBJECTIVES[self.loss]

    @property
    @override
    def _row_loss(self) -> str:
        return self.loss

    def _constraint_named(self, name: str) -> GroupRates:
        rate, rule = _NAMES[name]
        return self._mean_of_rows(rate or self.loss, rule)

    def _names_of(self, bound: Sequence[BoundConstraint]) -> list[str]:
        return [self.constraint] if isinstance(self.constraint, str) else super()._names_of(bound)

    def _constraints_choose_groups(self) -> bool:
        return isinstance(self.constraint, str)

    def _auto_solver(self, problem: Problem) -> str:
        if not InteriorPoint.obstacle(problem):
            return InteriorPoint.name
        if not GroupWeights.obstacle(problem):
            return GroupWeights.name
        return super()._auto_solver(problem) if problem.model.is_linear else AdamLagrangian.name

    @override
    def _solver(self, problem: Problem, **special: Any) -> Solver:
        return super()._solver(problem, **({"slack": self.slack} | special))

    def _report(self, problem: Problem, params: np.ndarray, result: SolverResult, target: Target) -> dict[str, float]:
        """Implement `BaseFairEstimator._report`; also the table of the groups' losses, and the duality gap."""
        excess = super()._report(problem, params, result, target)
        gap = result.duality_gap
        self.duality_gap_ = None if gap is None else gap * self._unit_of_objective(target)
        self.group_losses_ = self._losses_by_group(problem, params, target)
        compared = self.group_losses_[self.group_losses_["compared_as"].notna()]
        self.worst_group_ = compared["loss"].idxmax() if len(compared) else None
        return excess

    def _losses_by_group(self, problem: Problem, params: np.ndarray, target: Target) -> pd.DataFrame:
        """Table of the mean losses, in units of the user."""
        data, weights = problem.data, problem.data.weights.numpy()
        values = ROW_LOSSES[self.loss](problem.scores(params), data.y.numpy()) * self._unit_of_objective(target)
        means = mean_by_cell(values, data.codes, weights, (1, data.n_groups), data.unions)[0]
        table = by_label(grouped_rows(data).table(loss=means[~np.isnan(means)]), data)
        names = self._compared_as[0] if len(self._compared_as) == 1 else {}
        known = [names.get(str(label), str(label)) for label in table.index]
        table["multiplier"] = [self._multiplier(name) for name in known]
        table["compared_as"] = pd.Series(known, index=table.index, dtype=object)
        return table

    def _multiplier(self, name: str | None) -> float:
        """The multiplier of the bound on a group's loss; NaN where there is none."""
        if self.multipliers_ is None or self.constraint != BOUNDED_GROUP_LOSS:
            return np.nan
        return self.multipliers_.get(f"{BOUNDED_GROUP_LOSS}[{name}]", 0.0)


@with_parameters
class GroupLossClassifier(FairClassifierMixin, BaseGroupLoss):
    r"""Classifier with a bound on the mean loss of every group, or the least loss of its worst group.

    .. math:: \min_w \; L(w) + \frac{\alpha}{2} \|w\|^2 \quad \text{s.t.} \quad L_g(w) \le \kappa
              \quad \text{for every group } g, \qquad L_g(w) = \frac{1}{|g|} \sum_{i \in g} \ell(h_w(x_i), y_i)

    with the mean loss L of all rows, or with ``kappa="minimax"``

    .. math:: \min_w \max_g L_g(w) + \frac{\alpha}{2} \|w\|^2 = \max_{p \ge 0, \; \sum_g p_g = 1} \min_w
              \sum_g p_g L_g(w) + \frac{\alpha}{2} \|w\|^2 .

    The scores :math:`h_w` are linear or those of a torch module. For linear scores the fit is the optimum up to
    ``duality_gap_``, which the right-hand side gives.

    Parameters
    ----------
    loss : {"log_loss", "squared", "hinge", "absolute"}, default="log_loss"
        Loss of a row's score and its label, -1 or +1, in the objective and in the bound; "squared" is half the square
        of the difference.

    References
    ----------
    Agarwal, Dudik, Wu, Fair regression: quantitative definitions and reduction-based algorithms, ICML 2019 (bounded
    group loss, section 2). Diana, Gill, Kearns, Kenthapadi, Roth, Minimax group fairness: algorithms and experiments,
    AIES 2021 (the minimax problem and multiplicative weights for it, Algorithm 1).

    Examples
    --------
    >>> from fairconstrained import GroupLossClassifier
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=2000, random_state=0)
    >>> free = GroupLossClassifier().fit(X, y, sensitive_features=group)
    >>> least = GroupLossClassifier("minimax").fit(X, y, sensitive_features=group)
    >>> bool(least.group_losses_.loss.max() < free.group_losses_.loss.max())
    True
    >>> least.duality_gap_ <= (0.005 + 1e-4) * least.objective_
    True
    """

    loss: str = parameter("log_loss", [StrOptions(set(ROW_LOSSES))])


@with_parameters
class GroupLossRegressor(FairRegressorMixin, BaseGroupLoss):
    r"""Regressor with a bound on the mean loss of every group, or the least loss of its worst group.

    .. math:: \min_w \; L(w) + \frac{\alpha}{2} \|w\|^2 \quad \text{s.t.} \quad L_g(w) \le \kappa
              \quad \text{for every group } g, \qquad L_g(w) = \frac{1}{|g|} \sum_{i \in g} \ell(h_w(x_i), y_i),

    or the minimax problem of `GroupLossClassifier`, with predictions :math:`h_w` that are linear or those of a torch
    module.

    Parameters
    ----------
    loss : {"squared", "absolute"}, default="squared"
        Loss in the objective and in the bound: half of the squared error, or the absolute error. So with "squared",
        ``kappa`` bounds half of a mean squared error. With "absolute", the weight of the penalty is ``alpha`` divided
        by the standard deviation of ``y`` in place of ``alpha``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients; only if the predictions are linear.
    intercept_ : float
        Intercept; only if the predictions are linear.

    References
    ----------
    Agarwal, Dudik, Wu, Fair regression: quantitative definitions and reduction-based algorithms, ICML 2019 (bounded
    group loss, section 2).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained import GroupLossRegressor
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X @ [1.0, 2.0, 3.0] * (1 + group) + rng.normal(size=1000)
    >>> model = GroupLossRegressor("minimax").fit(X, y, sensitive_features=group)
    >>> model.group_losses_.loss.round(2).tolist()
    [2.18, 2.15]
    """

    loss: str = parameter("squared", [StrOptions({"squared", "absolute"})])

    @override
    def _unit_of_objective(self, target: Target) -> float:
        return target.scale ** (2 if self.loss == "squared" else 1)

    @override
    def _usefulness(self, problem: Problem, scores: np.ndarray) -> Usefulness:
        return Usefulness.of_predictions(problem, scores, self.loss)
