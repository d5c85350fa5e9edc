"""Thresholds for every group: the best ones of all under bounds on rates."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_consistent_length
from typing_extensions import override

from fairconstrained.checks.inputs import as_targets, take_names
from fairconstrained.checks.messages import (
    PASS_GROUPS,
    TWO_LARGE_GROUPS,
    compares_nothing,
    nothing_to_compare,
    shortened,
    warn_user,
)
from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.constraints import BoundConstraint, GroupRates
from fairconstrained.constraints.compared_groups import AUTO
from fairconstrained.constraints.group_rates import NAMED_RATES
from fairconstrained.data import FairData
from fairconstrained.estimators.grouping import SmallGroups, as_labels, encode_groups
from fairconstrained.estimators.parameters import HandlesSmallGroups
from fairconstrained.exceptions import ConvergenceWarning, FairnessWarning
from fairconstrained.groups import MERGED, Groups
from fairconstrained.metrics.group_rates import rate_named
from fairconstrained.model_selection.cell_folds import scoring_folds
from fairconstrained.objectives import F1, ClassWeights, DecisionUtility, Objective, ZeroOne
from fairconstrained.postprocessing._base import Postprocessor
from fairconstrained.postprocessing._choice import ROUNDING
from fairconstrained.postprocessing._rate_windows import RateBound, Thresholds, check_rates
from fairconstrained.solvers import Status

__all__ = ["GroupThresholdClassifier"]

_PREFIT = "prefit"
#: Values of ``objective``.
_OBJECTIVES: Mapping[str, Objective] = MappingProxyType(
    {
        "accuracy": ZeroOne(),
        "balanced_accuracy": ZeroOne().weighing_classes(ClassWeights(balanced=True)),
        "f1": F1(),
    }
)
#: Parameters of `GroupRates` by the names that ``constraint`` may be.
_CONSTRAINTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "demographic_parity": {"rate": "selection"},
        "equal_opportunity": {"rate": "true_positive"},
        "equalized_odds": {"rate": "true_and_false_positive"},
        **{
            name: own
            for name, own in NAMED_RATES.items()
            if "within" not in own and rate_named(own["rate"]).counts_rows
        },
    }
)
#: A constraint as the user writes it, and on the rows of the search.
_Bound = tuple[GroupRates, BoundConstraint]
#: Scores so far from zero that smooth counts are the counts themselves.
_FAR = 1e6


@with_parameters
class GroupThresholdClassifier(HandlesSmallGroups, Postprocessor):
    r"""Any classifier with a threshold for every group, the best ones of all under bounds on the groups' rates.

    .. math:: \max_{t_1, \ldots, t_G} \; u(\mathrm{tn}, \mathrm{fp}, \mathrm{fn}, \mathrm{tp})
              \quad \text{s.t.} \quad \text{every bound on the rates } R_g(t_g) \text{ of the groups},
              \qquad \hat y = 1[s(x) > t_g]

    with the scores s of the classifier, and the utility u of the decisions of all groups together, such as their
    accuracy. The search is exact: no other thresholds that keep the bounds have a better utility on the rows of the
    search. Decisions are deterministic, and need the group of every row.

    Parameters
    ----------
    kappa : float or None, default=0.05
        Bound, in [0, 1], where ``constraint`` is a name; see `~fairconstrained.constraints.GroupRates`. None: the best
        thresholds whatever the rates.
    constraint : str, GroupRates or list of (str, GroupRates), default="demographic_parity"
        Rates of decisions that are bounded: by a name, such as "demographic_parity", "equal_opportunity",
        "equalized_odds", "predictive_equality", "error_rate_parity" or "predictive_parity", for differences between
        groups of at most ``kappa``; those with the ending "_ratio", such as "demographic_parity_ratio", for ratios of
        at least ``1 - kappa``. Or a `~fairconstrained.constraints.GroupRates`, which also has floors and ceilings of a
        rate, or several of them with names, each with its own ``kappa``, ``min_group_size`` and ``small_groups``. The
        rule "to_overall" is not possible here.
    objective : {"accuracy", "balanced_accuracy", "f1"}, Objective or callable, default="accuracy"
        Objective: by name, `~fairconstrained.objectives.CostMatrix` or another objective of decisions, or a function
        of ``(tn, fp, fn, tp)``, as shares of all rows, that is maximised, see
        `~fairconstrained.objectives.DecisionUtility`. A function is maximised exactly if it is quasi-concave (the
        counts for which it exceeds any value are a convex set), as ratios of linear functions, geometric and harmonic
        means are.
    cv : int, cross-validation splitter, iterable, "prefit" or None, default=5
        Scores by which thresholds are chosen. Folds: the score of every row is that of a classifier that was fitted on
        the other folds; an integer stands for shuffled folds with the same share of every group and class, and every
        row must be in one test part. "prefit": the scores of an estimator that is fitted already, which must be on
        other rows than those of `fit`. None: the scores of the estimator that is fitted on the same rows, for
        classifiers that do not overfit.
    min_group_size : int or "auto", default="auto"
        Least number of rows of every cell (a group, or its rows of a label that is compared) with which a group takes
        part, where ``constraint`` is a name. "auto": so many that no row counts more than ``max(kappa, 0.02)``, which
        holds whatever is given here.
    small_groups : {"error", "merge", "ignore"}, default="error"
        How to treat groups with smaller cells, where ``constraint`` is a name: "error" raises ValueError with the
        counts, "merge" puts them together, as one group named "(small groups)" with one threshold, with the next
        smaller ones if they are still too small, and "ignore" leaves their rates out of the bounds, so that they get
        the thresholds that are best for the objective.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds. None is another seed every time; numpy's global generator is left alone.

    Attributes
    ----------
    thresholds_ : dict
        Threshold by group, in units of the estimator's scores; that of the single group has the key None.
    objective_ : float
        Objective on the rows of the search as it is in other estimators, which minimise it: the error rate for
        "accuracy", one minus the balanced accuracy, minus the F1 score or the utility of a function.
    constraint_values_ : dict
        *Exact* values of the bounded metrics on the rows of the search, by the constraint's name.
    granularity_ : dict
        Largest change of each of these values by a single row.
    violation_ : float
        Largest excess of an exact value over its ``kappa``, at least 0.
    status_ : {"optimal", "infeasible", "unconstrained"}
        "infeasible": no thresholds are within all bounds, each up to its granularity. The thresholds are then those
        that exceed them least, up to 1e-6. "unconstrained": a bound was asked for, but there is only one group
        to compare.
    multipliers_ : None
        A search has none.
    prices_ : dict
        NaN by the constraint's name, as the price is unknown.

    Notes
    -----
    Under equalized odds, randomised decisions can be more accurate: they reach rates below a group's ROC curve, and
    thresholds only those on it. On Adult, for a gap of 0.014 between the sexes and the scores of a logistic regression,
    the best thresholds have an accuracy of 0.826, and Fairlearn's ``ThresholdOptimizer`` has one of 0.836. Bounds on
    one rate need no random decisions.

    A bound on differences means that the rates of all groups are in a window of the width ``kappa``, and one on ratios
    the same of their logarithms. Where the windows begin is searched by branch and bound; groups choose among their
    thresholds within them on their own.

    References
    ----------
    Hardt, Price, Srebro, Equality of opportunity in supervised learning, NeurIPS 2016: section 3 with thresholds by
    group, there with randomised decisions. Delaney, Fu, Wachter, Mittelstadt, Russell, OxonFair: a flexible toolkit for
    algorithmic fairness, NeurIPS 2024: any objective and rate by a search on a grid. Dinkelbach, On nonlinear
    fractional programming, Management Science 13 (1967): ratios such as F1.

    Examples
    --------
    >>> from fairconstrained.datasets import make_biased_classification
    >>> from fairconstrained.postprocessing import GroupThresholdClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y, group = make_biased_classification(n_samples=1000, random_state=0)
    >>> model = GroupThresholdClassifier(LogisticRegression(), 0.05, constraint="equalized_odds", random_state=0)
    >>> model = model.fit(X, y, sensitive_features=group)
    >>> model.constraint_values_["equalized_odds"] <= 0.05
    True
    >>> decisions = model.predict(X, sensitive_features=group)
    """

    kappa: float | None = parameter(0.05, [Interval(Real, 0, 1, closed="both"), None], kw_only=False)
    constraint: str | GroupRates | Sequence[tuple[str, GroupRates]] = parameter(
        "demographic_parity", [StrOptions(set(_CONSTRAINTS)), GroupRates, list, tuple]
    )
    objective: str | Objective | Callable[..., Any] = parameter(
        "accuracy", [StrOptions(set(_OBJECTIVES)), Objective, callable]
    )
    cv: Any = parameter(5, ["cv_object", StrOptions({_PREFIT}), None])
    min_group_size: int | str = parameter(AUTO, [Interval(Integral, 0, None, closed="left"), StrOptions({AUTO})])
    random_state: Any = parameter(None, ["random_state"])

    def _fit(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> None:
        constraints, objective = self._constraints(), self._objective()
        y = as_targets(y)
        weights = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
        groups = encode_groups(sensitive_features, y, weights)
        targets = self._encode_target(y, weights).values
        constraints = {name: constraint.of_labels(self.classes_.tolist()) for name, constraint in constraints.items()}
        data, bounds = self._bound(constraints, targets, groups, weights)
        merged = _compared_as(MERGED, groups.labels, bounds)
        if merged:  # they share a threshold
            self._small = SmallGroups(merged=tuple(merged))
            data, bounds = self._bound(constraints, targets, self._small.applied(groups), weights)
        self._labels, self._group_columns = data.labels, groups.column_names
        self.groups_ = as_labels(() if sensitive_features is None else data.labels)
        self.ignored_groups_ = _compared_as(None, data.labels, bounds)
        idle = {name: bound.compared_as for name, (_, bound) in bounds.items() if not bound.compares}
        bounds = {name: each for name, each in bounds.items() if name not in idle}
        for _, bound in bounds.values():
            bound.check_resolution()
        self.estimator_ = self._fitted_estimator(X, y, sensitive_features, sample_weight)
        take_names(self, self.estimator_)
        scores = self._scores_to_choose_by(X, y, groups.codes, sensitive_features, sample_weight)
        check_consistent_length(scores, y)
        self._warn_of_one_group(is_bounded=bool(bounds))
        for name, small in idle.items() if bounds else ():
            warn_user(compares_nothing(name, small), FairnessWarning)
        self._choose(data, scores[data.order], objective, bounds)

    @property
    @override
    def _is_prefit(self) -> bool:
        return isinstance(self.cv, str) or super()._is_prefit

    def _objective(self) -> Objective:
        if isinstance(self.objective, str):
            return _OBJECTIVES[self.objective]
        return self.objective if isinstance(self.objective, Objective) else DecisionUtility(self.objective)

    def _constraints(self) -> dict[str | None, GroupRates]:
        """The constraints by name; None stands for the constraint's own name."""
        if isinstance(self.constraint, str):
            shared = {name: getattr(self, name) for name in ("kappa", "min_group_size", "small_groups")}
            return {self.constraint: GroupRates(**_CONSTRAINTS[self.constraint], **shared)}
        if isinstance(self.constraint, GroupRates):
            return {None: self.constraint}
        pairs = [tuple(pair) if isinstance(pair, Sequence) else (pair,) for pair in self.constraint]
        if not all(len(p) == 2 and isinstance(p[0], str) and isinstance(p[1], GroupRates) for p in pairs):
            raise ValueError(
                f"constraint must be one of {sorted(_CONSTRAINTS)}, a GroupRates, or a list of (name, GroupRates) "
                f"pairs, such as [('rates', GroupRates(kappa=0.02))]; got {self.constraint!r}."
            )
        if len(dict(pairs)) < len(pairs):
            raise ValueError(f"names in constraint must be unique; got {[name for name, _ in pairs]}.")
        return dict(pairs)

    @staticmethod
    def _bound(
        constraints: Mapping[str | None, GroupRates], targets: np.ndarray, groups: Groups, weights: np.ndarray
    ) -> tuple[FairData, dict[str, _Bound]]:
        """The rows of the search, and the constraints on them by the names that are reported."""
        for constraint in constraints.values():
            constraint._validate_params()
            check_rates(constraint)
        data = FairData.from_arrays(np.empty((targets.size, 0)), targets, groups.codes, groups.labels, weights)
        bounds = [(name, constraint, constraint.unchecked(data)) for name, constraint in constraints.items()]
        return data, {name or bound.name: (constraint, bound) for name, constraint, bound in bounds}

    @property
    def _asks_for_fairness(self) -> bool:
        """Whether anything is to be bounded."""
        return any(constraint.kappa is not None for constraint in self._constraints().values())

    def _warn_of_one_group(self, is_bounded: bool) -> None:
        if not self._asks_for_fairness or (self.groups_.size and is_bounded):
            return
        small = [*self._small.merged, *self.ignored_groups_]
        if small:
            message = (
                f"Without the small groups {shortened(small)} there are fewer than two groups, so that no rates can be "
                f"compared. {TWO_LARGE_GROUPS}"
            )
        else:
            outcome = "All groups have the same threshold."
            message = nothing_to_compare(self.groups_, outcome, f"{PASS_GROUPS}, or set kappa=None.")
        warn_user(message, FairnessWarning)

    def _scores_to_choose_by(
        self, X: Any, y: np.ndarray, codes: np.ndarray, sensitive_features: Any, sample_weight: Any
    ) -> np.ndarray:
        """Scores of the rows; ndarray of shape (n_samples,)."""
        if self._is_prefit or self.cv is None:
            return self._raw_scores(X, sensitive_features)
        X, *columns = indexable(X, y, sensitive_features, sample_weight)
        scores = np.empty(y.size)
        for train, test in scoring_folds(self.cv, X, y, codes, classifier=True, random_state=self.random_state):
            known = [None if column is None else _safe_indexing(column, train) for column in columns]
            fitted = self._fitted_estimator(_safe_indexing(X, train), *known)
            held_out = None if columns[1] is None else _safe_indexing(columns[1], test)
            scores[test] = self._raw_scores(_safe_indexing(X, test), held_out, fitted)
        return scores

    def _choose(
        self,
        data: FairData,
        scores: np.ndarray,
        objective: Objective,
        bounds: Mapping[str, _Bound],
    ) -> None:
        """Set the thresholds and what tells how it went, from the rows in the order of ``data``; warns."""
        bound_objective = objective.bind(data)
        decisions = bound_objective.decisions
        if decisions is None or not bound_objective.counts_errors:
            raise ValueError(
                f"objective={self.objective!r} is not one of decisions, which are all that thresholds change; "
                f"choose one of {sorted(_OBJECTIVES)}, a CostMatrix or a function of the four counts."
            )
        rows = data.y.numpy() > 0, data.weights.numpy(), data.slices
        thresholds = Thresholds.of(scores, *rows, decisions.columns)
        searched = [RateBound.of(*each) for each in bounds.values() if each[0].kappa is not None]
        chosen = thresholds.best(searched, decisions)
        self._at = thresholds.at[chosen]
        self.thresholds_ = dict(zip(self._labels, self._at.tolist(), strict=True))
        decided = np.where(scores > self._at[data.codes], _FAR, -_FAR)
        nothing = torch.empty(0, dtype=torch.float64)
        self.objective_ = float(bound_objective.values(torch.from_numpy(decided), nothing).sum())
        self._report(data, bounds, decided)

    def _report(self, data: FairData, bounds: Mapping[str, _Bound], decided: np.ndarray) -> None:
        """Set the fitted attributes that tell of the bounds, and warn."""
        self.constraint_values_ = {name: bound.metric(decided) for name, (_, bound) in bounds.items()}
        self.constraint_values_all_groups_ = dict(self.constraint_values_)
        for name, (constraint, _) in bounds.items() if self.ignored_groups_ else ():
            everything = constraint.of_all_groups().unchecked(data)
            self.constraint_values_all_groups_[name] = everything.metric_or_nan(decided)
        self.granularity_ = {name: bound.granularity for name, (_, bound) in bounds.items()}
        self._kappas = {name: constraint.kappa for name, (constraint, _) in bounds.items()}
        self._floors = {name for name, (constraint, _) in bounds.items() if constraint.bounds_from_below}
        excess = {n: b.exact(decided) if c.kappa is not None else -np.inf for n, (c, b) in bounds.items()}
        self.violation_ = max([0.0, *excess.values()])
        missed = [name for name, value in excess.items() if value > self.granularity_[name] + ROUNDING]
        kept = Status.OPTIMAL if bounds or not self._asks_for_fairness else Status.UNCONSTRAINED
        self.status_ = (Status.INFEASIBLE if missed else kept).value
        self.multipliers_, self.prices_ = None, dict.fromkeys(bounds, np.nan)
        for name in missed:
            warn_user(
                f"{name!r} is {self.constraint_values_[name]:.4g} with the thresholds that exceed the bounds least, "
                f"beyond kappa={self._kappas[name]:g} by more than its granularity ({self.granularity_[name]:.2g}). No "
                "thresholds by group keep all bounds: loosen or drop one of them.",
                ConvergenceWarning,
            )

    def _changed(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        return scores - self._at[codes]

    @property
    def _why_groups(self) -> str:
        return "every group has a threshold of its own"

    @override
    def named_kappas(self) -> dict[str, float | None]:
        return dict(self._kappas)

    @override
    def _bounded_from_below(self) -> set[str]:
        return self._floors


def _compared_as(name: str | None, labels: Sequence[Hashable], bounds: Mapping[str, _Bound]) -> list[Hashable]:
    """Labels of the groups that some bound compares under another name; None for those that it leaves out."""
    renamed = {pair for _, bound in bounds.values() for pair in bound.compared_as.items()}
    return [label for label in labels if (str(label), name) in renamed]
