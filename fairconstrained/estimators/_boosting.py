"""Boosted trees under constraints: rows, folds, parameters of LightGBM, and the joined booster."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import cpu_count
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import _num_samples, check_array, check_is_fitted
from typing_extensions import override

from fairconstrained.checks.inputs import is_dask, refuse_masked
from fairconstrained.checks.messages import meant, nearest
from fairconstrained.constraints import Constraint
from fairconstrained.data import FairData
from fairconstrained.estimators._bounded import ANY_CONSTRAINT
from fairconstrained.estimators._cross_fitted_gaps import SIZE_BY_ROWS
from fairconstrained.estimators._new_row_estimates import NewRowEstimates, NewRowGap
from fairconstrained.estimators._outcome import Target
from fairconstrained.estimators._rows import checked_features, checked_rows
from fairconstrained.estimators._standard_errors import sampled
from fairconstrained.estimators._worst_loss import MINIMAX, MinimisesWorstLoss
from fairconstrained.estimators.feature_codes import FROM_DTYPE, FeatureCodes
from fairconstrained.estimators.grouping import Stratified
from fairconstrained.estimators.parameters import (
    HandlesSmallGroups,
    HasThreshold,
    Reports,
    StartsWarm,
    parameter,
    with_parameters,
)
from fairconstrained.models.boosted_trees import BoostedTrees, lightgbm, lightgbm_names
from fairconstrained.objectives import ROW_LOSS_OBJECTIVES
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import Callback, NewtonBoosting, Solver, SolverResult, StoppedBy, beats_constants
from fairconstrained.tables import Table

__all__ = ["BaseFairBoosting"]

#: Parameters of LightGBM that have a parameter of their own here, or would change what the trees are fitted to.
_REFUSED = {
    "objective": "use objective",
    "num_iterations": "use n_estimators",
    "learning_rate": "use learning_rate",
    "num_leaves": "use num_leaves",
    "monotone_constraints": "use monotonic_cst",
    "categorical_feature": "use categorical_features",
    "early_stopping_round": "use early_stopping_rounds",
    "scale_pos_weight": "use sample_weight",
    "is_unbalance": "use sample_weight",
    "linear_tree": "leaves are constants",
    "num_class": "there is one score",
    "seed": "use random_state",
    "num_threads": "use n_jobs",
}
#: Rows that make another thread worth while beside what else is computed in a round.
_ROWS_PER_THREAD = 100_000
#: Losses whose largest mean over groups trees can minimise, as they have a curvature.
_LOSSES = ("log_loss", "squared")
#: Value of ``cv`` that takes folds where they have a use, and their number. Halves take least time, but where there are
#: fewer than so many rows, boosters of a half differ much from the mean of several of them.
_AUTO, _FOLDS, _FOLDS_OF_FEW, _FEW_ROWS = "auto", 2, 5, 10_000
_CV = [Interval(Integral, 2, None, closed="left"), StrOptions({_AUTO}), None]
#: How estimates for new rows are made of the scores that the bounds are about.
_OUT_OF_FOLD = "the out-of-fold scores that are bounded"


def _refuse_tables(X: Any) -> None:
    """Raise TypeError for rows that are not in memory."""
    if isinstance(X, Table) or is_dask(X):
        raise TypeError(
            f"boosted trees take rows in memory, and X is a {type(X).__name__}. Fit trees where the rows are, such as "
            "lightgbm.DaskLGBMClassifier, and then a head on their scores: FairHeadClassifier(trees, cv='prefit'). To "
            "predict, pass one block after the other: a table's map_rows(model.predict)."
        )


class _DuringFit:
    """Attributes that a fit leaves for prediction, and that are no parameters."""

    _codes: FeatureCodes


@with_parameters
class BaseFairBoosting(_DuringFit, MinimisesWorstLoss, HasThreshold, HandlesSmallGroups, StartsWarm, Reports):
    """Boosted trees under constraints: the part that classifier and regressor share.

    Parameters
    ----------
    interval : pair of floats, list of pairs, or dict from group to either, default=(0.0, 1.0)
        Percentile interval ``[alpha, beta)`` of ranks within a group, 0 being the top, for the names of `constraint`
        that are about rates and shares, see `PartialParityClassifier`.
    n_estimators : int, default=300
        Number of trees that every booster grows; the model has as many of them as are best within the bounds.
    learning_rate : float, default=0.1
        Factor by which the values of the leaves of every tree are multiplied.
    num_leaves : int, default=31
        Largest number of leaves of a tree.
    lgbm_params : dict, optional
        Further parameters of LightGBM, such as ``{"min_child_samples": 50, "lambda_l2": 1.0}``.
    categorical_features : "from_dtype", None, or sequence of str, int or bool, default="from_dtype"
        Columns that hold categories: those of a DataFrame whose type is "category", none, or their names, their
        numbers, or a mask of all columns. A category that `fit` has not seen counts as missing.
    monotonic_cst : array-like of shape (n_features,) or dict, default=None
        1 where scores must not fall with a feature, -1 where they must not rise, 0 where they may do either; or a dict
        from the name of a feature.
    cv : "auto", int or None, default="auto"
        Folds of the rows, at least 2. For each of them a booster is grown that does not see its rows (nor, from 4 folds
        on, those of the next one), all side by side, and the model is the mean of these boosters. ``kappa`` bounds the
        metrics of the *out-of-fold* scores, which every row has from boosters that have not seen it;
        ``constraint_values_`` and ``objective_`` are theirs, and the number of trees is the one that is best for them.
        None: one booster, and all of this refers to its scores of the rows that it was fitted to, which trees can
        memorise, so that gaps on new rows are often several times ``kappa``. "auto": 2, and 5 of fewer than 10,000
        rows, where anything is bounded, ``early_stopping_rounds`` is set, or the fit is one of a path; otherwise None.
    early_stopping_rounds : int or None, default=None
        End when the objective of the out-of-fold scores, within the bounds, has not improved for so many trees. Those
        of the first half do not count, as the bounds may not hold there yet. Needs folds.
    callbacks : sequence of callable, optional
        Functions that are called with a record of every 60th of the trees, see `fairconstrained.callbacks`.
    n_jobs : int or None, default=None
        Threads that trees are grown with, -1 for as many as there are. None: one for every 100,000 rows, at least one.
    random_state : int, RandomState instance or None, default=None
        Seed of LightGBM, which draws nothing unless ``lgbm_params`` asks for it. Folds are the same in every fit.
    warm_start : bool, default=False
        With a larger ``n_estimators`` than in the last fit, on the same rows: keep its trees and add the rest.
        Otherwise, for instance with another ``kappa``: begin with its multipliers, and grow all trees anew.

    Attributes
    ----------
    booster_ : lightgbm.Booster or None
        The trees. ``booster_.predict(X, raw_score=True)`` are the scores (of a regressor: the standardised predictions)
        without any further constant, where X has the codes of categories. Its features have the names of X, with "_"
        for characters that LightGBM does not take. None if the scores are constant.
    n_trees_ : int
        Number of trees, those of all boosters together.
    n_boosters_ : int
        Number of the boosters whose mean the model is. 1: the bounds are about scores by trees that have seen the rows.
    multipliers_ : dict or None
        Multipliers of the surrogate's components, averaged over about ten rounds before the model's last tree; None
        where another multiple or shift of the scores had to be taken to keep a bound, or cost less than all numbers of
        trees that keep it.
    n_iter_ : int
        Number of trees of each booster that were grown.
    n_evaluations_ : int
        Evaluations of the terms on all rows.
    history_ : list of dict
        One record for every 60th of the trees, that is for every fifth of 300.
    """

    constraint: str | Constraint | Sequence[tuple[str, Constraint]] = parameter("demographic_parity", ANY_CONSTRAINT)
    interval: Any = parameter((0.0, 1.0))
    n_estimators: int = parameter(300, [Interval(Integral, 1, None, closed="left")])
    learning_rate: float = parameter(0.1, [Interval(Real, 0, None, closed="neither")])
    num_leaves: int = parameter(31, [Interval(Integral, 2, None, closed="left")])
    lgbm_params: Mapping[str, Any] | None = parameter(None, [Mapping, None])
    categorical_features: Any = parameter(FROM_DTYPE, [StrOptions({FROM_DTYPE}), "array-like", None])
    monotonic_cst: Any = parameter(None, ["array-like", dict, None])
    cv: int | str | None = parameter(_AUTO, _CV)
    early_stopping_rounds: int | None = parameter(None, [Interval(Integral, 1, None, closed="left"), None])
    callbacks: Sequence[Callback] | None = parameter(None, ["array-like", None])
    n_jobs: int | None = parameter(None, [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1}), None])
    random_state: Any = parameter(None, ["random_state"])

    # Not parameters: there is one solver, and trees have an intercept.
    solver: ClassVar[str] = "auto"
    solver_options: ClassVar[None] = None
    fit_intercept: ClassVar[bool] = True
    _limit: ClassVar[str] = "n_estimators"

    @override
    def _remedy(self, data: FairData, stopped_by: StoppedBy) -> str:
        return f"Loosen kappa, {self._longer(stopped_by)}, or give the trees more leaves (num_leaves)."

    @property
    @override
    def _less_freedom(self) -> str:
        return "fewer trees or leaves, cv, or a FairHeadClassifier"

    @override
    def _cheaper_bound(self, data: FairData) -> str:
        return (
            "If predictions may use the group, and X has no column of it, adding one often costs less; otherwise raise "
            "kappa."
        )

    @override
    def _checked_rows(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> tuple[Any, np.ndarray, Any]:
        _refuse_tables(X)
        refuse_masked(X=X)
        if options.get("reset", True):
            lightgbm()  # before anything is computed
            self._codes = FeatureCodes.of(X, self.categorical_features)
        options |= {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
        return checked_rows(self, self._codes.coded(X), y, sample_weight, **options)

    @override
    def _checked_features(self, X: Any) -> Any:
        _refuse_tables(X)
        refuse_masked(X=X)
        return checked_features(self, self._codes.coded(X), dtype=np.float64, ensure_all_finite="allow-nan")

    def _as_remembered(self, X: Any) -> Any:
        return check_array(self._codes.coded(X), accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan")

    def _model(self, data: FairData) -> BoostedTrees:
        params = self._tree_params(data.n_features)
        # Said here, as LightGBM may bring an OpenMP of its own, which no limit of other libraries holds for.
        asked = cpu_count() if self.n_jobs == -1 else self.n_jobs
        n_threads = asked or max(1, min(data.n_samples // _ROWS_PER_THREAD, cpu_count()))
        columns = tuple(self._codes.categories), data.n_features, self._feature_names
        return BoostedTrees(params | {"num_threads": n_threads}, *columns)

    @property
    def _feature_names(self) -> tuple[str, ...]:
        """Names of the features; none for those of arrays."""
        return tuple(getattr(self, "feature_names_in_", ()))

    def _tree_params(self, n_features: int) -> dict[str, Any]:
        """Parameters by LightGBM's main names; raises ValueError for those that are not for ``lgbm_params``."""
        own: dict[str, Any] = {}
        names = lightgbm_names()
        for name, value in (self.lgbm_params or {}).items():
            if name not in names:  # LightGBM would leave it out without a word
                alike = nearest(name, names)
                other = _REFUSED.get(names.get(alike, ""))
                raise ValueError(
                    f"lgbm_params has {name!r}, which is no parameter of LightGBM; "
                    + (
                        f"it looks like {alike!r}, which lgbm_params cannot set: {other}."
                        if other
                        else "give it the name that it has in LightGBM's documentation, or leave it out."
                        + meant(name, names)
                    )
                )
            if names[name] in _REFUSED:
                raise ValueError(f"lgbm_params has {name!r}, which it cannot set: {_REFUSED[names[name]]}.")
            if names[name] in own:
                raise ValueError(f"lgbm_params has {names[name]!r} by two of its names; leave one of them out.")
            own[names[name]] = value
        if own.get("boosting", "gbdt") not in ("gbdt", "gbrt"):
            raise ValueError(
                "lgbm_params has another boosting than 'gbdt', with which the first trees are no model by themselves; "
                "leave it out."
            )
        params = {"num_leaves": self.num_leaves, **own}
        signs = self._signs(n_features)
        return params if signs is None else params | {"monotone_constraints": signs}

    def _signs(self, n_features: int) -> list[int] | None:
        """Directions of ``monotonic_cst`` for all features; None where there are none."""
        given = self.monotonic_cst
        if given is None:
            return None
        if isinstance(given, Mapping):
            names = self._feature_names
            if unknown := sorted(map(str, set(given) - set(names))):
                raise ValueError(
                    f"monotonic_cst has {unknown}, which are no names of features; give names of columns of X."
                )
            given = [given.get(name, 0) for name in names]
        signs = np.asarray(given)
        if signs.shape != (n_features,) or not np.isin(signs, (-1, 0, 1)).all():
            raise ValueError(f"monotonic_cst must have one of -1, 0 and 1 for each of {n_features} features.")
        if np.any(signs[list(self._codes.categories)]):
            raise ValueError("monotonic_cst is about numbers, but it has a direction for a column of categories.")
        return signs.astype(int).tolist()

    @property
    @override
    def _row_loss(self) -> str:
        """That of the objective; the log loss beside one that is no mean loss of rows, which has no minimax."""
        objective = self._objective()
        names = [name for name in _LOSSES if ROW_LOSS_OBJECTIVES[name] == objective]
        if self._is_minimax and not names:
            raise ValueError(
                f"kappa={MINIMAX!r} minimises the largest mean log loss or squared error of a group, but the objective "
                f"is {objective}. Set objective='logistic' or 'squared', without class_weight."
            )
        return names[0] if names else "log_loss"

    @override
    def _auto_solver(self, problem: Problem) -> str:
        return NewtonBoosting.name

    @override
    def _solver(self, problem: Problem, **special: Any) -> Solver:
        # those of the model, also for trees without a bound that it is compared with
        n_folds = self.n_boosters_ if self.n_boosters_ > 1 else None
        if self.early_stopping_rounds is not None and n_folds is None:
            raise ValueError(
                f"early_stopping_rounds={self.early_stopping_rounds} stops by rows that trees have not seen; set cv, "
                "such as 2."
            )
        problem.check(NewtonBoosting.requires, solver=NewtonBoosting.name)
        return NewtonBoosting(
            n_trees=self.n_estimators,
            learning_rate=float(self.learning_rate),
            patience=self.early_stopping_rounds,
            n_folds=n_folds,
            verbose=self._solver_verbosity,
        )

    @override
    def _problem(self, data: FairData, target: Target) -> Problem:
        problem = super()._problem(data, target)
        self.n_boosters_ = self._folds(problem) or 1
        return problem

    def _folds(self, problem: Problem) -> int | None:
        """Number of folds; None for none."""
        n_rows = problem.data.n_samples
        if self.cv != _AUTO:
            if self.cv is not None and int(self.cv) > n_rows:
                raise ValueError(f"cv={self.cv} folds need as many rows, and there are {n_rows}; lower cv.")
            return self.cv  # type: ignore[return-value]
        bounds = self._bounds_anything(problem) or (self._is_minimax and not self._holds_vacuously(problem.data))
        # models of a path are compared, also with the one without a bound
        if not bounds and self.early_stopping_rounds is None and not self._shared.keeps:
            return None
        return _FOLDS_OF_FEW if n_rows < _FEW_ROWS else _FOLDS

    @property
    @override
    def _bounded_rows(self) -> str:
        return "training rows scored out of fold" if self.n_boosters_ > 1 else super()._bounded_rows

    @override
    def _may_tell_folds(self, solver: Solver, problem: Problem) -> bool:
        """The scores that are bounded are those of boosters which have not seen the rows."""
        assert isinstance(solver, NewtonBoosting)
        is_free = self.new_row_folds == _AUTO and solver.n_folds is not None
        return is_free and problem.works_on_other_rows and self._bounds_anything(problem)

    @override
    def _estimated_after(
        self, solver: Solver, problem: Problem, result: SolverResult, of_folds: Sequence[Start | None], seed: int
    ) -> NewRowEstimates:
        if not self._may_tell_folds(solver, problem):
            return super()._estimated_after(solver, problem, result, of_folds, seed)
        scores = problem.scores(result.model_state)
        found = sampled(problem.constraints, problem.data, scores, self._fold_units(problem))
        gaps = {}
        for constraint in problem.constraints:
            own, estimate = found[constraint.name], constraint.metric(scores)
            # A bound that takes effect holds the differences between groups of these rows, with what is chance in them.
            # Those of new rows differ from them by chance, and the largest of several is larger in the mean for it.
            # With promise="new_rows" the bound is on the estimate itself.
            if self.promise == "training" and abs(constraint.price(result.multipliers)) > 0:
                estimate += float(np.nan_to_num(own.excess))  # unknown where no sample has the metric
            gaps[constraint.name] = NewRowGap(estimate, own.error_of(estimate), _OUT_OF_FOLD)
        return NewRowEstimates(gaps, own_errors={name: gap.standard_error for name, gap in gaps.items()})

    @override
    def _estimated(
        self, solver: Solver, problem: Problem, starts: Sequence[Start | None], seed: int, *others: Any
    ) -> NewRowEstimates:
        """Estimate by models of parts of the rows, or by the out-of-fold scores of a fit to all rows."""
        if not self._may_tell_folds(solver, problem):
            return super()._estimated(solver, problem, starts, seed, *others)
        result = self._solve_all(replace(solver, verbose=0), problem, None, np.random.default_rng(seed))
        return self._estimated_after(solver, problem, result, (), seed)

    @override
    def _for_part(self, solver: Solver, problem: Problem, share: float) -> Solver:
        """Fewer trees in proportion, which memorise about as much of their rows as all trees of all rows.

        Where out-of-fold scores are bounded that does not matter, and longer steps do as much.
        """
        assert isinstance(solver, NewtonBoosting)
        rate = solver.learning_rate if solver.n_folds is None else solver.learning_rate / share
        n_trees = max(round(share * solver.n_trees), 1)
        return replace(solver, n_trees=n_trees, learning_rate=rate, measure_every=solver.trees_per_measurement)

    @override
    def _optimism_power(self) -> float:
        return SIZE_BY_ROWS if self.n_boosters_ == 1 else super()._optimism_power()

    @override
    def _completed(
        self, solver: Solver, problem: Problem, result: SolverResult, rng: np.random.Generator
    ) -> SolverResult:
        """Only where it is needed: on rows that trees have memorised the best threshold is not that of new rows."""
        is_out_of_fold = self.n_boosters_ > 1
        if is_out_of_fold or result.status.is_infeasible or not beats_constants(problem, result.model_state):
            return super()._completed(solver, problem, result, rng)
        return result

    @override
    def _rescaled(self, problem: Problem, result: SolverResult) -> SolverResult:
        """Only where bounds are exceeded or take effect; the multipliers of other trees are unknown."""
        if not (result.status.is_infeasible or result.candidates):
            return result
        found = super()._rescaled(problem, result)
        if result.status.is_infeasible or found.model_state is result.model_state:
            return found
        if not found.model_state.n_trees:
            return self._taking_constant(problem, result, found.model_state)
        # constants were among the states, so that the complaint about trees worse than one no longer holds
        has_others = found.model_state.n_trees != result.model_state.n_trees
        return replace(found, message="", multipliers=None if has_others else found.multipliers)

    @override
    def _adopt(self, problem: Problem, result: SolverResult, target: Target, labels: tuple) -> dict[str, float]:
        """Implement `BaseFairEstimator._adopt`; the trees become one booster with the scores of the model."""
        joined = result.model_state.joined()
        model: Any = problem.model
        model.remember(joined, problem.data, problem.scores(result.model_state))
        return super()._adopt(problem, replace(result, model_state=joined), target, labels)

    @override
    def _answering_rows_of_fit(self, X: Any, y: Any, **columns: Any) -> Self:
        """Return a copy with the out-of-fold scores of these rows, all those of the fit in the same order."""
        if self.n_boosters_ == 1:
            return self
        groups = Stratified.joined(columns.get("sensitive_features"), columns.get("strata"))
        data, _ = self._measured_rows(X, y, groups, columns.get("sample_weight"))
        folds = np.zeros(_num_samples(X), dtype=int)  # no booster has seen rows without weight
        folds[data.order] = data.folds(self.n_boosters_)
        answering, start = copy.copy(self), self._fitted.start
        state = start.model_state.out_of_fold(folds, self.n_boosters_)
        answering._fitted = replace(self._fitted, start=replace(start, model_state=state))
        return answering

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of every feature in the gain of all splits; ndarray of shape (n_features,), with sum 1 (or 0)."""
        check_is_fitted(self)
        if self.booster_ is None:
            return np.zeros(self.n_features_in_)
        gains = self.booster_.feature_importance("gain").astype(float)
        return gains / (gains.sum() or 1.0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
