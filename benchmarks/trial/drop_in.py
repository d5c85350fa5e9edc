"""Estimators inside scikit-learn's tools: they work, or refuse in one clear sentence."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import joblib
import numpy as np
import pandas as pd
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_validate,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairconstrained as fc
from fairconstrained.datasets import make_biased_classification
from fairconstrained.model_selection import get_fairness_scorer

__all__ = ["Case", "all_cases", "judge_case"]

_N, _LONGEST = 300, 500
#: Rows that a group has in every fold.
_FEWEST = 30
#: Estimators in their usual form, and such as need the groups to predict.
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "PartialParityClassifier": partial(fc.PartialParityClassifier, 0.2, constraint="demographic_parity"),
    "PartialParityClassifier, interactions": partial(
        fc.PartialParityClassifier, 0.2, constraint="demographic_parity", group_interactions=True
    ),
    "RateParityClassifier": partial(fc.RateParityClassifier, 0.2),
    "AUCFairClassifier": partial(fc.AUCFairClassifier, 0.2),
    "GroupLossClassifier": partial(fc.GroupLossClassifier, 0.7, min_group_size=_FEWEST),
    "LossParityClassifier": partial(
        fc.LossParityClassifier, 0.2, hidden_layer_sizes=(4,), max_epochs=2, random_state=0
    ),
    "MinorityRateClassifier": partial(fc.MinorityRateClassifier, 0.2, minority=1),
    "ParityPairClassifier": partial(fc.ParityPairClassifier, 1.05),
    "CorrelationPenaltyClassifier": partial(fc.CorrelationPenaltyClassifier, 0.1),
    "RegularizedParityClassifier": partial(fc.RegularizedParityClassifier, 0.1, max_iter=20),
    "PairwiseParityClassifier": partial(fc.PairwiseParityClassifier, 1.0),
}


@dataclass(frozen=True)
class Case:
    """An estimator in a tool; the function raises AssertionError where it does not do what it should."""

    name: str
    function: Callable[[], None]


class Data:
    """Rows, and what `fit` takes besides."""

    def __init__(self) -> None:
        self.X, self.y, self.groups = make_biased_classification(_N, n_features=4, random_state=0)
        self.given = {"sensitive_features": self.groups}


def judge_case(case: Case) -> dict[str, Any]:
    """Whether it works, or refuses in one clear sentence that names what is missing."""
    row = {"task": case.name, "outcome": "works", "message": "", "broken": "", "status": "judged"}
    with warnings.catch_warnings(), sklearn.config_context(enable_metadata_routing=True):
        warnings.simplefilter("ignore")
        try:
            case.function()
        except (ValueError, TypeError) as error:
            text = " ".join(str(error).split())
            is_clear = "sensitive_features" in text and len(text) <= _LONGEST
            row |= {"outcome": "refuses", "message": text[:400], "broken": "" if is_clear else "unclear refusal"}
        except Exception as error:  # whatever it is, it is what the trial looks for
            row |= {"outcome": "fails", "message": f"{type(error).__name__}: {error}"[:400], "broken": "fails"}
    return row


def _groups_for(model: Any, groups: np.ndarray) -> dict[str, Any]:
    """Arguments of prediction: the groups, where a model has coefficients for each."""
    return {"sensitive_features": groups} if getattr(model, "group_interactions", False) else {}


def _same(model: Any, other: Any, data: Data, X: Any = None) -> None:
    given = _groups_for(model, data.groups)
    rows = data.X if X is None else X
    np.testing.assert_allclose(
        model.decision_function(data.X, **given), other.decision_function(rows, **given), rtol=1e-6, atol=1e-6
    )


def _cloned(make: Callable[[], Any], data: Data) -> None:
    model = make().fit(data.X, data.y, **data.given)
    copy = clone(model)
    assert not hasattr(copy, "status_"), "a clone is fitted"
    _same(model, copy.fit(data.X, data.y, **data.given), data)


def _pickled(make: Callable[[], Any], data: Data) -> None:
    model = make().fit(data.X, data.y, **data.given)
    _same(model, pickle.loads(pickle.dumps(model)), data)


def _dumped(make: Callable[[], Any], data: Data) -> None:
    model, file = make().fit(data.X, data.y, **data.given), io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    _same(model, joblib.load(file), data)


def _framed(make: Callable[[], Any], data: Data) -> None:
    frame = pd.DataFrame(data.X, columns=list("abcd"), index=np.arange(_N)[::-1])
    groups = pd.Series(data.groups, index=frame.index)
    model = make().fit(frame, pd.Series(data.y, index=frame.index), sensitive_features=groups)
    assert model.feature_names_in_.tolist() == list("abcd"), "the columns' names are lost"
    _same(make().fit(data.X, data.y, **data.given), model, data, frame)


def _sparse(make: Callable[[], Any], data: Data) -> None:
    X = sp.csr_array(data.X)
    _same(make().fit(data.X, data.y, **data.given), make().fit(X, data.y, **data.given), data, X)


def _words(make: Callable[[], Any], data: Data) -> None:
    model = make().fit(data.X, np.array(["no", "yes"])[data.y], **data.given)
    assert set(model.predict(data.X, **_groups_for(model, data.groups))) <= {"no", "yes"}, "other labels come back"
    _same(make().fit(data.X, data.y, **data.given), model, data)


def _piped(make: Callable[[], Any], data: Data) -> None:
    pipe = make_pipeline(StandardScaler(), make()).set_output(transform="pandas")
    pipe.fit(data.X, data.y, **data.given)
    assert pipe.predict(data.X, **_groups_for(pipe[-1], data.groups)).shape == (_N,), "a prediction for each row"


def _columns(make: Callable[[], Any], data: Data) -> None:
    frame = pd.DataFrame(data.X, columns=list("abcd"))
    pipe = make_pipeline(make_column_transformer((StandardScaler(), ["a", "b"]), remainder="passthrough"), make())
    pipe.fit(frame, data.y, **data.given)
    assert pipe.predict(frame, **_groups_for(pipe[-1], data.groups)).shape == (_N,), "a prediction for each row"


def _searched(make: Callable[[], Any], data: Data) -> None:
    given = make().get_params()
    parameter = next(p for p in ("kappa", "weight", "min_share") if p in given)
    grid = {parameter: [given[parameter], 1.5 * given[parameter]]}
    search = GridSearchCV(make(), grid, cv=2, scoring=get_fairness_scorer("neg_independence_gap"))
    search.fit(data.X, data.y, **data.given)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all(), "scores are NaN"


def _validated(make: Callable[[], Any], data: Data) -> None:
    scoring = {"gap": get_fairness_scorer("neg_independence_gap"), "accuracy": get_fairness_scorer("accuracy")}
    found = cross_validate(make(), data.X, data.y, cv=2, params=data.given, scoring=scoring, error_score="raise")
    assert np.isfinite(found["test_gap"]).all(), "scores are NaN"


def _predicted(make: Callable[[], Any], data: Data) -> None:
    assert cross_val_predict(make(), data.X, data.y, cv=2, params=data.given).shape == (_N,), "one for each row"


def _within(wrap: Callable[[Any], Any], make: Callable[[], Any], data: Data) -> None:
    """Another estimator around it, which routes the groups to `fit`."""
    outer = wrap(make()).fit(data.X, data.y, **data.given)
    found = outer.predict(data.X)
    assert found.shape == (_N,), "a prediction for each row"
    assert set(found) <= {0, 1}, "other labels come back"


def _several_classes(make: Callable[[], Any], data: Data) -> None:
    y = data.y + 2 * (data.X[:, 0] > 0.7) * data.y
    outer = OneVsRestClassifier(make()).fit(data.X, y, **data.given)
    assert set(outer.predict(data.X)) <= set(y), "other labels come back"


def _weighted(make: Callable[[], Any], data: Data) -> None:
    weights = np.where(np.arange(_N) % 3, 1.0, 2.0)
    inner = make().set_fit_request(sample_weight=True)
    scoring = get_fairness_scorer("accuracy").set_score_request(sample_weight=True)
    search = GridSearchCV(inner, {"alpha": [1e-3]}, cv=2, scoring=scoring)
    search.fit(data.X, data.y, **data.given, sample_weight=weights)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all(), "scores are NaN"


def _frozen(make: Callable[[], Any], data: Data) -> None:
    model = make().fit(data.X, data.y, **data.given)
    outer = CalibratedClassifierCV(FrozenEstimator(model)).fit(data.X, data.y)
    assert np.isfinite(outer.predict_proba(data.X)).all(), "probabilities are NaN"


def _important(make: Callable[[], Any], data: Data) -> None:
    model = make().fit(data.X, data.y, **data.given)
    found = permutation_importance(model, data.X, data.y, n_repeats=2, random_state=0)
    assert np.isfinite(found.importances_mean).all(), "importances are NaN"


def _tuned(make: Callable[[], Any], data: Data) -> None:
    scoring = get_fairness_scorer("neg_independence_gap")
    outer = TunedThresholdClassifierCV(make(), scoring=scoring, cv=2).fit(data.X, data.y, **data.given)
    assert np.isfinite(outer.best_score_), "the score is NaN"


TOOLS: dict[str, Callable[[Callable[[], Any], Data], None]] = {
    "clone": _cloned,
    "pickle": _pickled,
    "joblib": _dumped,
    "DataFrame": _framed,
    "CSR": _sparse,
    "string labels": _words,
    "Pipeline with set_output": _piped,
    "ColumnTransformer": _columns,
    "GridSearchCV": _searched,
    "GridSearchCV with weights": _weighted,
    "cross_validate": _validated,
    "cross_val_predict": _predicted,
    "OneVsRestClassifier": _several_classes,
    "FrozenEstimator": _frozen,
    "permutation_importance": _important,
    "TunedThresholdClassifierCV": _tuned,
    "BaggingClassifier": partial(_within, lambda inner: BaggingClassifier(inner, n_estimators=2, random_state=0)),
    "CalibratedClassifierCV": partial(_within, lambda inner: CalibratedClassifierCV(inner, cv=2)),
    "FixedThresholdClassifier": partial(_within, lambda inner: FixedThresholdClassifier(inner, threshold=0.4)),
    "StackingClassifier": partial(
        _within, lambda inner: StackingClassifier([("fair", inner), ("plain", LogisticRegression())], cv=2)
    ),
    "VotingClassifier": partial(
        _within, lambda inner: VotingClassifier([("fair", inner), ("plain", LogisticRegression())])
    ),
}


def all_cases() -> list[Case]:
    """Every estimator in every tool."""
    data = Data()
    return [
        Case(f"{estimator} in {tool}", partial(function, make, data))
        for estimator, make in ESTIMATORS.items()
        for tool, function in TOOLS.items()
    ]
