"""Whether a model was fitted on the rows that it is to be judged on."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy
from scipy.stats import binom
from sklearn.utils import check_array

from fairconstrained.checks.inputs import telling_columns
from fairconstrained.estimators import BaseFairEstimator
from fairconstrained.estimators.row_sketch import RowSketch
from fairconstrained.model_selection.pipelines import nested_models
from fairconstrained.tables import Table

__all__ = ["Overlap", "bound_params", "check_unseen", "model_kappa", "overlap_with_fit"]

_STANDARD_ERRORS, _TOLERANCE = 4, 0.01
#: Largest probability of taking other rows for those of the fit, because they occur as often.
_COINCIDENCE = 1e-3
#: Probability with which an overlap is noticed that counts as noticeable.
_NOTICED = 0.95


def bound_params(estimator: BaseFairEstimator, kappa: float | None) -> dict[str, Any]:
    """Return the parameters with which ``kappa`` bounds the metric that an estimator reports; none for a penalty."""
    try:
        return estimator._bound_params(kappa)
    except ValueError:
        return {}


def model_kappa(model: Any, is_floor: bool = False) -> float | None:
    """Return the bound that the model was fitted with, if it is in use and the same for all that is bounded.

    Of all that is bounded from below, if ``is_floor``, and otherwise from above.
    """
    found = ({*_kappas_of(part, is_floor)} - {None} for part, _ in nested_models(model))
    kappas = next((kappas for kappas in found if kappas), set())
    kappa = kappas.pop() if len(kappas) == 1 else None
    return float(kappa) if isinstance(kappa, Real) and not np.isnan(float(kappa)) else None


def _kappas_of(part: Any, is_floor: bool) -> list[Any]:
    """Return the bounds of an estimator; its parameter ``kappa`` where nothing was bounded by name."""
    named = part.named_kappas() if hasattr(part, "constraint_values_") else {}
    if not named:
        own: Any = getattr(part, "kappa", None)
        return [] if is_floor else np.ravel(own).tolist()
    return [kappa for name, kappa in named.items() if (name in part._bounded_from_below()) == is_floor]


class Overlap(NamedTuple):
    """Overlap of the rows that a model is to be judged on with those that it was fitted on."""

    #: Share of the rows on which the model was fitted: 0 where it is no more than chance could be, or 1 %; None if it
    #: cannot be told.
    share: float | None
    #: The fewest rows in common that are noticed with a probability of at least 95 %; None if even all might not be.
    noticeable: int | None

    @property
    def words(self) -> str:
        """Return the finding as one sentence."""
        if self.share is None:
            return "Whether the model was fitted on some of these rows is not known: it has no record that tells."
        if self.share:
            return f"The model was fitted on {self.share:.0%} of these rows."
        if self.noticeable == 1:
            return "The model was fitted on none of these rows."
        if self.noticeable is None:
            return "No sign that the model was fitted on these rows; but even of all of them this might go unnoticed."
        return (
            "No sign that the model was fitted on these rows; of "
            f"{self.noticeable:,} of them or more this would be noticed with a probability of at least 95%."
        )


def overlap_with_fit(model: Any, X: Any) -> Overlap:
    """Compare rows with those that a model remembers; None for both if there is nothing to compare."""
    return next((overlap for _, overlap, _ in _overlaps(model, X)), Overlap(None, None))


def check_unseen(model: Any, X: Any, allow: bool) -> Overlap:
    """Compare rows with those that a model remembers, and refuse those of its fit.

    Raises ValueError if there are some, unless ``allow``.
    """
    for part, overlap, why in _overlaps(model, X):
        if overlap.share and not allow:
            raise ValueError(
                f"{overlap.share:.0%} of the rows are among those that {type(part).__name__} was fitted on ({why}). "
                "There a gap says nothing about the population. Pass rows that were held out, or "
                "allow_training_data=True to see the numbers all the same."
            )
        return overlap
    return Overlap(None, None)


def _overlaps(model: Any, X: Any) -> Iterator[tuple[Any, Overlap, str]]:
    """Yield every part of a model that remembers rows, the overlap with these, and why it is no coincidence."""
    for part, rows in nested_models(model, X):
        sketch = getattr(part, "_rows_seen", None)
        if sketch is None:
            continue
        with telling_columns(rows):
            rows = getattr(part, "_as_remembered", _numbers)(rows)  # what takes other rows says how it remembers them
        n_testable, by_chance = sketch.n_testable(rows), sketch.share_repeated
        if not n_testable:
            continue
        error = np.sqrt(by_chance * (1 - by_chance) * (1 / n_testable + 1 / sketch.counts.sum()))
        most = by_chance + _STANDARD_ERRORS * error + _TOLERANCE
        noticeable = _noticeable(rows.shape[0], int(most * n_testable) + 1, sketch.share_remembered)
        seen = sketch.share_seen(rows)
        are_same = seen == 1.0 and _are_same(sketch, RowSketch.of(rows))
        expected = f"of new rows {by_chance:.0%} may be expected to be, as rows occur repeatedly"
        why = "each of them as often as there" if are_same else expected
        yield part, Overlap(seen if are_same or seen > most else 0.0, noticeable), why


def _numbers(X: Any) -> Any:
    """Rows of finite numbers; CSR matrix of shape (n_samples, n_features), or ndarray of shape (n_samples, ...)."""
    return X if isinstance(X, Table) else check_array(X, accept_sparse="csr", dtype=np.float64, allow_nd=True)


def _noticeable(n_rows: int, n_needed: int, share: float) -> int | None:
    """The fewest rows of which ``n_needed`` are remembered with enough probability, each with probability ``share``."""
    sizes = np.arange(n_needed, n_rows + 1)
    enough = np.flatnonzero(binom.sf(n_needed - 1, sizes, share) >= _NOTICED)
    return int(sizes[enough[0]]) if enough.size else None


def _are_same(known: RowSketch, other: RowSketch) -> bool:
    """Whether both are of the same rows, each as often, which is no coincidence.

    Whatever the population, other rows have these counts with at most the largest multinomial probability of them.
    """
    if not (np.array_equal(known.hashes, other.hashes) and np.array_equal(known.counts, other.counts)):
        return False
    counts, n_rows = known.counts, known.counts.sum()
    chance = gammaln(n_rows + 1) + (xlogy(counts, counts / n_rows) - gammaln(counts + 1)).sum()
    return bool(chance <= np.log(_COINCIDENCE))
