"""The table by group as a ``MetricFrame`` of Fairlearn."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, log_loss, precision_score, recall_score, roc_auc_score

from fairconstrained.checks.messages import shortened
from fairconstrained.reporting._rows import ReportRows

__all__ = ["metric_frame"]


def metric_frame(rows: ReportRows) -> Any:
    """A ``MetricFrame`` with the columns of the report, each computed by scikit-learn or Fairlearn."""
    try:
        from fairlearn.metrics import MetricFrame, count, selection_rate
    except ImportError as error:
        raise ImportError(
            "FairnessReport.to_metric_frame needs Fairlearn. Install it with: pip install fairlearn"
        ) from error
    if rows.classes:
        raise ValueError(
            "the columns of a MetricFrame have one positive label: make the report with pos_label, one of the classes "
            f"{shortened(rows.classes)}."
        )
    metrics = {
        "n_samples": count,
        "base_rate": _base_rate,
        "positive_rate": selection_rate,
        "true_positive_rate": partial(recall_score, zero_division=np.nan),
        "false_positive_rate": _false_positive_rate,
        "precision": partial(precision_score, zero_division=np.nan),
        "accuracy": accuracy_score,
    }
    of_rows: dict[str, dict[str, Any]] = {name: {} for name in metrics}
    for name, function, scores in (("auc", _auc, rows.y_score), ("log_loss", _log_loss, rows.probabilities)):
        if scores is not None:
            metrics[name], of_rows[name] = function, {"y_score": scores}
    if rows.sample_weight is not None:
        for name in metrics.keys() - {"n_samples"}:
            of_rows[name]["sample_weight"] = rows.sample_weight
    return MetricFrame(
        metrics=metrics,
        y_true=rows.y_true,
        y_pred=rows.y_pred,
        sensitive_features=rows.sensitive_features,
        sample_params=of_rows,
    )


def _base_rate(y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
    return float(np.average(y_true, weights=sample_weight))


def _false_positive_rate(y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
    return 1 - float(recall_score(y_true, y_pred, pos_label=0, sample_weight=sample_weight, zero_division=np.nan))


def _auc(y_true: Any, y_pred: Any, y_score: Any, sample_weight: Any = None) -> float:
    counts = np.ones(len(y_true)) if sample_weight is None else np.asarray(sample_weight)
    if np.unique(np.asarray(y_true)[counts > 0]).size < 2:
        return float("nan")
    return float(roc_auc_score(y_true, y_score, sample_weight=sample_weight))


def _log_loss(y_true: Any, y_pred: Any, y_score: Any, sample_weight: Any = None) -> float:
    return float(log_loss(y_true, y_score, sample_weight=sample_weight, labels=[0, 1]))
