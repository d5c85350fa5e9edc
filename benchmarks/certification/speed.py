"""Seconds that `CertifiedFairClassifier` takes on 10,000 rows of 400 columns, of processor time."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from fairconstrained import CertifiedFairClassifier, RateParityClassifier

__all__ = ["draw", "measure"]

_ROWS, _QUICK_ROWS, _COLUMNS, _INFORMATIVE, _SHIFTED = 10_000, 1_000, 400, 40, 20
_SHIFTS, _RATES = (0.1, 0.4), ("sigmoid", "indicator")


def draw(
    n_samples: int, n_columns: int, shift: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels and groups: group 1 (30 % of the rows) is lower in the first columns by ``shift``."""
    groups = (rng.random(n_samples) < 0.3).astype(int)
    X = rng.normal(size=(n_samples, n_columns))
    X[:, :_SHIFTED] -= shift * groups[:, None]
    coefficients = np.zeros(n_columns)
    coefficients[:_INFORMATIVE] = 0.3 * np.abs(rng.normal(size=_INFORMATIVE))
    return X, (rng.random(n_samples) < expit(X @ coefficients - 0.2)).astype(int), groups


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """One row for every distance of the groups and kind of rate."""
    return {"speed": pd.DataFrame([_run(shift, rate, quick) for shift in _SHIFTS for rate in _RATES])}


def _run(shift: float, rate: str, quick: bool) -> dict[str, Any]:
    n_samples = _QUICK_ROWS if quick else _ROWS
    X, y, groups = draw(n_samples, _COLUMNS, shift, np.random.default_rng(0))
    model = CertifiedFairClassifier(
        RateParityClassifier(rate=rate), kappa=0.1, metric="independence_gap", random_state=0
    )
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # uncertified models are counted
        model.fit(X, y, sensitive_features=groups)
    return {
        "shift": shift,
        "rate": rate,
        "n": n_samples,
        "columns": _COLUMNS,
        "bounds_looked_at": len(model.plan_),
        "inner_kappa": model.kappa_,
        "status": model.status_,
        "seconds": time.process_time() - begin,
    }
