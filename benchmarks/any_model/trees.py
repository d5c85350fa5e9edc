"""The boosted trees that all methods are built on, each distinct fit of them done once."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import joblib
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

#: Fits and predictions that are kept, the oldest of which go first. A head with twenty folds has 42 fits.
_KEPT = 400
_results: OrderedDict[str, tuple[Any, float]] = OrderedDict()
_spared = [0.0]


def _once(key: str, compute: Callable[[], Any]) -> Any:
    """The result of a computation; its seconds count even if it was done before."""
    if key in _results:
        _results.move_to_end(key)
        result, seconds = _results[key]
        _spared[0] += seconds
        return result
    begin = time.process_time()
    result = compute()
    _results[key] = (result, time.process_time() - begin)
    if len(_results) > _KEPT:
        _results.popitem(last=False)
    return result


class Trees(ClassifierMixin, BaseEstimator):
    """LightGBM with 300 trees and learning rate 0.05; importing this module does not load it.

    Several methods and notions need the same fits and predictions of a split. They are done once and remembered, and
    `Seconds` counts their time for every method that asks for them. Fits with weights, which do not come back, are not
    kept.

    Parameters
    ----------
    categories : sequence of int, default=None
        Places of the columns that are codes of categories. None: the columns of categorical type.
    n_estimators : int, default=300
    """

    def __init__(self, categories: Any = None, n_estimators: int = 300) -> None:
        self.categories = categories
        self.n_estimators = n_estimators

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit, or take the model of an earlier fit to the same rows."""
        self.key_ = joblib.hash((self.get_params(), X, np.asarray(y)))
        if sample_weight is None:
            self.model_ = _once(self.key_, lambda: self._fitted(X, y, None))
        else:
            self.key_, self.model_ = "", self._fitted(X, y, sample_weight)
        self.classes_ = self.model_.classes_
        self.n_features_in_ = X.shape[1]
        return self

    def _fitted(self, X: Any, y: Any, sample_weight: Any) -> Any:
        from lightgbm import LGBMClassifier

        model = LGBMClassifier(
            n_estimators=self.n_estimators,
            learning_rate=0.05,
            n_jobs=1,
            deterministic=True,
            force_row_wise=True,
            verbose=-1,
            random_state=0,
        )
        columns = "auto" if self.categories is None else list(self.categories)
        return model.fit(X, np.asarray(y), sample_weight=sample_weight, categorical_feature=columns)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes."""
        if not self.key_:
            return self._probabilities(X)
        return _once(joblib.hash((self.key_, X)), lambda: self._probabilities(X)).copy()

    def _probabilities(self, X: Any) -> np.ndarray:
        return np.asarray(self.model_.predict_proba(X, validate_features=False))

    def predict(self, X: Any) -> np.ndarray:
        """Classes of probability above one half."""
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]


class Seconds:
    """Processor time of a block, with that of the fits and predictions in it that were remembered."""

    total = 0.0

    @contextmanager
    def count(self) -> Iterator[None]:
        """Add the time of a block."""
        begin, spared = time.process_time(), _spared[0]
        try:
            yield
        finally:
            self.total += time.process_time() - begin + _spared[0] - spared
