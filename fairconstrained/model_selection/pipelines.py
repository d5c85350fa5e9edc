"""Estimators inside pipelines."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

__all__ = ["last_step"]


def last_step(estimator: Any) -> Any:
    """Of a pipeline, or the estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
