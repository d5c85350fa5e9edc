"""Error bounds by class, against class-weighted logistic regression tuned to the same bounds.

Digits: every digit but 8 is to be wrong at most so often. Adult: control of the error on incomes up to 50K. Five
splits of the digits in halves, and five halves of Adult's training part with its test part; features in [0, 1], the
same penalty on the coefficients. The weight of the class without a bound is found by bisection, to be as large as the
bounds on the training data allow. The errors of new rows are measured, so that no fit estimates them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split
from tqdm import tqdm

from benchmarks._common import load_a9a, set_threads
from fairconstrained import NeymanPearsonClassifier

__all__ = ["measure"]

_BOUNDS = {"digits": (0.01, 0.02, 0.05), "adult": (0.01, 0.02, 0.05, 0.1)}
_PRIORITY = {"digits": 8, "adult": 1}
_ALPHA = {"digits": 1e-2, "adult": 1e-4}
#: Steps of the bisection, on a logarithmic scale.
_BISECTIONS = 14


class _Split(NamedTuple):
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def _splits(data: str, n_splits: int) -> Iterator[_Split]:
    for seed in range(n_splits):
        if data == "digits":
            X, y = load_digits(return_X_y=True)
            parts = train_test_split(X / 16, y, test_size=0.5, stratify=y, random_state=seed)
            yield _Split(parts[0], parts[2], parts[1], parts[3])
        else:
            table = load_a9a()
            train = table.is_train
            X, y = table.X[train], table.y[train]
            rows = train_test_split(np.arange(y.size), test_size=0.5, stratify=y, random_state=seed)[0]
            yield _Split(X[rows], y[rows], table.X[~train], table.y[~train])


def _errors(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    return 1 - recall_score(y, model.predict(X), average=None)


def _tuned(split: _Split, bound: float, priority: Any, alpha: float) -> LogisticRegression:
    """The largest weight of the class without a bound with which all others keep theirs, up to one row."""
    classes, counts = np.unique(split.y, return_counts=True)
    bounded = classes != priority

    def fit(weight: float) -> LogisticRegression:
        # each class counts alike, as in the other method; scikit-learn's C multiplies the sum of the losses
        weights = {c: (weight if c == priority else 1.0) / n for c, n in zip(classes, counts, strict=True)}
        return LogisticRegression(C=1 / alpha, class_weight=weights, max_iter=2000).fit(split.X, split.y)

    low, high, best = 1e-3, 1e3, fit(1e-3)
    for _ in range(_BISECTIONS):
        middle = float(np.sqrt(low * high))
        model = fit(middle)
        if (_errors(model, split.X, split.y) <= bound + 1 / counts)[bounded].all():
            low, best = middle, model
        else:
            high = middle
    return best


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """Means over the splits, and how often all bounds are kept on the training data."""
    set_threads(1)
    rows = []
    cases = [(data, bound) for data, bounds in _BOUNDS.items() for bound in (bounds[-1:] if quick else bounds)]
    for data, bound in tqdm(cases, desc="bounds"):
        for split in _splits(data, 1 if quick else 5):
            priority, alpha = _PRIORITY[data], _ALPHA[data]
            own = NeymanPearsonClassifier(
                bound, priority_class=priority, constraint="error", alpha=alpha, new_row_folds=None
            )
            fits = {
                "NeymanPearsonClassifier": lambda own=own, split=split: own.fit(split.X, split.y),
                "LogisticRegression, tuned weight": lambda split=split, bound=bound, of=(priority, alpha): _tuned(
                    split, bound, *of
                ),
            }
            for method, fit in fits.items():
                begin = time.process_time()
                model = fit()
                seconds = time.process_time() - begin
                rows.append({"data": data, "bound": bound, "method": method, **_row(model, split, bound, priority)})
                rows[-1]["seconds"] = seconds
    frame = pd.DataFrame(rows)
    table = frame.groupby(["data", "bound", "method"], sort=False).mean().reset_index()
    return {"neyman_pearson": table}


def _row(model: Any, split: _Split, bound: float, priority: Any) -> dict[str, float]:
    classes, counts = np.unique(split.y, return_counts=True)
    bounded, train, test = (
        classes != priority,
        _errors(model, split.X, split.y),
        _errors(model, split.X_test, split.y_test),
    )
    return {
        "kept": float((train <= bound + 1 / counts)[bounded].all()),
        "worst": train[bounded].max(),
        "priority": train[~bounded][0],
        "worst_test": test[bounded].max(),
        "priority_test": test[~bounded][0],
    }
