"""`LastOfOrder`: the last result of a computation from the order of scores, for whoever asks for it again."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

__all__ = ["LastOfOrder"]


class LastOfOrder:
    """The last result of a computation from the order of scores and from which of them are equal.

    At one iterate the exact metric, its excess, its differences and the correction of a surrogate are asked for in
    turn, and then the metric of multiples and shifts of the scores, which have the same order. Sorting the scores is
    most of the cost.
    """

    def __init__(self) -> None:
        self._last: tuple[_Order, Any] | None = None

    def at(self, scores: np.ndarray, compute: Callable[[], Any]) -> Any:
        """Return the result at ``scores``; ``compute`` is called only if their order differs from that of the last."""
        last = self._last
        if last is None or not last[0].is_that_of(scores):
            last = self._last = _Order(scores.copy()), compute()  # in one assignment, as other threads may ask
        return last[1]


class _Order:
    """The order of some scores, which are sorted only where this is needed to compare it with another one."""

    def __init__(self, scores: np.ndarray) -> None:
        self._scores = scores

    def is_that_of(self, scores: np.ndarray) -> bool:
        """Whether other scores of the same rows have the same order and are equal where these are; False for NaN."""
        own = self._scores
        if np.array_equal(own, scores):
            return True
        # the largest and the smallest score are in other rows, as a rule, where the order is another one
        if own.shape != scores.shape or (own.argmin(), own.argmax()) != (scores.argmin(), scores.argmax()):
            return False
        lower, upper = _neighbours(scores[self._rows])
        return bool(np.array_equal(lower < upper, self._rises) and (lower <= upper).all())

    @cached_property
    def _rows(self) -> np.ndarray:
        """Numbers of the rows, from the lowest score to the highest."""
        return np.argsort(self._scores)

    @cached_property
    def _rises(self) -> np.ndarray:
        """Whether each score is higher than the one below."""
        lower, upper = _neighbours(self._scores[self._rows])
        return lower < upper


def _neighbours(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All scores but the last, and the next of each."""
    return ordered[:-1], ordered[1:]
