"""The AUCs that a metric compares: one sort over disjoint cells of rows, then a few sums for every union of cells."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairconstrained.cells import cell_sums
from fairconstrained.checks.protected import protected_code
from fairconstrained.groups import Groups
from fairconstrained.metrics.auc_sets import AUC_METRICS, AUCDifference, CellUnions, auc_differences
from fairconstrained.metrics.cell_aucs import ScoredRows, centred_aucs_of_groups
from fairconstrained.metrics.rates import AGGREGATES, Aggregate
from fairconstrained.metrics.validation import (
    GroupedRows,
    OnEmpty,
    check_cells,
    check_groups,
    check_option,
    check_scores,
    check_true_labels,
)

__all__ = ["GroupComparison", "centred_aucs", "compare_groups", "difference_aucs"]


@dataclass(frozen=True, eq=False)
class GroupComparison:
    """Comparison of a named metric, with its AUCs.

    The largest gap needs no table of all pairs of groups; what does is computed when it is asked for.
    """

    #: A key of `AUC_METRICS`.
    metric: str
    scores: np.ndarray  # of shape (n_samples,)
    #: The rows by group. With a protected group there are two groups: it, and all others as one.
    rows: GroupedRows
    #: Whether a row has the positive label; all of them where labels do not matter.
    positive: np.ndarray  # of bool, of shape (n_samples,)
    #: Whether there is a protected group.
    is_protected: bool

    @property
    def cells(self) -> np.ndarray:
        """Cell of every row, by the numbers of `metrics.auc_sets`; ndarray of int, of shape (n_samples,)."""
        return self.rows.codes + self.rows.n_groups * ~self.positive

    @cached_property
    def _compared(self) -> tuple[tuple[tuple[int, int | None], ...], tuple[AUCDifference, ...]]:
        return auc_differences(self.metric, self.rows.n_groups, None)

    @property
    def sides(self) -> tuple[tuple[int, int | None], ...]:
        """The groups behind every difference; empty for a single group."""
        return self._compared[0]

    @property
    def differences(self) -> tuple[AUCDifference, ...]:
        """The sets of rows of every difference."""
        return self._compared[1]

    @cached_property
    def aucs(self) -> np.ndarray:
        """``AUC(G1, G1')`` and ``AUC(G2, G2')`` of every difference, NaN if a set is empty; (n_differences, 2)."""
        return difference_aucs(self.scores, self.cells, self.rows.weights, 2 * self.rows.n_groups, self.differences)

    @property
    def n_compared(self) -> int:
        """Number of differences that count: the first only, if there is a protected group."""
        return min(1, len(self.differences)) if self.is_protected else len(self.differences)

    @property
    def gaps(self) -> np.ndarray:
        """Absolute differences that count, of shape (n_compared,)."""
        return np.abs(self.aucs[: self.n_compared, 0] - self.aucs[: self.n_compared, 1])

    @cached_property
    def largest(self) -> float:
        """The largest of the gaps; NaN for a single group, or if any is."""
        if self.rows.n_groups == 1:
            return float("nan")
        scored = ScoredRows.of(self.scores, *self.rows.arrays)
        gaps = AUC_METRICS[self.metric].gaps(scored.among(self.positive), scored.among(~self.positive))
        return float(np.max(gaps[:1] if self.is_protected else gaps))

    def result(
        self,
        agg: Aggregate,
        return_groups: bool,
        columns: Sequence[str],
        against: bool = False,
        on_empty: OnEmpty = "raise",
    ) -> float | tuple[float, pd.DataFrame]:
        """Return the value of the metric.

        Parameters
        ----------
        return_groups : bool
            Whether to return the table as well.
        columns : sequence of str
            Names in the table of ``AUC(G1, G1')`` and, if there are two, of ``AUC(G2, G2')``.
        against : bool, default=False
            Whether the table names the other group of the pair.
        on_empty : {"raise", "nan"}, default="raise"
            Whether to warn of a single group.
        """
        check_option("agg", agg, AGGREGATES)
        needs_no_table = agg == "max" or self.rows.n_groups == 1
        gap = self.rows.gap(self.largest if needs_no_table else float(AGGREGATES[agg](self.gaps)), on_empty)
        if not return_groups:
            return gap
        aucs, other = self._by_group()
        table: dict[str, Any] = {"against": [self.rows.labels[code] for code in other]} if against else {}
        return gap, self.rows.table(**table, **dict(zip(columns, aucs.T, strict=False)))

    def _by_group(self) -> tuple[np.ndarray, np.ndarray]:
        """The two AUCs of every group, of its worst pair if the metric compares pairs; and the other of that pair."""
        n_groups, by_label = self.rows.n_groups, AUC_METRICS[self.metric].by_label
        seen = np.full((n_groups, n_groups, 2), np.nan)
        for (first, second), pair in zip(self.sides, self.aucs, strict=True):
            if second is None:
                seen[first] = pair
                continue
            seen[first, second] = pair
            # Seen from the other group the two sets swap their labels, or who is above whom.
            seen[second, first] = pair[::-1] if by_label else 1 - pair
        gaps = np.abs(seen[..., 0] - seen[..., 1])
        np.fill_diagonal(gaps, -1.0)
        other = gaps.argmax(axis=1)
        return seen[np.arange(n_groups), other], other


def compare_groups(
    metric: str,
    y_true: npt.ArrayLike | None,
    y_score: npt.ArrayLike,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    pos_label: Any = None,
    protected: Hashable = None,
    on_empty: OnEmpty = "raise",
) -> GroupComparison:
    """Validate what a metric was given, and compute its AUCs.

    Raises ValueError for the reasons that the metrics list.
    """
    scores = check_scores(y_score, y_true)
    positive, names = np.ones(scores.size, dtype=bool), ("no label", "any label")
    if AUC_METRICS[metric].by_label:
        positive, labels = check_true_labels(y_true, pos_label)
        names = f"y_true={labels[0]}", f"y_true={labels[1]}"
    rows = check_groups(sensitive_features, sample_weight, scores.size)
    if protected is not None:
        rows = _against_others(rows, protected)
    result = GroupComparison(metric, scores, rows, positive, protected is not None)
    check_cells(np.array([result.largest]), positive, rows, names, on_empty)
    return result


def difference_aucs(
    scores: np.ndarray, cells: np.ndarray, weights: np.ndarray, n_cells: int, differences: Sequence[AUCDifference]
) -> np.ndarray:
    """The two AUCs of every difference.

    Parameters
    ----------
    scores, cells, weights, n_cells
        Arguments of `centred_aucs`.

    Returns
    -------
    aucs : ndarray of shape (n_differences, 2)
        NaN if a set has no weight. O(n log n + n n_cells^2) time, whatever the sets.
    """
    return CellUnions.of(differences, n_cells).aucs(*centred_aucs(scores, cells, weights, n_cells))


def centred_aucs(
    scores: np.ndarray, cells: np.ndarray, weights: np.ndarray, n_cells: int
) -> tuple[np.ndarray, np.ndarray]:
    """AUCs of all cells with each other, minus one half, and the weight of every cell.

    Centred, so that the AUC of a constant score, or of a set with itself, is 1/2 without rounding. Cells without
    weight add nothing to a union, which is what their zeros say.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
    cells : ndarray of int, of shape (n_samples,)
        Cell of every row, in ``0 .. n_cells``; the rows of cell ``n_cells`` are left out.
    weights : ndarray of shape (n_samples,)

    Returns
    -------
    centred : ndarray of shape (n_cells, n_cells)
    mass : ndarray of shape (n_cells,)
    """
    mass = cell_sums(cells, n_cells, weights)
    centred = np.zeros((n_cells, n_cells))
    present = np.flatnonzero(mass)
    if present.size:
        place = np.full(n_cells + 1, -1)
        place[present] = np.arange(present.size)
        kept = place[cells] >= 0
        rows = scores[kept], place[cells[kept]], weights[kept], present.size
        centred[np.ix_(present, present)] = centred_aucs_of_groups(*rows)
    return centred, mass


def _against_others(rows: GroupedRows, protected: Hashable) -> GroupedRows:
    """The protected group as group 0, and all others as group 1, if there are any."""
    code = protected_code(rows.labels, protected)
    others = [label for label in rows.labels if label != protected]
    if len(others) > 1:
        words = f"({' & '.join(map(str, protected))})" if isinstance(protected, tuple) else f"{protected}"
        others = [f"not {words}"]
    return replace(rows, groups=Groups((rows.codes != code).astype(rows.codes.dtype), (protected, *others)))
