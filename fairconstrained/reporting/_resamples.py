"""Intervals of all gaps of a report from the same resamples: rows are drawn once for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state

from fairconstrained.certification._bootstrap import Replicates
from fairconstrained.reporting._condensed import Condensed, Gap
from fairconstrained.reporting._rows import ReportRows

__all__ = ["Resampling", "gap_intervals"]

#: Blocks of rows that the jackknife leaves out, in all groups together.
_JACKKNIFE_BLOCKS = 100
#: Share of the resamples without a gap, because a cell has no rows, from which on the others say nothing.
_MOST_LOST = 0.1


class Resampling(NamedTuple):
    """How intervals come about; build it with :meth:`of`.

    Attributes
    ----------
    level : float
        Of the intervals.
    n_resamples : int
        0 for no intervals.
    seed : int
    """

    level: float
    n_resamples: int
    seed: int

    @classmethod
    def of(cls, level: Any, n_resamples: Any, random_state: Any) -> Self:
        """Validate; None for ``n_resamples`` is the fewest that the level allows."""
        if not isinstance(level, Real) or not 0 < float(level) < 1:
            raise ValueError(f"level must be between 0 and 1, got {level!r}.")
        fewest = int(np.ceil(20 / (1 - float(level)) - 1e-9))  # ten beyond each end, up to rounding
        n_resamples = fewest if n_resamples is None else n_resamples
        if not isinstance(n_resamples, Integral) or 0 != int(n_resamples) < fewest:
            raise ValueError(
                f"n_resamples must be 0, for no intervals, or at least {fewest} for intervals of level {level:g}; "
                f"got {n_resamples!r}."
            )
        return cls(float(level), int(n_resamples), _seed(random_state))


def gap_intervals(
    rows: ReportRows, condensed: Condensed, gaps: Sequence[Gap], resampling: Resampling
) -> list[tuple[float, float]]:
    """Two-sided interval of every gap, as of ``gap_interval`` with the groups as strata.

    NaN where more than a tenth of the resamples have an empty cell.
    """
    codes, weights = rows.grouped.codes, rows.grouped.weights / rows.grouped.weights.mean()
    rng = np.random.default_rng(check_random_state(resampling.seed).randint(2**31))

    def of_all(draws: Iterator[np.ndarray]) -> np.ndarray:
        return np.array([condensed.gaps(gaps, drawn, weights) for drawn in draws])

    (estimates,) = of_all(iter([np.arange(codes.size)]))
    resampled = of_all(_draws(codes, resampling.n_resamples, rng))
    by_group = [of_all(blocks) for blocks in _without_blocks(codes, rng)]
    tail = (1 - resampling.level) / 2
    ends = []
    for number, estimate in enumerate(estimates):
        values = resampled[:, number]
        found = np.sort(values[~np.isnan(values)])
        if values.size - found.size > _MOST_LOST * values.size:
            ends.append((np.nan, np.nan))
            continue
        replicates = Replicates(estimate, found, _acceleration([left[:, number] for left in by_group]))
        ends.append((replicates.lower(1 - tail), replicates.upper(1 - tail)))
    return ends


def _draws(codes: np.ndarray, n_resamples: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Row numbers, drawn anew within the groups."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], codes[order])
    sizes = np.bincount(codes)[codes[order]]
    for _ in range(n_resamples):
        yield order[starts + (rng.random(order.size) * sizes).astype(np.int64)]


def _without_blocks(codes: np.ndarray, rng: np.random.Generator) -> Iterator[Iterator[np.ndarray]]:
    """For every group the numbers of all rows but those of a block of it; a block is one row if there are not many."""
    for code in range(int(codes.max()) + 1):
        members = rng.permutation(np.flatnonzero(codes == code))
        share = max(2, round(_JACKKNIFE_BLOCKS * members.size / codes.size))
        n_blocks = min(members.size, share) if codes.size > _JACKKNIFE_BLOCKS else members.size
        if n_blocks > 1:
            yield (np.delete(np.arange(codes.size), block) for block in np.array_split(members, n_blocks))


def _acceleration(left_out: Sequence[np.ndarray]) -> float:
    """Of the gaps without a block of every group; equation 14.15 of Efron and Tibshirani, groups as several samples."""
    cubes = squares = 0.0
    for group in left_out:
        values = group[~np.isnan(group)]
        if values.size > 1:
            influence = (values.size - 1) * (values.mean() - values)
            cubes += (influence**3).sum() / values.size**3
            squares += (influence**2).sum() / values.size**2
    return float(cubes / (6 * squares**1.5)) if squares > 0 else 0.0


def _seed(random_state: Any) -> int:
    """A seed to keep; that of a whole number is itself."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))
