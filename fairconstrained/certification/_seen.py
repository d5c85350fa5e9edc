"""Whether a model was fitted on the rows that it is to be judged on."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from fairconstrained._row_sketch import RowSketch
from fairconstrained.estimators import BaseFairEstimator

__all__ = ["bound_params", "check_unseen", "model_kappa"]

#: Where meta-estimators keep the model that was fitted on the rows as they are.
_INNER = ("best_estimator_", "estimator_", "estimator")
_STANDARD_ERRORS, _TOLERANCE = 4, 0.01
#: With at most this probability other rows are taken for those of the fit, because they occur as often.
_COINCIDENCE = 1e-3


def _chain(model: Any, X: Any = None) -> Iterator[tuple[Any, Any]]:
    """The model and what is inside it, each with the rows as it gets them."""
    while model is not None:
        yield model, X
        if isinstance(model, Pipeline):
            if X is not None and len(model.steps) > 1:
                X = model[:-1].transform(X)
            model = model.steps[-1][1]
        else:
            model = next((inner for name in _INNER if (inner := vars(model).get(name)) is not None), None)


def bound_params(estimator: BaseFairEstimator, kappa: float | None) -> dict[str, Any]:
    """The parameters with which ``kappa`` bounds what an estimator of the package reports; none of a penalty."""
    try:
        return estimator._bound_params(kappa)
    except ValueError:
        return {}


def model_kappa(model: Any) -> float | None:
    """The bound that the model was fitted with, if it is a number and in use."""
    parts = (part for part, _ in _chain(model))
    found = (
        getattr(part, "kappa", None)
        for part in parts
        if not isinstance(part, BaseFairEstimator) or "kappa" in bound_params(part, 1.0)
    )
    return next((float(kappa) for kappa in found if isinstance(kappa, Real)), None)


def check_unseen(model: Any, X: Any, allow: bool) -> float | None:
    """The share of the rows that the model was fitted on; None if the model does not know, 0 if it may be chance.

    Raises
    ------
    ValueError
        If it is not 0, unless ``allow``.
    """
    for part, rows in _chain(model, X):
        sketch = getattr(part, "_rows_seen", None)
        if sketch is None:
            continue
        rows = check_array(rows, accept_sparse="csr", dtype=np.float64)
        n_testable, by_chance = sketch.n_testable(rows), sketch.share_repeated
        if not n_testable:
            return None
        error = np.sqrt(by_chance * (1 - by_chance) * (1 / n_testable + 1 / sketch.counts.sum()))
        seen = sketch.share_seen(rows)
        are_same = seen == 1.0 and _are_same(sketch, RowSketch.of(rows))
        if not are_same and seen <= by_chance + _STANDARD_ERRORS * error + _TOLERANCE:
            return 0.0
        if not allow:
            expected = f"of new rows {by_chance:.0%} may be expected to be, as rows occur repeatedly"
            raise ValueError(
                f"{seen:.0%} of the rows are among those that {type(part).__name__} was fitted on "
                f"({'each of them as often as there' if are_same else expected}). There a gap says nothing about the "
                "population. Pass rows that were held out, or allow_training_data=True to see the numbers all the same."
            )
        return seen
    return None


def _are_same(known: RowSketch, other: RowSketch) -> bool:
    """Whether both are of the same rows, each as often, which is no coincidence.

    Whatever the population, other rows have these counts with at most the largest multinomial probability of them.
    """
    if not (np.array_equal(known.hashes, other.hashes) and np.array_equal(known.counts, other.counts)):
        return False
    counts, n_rows = known.counts, known.counts.sum()
    chance = gammaln(n_rows + 1) + (xlogy(counts, counts / n_rows) - gammaln(counts + 1)).sum()
    return bool(chance <= np.log(_COINCIDENCE))
