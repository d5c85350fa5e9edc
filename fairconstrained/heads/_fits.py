"""Fits of a model of the target and of models of the groups on some rows, and their scores of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import (
    MetadataRequest,
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
)
from sklearn.utils.validation import _check_method_params, has_fit_parameter

from fairconstrained.heads._scores import GroupTargets, base_scores, group_probabilities
from fairconstrained.tables import Table

__all__ = ["Columns", "Models", "fit_and_score", "routing_of", "scored", "takes_in_fit"]


@dataclass(frozen=True, eq=False)
class Models:
    """A model of the target and models of the groups that were fitted on the same rows."""

    base: Any  # estimator
    #: One for each column of the group targets; empty where groups are not estimated.
    groups: Mapping[int, Any]


@dataclass(frozen=True, eq=False)
class Columns:
    """Rows that models are fitted on, with what belongs to them; None where there are no weights.

    ``others`` are further arguments of the fit of the target's model, by name.
    """

    X: Any
    y: np.ndarray
    targets: GroupTargets
    sensitive_features: Any
    sample_weight: np.ndarray | None
    others: Mapping[str, Any] = field(default_factory=dict)

    def fitted(self, model: Any, y: np.ndarray, rows: np.ndarray, names: tuple[str, ...]) -> Any:
        """Return a copy of a model that is fitted on some rows, with those columns among ``names`` that it takes."""
        known = {"sample_weight": self.sample_weight, "sensitive_features": self.sensitive_features, **self.others}
        given = {name: known[name] for name in names if known[name] is not None}
        requested = _requested(model, given)
        taken = {
            name: values
            for name, values in given.items()
            if name in requested or (name != "sensitive_features" and has_fit_parameter(model, name))
        }
        taken = _check_method_params(y, taken, rows)  # what has no value for every row is handed on as it is
        # Without requests, meta-estimators that take weights by themselves refuse them while routing is on.
        with config_context(enable_metadata_routing=bool(requested)):
            routed = _routed(model, {name: taken.pop(name) for name in requested})
            return clone(model).fit(_taken(self.X, rows), y[rows], **taken, **routed)


def takes_in_fit(model: Any, name: str) -> bool:
    """Whether a model's fit takes an argument, requested by metadata routing or not."""
    return has_fit_parameter(model, name) or bool(_requested(model, (name,)))


def routing_of(model: Any) -> MetadataRequest | MetadataRouter:
    """The metadata that a model requests or hands on; nothing for a meta-estimator that cannot route."""
    try:
        return get_routing_for_object(model)
    except NotImplementedError:
        return MetadataRequest(owner=type(model).__name__)


def _requested(model: Any, names: Iterable[str]) -> set[str]:
    """The arguments among ``names`` that a model requests for `fit` by metadata routing."""
    with config_context(enable_metadata_routing=True):
        return set(routing_of(model).consumes("fit", names))


def _routed(model: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a model requests for `fit`, by the names that its `fit` has for them."""
    if not given:
        return {}
    to_fit = MethodMapping().add(caller="fit", callee="fit")
    router = MetadataRouter(owner="head").add(estimator=model, method_mapping=to_fit)
    return dict(router.route_params(caller="fit", params=given).estimator.fit)


def fit_and_score(
    estimator: Any, prefit: Any, group_estimator: Any, columns: Columns, train: np.ndarray, test: np.ndarray
) -> tuple[Models, np.ndarray, np.ndarray]:
    """Fit the models on some rows, and score others; ``prefit`` is a model of the target that is fitted already.

    Raises ValueError if a copy of the target's model cannot be fitted to the groups.
    """
    base = prefit
    if base is None:
        base = columns.fitted(estimator, columns.y, train, ("sample_weight", "sensitive_features", *columns.others))
    groups = {}
    if group_estimator is not None:
        try:
            for column, target in enumerate(columns.targets.columns.T):
                groups[column] = columns.fitted(group_estimator, target, train, ("sample_weight",))
        except Exception as error:
            if group_estimator is not (estimator if prefit is None else prefit):
                raise
            raise ValueError(
                f"the copy of {type(group_estimator).__name__} that estimates the groups cannot be fitted ({error}). "
                "It gets rows and weights alone, and no validation set, which is about the target. Set "
                "group_estimator=HistGradientBoostingClassifier(), another classifier, or a copy without early "
                "stopping; or group_estimator=None or use_groups=True, which need no estimate."
            ) from error
    models = Models(base, groups)
    if not test.size:
        return models, np.empty((0, 0)), np.empty((0, 0))
    features = columns.sensitive_features
    given = None if features is None else _safe_indexing(features, test)
    return models, *scored(models, columns.targets, _taken(columns.X, test), given)


def scored(models: Models, targets: GroupTargets, X: Any, sensitive_features: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scores of rows, and the probabilities of their groups; two ndarrays of n_samples rows."""
    scores = base_scores(models.base, X, sensitive_features)
    none = np.empty((scores.shape[0], 0))
    return scores, group_probabilities(models.groups, targets, X) if models.groups else none


def _taken(X: Any, rows: np.ndarray) -> Any:
    return X.taken(rows) if isinstance(X, Table) else _safe_indexing(X, rows)
