"""Models inside of pipelines, searches and other estimators that hold one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

__all__ = ["before_last_step", "last_step", "nested_models"]

#: Where searches and other meta-estimators keep the model that was fitted, or else the one that they were given.
_HELD = ("best_estimator_", "estimator_", "estimator")


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself if it is none."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def before_last_step(model: Any, X: Any) -> Any:
    """Return the rows as the last step of a fitted pipeline receives them; any other estimator receives X itself."""
    return model[:-1].transform(X) if isinstance(model, Pipeline) and len(model.steps) > 1 else X


def nested_models(model: Any, X: Any = None) -> Iterator[tuple[Any, Any]]:
    """Yield a model and then the models inside it, outermost first, each with the rows as it receives them.

    Pipelines lead to their last step, meta-estimators to the model that they hold. `FrozenEstimator` is passed over.

    Parameters
    ----------
    model : estimator
    X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features), optional
        Transformed by the steps of fitted pipelines; without it, rows are None.
    """
    while model is not None:
        if isinstance(model, FrozenEstimator):
            model = model.estimator
            continue
        yield model, X
        if isinstance(model, Pipeline):
            X = None if X is None else before_last_step(model, X)
            model = last_step(model)
        else:
            model = next((held for name in _HELD if (held := vars(model).get(name)) is not None), None)
