"""Classification and regression under partial parity on a percentile interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from fairconstrained.estimators._parity import LABEL_FREE_PARITIES, ChoosesObjective, PartialParity, UnderOneKappa
from fairconstrained.estimators._published import FollowsPaper
from fairconstrained.estimators._several_classes import TakesClasses
from fairconstrained.estimators.linear import FairRegressorMixin
from fairconstrained.estimators.parameters import parameter, with_parameters
from fairconstrained.metrics.label_ranks import RANKS, Ranks
from fairconstrained.objectives import Objective, Squared

__all__ = ["BasePartialParityClassifier", "PartialParityClassifier", "PartialParityRegressor"]

#: Settings that the experiments of the paper have in common (sections 7 and G.2).
_PAPERS_PROBLEM = {"surrogate": "ramp", "surrogate_width": 1.0, "n_levels": 10, "alpha": 0.0}


@with_parameters
class BasePartialParityClassifier(TakesClasses, FollowsPaper, PartialParity, ChoosesObjective):
    r"""Classifier with bounds on partial parity gaps of its scores; a subclass says where kappa comes from.

    Parameters
    ----------
    interval : pair of floats, list of pairs, or dict from group to either, default=(0.0, 1.0)
        Percentile interval ``[alpha, beta)`` of ranks within a group, 0 being the top: (0, 0.2) compares the
        best-scored 20 % of every group. A list is a union of disjoint intervals; a dict has one, or a union, for every
        group. For "equal_opportunity" and "equalized_odds" see ``ranks``.
    constraint : str, Constraint or list of (str, Constraint), default="statistical_parity"
        Constraint, or its name, which says what is compared and what ``kappa`` bounds:

        - "statistical_parity": the shares above every threshold,
          `~fairconstrained.metrics.partial_statistical_parity_gap`;
        - "demographic_parity": those above ``threshold``, `~fairconstrained.metrics.partial_demographic_parity_gap`;
        - "equal_opportunity": the true positive rates at ``threshold``,
          `~fairconstrained.metrics.partial_equal_opportunity_gap`;
        - "equalized_odds": the false positive rates too, `~fairconstrained.metrics.partial_equalized_odds_gap`;
        - "group_auc": how often one group is ranked above another, `~fairconstrained.metrics.partial_group_auc_gap`.

        Other names of these metrics work as well (:doc:`/guide/metrics`). Or a constraint of
        `fairconstrained.constraints`, or several of them, each with a name under which ``constraint_values_`` reports
        it and ``constraint__<name>__kappa`` sets it; then their own parameters count, and ``kappa``, ``interval``,
        ``normalize``, ``ranks``, ``surrogate``, ``surrogate_width`` and ``n_levels`` are ignored.
    ranks : {"group_and_label", "group"}, default="group_and_label"
        Rows among which a row is ranked, for "equal_opportunity" and "equalized_odds" only: those of its group and
        label, as in the problems that the paper solves (eqs. 50 and 56), or those of its whole group, as in its
        definitions (eqs. 42 and 45). With the second, ``solver`` cannot be "idca" or one of mini-batches.
    compute_stationarity : bool, default=False
        Whether `fit` is to compute ``stationarity_`` and its report, which takes about as long as another fit, and
        with ``surrogate="ramp"`` several times as long.
    solver_options : dict or "paper", optional
        Options of the solver, see its class. "paper" is the paper's experiment with "idca", "switching_subgradient" or
        "stochastic_idca": in place of this estimator's own, ``surrogate="ramp"``, ``surrogate_width=1``,
        ``n_levels=10``, ``alpha=0`` and, except for "stochastic_idca", ``group_interactions=True``.

    Attributes
    ----------
    constraint_values_ : dict
        The *exact* gap on the training data, by the constraint's name: that of the list, or
        "statistical_parity", "demographic_parity", "group_auc", "equal_opportunity" or "equalized_odds".
        NaN with ``ranks="group"`` where a group has no rows of a label at ranks in the interval; then no bound is kept.
    stationarity_ : float
        An :math:`\epsilon` with which the parameters are a nearly :math:`\epsilon`-KKT point (Definition 6.2) of the
        paper's problem: with the surrogate of width ``surrogate_width`` (1 where that is "auto") at ``n_levels``
        levels, which "idca" and "switching_subgradient" solve. "auto" narrows the surrogate and uses the exact metric,
        so it does not always end at a KKT point of this problem. Only if ``compute_stationarity``.
    stationarity_report_ : dict
        The least :math:`\epsilon` of Definition 6.1 and its parts too, by the names of
        `fairconstrained.solvers.KKTConditions`. Only if ``compute_stationarity``.
    """

    ranks: Ranks = parameter("group_and_label", [StrOptions(set(RANKS))])

    _published: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "idca": _PAPERS_PROBLEM | {"group_interactions": True},
        "switching_subgradient": _PAPERS_PROBLEM | {"group_interactions": True},
        "stochastic_idca": _PAPERS_PROBLEM,
    }

    def _objective(self) -> Objective:
        return self._for_classes(super()._objective())


@with_parameters
class PartialParityClassifier(BasePartialParityClassifier, UnderOneKappa):
    r"""Classifier with bounds on partial parity gaps of its scores.

    .. math:: \min_w \; f(h_w) + \frac{\alpha}{2} \|w\|^2
              \quad \text{s.t.} \quad
              \max_{g, g'} \mathrm{gap}_{g, g'}(h_w) \le \kappa

    The scores :math:`h_w` are linear or those of a torch module, and f is the mean loss of the rows or a loss of pairs,
    a surrogate of the AUC. With the rank :math:`\bar F_g(\theta)`, the share of group g with scores above
    :math:`\theta`, and :math:`\mathrm{clip}(F) = \min(F, \beta) - \min(F, \alpha)`, the gap is by ``constraint``

    .. math::
        \text{statistical\_parity:} \quad & \max_\theta
        |\mathrm{clip}(\bar F_g(\theta)) - \mathrm{clip}(\bar F_{g'}(\theta))| / (\beta - \alpha) \\
        \text{demographic\_parity:} \quad &
        |\mathrm{clip}(\bar F_g(\hat\theta)) - \mathrm{clip}(\bar F_{g'}(\hat\theta))| / (\beta - \alpha) \\
        \text{equal\_opportunity:} \quad & \text{the demographic one among the positives} \\
        \text{equalized\_odds:} \quad & \text{the larger of those among the positives and among the negatives} \\
        \text{group\_auc:} \quad &
        |P(s \ge s' \mid g, g', \text{both ranks in } [\alpha, \beta)) - 1/2|

    with the fixed threshold :math:`\hat\theta`.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530: definitions 4.2 and 4.3 (the gaps), eqs. 15 and 21 (the surrogate problems);
    appendix A with eqs. 49, 50 and 56 (group AUC, equal opportunity, equalized odds), and its Definitions A.2 and A.3
    (the latter two with ``ranks="group"``); remark 5.3 (unions, intervals by group); Definitions 6.1 and 6.2
    (``stationarity_``); eqs. 81-83 (the AUC objectives); Algorithms 1-3 (solvers "idca" and "switching_subgradient")
    and section G.9 ("stochastic_idca").

    Examples
    --------
    >>> from fairconstrained import PartialParityClassifier
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=2000, random_state=0)
    >>> model = PartialParityClassifier(kappa=0.05, interval=(0.0, 0.3)).fit(X, y, sensitive_features=group)
    >>> model.status_
    'optimal'

    Two bounds at once:

    >>> from fairconstrained.constraints import DemographicParity, StatisticalParity
    >>> both = [("top", StatisticalParity(0.1, interval=(0.0, 0.2))), ("rate", DemographicParity(0.05))]
    >>> model = PartialParityClassifier(constraint=both).fit(X, y, sensitive_features=group)
    >>> sorted(model.constraint_values_)
    ['rate', 'top']
    """


@with_parameters
class PartialParityRegressor(FairRegressorMixin, PartialParity, UnderOneKappa):
    r"""Least squares with bounds on partial parity gaps of the predictions.

    .. math:: \min_w \; \frac{1}{2 n} \sum_i (h_w(x_i) - y_i)^2 + \frac{\alpha}{2} \|w\|^2
              \quad \text{s.t.} \quad \max_{g, g'} \mathrm{gap}_{g, g'}(h_w) \le \kappa

    with the gaps of `PartialParityClassifier` that need no labels, and scores that are linear or those of a torch
    module.

    Parameters
    ----------
    interval : pair of floats, list of pairs, or dict from group to either, default=(0.0, 1.0)
        Percentile interval ``[alpha, beta)`` of ranks within a group, 0 being the largest predictions; a union; or one
        of these for every group.
    constraint : str, Constraint or list of (str, Constraint), default="statistical_parity"
        Whether the distributions of the predictions must agree at every threshold ("statistical_parity"), at
        ``threshold`` only ("demographic_parity"), or in how often one group is ranked above another ("group_auc"). Or
        constraints of `fairconstrained.constraints`, with thresholds and widths in units of ``y``, see
        `PartialParityClassifier`.
    threshold : float, default=0.0
        The threshold of demographic parity, in units of ``y``.
    surrogate_width : float or "auto", default="auto"
        Width of the surrogate in units of ``y``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_groups, n_features)
        Coefficients; only if the predictions are linear.
    intercept_ : float or ndarray of shape (n_groups,)
        Intercept or intercepts; only if the predictions are linear.
    module_ : torch.nn.Module
        The trained module, whose outputs are the standardised predictions. Only of models with a module.
    multipliers_, stationarity_, stationarity_report_
        Multipliers and stationarity as in `PartialParityClassifier`; they refer to the standardised target.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530, as in `PartialParityClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained import PartialParityRegressor
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 3)) + group[:, None]
    >>> y = X @ [1.0, 2.0, 3.0] + rng.normal(size=1000)
    >>> model = PartialParityRegressor(kappa=0.1).fit(X, y, sensitive_features=group)
    >>> model.violation_ <= 0.01
    True
    """

    _constraint_names = LABEL_FREE_PARITIES

    def _objective(self) -> Objective:
        return Squared()
