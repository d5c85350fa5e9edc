"""`LastOfScores`: the last result of a computation from scores, for whoever asks for it at the same scores again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["LastOfScores"]


class LastOfScores:
    """Result of a computation at the scores at which it was last asked for.

    The exact metric, its excess, its differences and the correction of a surrogate are asked for one after the other at
    the scores of an iterate, and sorting these is most of what they cost.
    """

    def __init__(self) -> None:
        self._last: tuple[np.ndarray, Any] | None = None

    def at(self, scores: np.ndarray, compute: Callable[[], Any]) -> Any:
        """The result at scores, which ``compute`` returns where they are others than the last time."""
        last = self._last
        if last is None or not np.array_equal(last[0], scores):
            last = self._last = scores.copy(), compute()  # at once, as other threads may ask as well
        return last[1]
