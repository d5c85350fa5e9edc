"""Rows that are alike as one row of their weight, so that a metric of thousands of resamples takes no time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from fairconstrained.certification import gap_interval
from fairconstrained.groups import Groups
from fairconstrained.metrics._validation import GroupedRows
from fairconstrained.reporting._rows import ReportRows

__all__ = ["Condensed"]

#: Levels of the scores and groups, multiplied. More levels than fit are rounded to quantiles.
_MOST_ENTRIES = 2000
_FEWEST_LEVELS = 200


@dataclass(frozen=True, eq=False)
class Condensed:
    """Rows of equal group, label and response as one; for continuous scores, of nearly equal response.

    A metric takes a weight of two for the same row twice, so this changes nothing but the time, up to the rounding:
    scores of more than ``max(200, 2000 // n_groups)`` values are replaced by that many means of equal shares of the
    rows. The metric itself is computed from all scores; only its interval is not.

    Parameters
    ----------
    rows : ReportRows
    values : ndarray of shape (n_levels,)
        Responses, increasing.
    levels : ndarray of int, of shape (n_samples,)
        Which of them every row has.
    """

    rows: ReportRows
    values: np.ndarray
    levels: np.ndarray

    @classmethod
    def of(cls, rows: ReportRows, response: np.ndarray | None) -> Self | None:
        """Condense; None without a response."""
        if response is None:
            return None
        values, levels, counts = np.unique(response, return_inverse=True, return_counts=True)
        most = max(_FEWEST_LEVELS, _MOST_ENTRIES // rows.grouped.n_groups)
        if values.size > most:
            middle = np.cumsum(counts) - counts / 2
            # no level on both sides of the threshold, which would turn decisions
            level = np.floor(middle * most / response.size) + (values > rows.threshold)
            _, merged = np.unique(level, return_inverse=True)
            levels = merged[levels]
            values = np.bincount(levels, response) / np.bincount(levels)
        return cls(rows, values, levels)

    def interval(self, metric: Callable[..., Any], level: float, n_resamples: int, seed: int) -> tuple[float, float]:
        """Interval of a metric, rows drawn anew within the groups; NaN if many resamples have an empty cell."""
        n_levels, grouped = self.values.size, self.rows.grouped
        cells = (grouped.codes * n_levels + self.levels) * 2 + self.rows.y_true

        def of_drawn(_: Any, drawn: Any, *, sensitive_features: Any, sample_weight: Any = None) -> float:
            mass = np.bincount(drawn, sample_weight)
            there = np.flatnonzero(mass)
            groups = Groups(there // (2 * n_levels), grouped.labels)
            alike = GroupedRows(groups, mass[there].astype(float))
            return metric(there % 2, self.values[there // 2 % n_levels], sensitive_features=alike)

        draw = partial(gap_interval, level=level, n_resamples=n_resamples, random_state=seed)
        # a table of groups, as its rows are drawn faster than those of a column
        strata = grouped.codes[:, None]
        try:
            return draw(of_drawn, None, cells, sensitive_features=strata, sample_weight=self.rows.sample_weight)
        except ValueError as error:
            if "empty cell" not in str(error):
                raise
            return np.nan, np.nan
