"""Rows that are alike as one row of their weight, so that a metric of hundreds of resamples takes little time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from fairconstrained.groups import Groups
from fairconstrained.metrics.validation import GroupedRows
from fairconstrained.reporting._rows import ReportRows

__all__ = ["Condensed", "Gap"]

#: Levels of the scores and groups, multiplied. More levels than fit are rounded to quantiles.
_MOST_ENTRIES = 2000
_FEWEST_LEVELS = 200


class Gap(NamedTuple):
    """A metric with its options, and the response of the rows that it reads."""

    reads: str
    function: Callable[..., float]


@dataclass(frozen=True, eq=False)
class Condensed:
    """Rows of equal group, label, decision and score as one; for continuous scores, of nearly equal score.

    A metric takes a weight of two for the same row twice, so this changes nothing but the time, up to the rounding:
    scores of more than ``max(200, 2000 // n_groups)`` values are replaced by that many means of equal shares of the
    rows. The metric itself is computed from all scores; only its interval is not.
    """

    #: Number of the cell of equal rows that every row belongs to.
    cells: np.ndarray  # of int, of shape (n_samples,)
    #: Groups of the cells.
    groups: Groups
    y_true: np.ndarray  # of shape (n_cells,)
    #: Responses by name, each an ndarray of shape (n_cells,).
    responses: dict[str, np.ndarray]

    @classmethod
    def of(cls, rows: ReportRows, responses: Mapping[str, np.ndarray | None]) -> Self:
        """Condense; responses that are not equal within a cell become means over a level of the score."""
        levels = _levels(rows)
        # the score comes first: what sorts by it is faster where it is sorted
        key = ((levels * rows.grouped.n_groups + rows.grouped.codes) * 2 + rows.y_true) * 2 + rows.y_pred
        _, first, cells = np.unique(key, return_index=True, return_inverse=True)
        condensed = {}
        for name, response in responses.items():
            if response is not None:
                is_equal = np.array_equal(response, response[first][cells])
                means = np.bincount(levels, response) / np.bincount(levels)
                condensed[name] = response[first] if is_equal else means[levels[first]]
        groups = Groups(rows.grouped.codes[first], rows.grouped.labels)
        return cls(cells, groups, rows.y_true[first], condensed)

    def gaps(self, gaps: Sequence[Gap], drawn: np.ndarray, weights: np.ndarray) -> list[float]:
        """Gaps of the rows with these numbers, which may repeat; NaN where a cell is empty."""
        mass = np.bincount(self.cells[drawn], weights[drawn])
        there = np.flatnonzero(mass)
        codes = self.groups.codes[there]
        if np.unique(codes).size < len(self.groups.labels):  # the rows of a group that were drawn have no weight
            return [np.nan] * len(gaps)
        alike = GroupedRows(self.groups._replace(codes=codes), mass[there])
        y_true = self.y_true[there]
        return [
            float(function(y_true, self.responses[reads][there], sensitive_features=alike)) for reads, function in gaps
        ]


def _levels(rows: ReportRows) -> np.ndarray:
    """Number of the score of every row among the distinct ones, in increasing order; of many, that of a quantile."""
    if rows.y_score is None:
        return np.zeros(rows.n_samples, dtype=np.int64)
    values, levels, counts = np.unique(rows.y_score, return_inverse=True, return_counts=True)
    most = max(_FEWEST_LEVELS, _MOST_ENTRIES // rows.grouped.n_groups)
    if values.size <= most:
        return levels
    middle = np.cumsum(counts) - counts / 2
    # no level on both sides of the threshold, which would turn decisions
    level = np.floor(middle * most / levels.size) + (values > rows.threshold)
    _, merged = np.unique(level, return_inverse=True)
    return merged[levels]
