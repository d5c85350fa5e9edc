"""Errors and bounded rates at all thresholds of some scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch

from fairconstrained.objectives import DecisionLoss, sums_from
from fairconstrained.problem import Problem
from fairconstrained.solvers._directions import smooth_point

__all__ = ["Cell", "Counts", "components_at", "decisions_of"]

#: Thresholds at which a search counts; the last one of all is chosen among all rows.
_CUTS = 400
#: Rounding of the metric that is no excess.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Counts:
    """Gains and bounded metrics of the decisions of some rows, counted."""

    terms: Problem

    def error(self, scores: np.ndarray) -> float:
        """The error of the decisions at the threshold of the terms."""
        return decisions_of(self.terms).of(scores > self.terms.threshold)

    def least(self, scores: np.ndarray, price: float) -> float:
        """The least error, with the price of the excess, over thresholds at evenly spread ranks.

        Errors are up to a constant, and in units of `DecisionLoss.unit`, everywhere in this module.
        """
        ordered = np.sort(scores)
        cuts = ordered[np.unique(np.linspace(0, ordered.size - 1, _CUTS).astype(int))]
        counts, moved, at = self._by_cell(scores, cuts)
        return float((counts.errors(moved, at) + price * counts.excess(moved, at)).min())

    def errors(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
        """The error at cuts that ascend; ndarray of shape (n_cuts,)."""
        decisions, places = decisions_of(self.terms), np.searchsorted(cuts, scores)
        above = np.array([np.bincount(places, column, minlength=cuts.size + 1) for column in decisions.columns])
        return decisions.of_sums(sums_from(above)[:, 1:-1]) / decisions.unit

    def excess(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
        """The largest excess over kappa at cuts, at least 0; ndarray of shape (n_cuts,)."""
        excess = np.zeros(cuts.size)
        for constraint in self.terms.constraints:
            values = constraint.values_at_cuts(scores, cuts)
            assert values is not None  # see `SpanSearch.obstacle`
            excess = np.maximum(excess, np.nan_to_num(constraint.excess(values), nan=np.inf) - _ROUNDING)
        return excess

    def first_within(self, scores: np.ndarray, cuts: np.ndarray, order: np.ndarray) -> tuple[int, float]:
        """The first of the cuts, in a given order, that exceeds no bound, or the least; its number and excess."""
        first, excess = 0, np.full(cuts.size, np.inf)
        while first < order.size:  # more of them only where none of the first is within the bounds
            some = order[first : first + max(_CUTS, 3 * first)]
            excess[some] = self.excess(scores, cuts[some])
            if excess[some].min() <= 0:
                break
            first += some.size
        best = int(order[np.argmin(excess[order])])
        return best, float(excess[best])

    def _by_cell(self, scores: np.ndarray, cuts: np.ndarray) -> tuple[Counts, np.ndarray, np.ndarray]:
        """Counts, scores and cuts that give the same numbers, with fewer rows where there are many."""
        if not 0 < len(self._cells) * cuts.size < scores.size:
            return self, scores, cuts
        # Between two cuts, the rows of a cell are as good as one row with the weight of all.
        mass = np.array([cell.between(scores, cuts) for cell in self._cells])
        rows = np.repeat([cell.rows.start for cell in self._cells], cuts.size + 1)
        counts = Counts(self.terms.on(self.terms.data.without_features.at(rows, torch.from_numpy(mass.ravel()))))
        return counts, np.tile(np.arange(cuts.size + 1.0), len(self._cells)), np.arange(cuts.size) + 0.5

    @cached_property
    def _cells(self) -> list[Cell]:
        """The rows of every group and label; none where the bounds depend on more than the decisions in each cell."""
        count_by_cell = all(c.decision_threshold is not None and c.sees_cells_only for c in self.terms.constraints)
        if not self.terms.works_on_other_rows or not count_by_cell:
            return []
        data = self.terms.data
        codes, y, weights = data.codes, data.y.numpy(), data.weights.numpy()
        ends = np.flatnonzero((np.diff(codes) != 0) | (np.diff(y) != 0)) + 1
        return [Cell.of(slice(a, b), weights) for a, b in pairwise([0, *ends.tolist(), data.n_samples])]


@dataclass(frozen=True, eq=False)
class Cell:
    """Rows of one group and label, which only their scores and weights tell apart."""

    rows: slice
    weights: np.ndarray  # of shape (n_rows,)
    #: The weight of every row, if all weigh alike.
    weight: float | None

    @classmethod
    def of(cls, rows: slice, weights: np.ndarray) -> Cell:
        """The cell of some of the rows whose weights are given."""
        own = weights[rows]
        return cls(rows, own, float(own[0]) if (own == own[0]).all() else None)

    def between(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
        """Weight of the rows up to the first of the cuts, which ascend, between two of them, and above the last."""
        own = scores[self.rows]
        if self.weight is not None:
            n_below = np.searchsorted(np.sort(own), cuts, side="right")
            return self.weight * np.diff(n_below, prepend=0, append=own.size)
        order = np.argsort(own)
        up_to = np.append(0.0, np.cumsum(self.weights[order]))
        below = up_to[np.searchsorted(own[order], cuts, side="right")]
        return np.diff(below, prepend=0.0, append=up_to[-1])


def decisions_of(terms: Problem) -> DecisionLoss:
    """The loss of the decisions, where errors are counted."""
    decisions = terms.objective.decisions
    assert decisions is not None  # see `SpanSearch.obstacle`
    return decisions


def components_at(problem: Problem, scores: np.ndarray) -> np.ndarray:
    """The exact values of all components of the constraints, less their bounds; ndarray of shape (n_components,)."""
    return smooth_point(problem, scores).constraints
