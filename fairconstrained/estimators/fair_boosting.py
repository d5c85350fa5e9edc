"""Boosted trees under fairness constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real

from sklearn.utils._param_validation import Interval, StrOptions

from fairconstrained.constraints import (
    AUCGap,
    Constraint,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    GroupAUC,
    LossParity,
    StatisticalParity,
)
from fairconstrained.estimators._boosting import BaseFairBoosting
from fairconstrained.estimators._bounded import ANY_CONSTRAINT
from fairconstrained.estimators._parity import ChoosesObjective
from fairconstrained.estimators._worst_loss import BOUNDED_GROUP_LOSS, MINIMAX
from fairconstrained.estimators.linear import FairClassifierMixin, FairRegressorMixin
from fairconstrained.estimators.parameters import parameter, with_parameters
from fairconstrained.metrics.auc_sets import AUC_METRICS
from fairconstrained.objectives import Objective, Squared

__all__ = ["FairBoostingClassifier", "FairBoostingRegressor"]

_KAPPA = [Interval(Real, 0, None, closed="left"), StrOptions({MINIMAX}), None]
_RATES: dict[str, Callable[..., Constraint]] = {
    "demographic_parity": DemographicParity,
    "equal_opportunity": EqualOpportunity,
    "equalized_odds": EqualizedOdds,
}


@with_parameters
class FairBoostingClassifier(FairClassifierMixin, BaseFairBoosting, ChoosesObjective):
    r"""Boosted trees with bounds on the gaps between groups.

    .. math:: \min_F \; f(F) \quad \text{s.t.} \quad \mathrm{gap}(F) \le \kappa, \qquad
              F(x) = b + \sum_{t=1}^T \eta \, \mathrm{tree}_t(x)

    where f is the mean loss, and ``constraint`` says which gap is bounded. Every tree, grown by LightGBM, follows the
    slopes of the Lagrangian in the scores, and the multipliers follow the gap, see
    `fairconstrained.solvers.NewtonBoosting`. The number of trees T is the one of least objective among those whose
    *exact* gap is at most ``kappa``. A multiple or a shift of the scores is taken instead where it keeps the bound at a
    lower objective.

    With ``objective="zero_one"``, or another count of decisions, trees follow the costs of decisions, which the bound
    changes for all rows: fewer errors, and no calibrated probabilities, see :doc:`/guide/boosted_trees`. The threshold
    is moved to where the out-of-fold scores have the fewest errors within the bound. With ``cv=None`` the
    trees have memorised the rows, so the threshold is moved only where the bound needs it, or where the decisions are
    no better than the same one for all rows.

    Trees memorise the rows that they are fitted to, and would overfit the bound as well. So by default F is the mean of
    two boosters (five for few rows), each fitted without a half (two fifths) of the rows, and ``kappa`` bounds the gap
    of the scores that every row has from those which have not seen it, see ``cv`` and :doc:`/guide/boosted_trees`.

    Parameters
    ----------
    kappa : float, "minimax" or None, default=0.05
        Bound on the gap of the training rows, measured by the function of `fairconstrained.metrics` for ``constraint``
        on out-of-fold scores, or with ``cv=None`` on those of trees that have seen the rows. If no number of trees
        keeps it up to the metric's granularity, `fit` warns and ``status_`` is ``"infeasible"``. "minimax": the largest
        mean loss of a group is minimised; with ``constraint="bounded_group_loss"`` and ``objective`` "logistic" or
        "squared". None: unconstrained, for comparison.
    constraint : str, Constraint or list of (str, Constraint), default="demographic_parity"
        Constraint, or its name:

        - "demographic_parity", "equal_opportunity", "equalized_odds": rates of decisions at ``threshold``;
        - "statistical_parity": shares above every threshold;
        - "group_auc", "inter_group", "intra_group", "positive_equality", "negative_equality", "bpsn_bnsp": differences
          of AUCs, see `fairconstrained.constraints.AUCGap`;
        - "loss_parity": mean log losses of groups, see `fairconstrained.constraints.LossParity`;
        - "bounded_group_loss": the largest mean loss of a group, by the objective if it is "logistic" or "squared", and
          else the log loss.

        Or a constraint of `fairconstrained.constraints`, or several of them with names, see `PartialParityClassifier`;
        then ``kappa`` and ``interval`` are ignored.

    Raises
    ------
    ImportError
        From `fit`: if LightGBM is not installed (``pip install 'fairconstrained[boosting]'``).
    ValueError
        From `fit`: for groups that are too small for ``kappa`` to be resolved, ``kappa="minimax"`` with another
        constraint or objective, entries of ``lgbm_params`` that LightGBM has not or that are parameters here, or
        ``early_stopping_rounds`` with ``cv=None``.

    References
    ----------
    Friedman (2001), Greedy function approximation: a gradient boosting machine, Annals of Statistics 29(5),
    Algorithm 1.
    Cruz, Belém, Jesus, Bravo, Saleiro, Bizarro, FairGBM: Gradient Boosting with Fairness Constraints, ICLR 2023,
    arXiv:2209.07850, Algorithm 1 (boosting on a Lagrangian of rates with cross-entropy proxies).

    Examples
    --------
    >>> from fairconstrained import FairBoostingClassifier
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=2000, random_state=0)
    >>> model = FairBoostingClassifier(kappa=0.05, n_estimators=50).fit(X, y, sensitive_features=group)
    >>> model.status_
    'completed'
    """

    kappa: float | str | None = parameter(0.05, _KAPPA, kw_only=False)

    _constraint_names = (*_RATES, "statistical_parity", *AUC_METRICS, "loss_parity", BOUNDED_GROUP_LOSS)

    def _constraint_named(self, name: str) -> Constraint:
        if name in _RATES:
            return _RATES[name](self.kappa, interval=self.interval, threshold=self.threshold)
        if name == "statistical_parity":
            return StatisticalParity(self.kappa, interval=self.interval)
        if name == BOUNDED_GROUP_LOSS:
            return self._bounded_losses()
        return LossParity(self.kappa) if name == "loss_parity" else AUCGap(self.kappa, constraint=name)


@with_parameters
class FairBoostingRegressor(FairRegressorMixin, BaseFairBoosting):
    r"""Least-squares boosted trees with bounds on the gaps between groups.

    .. math:: \min_F \; \frac{1}{2 n} \sum_i (F(x_i) - y_i)^2 \quad \text{s.t.} \quad \mathrm{gap}(F) \le \kappa

    with trees as in `FairBoostingClassifier`.

    Parameters
    ----------
    kappa : float, "minimax" or None, default=0.05
        Bound on the gap of the training rows, measured on out-of-fold scores, or with ``cv=None`` on those of trees
        that have seen the rows. If no number of trees keeps it up to the metric's granularity, `fit` warns and
        ``status_`` is ``"infeasible"``. "minimax": the largest mean loss of a group is minimised, with
        ``constraint="bounded_group_loss"``. None: unconstrained, for comparison.
    constraint : str, Constraint or list of (str, Constraint), default="statistical_parity"
        Whether the distributions of the predictions must agree at every threshold ("statistical_parity"), at
        ``threshold`` only ("demographic_parity"), or in how often one group is ranked above another ("group_auc"); or
        half of the largest mean squared error of a group ("bounded_group_loss", in units of ``y`` squared). Or
        constraints of `fairconstrained.constraints`, with thresholds and widths in units of ``y``.
    threshold : float, default=0.0
        The threshold of demographic parity, in units of ``y``.

    Raises
    ------
    ImportError, ValueError
        From `fit`, for the same reasons as `FairBoostingClassifier`.

    References
    ----------
    Friedman (2001), Greedy function approximation: a gradient boosting machine, Annals of Statistics 29(5),
    Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained import FairBoostingRegressor
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(0, 2, 4000)
    >>> X = rng.normal(size=(4000, 3)) + 0.5 * group[:, None]
    >>> y = X[:, 0] ** 2 + X[:, 1] + rng.normal(size=4000)
    >>> model = FairBoostingRegressor(kappa=0.2, n_estimators=50).fit(X, y, sensitive_features=group)
    >>> model.n_boosters_
    5
    >>> model.constraint_values_["statistical_parity"] <= 0.2 + model.granularity_["statistical_parity"]
    True
    """

    kappa: float | str | None = parameter(0.05, _KAPPA, kw_only=False)
    constraint: str | Constraint | Sequence[tuple[str, Constraint]] = parameter("statistical_parity", ANY_CONSTRAINT)

    _constraint_names = ("statistical_parity", "demographic_parity", "group_auc", BOUNDED_GROUP_LOSS)

    def _objective(self) -> Objective:
        return Squared()

    def _constraint_named(self, name: str) -> Constraint:
        if name == "demographic_parity":
            return DemographicParity(self.kappa, interval=self.interval, threshold=self.threshold)
        if name == BOUNDED_GROUP_LOSS:
            return self._bounded_losses()
        return (GroupAUC if name == "group_auc" else StatisticalParity)(self.kappa, interval=self.interval)
