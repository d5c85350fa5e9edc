"""A penalty on the correlation of the scores with a group: a baseline of the AUC fairness paper."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.utils._param_validation import StrOptions
from typing_extensions import override

from fairconstrained.checks.protected import one_of_two
from fairconstrained.constraints import Constraint
from fairconstrained.data import FairData
from fairconstrained.estimators._outcome import Target
from fairconstrained.estimators._parity import OBJECTIVES, ChoosesObjective, objective_of
from fairconstrained.estimators._penalty import WeighsUnfairness
from fairconstrained.estimators.linear import FairClassifierMixin, ModuleScores
from fairconstrained.estimators.parameters import (
    HasGroupModels,
    HasIntercept,
    HasThreshold,
    Reports,
    StartsWarm,
    parameter,
    with_parameters,
)
from fairconstrained.metrics import group_auc_gap
from fairconstrained.objectives import CorrelationPenalty, Objective
from fairconstrained.problem import Problem
from fairconstrained.solvers import AugmentedLagrangian, Solver, SolverResult, Status

__all__ = ["CorrelationPenaltyClassifier"]


@with_parameters
class CorrelationPenaltyClassifier(
    FairClassifierMixin,
    WeighsUnfairness,
    ChoosesObjective,
    ModuleScores,
    HasThreshold,
    HasGroupModels,
    HasIntercept,
    StartsWarm,
    Reports,
):
    r"""Classifier with a *penalty* on the correlation of its scores with a group: a baseline.

    .. math:: \min_w \; f(h_w) + \frac{\alpha}{2} \|w\|^2 + \lambda \, |\mathrm{corr}(h_w(x), \gamma)|

    with :math:`\gamma = +1` for the protected group and -1 for all other rows. The absolute value is smoothed over a
    width of 1e-3 around zero, see `fairconstrained.objectives.CorrelationPenalty`.

    There is no ``kappa`` and no bound: a correlation of zero makes the *means* of the groups equal, not their ranks.
    The AUC gap that results from a weight is known only after the fit.

    Parameters
    ----------
    protected : object, default=None
        The group that is compared with all the others. With two groups it has no effect; with more it has to be given.
    objective : str or Objective, default="auc"
        Loss that is minimised: "auc", "logistic", "truncated_logistic", "hinge", "squared", "zero_one",
        "balanced_accuracy" or "f1", see `PartialParityClassifier`; the paper takes the AUC.
    random_state : int, RandomState instance or None, default=None
        Seed of the first weights of a module. None is another seed every time; numpy's global generator is left alone.

    Attributes
    ----------
    objective_ : float
        Objective with both penalties.
    status_ : {"optimal", "completed", "unconstrained"}
        "completed": the iterations were used up before the objective settled; "unconstrained": there is only one group,
        and nothing to penalise. The first two say nothing about the gap.
    constraint_values_ : dict
        The *exact* gap ``group_auc`` on the training data: the difference between 1/2 and the probability that a row of
        the protected group has a higher score than another row. Empty for a single group.
    multipliers_, granularity_, prices_ : dict
        Empty.

    References
    ----------
    Yao, Lin, Yang, "Stochastic Methods for AUC Optimization Subject to AUC-Based Fairness Constraints", AISTATS 2023,
    arXiv:2212.12603, section E.2. Beutel et al., "Fairness in Recommendation Ranking through Pairwise
    Comparisons", KDD 2019.

    Examples
    --------
    >>> from fairconstrained import CorrelationPenaltyClassifier
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=500, random_state=0)
    >>> model = CorrelationPenaltyClassifier(weight=1.0).fit(X, y, sensitive_features=group)
    >>> model.constraint_values_["group_auc"] < 0.02
    True
    """

    protected: Hashable | None = parameter(None)
    objective: str | Objective = parameter("auc", [StrOptions(set(OBJECTIVES)), Objective])
    random_state: Any = parameter(None, ["random_state"])

    # Not parameters: without constraints the default solver is L-BFGS, run until nothing changes.
    solver: ClassVar[str] = AugmentedLagrangian.name
    solver_options: ClassVar[None] = None

    def _common_options(self, solver: type[Solver]) -> dict[str, Any]:
        return {"verbose": self._solver_verbosity}

    def _objective(self) -> Objective:
        return CorrelationPenalty(objective_of(self), self.weight, self.protected)

    def _constraints(self, target: Target) -> list[Constraint]:
        return []

    def _report(self, problem: Problem, params: np.ndarray, result: SolverResult, target: Target) -> dict[str, float]:
        """Implement `BaseFairEstimator._report`; a penalty promises nothing, and what it leads to is measured."""
        super()._report(problem, params, result, target)
        if self.status_ not in (Status.OPTIMAL, Status.UNCONSTRAINED):
            self.status_ = Status.COMPLETED.value
        self.constraint_values_ = self._gaps(problem.data, problem.scores(params))
        return {}

    @override
    def _values_on(self, data: FairData, scores: np.ndarray) -> dict[str, float]:
        return self._gaps(data, scores)

    def _gaps(self, data: FairData, scores: np.ndarray) -> dict[str, float]:
        """The group AUC gap between the protected group and the others."""
        if data.n_groups == 1:
            return {}
        others = data.codes != one_of_two(data.labels, self.protected)
        weights = data.weights.numpy()
        gap = group_auc_gap(data.y.numpy(), scores, sensitive_features=others, sample_weight=weights)
        return {"group_auc": cast(float, gap)}
