"""Linear fits as plain models of scikit-learn, which other tools take."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.validation import check_is_fitted

from fairconstrained.checks.inputs import take_names

__all__ = ["plain_classifier", "plain_regressor"]


def plain_classifier(estimator: Any, shift: float = 0.0) -> LogisticRegression:
    """A `LogisticRegression` with the scores of a fitted classifier of linear scores, less ``shift``."""
    coefficients, intercepts = _linear_scores(estimator)
    if len(coefficients) == 2:  # scores of both classes, of which the difference decides
        coefficients, intercepts = coefficients[1:] - coefficients[:1], intercepts[1:] - intercepts[:1]
    plain = LogisticRegression(fit_intercept=estimator.fit_intercept)
    take_names(plain, estimator)
    plain.coef_, plain.intercept_ = coefficients, intercepts - shift
    plain.classes_ = estimator.classes_.copy()
    plain.n_iter_ = np.array([estimator.n_iter_], dtype=np.int32)
    return plain


def plain_regressor(estimator: Any) -> LinearRegression:
    """A `LinearRegression` that predicts the scores of a fitted estimator of linear scores."""
    coefficients, intercepts = _linear_scores(estimator)
    plain = LinearRegression(fit_intercept=estimator.fit_intercept)
    take_names(plain, estimator)
    plain.coef_, plain.intercept_ = coefficients[0], float(intercepts[0])
    return plain


def _linear_scores(estimator: Any) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of shape (n_scores, n_features) and intercepts of shape (n_scores,).

    Raises ValueError for a network, and for coefficients that every group has of its own.
    """
    check_is_fitted(estimator)
    if not hasattr(estimator, "coef_"):
        raise ValueError(
            f"The scores of this {type(estimator).__name__} are those of a network, of trees or of another estimator, "
            "so it has no coefficients for a linear model of scikit-learn. Export its module_ (with "
            "torch.onnx.export(model.module_, ...)), its booster_, or its estimator_."
        )
    if getattr(estimator, "group_interactions", False) and len(estimator.groups_) > 1:
        raise ValueError(
            f"This {type(estimator).__name__} has coefficients of its own for every group (group_interactions=True), "
            "and a linear model of scikit-learn has one set of coefficients and is not told the groups. Fit with "
            "group_interactions=False."
        )
    return np.atleast_2d(estimator.coef_).copy(), np.atleast_1d(estimator.intercept_).astype(np.float64)
