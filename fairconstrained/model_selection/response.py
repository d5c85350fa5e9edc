"""Decisions, scores or probabilities of an estimator, which receives the groups if it requests them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit
from sklearn import config_context, get_config
from sklearn.base import is_regressor
from sklearn.utils import column_or_1d
from sklearn.utils.metadata_routing import get_routing_for_object

from fairconstrained.checks.inputs import as_targets
from fairconstrained.checks.messages import shortened
from fairconstrained.metrics.classes import class_margins

__all__ = ["RESPONSES", "Response", "check_model", "get_response", "seed_argument"]

# Probabilities can replace scores (as log-odds), but scores without calibration cannot replace probabilities.
_METHODS: dict[str, tuple[str, ...]] = {
    "predict": ("predict",),
    "decision_function": ("decision_function", "predict_proba"),
    "predict_proba": ("predict_proba",),
}
RESPONSES = tuple(_METHODS)

# Log-odds of certainty, just beyond those of the float64 nearest to 1 (36.7).
_CERTAIN = 37.5


class Response(NamedTuple):
    """The values of one response method."""

    #: Decisions as 0 and 1, or scores (larger: more likely positive), where there is a positive label; whatever the
    #: estimator returned otherwise.
    values: np.ndarray  # of shape (n_samples,) or (n_samples, n_classes)
    #: The labels of a classifier.
    classes: np.ndarray | None  # of shape (n_classes,)
    #: The label that counts as 1; None where labels are left as they are.
    positive: Any

    def encode(self, y: Any) -> np.ndarray:
        """Labels on the scale of ``values``: 1 for the positive label, 0 for the others.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels of a classifier, targets of a regressor.

        Returns
        -------
        y : ndarray of shape (n_samples,)

        Raises
        ------
        ValueError
            If a label is not among the classes of the estimator.
        """
        labels = as_targets(y)
        if self.classes is not None:
            unknown = np.setdiff1d(labels, self.classes)
            if unknown.size:
                raise ValueError(
                    f"y contains labels that the estimator was not fitted with: {shortened(unknown)}. "
                    f"Its classes are {shortened(self.classes)}."
                )
        return labels if self.positive is None else (labels == self.positive).astype(int)


def check_model(model: Any, name: str) -> None:
    """Raise TypeError unless it is an instance that predicts; `check_is_fitted` tells whether it is fitted."""
    if isinstance(model, type) or not any(hasattr(model, method) for method in RESPONSES):
        raise TypeError(f"{name} must be a fitted estimator (an instance with predict); got {model!r}.")


def get_response(
    estimator: Any,
    X: Any,
    response: str,
    *,
    sensitive_features: Any = None,
    pos_label: Any = None,
    random_state: Any = None,
) -> Response:
    """Ask a fitted estimator for its decisions, scores or probabilities.

    Parameters
    ----------
    estimator : estimator object
        Fitted classifier or regressor, or a pipeline ending in one.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows to score.
    response : {"predict", "decision_function", "predict_proba"}
        A classifier without ``decision_function`` answers with the log-odds of ``predict_proba``, so that 0 is still
        the threshold, or with the logarithms for more than two classes; the score of a regressor is its prediction.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features), default=None
        Handed on only to an estimator whose response method *requests* it through metadata routing.
    pos_label : object, default=None
        The positive label; by default the last of two classes. The score of one of more than two classes is the excess
        over the largest score of the others, which is positive where it is predicted.
    random_state : int, RandomState instance or None, default=None
        Seed of decisions that are drawn at random, see `seed_argument`.

    Raises
    ------
    TypeError
        If a classifier offers no method that gives the response, or this needs the groups without requesting them.
    ValueError
        If ``pos_label`` is not a class of the estimator.
    """
    check_model(estimator, "estimator")
    method = _response_method(estimator, response)
    metadata = {}
    if sensitive_features is not None and _requests_groups(estimator, method):
        metadata["sensitive_features"] = sensitive_features
    elif _needs_groups(estimator, method):
        raise TypeError(
            f"{type(estimator).__name__}.{method} needs sensitive_features, and gets them only where it requests them: "
            "call sklearn.set_config(enable_metadata_routing=True), and then "
            f"set_{method}_request(sensitive_features=True) of the model."
        )
    # a pipeline refuses what its last step asks for unless routing is on
    routed = get_config()["enable_metadata_routing"] or bool(metadata)
    ask = getattr(estimator, method)
    with config_context(enable_metadata_routing=routed):
        values = np.asarray(ask(X, **metadata, **seed_argument(ask, random_state)))
    classes = _classes(estimator)
    if classes is None:
        return Response(values, None, pos_label)
    if pos_label is not None and pos_label not in classes.tolist():
        raise ValueError(f"pos_label={pos_label!r} is not one of the classes {shortened(classes)}.")
    several, from_probabilities = classes.size > 2, response == "decision_function" and method == "predict_proba"
    if several and from_probabilities:
        values = _log_probabilities(values)
    if pos_label is None and classes.size != 2:
        return Response(values, classes, None)
    positive = classes[-1] if pos_label is None else pos_label
    if several and response == "decision_function":
        values = class_margins(values)
    values = _of_positive(values, method, classes, int(np.flatnonzero(classes == positive)[0]))
    if from_probabilities and not several:
        values = _log_odds(values)
    return Response(values, classes, positive)


def seed_argument(method: Callable[..., Any], random_state: Any) -> dict[str, Any]:
    """Return the seed as an argument of a method that draws, as that of Fairlearn's ExponentiatedGradient, if any."""
    draws = random_state is not None and "random_state" in inspect.signature(method).parameters
    return {"random_state": random_state} if draws else {}


def _log_odds(probability: np.ndarray) -> np.ndarray:
    """Finite, strictly increasing in the probability, and 0 at 1/2."""
    return _finite(np.asarray(logit(probability)))


def _log_probabilities(probability: np.ndarray) -> np.ndarray:
    """Scores of several classes whose softmax the probabilities are; finite."""
    with np.errstate(divide="ignore"):
        return _finite(np.log(probability))


def _finite(scores: np.ndarray) -> np.ndarray:
    """Large scores in place of infinite ones."""
    finite = scores[np.isfinite(scores)]
    # logit(1e-300) is -691: probability 0 has to stay below whatever else there is
    lowest = min(-_CERTAIN, float(finite.min()) - 1.0) if finite.size else -_CERTAIN
    return np.nan_to_num(scores, nan=np.nan, posinf=_CERTAIN, neginf=lowest)


def _of_positive(values: np.ndarray, method: str, classes: np.ndarray, column: int) -> np.ndarray:
    """Response of the positive class against the rest."""
    if method == "predict":
        return (column_or_1d(values) == classes[column]).astype(int)
    if values.ndim == 2:
        return values[:, column]
    # a one-dimensional decision function speaks for the second class
    return values if column == 1 else -values


def _response_method(estimator: Any, response: str) -> str:
    for method in _METHODS[response]:
        if hasattr(estimator, method):
            return method
    if is_regressor(estimator):
        return "predict"
    raise TypeError(
        f"{type(estimator).__name__} has none of {list(_METHODS[response])}, so it gives no "
        f"{'probabilities' if response == 'predict_proba' else 'scores'}. "
        "Pass response='predict' to judge its decisions instead."
    )


def _requests_groups(estimator: Any, method: str) -> bool:
    try:
        routing = get_routing_for_object(estimator)
    except NotImplementedError:
        # scikit-learn's word for a meta-estimator that cannot route: nothing below it can be reached
        return False
    return bool(routing.consumes(method, ["sensitive_features"]))


def _needs_groups(estimator: Any, method: str) -> bool:
    """Whether a method cannot be called without the groups, as that of Fairlearn's ThresholdOptimizer."""
    groups = inspect.signature(getattr(estimator, method)).parameters.get("sensitive_features")
    return groups is not None and groups.default is groups.empty


def _classes(estimator: Any) -> np.ndarray | None:
    classes = getattr(estimator, "classes_", None)
    return None if classes is None else np.asarray(classes)
