"""Ranking by pairs of documents, as often right for one group as for another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import _check_sample_weight, check_is_fitted
from typing_extensions import override

from fairconstrained.checks.inputs import as_numbers
from fairconstrained.checks.queries import check_queries, query_pairs
from fairconstrained.constraints import BoundConstraint, Constraint, RateGap
from fairconstrained.data import FairData
from fairconstrained.estimators._bounded import ANY_CONSTRAINT, TakesConstraint, constraint_name
from fairconstrained.estimators._cross_fitted_gaps import fold_obstacle
from fairconstrained.estimators._outcome import Target
from fairconstrained.estimators.grouping import as_labels, encode_groups
from fairconstrained.estimators.linear import ModuleScores, PredictsNumbers
from fairconstrained.estimators.parameters import (
    ChoosesSolver,
    HandlesSmallGroups,
    Iterates,
    StartsWarm,
    parameter,
    with_parameters,
)
from fairconstrained.groups import Groups, Unions
from fairconstrained.metrics.ranking import PAIRS, compared_cells, kinds_of_pairs, pair_accuracies
from fairconstrained.models.pairs import PairModel
from fairconstrained.objectives import Logistic, Objective
from fairconstrained.problem import Problem
from fairconstrained.solvers import AdamLagrangian, CrossFitted

__all__ = ["FairRanker"]

#: Name of its own constraint.
_NAME = "pairwise_ranking"
#: Numbers up to which the differences of the documents' features are kept, of all pairs: 270 MB.
_MOST_NUMBERS = 2**25
#: Advice for relevance in words.
_NUMBER_GRADES = "Pass numbers, of which more is better: words have no order that is known"


class _Pairs(NamedTuple):
    """The pairs of documents of one query, the better one first."""

    #: Numbers of the documents.
    found: np.ndarray  # of shape (n_pairs, 2)
    #: Query of every document.
    queries: np.ndarray  # of shape (n_samples,)
    #: Groups of the documents.
    groups: Groups
    #: The cells of two groups that pairs are in, and for every pair which of them.
    kinds: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, y: np.ndarray, qid: Any, sensitive_features: Any) -> Self:
        """All pairs; raises ValueError if there are none."""
        groups = encode_groups(sensitive_features, y, None)
        queries = check_queries(qid, y.size)
        found = query_pairs(y, queries)
        if not len(found):
            raise ValueError("no query has two documents of different relevance, so that there is nothing to learn.")
        return cls(found, queries, groups, kinds_of_pairs(found, groups.codes, len(groups.names)))

    def as_rows(self, items: FairData, compared: str, by_query: bool) -> FairData:
        """Pairs as rows, by the groups of their documents; ``unions`` are the kinds of pairs that are compared."""
        names, (numbers, codes) = self.groups.names, self.kinds
        labels = tuple(f"{names[n // len(names)]} > {names[n % len(names)]}" for n in numbers.tolist())
        chosen = np.flatnonzero(compared_cells(compared, numbers, len(names)))
        unions = Unions(tuple(labels[c] for c in chosen), sp.csr_array(np.eye(numbers.size)[chosen]))
        place = np.empty(items.n_samples, dtype=np.int64)
        place[items.order] = np.arange(items.n_samples)
        clusters = self.queries[self.found[:, 0]] if by_query else None
        rows = place[self.found]
        return FairData.from_arrays(rows, np.ones(len(rows)), codes, labels, None, unions, clusters)


@with_parameters
class FairRanker(
    PredictsNumbers, TakesConstraint, ModuleScores, HandlesSmallGroups, Iterates, StartsWarm, ChoosesSolver
):
    r"""Ranker whose pairs of documents are ranked right as often for one group as for another.

    .. math:: \min_w \; \frac{1}{|P|} \sum_{(i, j) \in P} \log \bigl( 1 + e^{-(h_w(x_i) - h_w(x_j))} \bigr)
              + \frac{\alpha}{2} \|w\|^2 \quad \text{s.t.} \quad |A_{a > b} - A_{b > a}| \le \kappa
              \quad \text{for all groups } a \ne b

    with the pairs P of documents of one query of which the first is the more relevant one, and the share
    :math:`A_{a > b}` of those with the first of group a and the second of group b that the scores :math:`h_w` rank
    right. The scores are linear or those of a torch module.

    Parameters
    ----------
    kappa : float or None, default=0.05
        Bound on the gap that `fairconstrained.metrics.pairwise_ranking_gap` measures on the training data, in [0, 1].
        With ``solver="auto"`` the fitted model keeps it up to the share of one pair in its kind of pairs, or `fit`
        warns and ``status_`` is ``"infeasible"``. None: unconstrained, for comparison.
    constraint : str, Constraint or list of (str, Constraint), default="between"
        Kinds of pairs whose shares are compared: those of documents of different groups ("between"), of the same group
        ("within"), or all ("all"). Or constraints of `fairconstrained.constraints` on pairs as rows, such as `RateGap`,
        see `PartialParityClassifier`: their groups are all kinds of pairs, their own parameters count, and ``kappa``
        and ``rate`` are ignored.
    rate : {"indicator", "sigmoid", "hinge"}, default="indicator"
        Quantity that is averaged over pairs: whether a pair is ranked right, or a smooth function of the difference of
        its scores, see `RateParityClassifier`.
    batches : {"pairs", "queries"}, default="pairs"
        Units that solvers on mini-batches draw: pairs, equal numbers of each kind, or all pairs of some queries, about
        ``batch_size`` pairs in all. Pairs of one query have documents in common, so that a mini-batch of them carries
        less information.
    small_groups : {"error", "merge", "ignore"}, default="error"
        How to treat kinds of pairs that are so small that one pair counts more than ``max(kappa, 0.02)``, see
        `PartialParityClassifier`.
    solver : str, default="auto"
        "auto" is "cross_fitted" for linear scores where it suits and the differences of the features of all pairs are
        at most 34 million numbers; else "augmented_lagrangian", and "adam_lagrangian" for modules.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Coefficients; only if the scores are linear.
    groups_ : ndarray of shape (n_groups,)
        Groups of the documents; empty if none were given.
    pair_accuracies_ : DataFrame
        One row for each group of the better document and group of the worse one: number of pairs, ``n_pairs``, and the
        share of them that is ranked right, ``accuracy``.
    ignored_groups_ : list
        Kinds of pairs that ``small_groups="ignore"`` left out.

    References
    ----------
    "A modified proximal-perturbed Lagrangian for non-convex non-smooth representatives of fairness constraints",
    appendix D.3; Narasimhan, Cotter, Gupta, Wang, Pairwise Fairness for Ranking and Regression, AAAI 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained import FairRanker
    >>> rng = np.random.default_rng(0)
    >>> qid, group = np.repeat(np.arange(50), 10), rng.integers(0, 2, 500)
    >>> X = rng.normal(size=(500, 3)) + group[:, None]
    >>> relevance = (X[:, 0] - group + rng.normal(size=500) > 0).astype(int)
    >>> ranker = FairRanker(kappa=0.05).fit(X, relevance, qid=qid, sensitive_features=group)
    >>> ranker.predict(X).shape
    (500,)
    """

    kappa: float | None = parameter(0.05, [Interval(Real, 0, 1, closed="both"), None], kw_only=False)
    constraint: str | Constraint | Sequence[tuple[str, Constraint]] = parameter("between", ANY_CONSTRAINT)
    rate: str = parameter("indicator", [StrOptions({"indicator", "sigmoid", "hinge"})])
    batches: str = parameter("pairs", [StrOptions({"pairs", "queries"})])

    _constraint_names = tuple(PAIRS)

    # Not a parameter: what is the same for all documents cancels out of a difference.
    fit_intercept: ClassVar[bool] = False
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sensitive_features": True, "qid": True, "strata": UNUSED}
    __metadata_request__predict: ClassVar[dict[str, Any]] = {"sensitive_features": UNUSED}
    __metadata_request__score: ClassVar[dict[str, Any]] = {"sensitive_features": UNUSED, "qid": True}

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, *, qid: Any = None, sensitive_features: Any = None) -> Self:
        """Fit the scores.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Documents.
        y : array-like of shape (n_samples,)
            Relevance: numbers, more is better.
        qid : array-like of shape (n_samples,)
            Query of every document, in any order.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            Group of every document; without it there is no bound, and a `FairnessWarning` says so.

        Returns
        -------
        self : FairRanker
            Unchanged if an error or an interruption occurs.

        Raises
        ------
        ValueError
            For invalid data or parameters, without ``qid``, if no query has two documents of different relevance, or if
            kinds of pairs are too small for ``kappa`` to be resolved.

        Warns
        -----
        ConvergenceWarning
            If the gap exceeds ``kappa`` by more than its granularity, if the solver stopped early, or if it found
            nothing better within the bound than the same score for all rows.
        NewRowsWarning
            If the bound is kept on the training rows, but the estimate for new rows exceeds ``kappa`` by more than the
            granularity and two standard errors.
        FairnessWarning
            If there are fewer than two kinds of pairs to compare.
        """
        return self._fit_or_leave(X, y, qid, sensitive_features)

    def _fit(self, X: Any, y: Any, *columns: Any) -> None:
        qid, sensitive_features = columns
        X, y = self._documents(X, y)
        self._remember_rows(X)
        pairs = _Pairs.of(y, qid, sensitive_features)
        self.groups_ = as_labels(() if sensitive_features is None else pairs.groups.names)
        problem = self._pair_problem(X, y, pairs)
        self._queries_of_pairs = pairs.queries[pairs.found[:, 0]][problem.data.order]
        problem = self._with_differences(problem, self._queries_of_pairs)
        self._fit_problem(problem, Target(np.ones(len(pairs.found))), problem.data.n_samples)
        del self._queries_of_pairs
        scores = self._fitted.model.scores(self._fitted.start.model_state, X)
        self.pair_accuracies_ = pair_accuracies(scores, pairs.found, pairs.kinds, pairs.groups.names)

    def _documents(self, X: Any, y: Any, **options: Any) -> tuple[Any, np.ndarray]:
        """Documents and their relevance; ``options`` are those of `_checked_rows`."""
        X, y, _ = self._checked_rows(X, y, None, **options)
        return X, as_numbers(y, _NUMBER_GRADES)

    @override
    def _bind_only(self, X: Any, y: Any, *columns: Any) -> None:
        X, y = self._documents(X, y)
        self._bound_pairs(X, y, _Pairs.of(y, *columns))

    def constraint_values(  # type: ignore[override]  # a ranker takes queries, and no weights
        self, X: Any, y: Any, *, qid: Any = None, sensitive_features: Any = None
    ) -> dict[str, float]:
        """The gap between pairs that the estimator bounds, on any documents.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Documents.
        y, qid, sensitive_features
            Relevance, queries and groups of the documents, as in `fit`.

        Returns
        -------
        values : dict
            Values by the constraint's name; empty where there are fewer than two kinds of pairs to compare.

        Raises
        ------
        ValueError
            For invalid data, without ``qid`` or the groups that were compared in `fit`, or if no query has two
            documents of different relevance.
        """
        check_is_fitted(self)
        X, y = self._documents(X, y, reset=False)
        problem = self._measuring()._pair_problem(X, y, _Pairs.of(y, qid, sensitive_features))
        scores = problem.scores(self._fitted.start.model_state)
        return self._with_groups({c.name: c.metric(scores) for c in problem.constraints}, sensitive_features)

    def _pair_problem(self, X: Any, y: np.ndarray, pairs: _Pairs) -> Problem:
        """Return the problem in which differences of scores are rows, all of them positive."""
        items, data, constraints = self._bound_pairs(X, y, pairs)
        model = PairModel(self._model(items), items)
        return Problem(model=model, objective=self._objective().bind(data), constraints=constraints, data=data)

    def _bound_pairs(
        self, X: Any, y: np.ndarray, pairs: _Pairs
    ) -> tuple[FairData, FairData, tuple[BoundConstraint, ...]]:
        """The documents, their pairs as rows, and the constraints on these."""
        items = FairData.from_arrays(X, y, np.zeros(y.size, dtype=int), (None,))
        compared = constraint_name(self.constraint, PAIRS) if isinstance(self.constraint, str) else "all"
        data = pairs.as_rows(items, compared, self.batches == "queries")
        constraints: tuple[BoundConstraint, ...] = ()
        if not self._holds_vacuously(data):
            constraints = self._bound_constraints(data, Target(np.ones(data.n_samples)))
        return items, data, self._comparing(constraints, data)

    def _with_differences(self, problem: Problem, queries: np.ndarray) -> Problem:
        """The problem with differences of features as rows, whose scores are linear, if its solver is to be one for it.

        Pairs of a query share documents, and are in one fold.
        """
        model, data = cast(PairModel, problem.model), problem.data
        is_small = data.n_samples * model.items.n_features <= _MOST_NUMBERS
        if not is_small or not model.is_linear or self.solver not in ("auto", CrossFitted.name):
            return problem
        if fold_obstacle(problem, CrossFitted().n_folds, queries):
            return problem
        explicit = replace(problem.on(replace(data, X=model.row_features(data), clusters=queries)), model=model.base)
        return explicit if self.solver == CrossFitted.name or CrossFitted.suits(explicit) else problem

    def _fold_units(self, problem: Problem) -> np.ndarray:
        """Implement `TellsNewRows._fold_units`; pairs of a query share documents."""
        return self._queries_of_pairs

    def _names_of(self, bound: Sequence[BoundConstraint]) -> list[str]:
        return [_NAME] if isinstance(self.constraint, str) else super()._names_of(bound)

    def _holds_vacuously(self, data: FairData) -> bool:
        return data.unions is None or len(data.unions.labels) < 2

    @override
    def _caveats(self, problem: Problem, scores: np.ndarray) -> list[str]:
        """None: which of two documents is ranked first depends on no threshold that anybody could set."""
        return []

    def _auto_solver(self, problem: Problem) -> str:
        return super()._auto_solver(problem) if problem.model.is_linear else AdamLagrangian.name

    def _objective(self) -> Objective:
        return Logistic()

    def _constraint_named(self, name: str) -> Constraint:
        return RateGap(self.kappa, rate=self.rate, small_groups=self.small_groups)

    def _encode_target(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Target:
        return Target(y)

    def _known_target(self, y: np.ndarray) -> Target:
        return Target(y)

    def predict(self, X: Any) -> np.ndarray:
        """Scores of documents; those of one query are ranked by them, the largest first.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return self._scores(X, None)

    # pipelines hand over weights, if only None, where metadata is routed
    def score(self, X: Any, y: Any, sample_weight: Any = None, *, qid: Any = None) -> float:
        """Share of the pairs of documents of one query that are ranked right.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y, qid : array-like of shape (n_samples,)
            Relevance and queries of the documents, as in `fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative; a pair counts the product of those of its documents.

        Returns
        -------
        accuracy : float
            Share of the pairs that is ranked right, in [0, 1]; NaN if there is no pair.
        """
        scores, y = self.predict(X), as_numbers(y, _NUMBER_GRADES)
        better, worse = query_pairs(y, check_queries(qid, scores.size)).T
        weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        counts = weights[better] * weights[worse]
        return float(np.average(scores[better] > scores[worse], weights=counts)) if counts.any() else np.nan
