"""Intervals of all gaps of a report from the same resamples: rows are drawn once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state
from tqdm import tqdm

from fairconstrained.certification.bootstrap import Replicates
from fairconstrained.certification.resampling import (
    MOST_LOST,
    acceleration,
    draws,
    fewest_resamples,
    jackknife_blocks,
    values_of,
    without_blocks,
)
from fairconstrained.checks.messages import check_fraction
from fairconstrained.reporting._rows import ReportRows

__all__ = ["Resampling", "gap_intervals"]


class Resampling(NamedTuple):
    """How intervals come about; build it with :meth:`of`."""

    #: Level of the intervals.
    level: float
    #: 0 for no intervals.
    n_resamples: int
    seed: int
    #: Number of processes; see joblib.
    n_jobs: int | None = None

    @classmethod
    def of(cls, level: Any, n_resamples: Any, random_state: Any, n_jobs: int | None = None) -> Self:
        """Validate; None for ``n_resamples`` is the fewest that the level allows."""
        level = check_fraction("level", level)
        fewest = fewest_resamples((1 - level) / 2)
        n_resamples = fewest if n_resamples is None else n_resamples
        if not isinstance(n_resamples, Integral) or 0 != int(n_resamples) < fewest:
            raise ValueError(
                f"n_resamples must be 0, for no intervals, or at least {fewest} for intervals of level {level:g}; "
                f"got {n_resamples!r}."
            )
        return cls(level, int(n_resamples), _seed(random_state), n_jobs)


def gap_intervals(
    rows: ReportRows,
    measured: Callable[[np.ndarray, np.ndarray], list[float]],
    resampling: Resampling,
    verbose: int = 0,
) -> list[tuple[float, float]]:
    """Two-sided interval of every gap, as of ``gap_interval`` with the groups as strata; a progress bar if ``verbose``.

    NaN where more than a tenth of the resamples have an empty cell.

    Parameters
    ----------
    measured : callable
        Function from numbers of rows, which may repeat, and the weights of all rows to the gaps.
    """
    codes, weights = rows.grouped.codes, rows.grouped.weights / rows.grouped.weights.mean()
    rng = np.random.default_rng(check_random_state(resampling.seed).randint(2**31))

    total = 1 + resampling.n_resamples + sum(jackknife_blocks(codes))
    with tqdm(total=total, desc="resamples", leave=False, disable=verbose < 1) as bar:

        def of_all(draws: Iterator[np.ndarray]) -> np.ndarray:
            values = []
            for value in values_of(lambda rows: measured(rows, weights), draws, resampling.n_jobs):
                values.append(value)
                bar.update()
            return np.array(values)

        estimates = measured(np.arange(codes.size), weights)
        bar.update()
        resampled = of_all(draws(codes, resampling.n_resamples, rng))
        by_group = [of_all(blocks) for blocks in without_blocks(codes, rng)]
    tail = (1 - resampling.level) / 2
    ends = []
    for number, estimate in enumerate(estimates):
        values = resampled[:, number]
        found = np.sort(values[~np.isnan(values)])
        if values.size - found.size > MOST_LOST * values.size:
            ends.append((np.nan, np.nan))
            continue
        replicates = Replicates(estimate, found, acceleration([left[:, number] for left in by_group]))
        ends.append((replicates.lower(1 - tail), replicates.upper(1 - tail)))
    return ends


def _seed(random_state: Any) -> int:
    """A seed to keep; that of a whole number is itself."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))
