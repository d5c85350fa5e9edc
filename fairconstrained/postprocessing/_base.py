"""Base of classifiers that change the scores of another one."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, _fit_context, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fairconstrained.checks.inputs import check_group_of_every_row, without_none
from fairconstrained.checks.messages import BY_ROUTING, warn_user
from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.estimators.grouping import NO_SMALL_GROUPS, alike_groups
from fairconstrained.estimators.linear import FairClassifierMixin
from fairconstrained.estimators.named_bounds import NamesBounds
from fairconstrained.estimators.saving import PlainState
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.metrics.validation import check_scores
from fairconstrained.model_selection.response import get_response

__all__ = ["Postprocessor"]

_METHODS = ("decision_function", "predict_proba")


@with_parameters
class Postprocessor(PlainState, NamesBounds, FairClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier whose scores are those of another one, changed for some groups; a subclass says how.

    Parameters
    ----------
    estimator : classifier
        Anything with ``decision_function``, or with ``predict_proba`` (its log-odds are the scores). One that is fitted
        already stays as it is in a `sklearn.frozen.FrozenEstimator`.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier, out of its `FrozenEstimator` if it was in one.
    groups_ : ndarray of shape (n_groups,)
        The groups; empty if none were given.
    n_features_in_ : int
        Number of features, if ``estimator_`` has it.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if ``estimator_`` has them.
    """

    # Class-level requests: with metadata routing on, no set_fit_request or set_score_request is needed.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    estimator: Any = parameter(allowed=[HasMethods("fit")], kw_only=False)

    #: Groups that are treated as one, as they are too small for a bound.
    _small = NO_SMALL_GROUPS

    @abstractmethod
    def _fit(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> None:
        """Set everything that `fit` leaves."""

    @abstractmethod
    def _changed(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Scores of rows of some groups as they are after the change; ndarray of shape (n_samples,)."""

    @property
    @abstractmethod
    def _why_groups(self) -> str:
        """Reason to ask for the groups, for the error where they are not given."""

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit the estimator, then choose how its scores are changed.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Whatever the estimator accepts.
        y : array-like of shape (n_samples,)
            Two labels.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            The group of every row; several columns make one group of every observed combination. Without it
            there is one group, and a `FairnessWarning` says so. Handed on to an estimator that takes it.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights, for the choice and for the fit of the estimator.

        Returns
        -------
        self : estimator
            Unchanged if an error occurs.

        Raises
        ------
        ValueError
            For invalid data or parameters, a group or a set of rows that a metric needs and that is empty or too small,
            and weights that the estimator does not take.
        TypeError
            If the estimator gives no scores.

        Warns
        -----
        ConvergenceWarning
            If nothing brings the metric to ``kappa`` plus its granularity.
        FairnessWarning
            If there is only one group, or names of groups differ in blanks, capitals or type alone.
        """
        # Work on a copy: whatever goes wrong on the way, this estimator stays as it was.
        fitted = copy.copy(self)
        fitted._check_estimator()
        fitted._fit(X, y, sensitive_features, sample_weight)
        for message in alike_groups(fitted.groups_, fitted._small, fitted._group_columns):
            warn_user(message, FairnessWarning)
        self.__dict__ = fitted.__dict__
        return self

    def _check_estimator(self) -> None:
        if not any(hasattr(self.estimator, method) for method in _METHODS):
            raise TypeError(
                f"{type(self.estimator).__name__} has neither decision_function nor predict_proba, so it gives no "
                "scores that could be changed."
            )

    @property
    def _is_prefit(self) -> bool:
        """Whether the estimator is fitted already."""
        return isinstance(self.estimator, FrozenEstimator)

    def _fitted_estimator(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> Any:
        if self._is_prefit:
            # what is inside a wrapper may want the groups, which the wrapper would not hand on
            fitted = self.estimator.estimator if isinstance(self.estimator, FrozenEstimator) else self.estimator
            check_is_fitted(fitted)
            return fitted
        given = without_none(sensitive_features=sensitive_features, sample_weight=sample_weight)
        if get_config()["enable_metadata_routing"]:
            return clone(self.estimator).fit(X, y, **process_routing(self, "fit", **given).estimator.fit)
        taken = {name: value for name, value in given.items() if has_fit_parameter(self.estimator, name)}
        if "sample_weight" in given and "sample_weight" not in taken:
            raise ValueError(
                f"fit of {type(self.estimator).__name__} takes no sample_weight. Enable metadata routing to reach what "
                "is inside it, or fit it yourself and pass a FrozenEstimator."
            )
        return clone(self.estimator).fit(X, y, **taken)

    def _raw_scores(self, X: Any, sensitive_features: Any, estimator: Any = None) -> np.ndarray:
        """Scores of a fitted estimator, by default ``estimator_``; ndarray of shape (n_samples,)."""
        estimator = self.estimator_ if estimator is None else estimator
        response = get_response(estimator, X, "decision_function", sensitive_features=sensitive_features)
        if response.classes is not None and not np.array_equal(response.classes, self.classes_):
            raise ValueError(
                f"y has the classes {self.classes_.tolist()} and the estimator {response.classes.tolist()}; "
                "they must agree."
            )
        return check_scores(response.values)

    def _scores(self, X: Any, sensitive_features: Any) -> np.ndarray:
        """Scores of new rows, changed; ndarray of shape (n_samples,)."""
        check_is_fitted(self)
        scores = self._raw_scores(X, sensitive_features)
        if len(self._labels) == 1:
            return self._changed(scores, np.zeros(scores.size, dtype=np.int64))
        if sensitive_features is None:
            raise ValueError(
                f"{self._why_groups}: pass sensitive_features to predict, decision_function, predict_proba and score; "
                f"{BY_ROUTING}."
            )
        codes = self._small.encode(sensitive_features, self._labels, self._group_columns)
        check_group_of_every_row(codes.size, scores.shape[0])
        return self._changed(scores, codes)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Probability of each class: ``1 / (1 + exp(-s))`` of the score s.

        Parameters
        ----------
        X, sensitive_features
            Rows and their groups, as for `decision_function`.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, 2)
            Columns in the order of ``classes_``. They are the estimator's where its scores are log-odds and are
            not changed; otherwise they only rank like the scores.
        """
        scores = self._scores(X, sensitive_features)
        return np.column_stack([expit(-scores), expit(scores)])

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata that this estimator requests and hands on.

        Returns
        -------
        routing : MetadataRouter
        """
        callee = next((method for method in _METHODS if hasattr(self.estimator, method)), _METHODS[0])
        mapping = MethodMapping().add(caller="fit", callee="fit")
        for caller in (*_METHODS, "predict", "score"):
            mapping.add(caller=caller, callee=callee)
        router = MetadataRouter(owner=type(self).__name__)
        return router.add_self_request(self).add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        accepted = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = accepted.sparse, accepted.allow_nan
        return tags
