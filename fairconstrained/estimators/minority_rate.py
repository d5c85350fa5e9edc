"""Classification with a minimum share of the positive predictions for a minority."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from numbers import Real
from typing import Any, ClassVar, Self, cast

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import UNUSED

from fairconstrained.constraints import Constraint, MinorityShare
from fairconstrained.constraints.minority_share import BoundMinorityShare
from fairconstrained.data import FairData
from fairconstrained.domains import Domain, L1Ball
from fairconstrained.estimators._balls import AUTO, enlarged, within
from fairconstrained.estimators._outcome import Target
from fairconstrained.estimators._published import FollowsPaper
from fairconstrained.estimators._rows import check_squares
from fairconstrained.estimators._stationarity import TellsStationarity
from fairconstrained.estimators.grouping import NO_SMALL_GROUPS, SmallGroups, as_labels, encode_groups
from fairconstrained.estimators.linear import FairClassifierMixin, LinearScores
from fairconstrained.estimators.parameters import HasIntercept, Iterates, StartsWarm, parameter, with_parameters
from fairconstrained.groups import Groups
from fairconstrained.metrics.shares import POSITIVE_RATES
from fairconstrained.objectives import GroupLoss, Loss, Objective, TruncatedLogistic
from fairconstrained.problem import Problem
from fairconstrained.solvers import SolverResult, StoppedBy

__all__ = ["LABELLED", "MinorityRateClassifier", "joined_rows", "labelled_loss"]

#: Radius of the paper's experiment.
_RADIUS = 20.0


class _Rows(Enum):
    """Mark of rows that belong to no group."""

    LABELLED = "rows that only the objective sees"


#: The group of rows that have labels, where the constraint is about other rows.
LABELLED = _Rows.LABELLED


def joined_rows(X: Any, y: np.ndarray, weights: np.ndarray, others: Any, groups: Groups) -> FairData:
    """Rows with labels, of the group `LABELLED`, and other rows of some groups; each kind has half of the weight.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    y, weights : ndarray of shape (n_samples,)
    others : ndarray or CSR matrix of shape (n_others, n_features)
    groups : Groups
        Groups of the rows in ``others``.
    """
    n_others = others.shape[0]
    return FairData.from_arrays(
        X=sp.csr_array(sp.vstack([X, others])) if sp.issparse(X) or sp.issparse(others) else np.vstack([X, others]),
        y=np.concatenate([y, np.full(n_others, -1.0)]),  # not read: the objective leaves them out
        codes=np.concatenate([np.zeros(y.size, dtype=int), 1 + groups.codes]),
        labels=(LABELLED, *groups.labels),
        sample_weight=np.concatenate([weights / weights.sum(), np.full(n_others, 1 / n_others)]),
    )


def labelled_loss(loss: Loss, data: FairData) -> GroupLoss:
    """The mean loss of the rows with labels in `joined_rows`."""
    share = float(data.weights[data.slices[data.labels.index(LABELLED)]].sum())
    return GroupLoss(loss, tuple(1 / share if label is LABELLED else 0.0 for label in data.labels))


@dataclass(frozen=True, eq=False)
class _ConstraintRows:
    """Rows on which the share is bounded, if they are not those of the objective."""

    X: Any
    sensitive_features: Any


@with_parameters
class MinorityRateClassifier(
    FairClassifierMixin, TellsStationarity, LinearScores, HasIntercept, Iterates, StartsWarm, FollowsPaper
):
    r"""Linear classifier that gives a minority at least a share of its positive predictions.

    .. math:: \min_{\|w\|_1 \le \lambda} \; \frac{1}{|D|} \sum_{(x, y) \in D} a \log \Bigl( 1 + \tfrac{1}{a}
              \log \bigl( 1 + e^{-y h_w(x)} \bigr) \Bigr)
              \quad \text{s.t.} \quad c \sum_{x \in S} r(h_w(x)) \le \sum_{x \in S_{\min}} r(h_w(x))

    with scores :math:`h_w(x) = \langle w, x \rangle + b`. The rows S on which the share is bounded may differ from
    those of D, and need no labels: for instance the applicants of this year.

    Parameters
    ----------
    min_share : float or None, default=0.2
        c, in (0, 1): the least share of the positive predictions that goes to the minority, as
        `fairconstrained.metrics.minority_share` measures it with this ``rate`` on S. With ``solver="auto"`` the fitted
        model keeps it, up to 1e-6 for the sigmoid and up to 1 / ``|S|`` for the indicator, or `fit` warns and
        ``status_`` says so. None: unconstrained, for comparison.
    minority : object, default=None
        The group :math:`S_{\min}`: a value of the sensitive feature, a tuple for several. None: the group of fewest
        rows.
    truncation : float, default=2.0
        The number a in the objective, positive: losses larger than a grow only like a logarithm, so that outliers
        count less.
    l1_radius : float, "auto" or None, default="auto"
        :math:`\lambda`, a limit on the sum of the coefficients' magnitudes; the intercept is free. "auto": 20, the
        paper's, for the coefficients of the standardised features, so that the units of the features do not matter. A
        number is a limit on the coefficients themselves; features should have similar scales then. None: no limit.
    rate : {"sigmoid", "indicator"}, default="sigmoid"
        The function r of a score s: :math:`1 / (1 + e^{-s})`, as in the paper, or whether the prediction is positive.
    alpha : float, default=0.0
        Weight of a penalty :math:`\frac{\alpha}{2} \|w\|^2` on the coefficients. Its effect depends on the units of the
        features.
    solver : str, default="auto"
        "auto" is "augmented_lagrangian", or as in `PartialParityClassifier` with ``l1_radius=None``. "ipc" is the
        method of the paper, "exact_penalty" and "online_subgradient" are methods that it is compared with; all three
        bound the sigmoid's share, whatever ``rate`` is.
    solver_options : dict or "paper", optional
        Options of the solver, see its class in `fairconstrained.solvers`. "paper" is the paper's experiment with "ipc",
        with :math:`\hat\rho = 10^{-2.5}` and 10,000 steps for each subproblem: in place of this estimator's own,
        ``truncation=2``, ``l1_radius=20``, ``rate="sigmoid"``, ``fit_intercept=False`` and ``alpha=0``.

    Attributes
    ----------
    groups_ : ndarray of shape (n_groups,)
        Labels of the groups in S.
    minority_ : object
        The group whose share is bounded. This attribute and the two shares are there only with two groups or more.
    minority_share_ : float
        Share of the minority in the positive predictions on S, as the ``rate`` counts them.
    exact_share_ : float
        Share of the minority in the positive predictions themselves; 1 where nobody is predicted positive, of which
        `fit` warns.
    stationarity_ : float
        Distance of the parameters to the solution of their proximal subproblem, see
        `fairconstrained.solvers.near_stationarity`; with the sigmoid's share, whatever ``rate`` is. Only if
        ``compute_stationarity``.
    constraint_values_ : dict
        ``"majority_share"``: the share of the others.

    References
    ----------
    Ma, Lin, Yang, Proximally Constrained Methods for Weakly Convex Optimization with Weakly Convex Constraints,
    arXiv:1908.01871, section 5.

    Examples
    --------
    >>> from fairconstrained import MinorityRateClassifier
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=1000, random_state=0)
    >>> model = MinorityRateClassifier(0.4, minority=1, rate="indicator").fit(X, y, sensitive_features=group)
    >>> bool(model.minority_share_ >= 0.4 - 1 / 1000)
    True
    """

    min_share: float | None = parameter(0.2, [Interval(Real, 0, 1, closed="neither"), None], kw_only=False)
    minority: Any = parameter(None)  # whatever a sensitive feature may be
    truncation: float = parameter(2.0, [Interval(Real, 0, None, closed="neither")])
    l1_radius: float | str | None = parameter(
        AUTO, [Interval(Real, 0, None, closed="neither"), StrOptions({AUTO}), None]
    )
    rate: str = parameter("sigmoid", [StrOptions(set(POSITIVE_RATES))])
    alpha: float = parameter(0.0, [Interval(Real, 0, None, closed="left")])

    _unconstrained: ClassVar[str] = "min_share=None"
    _published: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ipc": {"truncation": 2.0, "l1_radius": _RADIUS, "rate": "sigmoid", "fit_intercept": False, "alpha": 0.0}
    }
    __metadata_request__fit: ClassVar[dict[str, Any]] = {
        "sensitive_features": True,
        "X_constraint": True,
        "sensitive_features_constraint": True,
        "strata": UNUSED,
    }

    def _remedy(self, data: FairData, stopped_by: StoppedBy) -> str:
        return f"Lower min_share{enlarged('l1_radius', self.l1_radius)}, or {self._longer(stopped_by)}."

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        X_constraint: Any = None,
        sensitive_features_constraint: Any = None,
    ) -> Self:
        """Fit the model under its constraint.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Two classes.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            The group of every row. Not needed with ``X_constraint``.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights.
        X_constraint : array-like or CSR matrix of shape (n_constraint, n_features), optional
            Rows on which the share is bounded instead of those of X; they need no labels. Transformed like X: in a
            Pipeline, see its ``transform_input``.
        sensitive_features_constraint : array-like of shape (n_constraint,) or (n_constraint, n_columns), optional
            Groups of the rows of S.

        Returns
        -------
        self : MinorityRateClassifier
            Unchanged if an error or an interruption occurs.

        Raises
        ------
        ValueError
            For invalid data or parameters, or if no row of S is of the minority.

        Warns
        -----
        ConvergenceWarning
            If the minority's share is below ``min_share`` by more than the tolerance, if the solver stopped early, or
            if it found nothing better within the bound than the same score for all rows.
        FairnessWarning
            If there is only one group, or nobody is predicted positive, so that shares are meaningless.
        """
        if (X_constraint is None) != (sensitive_features_constraint is None):
            raise ValueError("give X_constraint and sensitive_features_constraint together, or none of them.")
        if X_constraint is not None:
            sensitive_features = _ConstraintRows(X_constraint, sensitive_features_constraint)
        return self._fit_or_leave(X, y, sensitive_features, sample_weight)

    def _data(
        self,
        X: Any,
        target: Target,
        sensitive_features: Any,
        sample_weight: np.ndarray | None,
        small: SmallGroups = NO_SMALL_GROUPS,
    ) -> FairData:
        """Implement `PosesProblem._data`; rows of the constraint alone follow those of the objective alone."""
        if not isinstance(sensitive_features, _ConstraintRows):
            return super()._data(X, target, sensitive_features, sample_weight)
        others = self._checked(sensitive_features.X)
        of_others, name = sensitive_features.sensitive_features, "sensitive_features_constraint"
        groups = encode_groups(of_others, np.empty(others.shape[0]), None, name=name)
        self.groups_ = as_labels(groups.names)
        weights = np.ones(len(target.values)) if sample_weight is None else sample_weight
        return joined_rows(X, target.values, weights, others, groups)

    def _checked(self, X: Any) -> Any:
        """The rows of the constraint; raises ValueError unless they have the columns of X."""
        shape = np.shape(X) if not hasattr(X, "shape") else X.shape
        if len(shape) == 2 and shape[1] != self.n_features_in_:
            raise ValueError(f"X_constraint has {shape[1]} columns, X has {self.n_features_in_}; give it the same.")
        X = self._checked_features(X)
        check_squares(X, "X_constraint", getattr(self, "feature_names_in_", None))
        return X

    def _objective(self) -> Objective:
        return TruncatedLogistic(self.truncation)

    def _constraints(self, target: Target) -> list[Constraint]:
        return [MinorityShare(self.min_share, minority=self.minority, rate=self.rate, ignored_groups=(LABELLED,))]

    def _problem(self, data: FairData, target: Target) -> Problem:
        problem = super()._problem(data, target)
        if LABELLED not in data.labels:
            return problem
        return replace(problem, objective=labelled_loss(cast(Loss, self._objective()), data).bind(data))

    def _domain(self, data: FairData) -> Domain | None:
        return within(L1Ball, self.l1_radius, _RADIUS, data, self.fit_intercept)

    def _holds_vacuously(self, data: FairData) -> bool:
        return sum(label is not LABELLED for label in data.labels) == 1

    def _asks_for_fairness(self) -> bool:
        return self.min_share is not None

    def _bound_params(self, kappa: float | None) -> dict[str, Any]:
        """Implement `BaseFairEstimator._bound_params`; what is bounded is the share of the others."""
        return {"min_share": None if kappa is None else 1 - kappa}

    def _report(self, problem: Problem, params: np.ndarray, result: SolverResult, target: Target) -> dict[str, float]:
        """Implement `BaseFairEstimator._report`; also the minority and its shares."""
        excess = super()._report(problem, params, result, target)
        scores = problem.scores(params)
        for constraint in cast(tuple[BoundMinorityShare, ...], problem.constraints):
            self.minority_ = constraint.minority
            self.minority_share_ = 1 - self.constraint_values_[constraint.name]
            self.exact_share_ = 1 - constraint.value_of_decisions(scores)
        return excess
