"""Resampling of rows within strata, and the jackknife over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

__all__ = ["MOST_LOST", "acceleration", "draws", "fewest_resamples", "jackknife_blocks", "values_of", "without_blocks"]

#: Share of the resamples without a statistic, because a cell has no rows, from which on the others say nothing.
MOST_LOST = 0.1
#: Resamples that another process takes at once, as the rows are sent with them.
_AT_ONCE = 25
#: Blocks of rows that the jackknife leaves out, in all strata together.
_JACKKNIFE_BLOCKS = 100


def values_of(
    statistic: Callable[[np.ndarray], Any], drawn: Iterator[np.ndarray], n_jobs: int | None = None
) -> Iterator[Any]:
    """Yield a statistic of one resample after the other, the same for any number of processes.

    Parameters
    ----------
    statistic : callable
        Function of row numbers.
    drawn : iterator of ndarray
        Row numbers of every resample.
    n_jobs : int, optional
        Number of processes; see joblib.
    """
    if effective_n_jobs(n_jobs) == 1:
        yield from map(statistic, drawn)
        return
    parts = iter(lambda: list(islice(drawn, _AT_ONCE)), [])
    for values in Parallel(n_jobs=n_jobs)(delayed(_values)(statistic, part) for part in parts):
        yield from values


def _values(statistic: Callable[[np.ndarray], Any], drawn: Sequence[np.ndarray]) -> list[Any]:
    return [statistic(rows) for rows in drawn]


def fewest_resamples(tail: float) -> int:
    """Return the least number of resamples with ten beyond a quantile that leaves the share ``tail``."""
    return int(np.ceil(10 / tail - 1e-9))


def draws(strata: np.ndarray, n_resamples: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Return row numbers, drawn anew within the strata; the size of every stratum stays."""
    order = np.argsort(strata, kind="stable")
    starts = np.searchsorted(strata[order], strata[order])
    sizes = np.bincount(strata)[strata[order]]
    for _ in range(n_resamples):
        yield order[starts + (rng.random(order.size) * sizes).astype(np.int64)]


def jackknife_blocks(strata: np.ndarray) -> list[int]:
    """Return the number of blocks of every stratum that the jackknife leaves out, one after the other."""
    sizes = np.bincount(strata)
    if strata.size <= _JACKKNIFE_BLOCKS:
        return [int(size) if size > 1 else 0 for size in sizes]
    shares = (max(2, round(_JACKKNIFE_BLOCKS * size / strata.size)) for size in sizes)
    return [min(int(size), share) if size > 1 else 0 for size, share in zip(sizes, shares, strict=True)]


def without_blocks(strata: np.ndarray, rng: np.random.Generator) -> Iterator[Iterator[np.ndarray]]:
    """Yield, for every stratum, an iterator of all row numbers but those of one block, block by block."""
    for code, n_blocks in enumerate(jackknife_blocks(strata)):
        rows = rng.permutation(np.flatnonzero(strata == code))
        if n_blocks:
            yield (np.delete(np.arange(strata.size), block) for block in np.array_split(rows, n_blocks))


def acceleration(left_out: Sequence[np.ndarray]) -> float:
    """Return the acceleration of BCa quantiles, which corrects for skewness; 0 where it cannot be told.

    Parameters
    ----------
    left_out : sequence of ndarray
        Statistic without each of its blocks, for every stratum; NaN where a cell is empty.

    References
    ----------
    Efron, Tibshirani (1993), An Introduction to the Bootstrap, equation 14.15, the strata as several samples.
    """
    cubes = squares = 0.0
    for stratum in left_out:
        values = stratum[~np.isnan(stratum)]
        if values.size > 1:
            influence = (values.size - 1) * (values.mean() - values)
            cubes += (influence**3).sum() / values.size**3
            squares += (influence**2).sum() / values.size**2
    return float(cubes / (6 * squares**1.5)) if squares > 0 else 0.0
