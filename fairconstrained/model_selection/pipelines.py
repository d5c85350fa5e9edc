"""Models inside of pipelines, searches and other estimators that hold one."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import singledispatch
from typing import Any, Self

from sklearn import config_context
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

from fairconstrained.tables import Table

__all__ = [
    "HoldsPipeline",
    "before_last_step",
    "last_step",
    "model_with",
    "nested_models",
    "steps_of",
    "transformed",
    "with_steps",
]

#: Where searches and other meta-estimators keep the model that was fitted, or else the one that they were given.
_HELD = ("best_estimator_", "estimator_", "estimator")

#: Steps of a pipeline, with their names.
Steps = list[tuple[str, Any]]


class HoldsPipeline(ABC):
    """Estimators that are a pipeline inside: what transforms rows, and an estimator that can be fitted by itself."""

    @abstractmethod
    def own_steps(self) -> Steps:
        """Steps as they are fitted, or before `fit` as they are to be fitted; the last one is the estimator."""

    @abstractmethod
    def with_own_steps(self, steps: Sequence[tuple[str, Any]]) -> Self:
        """Return a copy of this estimator with steps that are fitted."""


@singledispatch
def steps_of(estimator: Any) -> Steps:
    """Steps of an estimator and of those inside it, the last of which holds none.

    It is a single one, without a name, for an estimator that is no pipeline.
    """
    return [("", estimator)]


@steps_of.register
def _(estimator: Pipeline) -> Steps:
    return _flat(estimator.steps)


@steps_of.register
def _(estimator: HoldsPipeline) -> Steps:
    return _flat(estimator.own_steps())


def _flat(steps: Steps) -> Steps:
    """Steps with those of the last one in its place, whose names begin with its name, so that none occurs twice."""
    *before, (name, last) = steps
    inner = steps_of(last)
    return [*before, *((name if len(inner) == 1 else f"{name}.{own}", step) for own, step in inner)]


@singledispatch
def with_steps(estimator: Any, steps: Steps) -> Any:
    """Return the estimator with the fitted ``steps`` in place of those that `steps_of` lists."""
    return steps[-1][1]


@with_steps.register
def _(estimator: Pipeline, steps: Steps) -> Any:
    whole = copy.copy(estimator)
    whole.steps = _nested(estimator.steps, steps)
    return whole


@with_steps.register
def _(estimator: HoldsPipeline, steps: Steps) -> Any:
    return estimator.with_own_steps(_nested(estimator.own_steps(), steps))


def _nested(own: Steps, steps: Steps) -> Steps:
    """Own steps of an estimator, with their names, from the fitted ones of `steps_of`."""
    *before, (name, last) = own
    fitted = [(name, step) for (name, _), (_, step) in zip(before, steps, strict=False)]
    return [*fitted, (name, with_steps(last, steps[len(before) :]))]


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself if it is none."""
    return steps_of(estimator)[-1][1]


def before_last_step(model: Any, X: Any, **metadata: Any) -> Any:
    """Return the rows as the last step of a fitted pipeline receives them; any other estimator receives X itself.

    Parameters
    ----------
    model : estimator
    X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features)
    **metadata : array-like of shape (n_samples,)
        Metadata that steps may request, such as ``sensitive_features``.
    """
    steps = steps_of(model)[:-1]
    return transformed(Pipeline(steps), X, metadata) if steps else X


def transformed(transformers: Pipeline, X: Any, metadata: Mapping[str, Any]) -> Any:
    """Return rows after fitted transformers, which get those of the metadata that they request."""
    with config_context(enable_metadata_routing=True):
        consumed = get_routing_for_object(transformers).consumes("transform", metadata.keys())
        return transformers.transform(X, **{name: metadata[name] for name in consumed})


def model_with(attribute: str, model: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the outermost of the `nested_models` that has an attribute, or else the model, and its rows."""
    return next(((part, rows) for part, rows in nested_models(model, X) if hasattr(part, attribute)), (model, X))


def nested_models(model: Any, X: Any = None) -> Iterator[tuple[Any, Any]]:
    """Yield a model and then the models inside it, outermost first, each with the rows as it receives them.

    Pipelines lead to their last step, meta-estimators to the model that they hold. `FrozenEstimator` is passed over.

    Parameters
    ----------
    model : estimator
    X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features), optional
        Transformed by the steps of fitted pipelines; without it, rows are None. The rows of a `Table` are not
        transformed, so that nothing inside a pipeline is yielded.
    """
    while model is not None:
        if isinstance(model, FrozenEstimator):
            model = model.estimator
            continue
        yield model, X
        if isinstance(model, Pipeline) and isinstance(X, Table):
            return  # its steps take arrays
        if isinstance(model, Pipeline):
            X = X if X is None or len(model.steps) == 1 else model[:-1].transform(X)
            model = model.steps[-1][1]
        else:
            model = next((held for name in _HELD if (held := vars(model).get(name)) is not None), None)
