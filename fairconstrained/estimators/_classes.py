"""Prediction of two or more classes, by the largest of their scores."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from fairconstrained.data import FairData
from fairconstrained.estimators._announced import class_codes
from fairconstrained.estimators._outcome import Fitted, Target
from fairconstrained.estimators._plain_models import plain_classifier
from fairconstrained.models.base import OutputModel

__all__ = ["ClassOutputs"]


class ClassOutputs(ClassifierMixin):
    """Mixin of classifiers with a score of every class."""

    _fitted: Fitted

    def _encode_target(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Target:
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                f"y has {self.classes_.size} class ({self.classes_.tolist()}, counting rows of positive weight); a "
                "classifier needs at least two classes."
            )
        return Target(codes.astype(float))

    def _known_target(self, y: np.ndarray) -> Target:
        return Target(class_codes(y, self.classes_).astype(float))

    def _n_heads(self, data: FairData) -> int:
        return len(self.classes_)

    def _outputs(self, X: Any) -> np.ndarray:
        """Scores of the classes; ndarray of shape (n_samples, n_classes)."""
        check_is_fitted(self)
        X = self._checked_features(X)
        return cast(OutputModel, self._fitted.model).outputs(self._fitted.start.model_state, X)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the classes.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            Scores in the order of ``classes_``; for two classes, the score of the second minus that of the first.
        """
        outputs = self._outputs(X)
        return outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs

    def predict(self, X: Any) -> np.ndarray:
        """Class of the largest score; the first one of several.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
        """
        chosen = self._outputs(X).argmax(axis=1)
        return self.classes_[chosen]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Softmax of the scores.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``. The logistic loss without bounds estimates the probabilities of
            classes that are equally frequent; with bounds, and with the other losses, they rank classes but are not
            calibrated.
        """
        return softmax(self._outputs(X), axis=1)

    def to_sklearn(self) -> LogisticRegression:
        """The fitted scores as a plain model of scikit-learn, e.g. for an export to ONNX or for SHAP values.

        Returns
        -------
        model : sklearn.linear_model.LogisticRegression
            Multinomial for three classes and more, with ``coef_``, ``intercept_``, ``classes_``, ``n_features_in_`` and
            ``feature_names_in_`` of this fit, and the same predictions, scores and probabilities. If you fit this
            model again, it is fitted without bounds.

        Raises
        ------
        ValueError
            If scores are those of a network.
        """
        return plain_classifier(self)
