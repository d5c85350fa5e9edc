"""`LastOfScores`: the last result of a computation from scores, for whoever asks for it at the same scores again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["LastOfScores"]


class LastOfScores:
    """The last result of a computation from scores.

    At one iterate the exact metric, its excess, its differences and the correction of a surrogate are asked for in
    turn, and sorting the scores is most of their cost.
    """

    def __init__(self) -> None:
        self._last: tuple[np.ndarray, Any] | None = None

    def at(self, scores: np.ndarray, compute: Callable[[], Any]) -> Any:
        """Return the result at ``scores``; ``compute`` is called only if these differ from the last ones."""
        last = self._last
        if last is None or not np.array_equal(last[0], scores):
            last = self._last = scores.copy(), compute()  # in one assignment, as other threads may ask
        return last[1]

    def taken_at(self, scores: np.ndarray, compute: Callable[[], Any]) -> Any:
        """Return the result at ``scores`` as `at` does, and keep none, since some results are as large as the rows."""
        last, self._last = self._last, None
        return last[1] if last is not None and np.array_equal(last[0], scores) else compute()

    def __getstate__(self) -> dict[str, Any]:
        return {"_last": None}  # another process asks at scores of its own
