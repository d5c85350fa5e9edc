"""Fairlearn's reductions and thresholds on the same features; where they decide at random, expected rates count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.any_model.methods import Outcome
from benchmarks.notions.peer import Peer, answered
from benchmarks.notions.setting import Setting


def _base() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


def _difference(bound: float) -> dict[str, Any]:
    return {"difference_bound": bound}


def _ratio(bound: float) -> dict[str, Any]:
    return {"ratio_bound": 1 - bound}


def _bounded_loss(bound: float) -> dict[str, Any]:
    from fairlearn.reductions import ZeroOneLoss

    return {"loss": ZeroOneLoss(), "upper_bound": bound}


#: Moments of Fairlearn and their parameters; differences and ratios are those to all rows there.
_MOMENTS: dict[str, tuple[str, Callable[[float], dict[str, Any]]]] = {
    "demographic_parity": ("DemographicParity", _difference),
    "demographic_parity_ratio": ("DemographicParity", _ratio),
    "equal_opportunity": ("TruePositiveRateParity", _difference),
    "equalized_odds": ("EqualizedOdds", _difference),
    "equalized_odds_ratio": ("EqualizedOdds", _ratio),
    "predictive_equality": ("FalsePositiveRateParity", _difference),
    "error_rate_parity": ("ErrorRateParity", _difference),
    "error_rate_ratio": ("ErrorRateParity", _ratio),
    "conditional_parity": ("DemographicParity", _difference),
    "error_ceiling": ("BoundedGroupLoss", _bounded_loss),
}


def _moment(setting: Setting) -> Any:
    from fairlearn import reductions

    name, parameters = _MOMENTS[setting.notion]
    return getattr(reductions, name)(**parameters(setting.bound))


def _fitted(model: Any, setting: Setting, expected: Callable[[Any, Any], np.ndarray]) -> Outcome:
    def fit(train: Any) -> Callable[[Any], np.ndarray]:
        strata = {"control_features": train.strata} if setting.entry.within else {}
        model.fit(train.X, train.y, sensitive_features=train.groups, **strata)
        return lambda rows: expected(model, rows)

    return answered(setting, fit)


def exponentiated_gradient(setting: Setting) -> Outcome:
    """Exponentiated gradient with default arguments."""
    from fairlearn.reductions import ExponentiatedGradient

    def expected(model: Any, part: Any) -> np.ndarray:
        found = model._pmf_predict(part.X)
        # of a bounded loss these are the predictions of every classifier in the mixture
        mixed = found @ model.weights_[found.columns] if hasattr(found, "columns") else found[:, 1]
        return np.asarray(mixed, dtype=float)

    return _fitted(ExponentiatedGradient(_base(), _moment(setting)), setting, expected)


def grid_search(setting: Setting) -> Outcome:
    """Grid search with default arguments, which chooses among ten classifiers and gives no promise."""
    from fairlearn.reductions import GridSearch

    def decided(model: Any, part: Any) -> np.ndarray:
        return np.asarray(model.predict(part.X), dtype=float)

    return _fitted(GridSearch(_base(), _moment(setting)), setting, decided)


#: Names of the notions in ThresholdOptimizer.
_THRESHOLDS = {
    "demographic_parity": "demographic_parity",
    "equal_opportunity": "true_positive_rate_parity",
    "equalized_odds": "equalized_odds",
    "predictive_equality": "false_positive_rate_parity",
}


def threshold_optimizer(setting: Setting) -> Outcome:
    """Thresholds by group, which it needs for new rows; equalized odds cannot be relaxed there."""
    from fairlearn.postprocessing import ThresholdOptimizer

    def expected(model: Any, part: Any) -> np.ndarray:
        return np.asarray(model._pmf_predict(part.X, sensitive_features=part.groups)[:, 1], dtype=float)

    tolerance = None if setting.notion == "equalized_odds" else setting.bound
    options = {"constraints": _THRESHOLDS[setting.notion], "tol": tolerance}
    return _fitted(ThresholdOptimizer(estimator=_base(), **options), setting, expected)


PEERS: dict[str, Peer] = {
    "exponentiated_gradient": Peer(exponentiated_gradient, "fairlearn", tuple(_MOMENTS)),
    "grid_search": Peer(grid_search, "fairlearn", ("demographic_parity", "equal_opportunity")),
    "threshold_optimizer": Peer(threshold_optimizer, "fairlearn", tuple(_THRESHOLDS)),
}
