"""Errors and bounded rates at all thresholds of some scores: counted, or expected from the features of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from scipy.special import expit

from fairconstrained.data import FairData
from fairconstrained.objectives import DecisionLoss, sums_from
from fairconstrained.problem import Problem
from fairconstrained.solvers._directions import smooth_point

__all__ = ["Cell", "Counts", "Expectations", "are_sums", "calibration", "components_at", "decisions_of"]

#: Thresholds at which a search counts; the last one of all is chosen among all rows.
_CUTS = 400
#: Thresholds at which a search takes expected values, evenly spread over so many standard deviations to both sides.
_EXPECTED_CUTS, _REACH = 2048, 6.0
#: Newton steps of a calibration.
_NEWTON = 5
#: Rounding of the metric that is no excess.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Counts:
    """Gains and bounded metrics of the decisions of some rows, counted.

    Attributes
    ----------
    terms : Problem
    """

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
        terms, moved, at = self._by_cell(scores, cuts)
        return float((_errors(terms, moved, at) + price * _excess(terms, moved, at)).min())

    def excess(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
        """The largest excess over kappa at cuts, at least 0; ndarray of shape (n_cuts,)."""
        return _excess(self.terms, scores, cuts)

    def errors(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
        """The error at cuts that ascend; ndarray of shape (n_cuts,)."""
        return _errors(self.terms, scores, cuts)

    def first_within(self, scores: np.ndarray, cuts: np.ndarray, order: np.ndarray) -> tuple[int, float]:
        """The first of the cuts, in a given order, that exceeds no bound, or the least; its number and excess."""
        first, excess = 0, np.full(cuts.size, np.inf)
        while first < order.size:  # more of them only where none of the first is within the bounds
            some = order[first : first + max(_CUTS, 3 * first)]
            excess[some] = _excess(self.terms, scores, cuts[some])
            if excess[some].min() <= 0:
                break
            first += some.size
        best = int(order[np.argmin(excess[order])])
        return best, float(excess[best])

    def _by_cell(self, scores: np.ndarray, cuts: np.ndarray) -> tuple[Problem, np.ndarray, np.ndarray]:
        """Terms, scores and cuts that count the same, of fewer rows where there are many."""
        if not 0 < len(self._cells) * cuts.size < scores.size:
            return self.terms, scores, cuts
        # Between two cuts, the rows of a cell are as good as one row with the weight of all.
        mass = np.array([cell.between(scores, cuts) for cell in self._cells])
        rows = np.repeat([cell.rows.start for cell in self._cells], cuts.size + 1)
        terms = self.terms.on(self._bare.at(rows, torch.from_numpy(mass.ravel())))
        return terms, np.tile(np.arange(cuts.size + 1.0), len(self._cells)), np.arange(cuts.size) + 0.5

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

    @cached_property
    def _bare(self) -> FairData:
        """The data without features, for terms that see scores only."""
        return replace(self.terms.data, X=np.empty((self.terms.data.n_samples, 0)))


@dataclass(frozen=True, eq=False)
class Cell:
    """Rows of one group and label, which only their scores and weights tell apart.

    Attributes
    ----------
    rows : slice
    weights : ndarray of shape (n_rows,)
    weight : float or None
        The weight of every row, if all weigh alike.
    """

    rows: slice
    weights: np.ndarray
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


@dataclass(frozen=True, eq=False)
class Expectations:
    r"""Gains and bounded values of decisions that the features of the rows lead to expect, without labels and groups.

    With the probability :math:`p_i` of a positive label, a positive decision gains :math:`|g_i| (2 p_i - 1)` in place
    of the gain :math:`g_i` of the objective. A bounded component is a sum :math:`\sum_i w_i a_{ij} d_i` over the
    decisions :math:`d_i`, where :math:`a_{ij}` depends on group and label. Its expected value takes the regression of
    :math:`a_j` on the features, weighted by the curvature of the logistic loss, which is a combination of the moves
    :math:`m_i` along the directions:

    .. math:: \sum_i w_i \, (m_i \cdot v_j) \, d_i + \delta_j .

    As all of it varies smoothly with the features, no choice of steps and threshold profits from the luck of single
    rows. The offsets :math:`\delta_j` make the component exact for one set of decisions.

    Attributes
    ----------
    decisions : DecisionLoss
        Loss of the decisions as a function of the sums of ``columns``.
    columns : ndarray of shape (n_columns, n_samples)
        Expected amounts that every row adds to those sums.
    moves : ndarray of shape (n_directions, n_samples)
        Moves times the weights of the rows.
    mixing : ndarray of shape (n_directions, n_components)
        The combinations v of the moves.
    offsets : ndarray of shape (n_components,)
        Offsets less the bounds.
    """

    decisions: DecisionLoss
    columns: np.ndarray
    moves: np.ndarray
    mixing: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, terms: Problem, log_odds: np.ndarray, moves: np.ndarray, mixing: np.ndarray) -> Expectations:
        """The values for rows with the given log-odds of a positive label and moves; offsets are zero."""
        decisions = decisions_of(terms)
        weighted = moves.T * terms.data.weights.numpy()
        return cls(decisions, decisions.expected(expit(log_odds)), weighted, mixing, np.zeros(mixing.shape[1]))

    def exact_at(self, scores: np.ndarray, cut: float, components: np.ndarray) -> Expectations:
        """Return the same with offsets that give the decisions above a cut these values of the components.

        The mean of these offsets and those before, where there are any.
        """
        offsets = components - self.moves[:, scores > cut].sum(axis=1) @ self.mixing
        return replace(self, offsets=(self.offsets + offsets) / 2 if self.offsets.any() else offsets)

    def spread(self, scores: np.ndarray, price: float) -> tuple[np.ndarray, np.ndarray]:
        """Evenly spread cuts, and the error with the price of the excess there; two ndarrays of shape (n_cuts,)."""
        centre, reach = scores.mean(), _REACH * scores.std() or 1.0
        places = (scores - centre) * (_EXPECTED_CUTS / (2 * reach)) + _EXPECTED_CUTS / 2
        bins = places.clip(0, _EXPECTED_CUTS - 1).astype(int)
        cuts = centre + np.linspace(-reach, reach, _EXPECTED_CUTS + 1)
        cuts[0], cuts[-1] = min(cuts[0], scores.min() - 1e-6 * reach), max(cuts[-1], scores.max())
        by_bin = np.array([np.bincount(bins, row, _EXPECTED_CUTS) for row in (*self.columns, *self.moves)])
        return cuts, self._worth(sums_from(by_bin), price)

    def least(self, scores: np.ndarray, price: float) -> float:
        """The least error, with the price of the excess, over evenly spread cuts."""
        return float(self.spread(scores, price)[1].min())

    def at_cuts(self, scores: np.ndarray, cuts: np.ndarray, price: float) -> np.ndarray:
        """The error with the price of the excess at any cuts; ndarray of shape (n_cuts,)."""
        order = np.argsort(scores)
        first = np.searchsorted(scores[order], cuts, side="right")
        return self._worth(sums_from(np.vstack([self.columns, self.moves])[:, order])[:, first], price)

    def _worth(self, above: np.ndarray, price: float) -> np.ndarray:
        n_columns = self.columns.shape[0]
        components = self.mixing.T @ above[n_columns:] + self.offsets[:, None]
        error = self.decisions.of_sums(above[:n_columns]) / self.decisions.unit
        return error + price * components.max(axis=0, initial=0.0)


def decisions_of(terms: Problem) -> DecisionLoss:
    """The loss of the decisions, where errors are counted."""
    decisions = terms.objective.decisions
    assert decisions is not None  # see `SpanSearch.obstacle`
    return decisions


def _errors(terms: Problem, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Loss of the decisions in its unit, up to a constant, at cuts that ascend; shape (n_cuts,)."""
    decisions, places = decisions_of(terms), np.searchsorted(cuts, scores)
    above = np.array([np.bincount(places, column, minlength=cuts.size + 1) for column in decisions.columns])
    return decisions.of_sums(sums_from(above)[:, 1:-1]) / decisions.unit


def _excess(terms: Problem, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """The largest excess over kappa at every threshold, at least 0; ndarray of shape (n_cuts,)."""
    excess = np.zeros(cuts.size)
    for constraint in terms.constraints:
        values = constraint.values_at_cuts(scores, cuts)
        assert values is not None
        excess = np.maximum(excess, np.nan_to_num(constraint.excess(values), nan=np.inf) - _ROUNDING)
    return excess


def calibration(scores: np.ndarray, decisions: DecisionLoss) -> tuple[float, float]:
    """Factor and constant with which scores are log-odds of the label: 1 and 0 but for a penalty of coefficients.

    Rows weigh as they do in the loss of the decisions, of which `DecisionLoss.expected` takes the probabilities.
    """
    (sizes, is_positive), columns = decisions.labels, np.column_stack([scores, np.ones(scores.size)])
    line = np.array([1.0, 0.0])
    for _ in range(_NEWTON):
        chances = expit(columns @ line)
        slope = columns.T @ (sizes * (is_positive - chances))
        curvature = (columns.T * (sizes * chances * (1 - chances))) @ columns
        line = line + np.linalg.lstsq(curvature, slope, rcond=None)[0]
    return float(line[0]), float(line[1])


def components_at(problem: Problem, scores: np.ndarray) -> np.ndarray:
    """The exact values of all components of the constraints, less their bounds; ndarray of shape (n_components,)."""
    return smooth_point(problem, scores).constraints


def are_sums(problem: Problem, scores: np.ndarray) -> bool:
    """Whether the metrics are the largest of components to which every positive decision adds an amount of its own.

    Such components, as differences of rates are, have the same sum for any decisions and the opposite ones, which is
    seen at five thresholds; clipped rates and comparisons with a centre have not.
    """
    if any(c.decision_threshold is None for c in problem.constraints):
        return False
    both = np.add(*(components_at(problem, np.full(scores.size, problem.threshold + side)) for side in (1.0, -1.0)))
    for cut in np.quantile(scores, np.linspace(0.1, 0.9, 5)):
        sides = np.where(scores > cut, 1.0, -1.0)
        one, other = (components_at(problem, problem.threshold + side) for side in (sides, -sides))
        excess = max((c.excess(c.metric(problem.threshold + sides)) for c in problem.constraints), default=-np.inf)
        if np.abs(one + other - both).max(initial=0.0) > 1e-9 or abs(one.max(initial=-np.inf) - excess) > 1e-9:
            return False
    return bool(problem.constraints)
