"""Terms on mini-batches, whose mean is to be that on all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch

from fairconstrained.data import FairData

__all__ = ["assert_unbiased", "of_view", "on_batches"]


def of_view(aux: Any = ()) -> Callable[[Any, np.ndarray], np.ndarray]:
    """Function that takes the values of a term at scores, with these auxiliary variables."""
    return lambda term, scores: term.values(torch.from_numpy(scores), torch.tensor(aux, dtype=torch.float64)).numpy()


def on_batches(
    term: Any,
    data: FairData,
    scores: np.ndarray,
    batches: Iterable[FairData],
    values: Callable[[Any, np.ndarray], Any] | None = None,
) -> np.ndarray:
    """Values of a term of the data on every mini-batch, see `of_view`; ndarray of shape (n_batches, n_components)."""
    values = values or of_view()
    places = np.empty(data.order.max() + 1, dtype=int)
    places[data.order] = np.arange(data.n_samples)
    return np.array([values(term.on(batch), scores[places[batch.order]]) for batch in batches])


def assert_unbiased(draws: np.ndarray, expected: np.ndarray, tolerance: float = 0.0) -> None:
    """The mean of draws that differ is within 4 of its standard errors, and a tolerance."""
    error = np.std(draws, axis=0) / np.sqrt(len(draws))
    assert (error > 0).all()
    assert (np.abs(np.mean(draws, axis=0) - expected) < 4 * error + tolerance).all()
