"""Scores of a model on rows that it has not seen, and the features of a head that are made of them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pandas.util import hash_pandas_object
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils import indexable
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from tqdm import tqdm

from fairconstrained.certification.seen_rows import overlap_with_fit
from fairconstrained.checks.inputs import as_targets, check_group_of_every_row, in_memory
from fairconstrained.checks.messages import BY_ROUTING, warn_user
from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.checks.seeds import seed_of
from fairconstrained.estimators import BaseFairEstimator, PartialParityClassifier
from fairconstrained.estimators.remembers import RemembersRows
from fairconstrained.heads._basis import ScoreBasis
from fairconstrained.heads._fits import Columns, fit_and_score, routing_of, scored, takes_in_fit
from fairconstrained.heads._scores import GroupTargets, classifies
from fairconstrained.model_selection.cell_folds import scoring_folds
from fairconstrained.model_selection.pipelines import last_step
from fairconstrained.tables import Table
from fairconstrained.tables.dask_table import as_rows

__all__ = ["CrossFits", "CrossFittedScores"]

_PREFIT = "prefit"
#: Estimator of groups that takes rows which are not in memory.
_TABLE_GROUPS: Any = PartialParityClassifier
#: Estimators: with ``fit``, or finished models of any kind that give scores.
_ANY = [HasMethods("fit"), HasMethods("predict_proba"), HasMethods("decision_function")]


@with_parameters
class CrossFits:
    """Parameters of estimators that take the scores of another estimator on rows that it has not seen.

    Parameters
    ----------
    estimator : estimator
        Any classifier with ``predict_proba`` or ``decision_function``, or regressor: a pipeline on raw columns, boosted
        trees, a forest, a network. With ``cv="prefit"``, or in a `sklearn.frozen.FrozenEstimator`, a model that is
        fitted already; then the rows given to `fit` must not be those that it was fitted on. Models of this package
        keep a record of their rows; of other models this is not checked.
    group_estimator : estimator, "auto", list of str or int, or None, default="auto"
        Classifier that estimates the group of a row from its features, for predictions that do not know the group.
        "auto" is a copy of ``estimator``, which gets no validation set, or if that is a regressor or under a bound
        itself, `HistGradientBoostingClassifier` after the transformers of its pipeline; for rows that are not in
        memory, logistic regression (`PartialParityClassifier` without a bound). A list of names or numbers of columns,
        where only these may be used for it: `HistGradientBoostingClassifier` on them, with numbers in place of texts.
        None: the group is not estimated, and the head is a function of the scores alone, for users who may not model
        the group.
    use_groups : bool, default=False
        Whether predictions know the group itself, in place of an estimate; then they need ``sensitive_features``.
    cv : int, cross-validation splitter, iterable or "prefit", default=5
        Folds: the scores of every row come from a model that was fitted on the other folds. An integer stands for
        shuffled folds with the same share of every group and class. "prefit": ``estimator`` is fitted already and
        scores all rows; the groups are still estimated by 5 folds.
    ensemble : bool, default=False
        False: new rows are scored by one model that is fitted on all rows at the end. True: by the mean of the models
        of the folds, without another fit.
    n_jobs : int, default=None
        Number of processes for the folds; see joblib.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the boosted trees that estimate the groups. None is another seed every time; numpy's
        global generator is left alone.
    verbose : int, default=0
        1: progress bars. 2 and more: also joblib's messages about the folds.
    """

    estimator: Any = parameter(allowed=_ANY, kw_only=False)
    group_estimator: Any = parameter("auto", [HasMethods("fit"), StrOptions({"auto"}), list, None])
    use_groups: bool = parameter(False, ["boolean"])
    cv: Any = parameter(5, ["cv_object", StrOptions({_PREFIT})])
    ensemble: bool = parameter(False, ["boolean"])
    n_jobs: int | None = parameter(None, [Integral, None])
    random_state: Any = parameter(None, ["random_state"])
    verbose: int = parameter(0, ["verbose"])

    def __sklearn_clone__(self) -> Self:
        copy = super().__sklearn_clone__()  # type: ignore[misc]
        if isinstance(self.cv, str):  # a model that is fitted already stays so
            copy.estimator = self.estimator
        return copy

    @property
    def _base(self) -> Any:
        """The estimator itself, where it is in a `FrozenEstimator`."""
        return self.estimator.estimator if isinstance(self.estimator, FrozenEstimator) else self.estimator

    @property
    def _is_prefit(self) -> bool:
        """Whether the estimator is fitted already."""
        return isinstance(self.cv, str) or isinstance(self.estimator, FrozenEstimator)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata that `fit` requests, and what it hands on to the estimator's `fit` and to ``cv``.

        Returns
        -------
        routing : MetadataRouter
        """
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        to_fit, to_split = MethodMapping(), MethodMapping()
        for caller in ("fit", "fit_transform"):
            to_fit.add(caller=caller, callee="fit")
            to_split.add(caller=caller, callee="split")
        if not self._is_prefit:
            router.add(estimator=routing_of(self.estimator), method_mapping=to_fit)
        return router.add(splitter=self.cv, method_mapping=to_split)


@with_parameters
class CrossFittedScores(CrossFits, RemembersRows, TransformerMixin, BaseEstimator):
    r"""Transformer from rows to the few features of a head: functions of cross-fitted scores.

    `fit_transform` gives every row the features that models of the other folds assign to it, as
    `sklearn.preprocessing.TargetEncoder` does; `transform` scores rows by the final models. A pipeline of this
    transformer and an estimator of this package does the same as a `FairHeadClassifier`.

    With the scores s of a row and the probabilities :math:`b_g` of its groups, less their means, the features are
    functions :math:`B_1, \ldots, B_k` of a linear spline of s, the :math:`b_g`, and the products
    :math:`b_g B_j(s)`, each with mean 0 and standard deviation 1. The number k is one for every 3,000 rows, or
    of a regressor with ``use_groups=True`` for every 250 rows of the smallest group if that makes more; at least one,
    and at most six. The knots are at evenly spread ranks of the scores.

    Attributes
    ----------
    models_ : list of Models
        Models that score new rows: one, or with ``ensemble=True`` one for each fold.
    groups_ : GroupTargets
        Names of the groups, and whether they overlap; where they are estimated and the training rows of a fold lack
        one, those that are told apart. The groups of the rows are not kept.
    basis_ : ScoreBasis
        Functions of scores and groups.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the columns of the input have strings as names.

    Examples
    --------
    >>> from fairconstrained.datasets import make_biased_classification
    >>> from fairconstrained.heads import CrossFittedScores
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y, group = make_biased_classification(n_samples=500, random_state=0)
    >>> scores = CrossFittedScores(RandomForestClassifier(10, random_state=0), random_state=0)
    >>> scores.fit_transform(X, y, sensitive_features=group).shape
    (500, 3)
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True, "sample_weight": True}
    __metadata_request__transform: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    #: Whether a table of booleans stands for groups that overlap.
    _takes_overlapping_groups = True

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, **fit_params: Any
    ) -> Self:
        """Fit the models and place the knots; see `fit_transform`, which also returns the features."""
        self.fit_transform(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight, **fit_params)
        return self

    @_fit_context(prefer_skip_nested_validation=False)
    def fit_transform(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        **fit_params: Any,
    ) -> np.ndarray:
        """Fit the models and return the features of the rows, scored by models that have not seen them.

        Parameters
        ----------
        X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features)
            Whatever the estimator accepts. A `fairconstrained.tables.Table` or a Dask collection for a model that is
            fitted already, which gets one block of rows after the other.
        y : array-like of shape (n_samples,)
            Target.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            Groups of the rows; without them, the features are functions of the scores alone.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, for estimators that take them.
        groups : array-like of shape (n_samples,), optional
            For a splitter ``cv`` that keeps rows together, such as `GroupKFold`.
        **fit_params : dict
            Further arguments of the estimator's `fit`, which gets the values of its rows, and as it is what has no
            value for every row, such as a validation set of boosted trees.

        Returns
        -------
        features : ndarray of shape (n_samples, n_columns)
            Features of the head, with mean 0 and standard deviation 1.

        Raises
        ------
        TypeError
            If the estimator has no scores, or does not take an argument.
        ValueError
            For invalid data, for folds that lack a class or a group that the models need, and for a fitted model and
            the rows of its own fit, where it remembers them, as the estimators of this package do.

        Warns
        -----
        UserWarning
            If the estimator does not take ``sample_weight``.
        """
        X, sensitive_features, sample_weight = as_rows(X), in_memory(sensitive_features), in_memory(sample_weight)
        X, y = indexable(X, as_targets(y))
        if classifies(self._base):
            check_classification_targets(y)
        self._check_names(X)
        self._remember_rows(self._as_remembered(X))
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, np.empty((y.size, 1)), ensure_non_negative=True)
        targets = GroupTargets.of(sensitive_features, y.size, self._takes_overlapping_groups)
        self.groups_ = targets.without_rows()
        columns = Columns(X, y, targets, sensitive_features, sample_weight, fit_params)
        self._check_estimators(columns)
        scores, shares = self._fitted_scores(columns, groups)
        n_known = 0
        if self.use_groups and self.groups_.compares:
            shares = targets.indicators()
            # decisions of a classifier need few functions, and gain nothing from more that would overfit the bound
            n_known = 0 if classifies(self._base) else targets.n_smallest
        self.basis_ = ScoreBasis.of(scores, shares, n_known)
        return self.basis_.features(scores, shares)

    def transform(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Features of rows, scored by the final models.

        Parameters
        ----------
        X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            Groups of the rows; needed with ``use_groups=True``.

        Returns
        -------
        features : ndarray of shape (n_samples, n_columns)

        Raises
        ------
        ValueError
            If groups are needed and not given, or were not seen in `fit`.
        """
        check_is_fitted(self)
        if getattr(X, "ndim", 2) == 1:
            raise ValueError("X must have two dimensions, got one. Reshape your data: X.reshape(1, -1) is one row.")
        X = as_rows(X)
        self._check_names(X, reset=False)
        by_model = [scored(models, self.groups_, X, sensitive_features) for models in self.models_]
        scores, groups = (np.mean(parts, axis=0) for parts in zip(*by_model, strict=True))
        if self.use_groups and self.groups_.compares:
            if sensitive_features is None:
                raise ValueError(
                    "use_groups=True: predictions need the group of every row. Pass sensitive_features to predict; "
                    f"{BY_ROUTING}. Or set use_groups=False."
                )
            groups = self.groups_.indicators_of(sensitive_features)
            check_group_of_every_row(groups.shape[0], scores.shape[0])
        return self.basis_.features(scores, groups)

    def _check_names(self, X: Any, reset: bool = True) -> None:
        """Set, or compare, the number and the names of the features."""
        rows = X.without_rows() if isinstance(X, Table) else X
        validate_data(self, rows, reset=reset, skip_check_array=True)

    @staticmethod
    def _as_remembered(X: Any) -> Any:
        """Rows as numbers by which they are known again: their own, or a hash where they hold anything else."""
        if sp.issparse(X) or isinstance(X, Table):
            return X
        numbers = np.asarray(X)
        if numbers.ndim == 1:
            raise ValueError("X must have two dimensions, got one. Reshape your data: X.reshape(-1, 1) is one column.")
        if numbers.dtype.kind in "biuf":
            return numbers.astype(float)
        return hash_pandas_object(pd.DataFrame(X).astype(str), index=False).to_numpy().astype(float)[:, None]

    def _group_model(self, X: Any) -> Any:
        """The estimator of the groups of rows, not fitted; None if groups are not estimated."""
        if self.use_groups or self.group_estimator is None or not self.groups_.compares:
            return None
        if isinstance(self.group_estimator, list):
            if isinstance(X, Table):
                raise ValueError("group_estimator=[...] takes columns of rows in memory. Pass 'auto' or None.")
            return self._group_model_of(self.group_estimator)
        if not isinstance(self.group_estimator, str):
            return self.group_estimator
        if isinstance(X, Table):
            return _TABLE_GROUPS(None, random_state=seed_of(self.random_state))
        base = self._base
        # A copy of an estimator under a bound would lack the groups of its own bound.
        if classifies(base) and hasattr(base, "get_params") and not isinstance(last_step(base), BaseFairEstimator):
            return base
        if getattr(X, "ndim", 2) > 2:
            raise ValueError(
                f"group_estimator='auto' is HistGradientBoostingClassifier here, but X has {X.ndim} dimensions. Pass a "
                "classifier that takes such rows, group_estimator=None, or use_groups=True."
            )
        return self._boosted(base.steps[:-1] if isinstance(base, Pipeline) else [])

    def _group_model_of(self, columns: list[Any]) -> Pipeline:
        """The estimator of groups from some of the columns."""
        codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
        texts = make_column_selector(dtype_exclude=["number", "bool", "category"])
        steps = {
            "columns": ColumnTransformer([("chosen", "passthrough", columns)], verbose_feature_names_out=False),
            # trees take categories and numbers, but no texts
            "texts": ColumnTransformer([("codes", codes, texts)], remainder="passthrough"),
        }
        return self._boosted([(name, step.set_output(transform="pandas")) for name, step in steps.items()])

    def _boosted(self, before: list[tuple[str, Any]]) -> Pipeline:
        """Boosted trees for the groups, after other steps."""
        seed = seed_of(self.random_state)
        return Pipeline([*before, ("groups", HistGradientBoostingClassifier(random_state=seed))])

    def _check_estimators(self, columns: Columns) -> None:
        """Raise or warn about what an estimator cannot do."""
        if columns.others and get_config()["enable_metadata_routing"]:
            process_routing(self, "fit", **columns.others)  # raises for what the estimator has not requested
        for name in columns.others:
            if self._is_prefit or not takes_in_fit(self.estimator, name):
                raise TypeError(f"{type(self._base).__name__}, the estimator, does not take {name} in fit.")
        if self._is_prefit:
            base = self._base
            with suppress(TypeError):  # no estimator of scikit-learn's kind: whether it is fitted, its scores will show
                check_is_fitted(base)
            share = overlap_with_fit(base, columns.X).share
            if share:
                raise ValueError(
                    f"{share:.0%} of the rows are among those that {type(base).__name__} was fitted on. There its "
                    "scores are too good, and so would the bound be. Pass rows that were held out, or fit it by folds "
                    "(cv=5)."
                )
            return
        if columns.sample_weight is not None and not takes_in_fit(self.estimator, "sample_weight"):
            warn_user(
                f"{type(self.estimator).__name__} does not take sample_weight; the weights are used by the head only.",
                UserWarning,
            )

    def _fitted_scores(self, columns: Columns, together: Any) -> tuple[np.ndarray, np.ndarray]:
        """Fit the models, and score every row by those that have not seen it; sets ``models_`` and ``groups_``."""
        of_groups = self._group_model(columns.X)
        folds = self._folds(columns, of_groups, together)
        if of_groups is not None:
            targets = columns.targets.told_apart_by([train for train, _ in folds])
            columns = replace(columns, targets=targets)
            self.groups_ = targets.without_rows()
        every = np.arange(columns.y.size)
        fits = [(train, test) for train, test in folds]
        if not self.ensemble:
            fits.append((every, every[:0]))  # the final models
        base = self._base if self._is_prefit else None
        done = Parallel(n_jobs=self.n_jobs, verbose=max(int(self.verbose) - 1, 0))(
            delayed(fit_and_score)(self.estimator, base, of_groups, columns, train, test)
            for train, test in tqdm(fits, desc="models of the folds", leave=False, disable=self.verbose < 1)
        )
        self.models_ = [models for models, _, _ in done][-1 if not self.ensemble else 0 :]
        parts = done[: len(folds)]
        scores = np.zeros((every.size, parts[0][1].shape[1]))
        groups = np.zeros((every.size, parts[0][2].shape[1]))
        for (_, test), (_, own, own_groups) in zip(folds, parts, strict=True):
            scores[test], groups[test] = own, own_groups
        return scores, groups

    def _folds(self, columns: Columns, of_groups: Any, together: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Numbers of the rows to fit on and to score, each row scored once.

        ``together`` tells a splitter which rows to keep together. Raises ValueError as `scoring_folds` does, and where
        the rows of a fit lack a class.
        """
        y, every = columns.y, np.arange(columns.y.size)
        if self._is_prefit and of_groups is None:
            return [(every, every)]
        of_classes = classifies(self._base)
        folds = scoring_folds(
            5 if isinstance(self.cv, str) else self.cv,
            columns.X,
            y,
            columns.targets.cells,
            classifier=of_classes,
            random_state=self.random_state,
            groups=together,
        )
        if of_classes and not self._is_prefit:
            _check_classes(y, folds)
        return folds


def _check_classes(y: np.ndarray, folds: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Raise ValueError if the rows that a model is fitted on lack a class of the target."""
    known = np.unique(y).size
    for number, (train, _) in enumerate(folds, start=1):
        missing = known - np.unique(y[train]).size
        if missing:
            raise ValueError(
                f"the training rows of fold {number} of {len(folds)} lack {missing} of {known} classes; take other or "
                "fewer folds."
            )
