"""Base class of meta-estimators that answer by the model that they fitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fairconstrained.checks.inputs import without_none
from fairconstrained.estimators.saving import PlainState

__all__ = ["DelegatesToFitted", "with_requests_of"]


def _final_estimator_has(method: str) -> Callable[[Any], bool]:
    """Whether the fitted model, or before `fit` the estimator, has a method."""

    def check(self: DelegatesToFitted) -> bool:
        getattr(self._answering, method)  # raises AttributeError
        return True

    return check


def with_requests_of(request: MetadataRequest, model: Any) -> MetadataRequest:
    """Add to the metadata that `fit` and `score` request what those of a model request, such as ``qid``."""
    inner = get_routing_for_object(model)
    for method in ("fit", "score"):
        own = getattr(request, method)
        for name, alias in getattr(inner, method).requests.items():
            if name not in own.requests:
                own.add_request(param=name, alias=alias)
    return request


class DelegatesToFitted(PlainState, MetaEstimatorMixin, BaseEstimator):
    """Predictions of the fitted model that is kept, which gets the groups if it requests them.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the columns of the input have strings as names.
    """

    __metadata_request__predict: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__decision_function: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    estimator: Any
    #: Name of the attribute with the fitted model.
    _kept: ClassVar[str] = "estimator_"

    @property
    def _answering(self) -> Any:
        """The fitted model, or before `fit` the estimator."""
        return getattr(self, self._kept, self.estimator)

    def _ask(self, method: str, X: Any, sensitive_features: Any) -> Any:
        """Call a method of the fitted model, with the groups if it requests them."""
        check_is_fitted(self)
        model = getattr(self, self._kept)
        with config_context(enable_metadata_routing=True):
            given = without_none(sensitive_features=sensitive_features)
            requested = get_routing_for_object(model).consumes(method, given) if given else ()
            return getattr(model, method)(X, **{name: given[name] for name in requested})

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Prediction of the fitted model.

        Parameters
        ----------
        X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            Groups of the rows, which are passed to a model that requests them.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
        """
        return self._ask("predict", X, sensitive_features)

    @available_if(_final_estimator_has("predict_proba"))
    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Probabilities of the fitted model.

        Parameters
        ----------
        X, sensitive_features
            Rows and their groups, as for `predict`.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        return self._ask("predict_proba", X, sensitive_features)

    @available_if(_final_estimator_has("decision_function"))
    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Scores of the fitted model.

        Parameters
        ----------
        X, sensitive_features
            Rows and their groups, as for `predict`.

        Returns
        -------
        scores : ndarray of shape (n_samples,), or (n_samples, n_classes) for more than two classes
        """
        return self._ask("decision_function", X, sensitive_features)

    @property
    def classes_(self) -> np.ndarray:
        """The classes; ndarray of shape (n_classes,)."""
        return self._of_fitted("classes_")

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in `fit`."""
        return self._of_fitted("n_features_in_")

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features; ndarray of shape (n_features,)."""
        return self._of_fitted("feature_names_in_")

    def _of_fitted(self, name: str) -> Any:
        """An attribute of the fitted model; AttributeError without one, as `hasattr` expects it."""
        return getattr(vars(self).get(self._kept), name)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._kept)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "input_tags", "target_tags"):
            setattr(tags, name, getattr(inner, name))
        return tags
