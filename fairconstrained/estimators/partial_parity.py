"""Classification and regression under partial parity on a percentile interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from fairconstrained.constraints import (
    Constraint,
)
from fairconstrained.estimators._parity import (
    LABEL_FREE_PARITIES,
    OBJECTIVE_CHECKS,
    OBJECTIVE_PARAMETERS,
    OBJECTIVES,
    PartialParity,
)
from fairconstrained.estimators._published import OPTIONS_OR_PAPER
from fairconstrained.estimators.linear import FairClassifierMixin, FairRegressorMixin
from fairconstrained.metrics.label_ranks import RANKS, Ranks
from fairconstrained.models.module import ModuleSpec
from fairconstrained.objectives import (
    Objective,
    Squared,
)

__all__ = ["PartialParityClassifier", "PartialParityRegressor"]

#: What the experiments of the paper have in common (sections 7 and G.2).
_PAPERS_PROBLEM = {"surrogate": "ramp", "surrogate_width": 1.0, "n_levels": 10, "alpha": 0.0}


class PartialParityClassifier(FairClassifierMixin, PartialParity):
    r"""Classifier with bounds on partial parity gaps of its scores.

    .. math:: \min_w \; f(h_w) + \frac{\alpha}{2} \|w\|^2
              \quad \text{s.t.} \quad
              \max_{g, g'} \mathrm{gap}_{g, g'}(h_w) \le \kappa

    The scores :math:`h_w` are linear or those of a torch module, and f is the mean loss of the rows or a pairwise loss
    that stands for the AUC. With the rank :math:`\bar F_g(\theta)`, the share of group g that scores above
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

    Parameters
    ----------
    kappa : float or None, default=0.05
        Bound on the gap *measured on the training data* by the function of `fairconstrained.metrics` for
        ``constraint``, in [0, 1], or [0, 1/2] for "group_auc". With ``solver="auto"`` the fitted model keeps it up to
        the metric's granularity, or `fit` warns and ``status_`` is ``"infeasible"``. None: unconstrained, for
        comparison.
    interval : pair of floats, list of pairs, or dict from group to either, default=(0.0, 1.0)
        Percentile interval ``[alpha, beta)`` of ranks within a group, 0 being the top: (0, 0.2) compares the
        best-scored 20 % of every group. A list is a union of disjoint intervals; a dict has one, or a union, for every
        group. For "equal_opportunity" and "equalized_odds" see ``ranks``.
    constraint : str, Constraint or list of (str, Constraint), default="statistical_parity"
        What is compared, and what ``kappa`` bounds, by name:

        - "statistical_parity": the shares above every threshold,
          `~fairconstrained.metrics.partial_statistical_parity_gap`;
        - "demographic_parity": those above ``threshold``, `~fairconstrained.metrics.partial_demographic_parity_gap`;
        - "equal_opportunity": the true positive rates at ``threshold``,
          `~fairconstrained.metrics.partial_equal_opportunity_gap`;
        - "equalized_odds": the false positive rates too, `~fairconstrained.metrics.partial_equalized_odds_gap`;
        - "group_auc": who outranks whom, `~fairconstrained.metrics.partial_group_auc_gap`.

        Other names of these metrics work as well (:doc:`/guide/metrics`). Or a constraint of
        `fairconstrained.constraints`, or several of them, each with a name under which ``constraint_values_`` reports
        it and ``constraint__<name>__kappa`` sets it; then their own parameters count, and ``kappa``, ``interval``,
        ``normalize``, ``ranks``, ``surrogate``, ``surrogate_width`` and ``n_levels`` are ignored.
    normalize : bool, default=True
        False bounds the rank gap ``|F_g - F_g'|`` itself, by ``kappa``, wherever one of the two ranks lies in
        the interval. Not used by "group_auc".
    ranks : {"group_and_label", "group"}, default="group_and_label"
        Only for "equal_opportunity" and "equalized_odds": whether the rank of a row is the one among the rows of its
        group and label, as in the problems that the paper solves (eqs. 50 and 56), or the one in its whole group, as in
        its definitions (eqs. 42 and 45). With the second, ``solver`` cannot be "idca" or one of mini-batches.
    threshold : float, default=0.0
        Score above which the positive class is predicted.
    objective : {"logistic", "truncated_logistic", "hinge", "squared", "zero_one", "auc"}, default="logistic"
        What is minimised. "zero_one" is a smoothed error rate, followed by an exact choice of the intercepts; it trades
        calibrated probabilities for accuracy. "auc" is the mean loss of a positive's score minus a negative's over all
        pairs; as that leaves the intercept open, one shift for all rows is chosen for the least training error within
        the bounds.
    group_interactions : bool, default=False
        One coefficient vector and intercept, or one output of the module, per group; prediction then needs
        ``sensitive_features``.
    fit_intercept : bool, default=True
        Of linear scores.
    alpha : float, default=1e-4
        Weight of the l2 penalty on the coefficients, or on the weights of a module (not its biases). What it shrinks
        depends on the units of the features, as in scikit-learn's `LogisticRegression`: with features of the order of
        1e-8 it leaves all but constant scores. Standardise them; with ``alpha=0`` the units do not matter to linear
        scores.
    truncation : float, default=0.5
        The ``a`` of the truncated logistic loss ``a log(1 + l / a)``.
    auc_loss : {"logistic", "hinge", "quadratic"}, default="logistic"
        Loss of a pair for ``objective="auc"``: ``log(1 + exp(-x))``, ``max(1 - x, 0)`` or ``(1 - x)^2 / 2``.
    auc_interval : pair of floats, default=(0.0, 1.0)
        False positive rates over which ``objective="auc"`` takes the area: (0, 0.1) looks only at the tenth of the
        negatives that score highest.
    module : torch.nn.Module or callable, default=None
        What computes the scores in place of a linear function. A callable, such as a class, takes
        ``(n_features, n_outputs)`` and returns a module; an instance is copied and starts from its parameters. It maps
        rows of shape (n_rows, n_features) to (n_rows, n_outputs). Standardise the features.
    hidden_layer_sizes : sequence of int, default=None
        Builds a multilayer perceptron with these widths as the module.
    activation : {"relu", "tanh", "logistic", "silu", "softplus"}, default="relu"
        Of its hidden layers.
    surrogate : {"smoothstep", "logistic", "ramp"}, default="smoothstep"
        What stands in for the indicator while optimising.
    surrogate_width : float or "auto", default="auto"
        Width of the surrogate in units of the score. "auto": chosen and narrowed by "auto" solvers, 1
        (the paper's) for the others.
    n_levels : int or "auto", default="auto"
        Number of ranks p at which statistical parity is imposed to begin with (10). The "auto" solver adds more.
    small_groups : {"error", "merge", "ignore"}, default="error"
        What becomes of groups with a cell of rows in which one row counts more than ``max(kappa, 0.02)`` in a gap that
        is bounded: "error" raises ValueError with the counts, "merge" puts them together, as one group named
        "(small groups)", and "ignore" leaves them out of the constraints.
    compute_stationarity : bool, default=False
        Whether `fit` is to compute ``stationarity_`` and its report, which takes about as long as another fit, and
        with ``surrogate="ramp"`` several times as long.
    solver : str, default="auto"
        "auto" is "augmented_lagrangian", which bounds the reported metric; so does "proxy_lagrangian", a baseline by
        gradient steps. "idca", "switching_subgradient" and "stochastic_idca" (mini-batches) follow the paper and bound
        its surrogate; "penalized_subgradient" bounds nothing.
    solver_options : dict or "paper", optional
        Options of the solver, see its class. "paper" is the paper's experiment with "idca", "switching_subgradient" or
        "stochastic_idca": in place of this estimator's own, ``surrogate="ramp"``, ``surrogate_width=1``,
        ``n_levels=10``, ``alpha=0`` and, but for the last of the three, ``group_interactions=True``.
    max_iter : int or None, default=None
        Outer iterations of the solver; None is the solver's own default: 50 for "augmented_lagrangian", 100 for
        "idca", 20 for "stochastic_idca", 10000 for "switching_subgradient".
    tol : float, default=5e-4
        Relative improvement of the objective below which "auto" stops.
    random_state : int, RandomState instance or None, default=None
        Seeds the first weights of a module, mini-batches, and the rows that "auto" begins with where there are
        more than 150,000. A linear model of fewer rows takes no random numbers but with "stochastic_idca". None is
        another seed every time; numpy's global generator is left alone.
    verbose : int, default=0
        Positive: print a line per iteration.
    warm_start : bool, default=False
        Start from the last fit, its multipliers included, also after `set_params` with another ``kappa``. Ignored where
        the features, the groups or the layers have changed.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_groups, n_features)
        Only of linear scores.
    intercept_ : ndarray of shape (1,) or (n_groups,)
        Only of linear scores.
    module_ : torch.nn.Module
        The trained module, on the CPU. Only of models with a module.
    classes_ : ndarray of shape (2,)
        The second one is the positive class.
    groups_ : ndarray of shape (n_groups,)
        The groups, in the order of the rows of ``coef_`` or the outputs of ``module_``; empty if none were given.
    ignored_groups_ : list
        Labels of the groups that ``small_groups="ignore"`` left out of the constraints.
    status_ : {"optimal", "completed", "max_iter", "infeasible", "unconstrained"}
        "optimal": feasible, and the objective has settled; "completed": feasible after the planned iterations
        of a solver without a stopping rule; "max_iter": feasible, not settled; "infeasible": not within kappa;
        "unconstrained": a bound was asked for, but there is nothing to compare.
    constraint_values_ : dict
        The *exact* gap on the training data, by the constraint's name: that of the list, or
        "statistical_parity", "demographic_parity", "group_auc", "equal_opportunity" or "equalized_odds".
        NaN with ``ranks="group"`` where a group has no rows of a label at ranks in the interval; then no bound is kept.
    constraint_values_all_groups_ : dict
        The same gaps with the ignored groups compared as well; NaN where one of them has an empty cell.
    granularity_ : dict
        The change that a single row can make in each of these gaps, which it may exceed ``kappa`` by; at most
        ``max(kappa, 0.02)``.
    violation_ : float
        The most that an exact gap exceeds its ``kappa`` by, at least 0.
    objective_ : float
        Objective with its penalty.
    multipliers_ : dict or None
        Multipliers of the surrogate's active components; None where the method has no multipliers, such as
        ``solver="idca"`` or the exact search for ``objective="zero_one"``.
    prices_ : dict
        The price of fairness by constraint: how much ``objective_`` would fall per unit of ``kappa``, to first order.
        NaN where ``multipliers_`` is None: the price is not known then.
    stationarity_ : float
        An :math:`\epsilon` with which the parameters are a nearly :math:`\epsilon`-KKT point (Definition 6.2) of the
        paper's problem: with the surrogate of width ``surrogate_width`` (1 where that is "auto") at ``n_levels``
        levels, which "idca" and "switching_subgradient" solve. "auto" narrows the surrogate and follows the exact
        metric, so that it need not end at a KKT point of this problem. Only if ``compute_stationarity``.
    stationarity_report_ : dict
        The least :math:`\epsilon` of Definition 6.1 and its parts too, by the names of
        `fairconstrained.solvers.KKTConditions`. Only if ``compute_stationarity``.
    n_iter_, n_evaluations_ : int
        Outer iterations and full-batch evaluations.
    history_ : list of dict
        One record per iteration.
    published_params_ : dict
        Only with ``solver_options="paper"``: the parameters that the fit had in place of this estimator's own.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only for input with string column names.

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

    _published: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "idca": _PAPERS_PROBLEM | {"group_interactions": True},
        "switching_subgradient": _PAPERS_PROBLEM | {"group_interactions": True},
        "stochastic_idca": _PAPERS_PROBLEM,
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialParity._parameter_constraints,
        "ranks": [StrOptions(set(RANKS))],
        "solver_options": OPTIONS_OR_PAPER,
        **OBJECTIVE_PARAMETERS,
    }
    _parameter_checks = OBJECTIVE_CHECKS

    def __init__(
        self,
        kappa: float | None = 0.05,
        *,
        interval: Any = (0.0, 1.0),
        constraint: str | Constraint | Sequence[tuple[str, Constraint]] = "statistical_parity",
        normalize: bool = True,
        ranks: Ranks = "group_and_label",
        threshold: float = 0.0,
        objective: str = "logistic",
        group_interactions: bool = False,
        fit_intercept: bool = True,
        alpha: float = 1e-4,
        truncation: float = 0.5,
        auc_loss: str = "logistic",
        auc_interval: Any = (0.0, 1.0),
        module: ModuleSpec | None = None,
        hidden_layer_sizes: Sequence[int] | None = None,
        activation: str = "relu",
        surrogate: str = "smoothstep",
        surrogate_width: float | str = "auto",
        n_levels: int | str = "auto",
        small_groups: str = "error",
        compute_stationarity: bool = False,
        solver: str = "auto",
        solver_options: Mapping[str, Any] | str | None = None,
        max_iter: int | None = None,
        tol: float = 5e-4,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.kappa = kappa
        self.interval = interval
        self.constraint = constraint
        self.normalize = normalize
        self.ranks = ranks
        self.threshold = threshold
        self.objective = objective
        self.group_interactions = group_interactions
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.truncation = truncation
        self.auc_loss = auc_loss
        self.auc_interval = auc_interval
        self.module = module
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.surrogate = surrogate
        self.surrogate_width = surrogate_width
        self.n_levels = n_levels
        self.small_groups = small_groups
        self.compute_stationarity = compute_stationarity
        self.solver = solver
        self.solver_options = solver_options
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def _objective(self) -> Objective:
        return OBJECTIVES[self.objective](self)


class PartialParityRegressor(FairRegressorMixin, PartialParity):
    r"""Least squares with bounds on partial parity gaps of the predictions.

    .. math:: \min_w \; \frac{1}{2 n} \sum_i (h_w(x_i) - y_i)^2 + \frac{\alpha}{2} \|w\|^2
              \quad \text{s.t.} \quad \max_{g, g'} \mathrm{gap}_{g, g'}(h_w) \le \kappa

    with the gaps of `PartialParityClassifier` that need no labels, and scores that are linear or those of a torch
    module.

    Parameters
    ----------
    kappa : float or None, default=0.05
        Bound on the gap *measured on the training data*, see `PartialParityClassifier`. None: unconstrained, for
        comparison.
    interval : pair of floats, list of pairs, or dict from group to either, default=(0.0, 1.0)
        Percentile interval ``[alpha, beta)`` of ranks within a group, 0 being the largest predictions; a union; or one
        of these for every group.
    constraint : str, Constraint or list of (str, Constraint), default="statistical_parity"
        Whether the distributions of the predictions must agree at every threshold ("statistical_parity"), at
        ``threshold`` only ("demographic_parity"), or in who outranks whom ("group_auc"). Or constraints of
        `fairconstrained.constraints`, with thresholds and widths in units of ``y``, see `PartialParityClassifier`.
    normalize : bool, default=True
        False bounds the rank gap, see `PartialParityClassifier`.
    threshold : float, default=0.0
        The threshold of demographic parity, in units of ``y``.
    group_interactions, fit_intercept, alpha, module, hidden_layer_sizes, activation
        As in `PartialParityClassifier`.
    surrogate_width : float or "auto", default="auto"
        Width of the surrogate in units of ``y``.
    solver_options : dict, optional
        Options of the solver, see its class.
    surrogate, n_levels, small_groups, compute_stationarity, solver, max_iter, tol, random_state, verbose, warm_start
        As in `PartialParityClassifier`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_groups, n_features)
        Only of linear predictions.
    intercept_ : float or ndarray of shape (n_groups,)
        Only of linear predictions.
    module_ : torch.nn.Module
        The trained module, whose outputs are the standardised predictions. Only of models with a module.
    groups_, ignored_groups_, status_, constraint_values_, constraint_values_all_groups_, granularity_, violation_,
    objective_, multipliers_, prices_, stationarity_, stationarity_report_, n_iter_, n_evaluations_, history_
        As in `PartialParityClassifier`; multipliers and stationarity refer to the standardised target.

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

    def __init__(
        self,
        kappa: float | None = 0.05,
        *,
        interval: Any = (0.0, 1.0),
        constraint: str | Constraint | Sequence[tuple[str, Constraint]] = "statistical_parity",
        normalize: bool = True,
        threshold: float = 0.0,
        group_interactions: bool = False,
        fit_intercept: bool = True,
        alpha: float = 1e-4,
        module: ModuleSpec | None = None,
        hidden_layer_sizes: Sequence[int] | None = None,
        activation: str = "relu",
        surrogate: str = "smoothstep",
        surrogate_width: float | str = "auto",
        n_levels: int | str = "auto",
        small_groups: str = "error",
        compute_stationarity: bool = False,
        solver: str = "auto",
        solver_options: Mapping[str, Any] | None = None,
        max_iter: int | None = None,
        tol: float = 5e-4,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.kappa = kappa
        self.interval = interval
        self.constraint = constraint
        self.normalize = normalize
        self.threshold = threshold
        self.group_interactions = group_interactions
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.module = module
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.surrogate = surrogate
        self.surrogate_width = surrogate_width
        self.n_levels = n_levels
        self.small_groups = small_groups
        self.compute_stationarity = compute_stationarity
        self.solver = solver
        self.solver_options = solver_options
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def _objective(self) -> Objective:
        return Squared()

    def _set_attributes(self, attributes: dict[str, Any]) -> None:
        coefficients = attributes.get("coef_")
        if coefficients is not None and coefficients.shape[0] == 1:
            # the shapes of scikit-learn's regressors
            attributes |= {"coef_": coefficients[0], "intercept_": float(attributes["intercept_"][0])}
        super()._set_attributes(attributes)
