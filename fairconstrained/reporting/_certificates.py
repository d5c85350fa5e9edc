"""Certificates from the rows of a report: answers that are known stand in for a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from fairconstrained.certification import Certificate, certify
from fairconstrained.metrics import find_metric
from fairconstrained.reporting._gaps import READS, lacking, options_of
from fairconstrained.reporting._rows import ReportRows

__all__ = ["certificate_of_rows"]


class _KnownAnswers(ClassifierMixin, BaseEstimator):
    """Classifier of two labels whose "features" are its answers: the one response that a metric reads."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> _KnownAnswers:
        """Learn nothing but the encoding of the labels in a report."""
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Decisions that the only column holds."""
        return X[:, 0].astype(int)

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Scores that the only column holds."""
        return X[:, 0]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probabilities of both labels; the only column holds that of the positive one."""
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def certificate_of_rows(
    rows: ReportRows,
    metric: str,
    kappa: float | None,
    delta: float,
    metric_params: Mapping[str, Any] | None,
    seed: int,
) -> Certificate:
    """Certify a gap with the arguments that it has in the report.

    Raises ValueError if the metric cannot be certified from these rows.
    """
    info, params = find_metric(metric)
    if rows.classes:
        raise ValueError(
            "a certificate from scores is of two classes: choose the positive one, or certify the fitted model."
        )
    if rows.sample_weight is not None:
        raise ValueError("a certificate is for independent rows of equal weight: leave out the weights.")
    if lacks := lacking(info, rows):
        raise ValueError(f"metric {metric!r} needs {lacks}, and the report has none.")
    answers = READS[info.reads](rows)
    assert answers is not None
    options = options_of(info, rows) | params | dict(metric_params or {})
    X = answers[:, None]
    return certify(
        _KnownAnswers().fit(X, rows.y_true),
        X,
        rows.y_true,
        sensitive_features=rows.sensitive_features,
        metric=info.function,
        metric_params=options,
        kappa=kappa,
        delta=delta,
        random_state=seed,
    )
