"""Errors and bounded sums of decisions with smooth decisions in place of those that jump at the threshold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from fairconstrained.objectives import DecisionLoss
from fairconstrained.problem import Problem
from fairconstrained.solvers._directions import smooth_slopes
from fairconstrained.solvers._minimised_within import minimised_within
from fairconstrained.solvers._span_values import components_at, decisions_of

__all__ = ["CellSums", "SmoothedSums"]

#: Kinds of rows at most; more of them are no cells.
_MOST_CELLS = 1000
#: Difference, relative to them, from which two numbers are not rounded copies of each other.
_ALIKE = 1e-8
#: Difference, relative to them, from which a threshold is put between two scores; rounding of a component of zero.
_APART, _ROUNDING = 1e-10, 1e-12
#: Components at most of a minimisation, those nearest to be exceeded; and the loss that an excess of one costs.
_MOST_BOUNDS, _PRICE = 60, 5.0
#: Random steps after which they begin anew with long ones, how often they begin, and by how much the counted loss may
#: exceed its goal without any.
_TRIALS, _MORE, _LOSS = 30, 4, 0.001
#: Change of the error at which a minimisation ends.
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class CellSums:
    """Errors and components of bounds as functions of the weights that are predicted positive in cells of rows.

    A cell has the rows to whose positive decisions everything adds amounts that are proportional to their weights, as
    the rows of a group and label.
    """

    #: Rows that count, those of one cell after the other.
    order: np.ndarray  # of int, of shape (n_kept,)
    #: Places of the rows of every cell in that order.
    cells: list[slice]
    weights: np.ndarray  # of shape (n_kept,)
    #: Weights of further rows, which are positive whatever the scores are.
    above: np.ndarray  # of shape (n_cells,)
    #: Loss of the decisions as a function of the sums of ``columns``.
    decisions: DecisionLoss
    #: Amounts per weight that the rows of a cell add to those sums.
    columns: np.ndarray  # of shape (n_columns, n_cells)
    #: Amounts per weight that they add to the components of the bounds.
    amounts: np.ndarray  # of shape (n_components, n_cells)
    #: Components without a positive decision.
    constants: np.ndarray  # of shape (n_components,)

    @classmethod
    def of(cls, problem: Problem, scores: np.ndarray) -> CellSums | None:
        """The cells of a problem; None where its metrics are not the largest of such components.

        Differences of rates are, and ratios are within their bounds where such components are; clipped rates and
        comparisons of the order of scores are not. Whether they are is seen at two thresholds of the scores.
        """
        if not problem.constraints or any(c.decision_threshold is None for c in problem.constraints):
            return None
        problem = replace(problem, constraints=tuple(c.with_linear_components() for c in problem.constraints))
        # All rows have the same score, so that the slopes are the amounts times a constant.
        constant = np.full(scores.size, problem.threshold)
        rng, gains = np.random.default_rng(0), decisions_of(problem).columns
        keys = rng.normal(size=(2, len(gains))) @ gains
        slopes = [slope.numpy() for slope in smooth_slopes(problem, constant)]
        for slope in slopes:
            keys += np.outer(rng.normal(size=2), slope)
        order, cells = _alike(keys)
        if len(cells) > _MOST_CELLS:
            return None
        first = order[[cell.start for cell in cells]]
        columns = gains[:, first] / keys[0, first]
        amounts = np.array([slope[first] for slope in slopes]) / keys[0, first]
        nothing = np.zeros(len(cells)), np.zeros(len(amounts))
        found = cls(order, cells, keys[0, order], nothing[0], decisions_of(problem), columns, amounts, nothing[1])
        return found._calibrated(problem, scores)

    def _calibrated(self, problem: Problem, scores: np.ndarray) -> CellSums | None:
        """Return the same with the unit of the amounts, or None if the components are not sums of them."""
        threshold, some = problem.threshold, np.quantile(scores, (0.3, 0.7))
        constants = components_at(problem, np.full(scores.size, threshold - 1.0))
        moved, sums = [], []
        for cut in some:
            sides = np.where(scores > cut, 1.0, -1.0) + threshold
            components = components_at(problem, sides)
            if abs(components.max(initial=-np.inf) - problem.measured(sides).violations.max()) > 1e-9:
                return None
            moved.append(components - constants)
            sums.append(self.amounts @ self.by_cell((scores[self.order] > cut) * self.weights))
        products, squares = (np.einsum("ij,ij->j", other, sums) for other in (moved, sums))
        units = products / np.where(squares > 0, squares, 1.0)
        if np.abs(np.array(moved) - units * np.array(sums)).max(initial=0.0) > 1e-9:
            return None
        return replace(self, amounts=units[:, None] * self.amounts, constants=constants)

    @cached_property
    def codes(self) -> np.ndarray:
        """Number of the cell of every row; ndarray of int, of shape (n_kept,)."""
        return np.repeat(np.arange(len(self.cells)), [cell.stop - cell.start for cell in self.cells])

    def by_cell(self, values: np.ndarray) -> np.ndarray:
        """Sums of values of the rows in every cell; ndarray of shape (n_cells,)."""
        return np.array([values[own].sum() for own in self.cells])

    def part(self, places: np.ndarray, above: np.ndarray) -> CellSums:
        """Return the same of the rows at some places, which ascend, with the weights of those that are positive."""
        ends = [0, *np.searchsorted(places, [cell.stop for cell in self.cells]).tolist()]
        cells = [slice(first, last) for first, last in pairwise(ends)]
        return replace(self, order=self.order[places], cells=cells, weights=self.weights[places], above=above)

    def thinned(self, size: int) -> CellSums:
        """Return the same with about ``size`` rows of more, evenly spread over those of every cell; they weigh more."""
        if self.order.size <= size:
            return self
        sizes = np.bincount(self.codes, minlength=len(self.cells))
        counts = np.minimum(sizes, np.maximum(size * sizes // self.order.size, size // (2 * len(self.cells)) + 1))
        every = [
            cell.start + ((np.arange(count) + 0.5) * (n_rows / count)).astype(int)
            for cell, count, n_rows in zip(self.cells, counts.tolist(), sizes.tolist(), strict=True)
        ]
        found = self.part(np.concatenate(every), self.above)
        ratios = self.by_cell(self.weights) / found.by_cell(found.weights)
        return replace(found, weights=found.weights * ratios[found.codes])

    def at(self, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss, in its unit and up to a constant, and the components, of positive weights by cell.

        Also returns the slopes in the positive weights, of shape (1 + n_components, n_cells).
        """
        positive = self.above + positive
        sums = self.columns @ positive
        loss = self.decisions.of_sums(sums) / self.decisions.unit
        falls = self.decisions.slopes(sums) @ self.columns / self.decisions.unit
        values = np.append(loss, self.constants + self.amounts @ positive)
        return values, np.vstack([-falls, self.amounts])

    def at_cuts(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All thresholds between the scores, and below and above them all, with their losses and excesses.

        An excess is the largest component, at least 0.
        """
        order = np.argsort(-scores)
        ordered = scores[order]
        high, low = ordered[[0, -1]] if scores.size else (0.0, 0.0)
        reach = 2e-6 * (1 + max(abs(high), abs(low)))
        padded = np.concatenate([[high + reach], ordered, [low - reach]])
        # rows whose scores hardly differ stay on one side
        places = np.flatnonzero(padded[:-1] - padded[1:] > _APART * (1 + np.abs(padded[1:])))
        codes, weights = self.codes[order], self.weights[order]
        sums = np.empty((len(self.cells), places.size))
        for cell, above in enumerate(self.above):
            sums[cell] = above + np.append(0.0, np.cumsum(np.where(codes == cell, weights, 0.0)))[places]
        excesses = np.zeros(places.size)
        for constant, amounts in zip(self.constants, self.amounts, strict=True):
            np.maximum(excesses, constant + amounts @ sums, out=excesses)
        excesses[excesses < _ROUNDING] = 0.0
        losses = self.decisions.of_sums(self.columns @ sums) / self.decisions.unit
        return (padded[places] + padded[places + 1]) / 2, losses, excesses


class Counted(NamedTuple):
    """Numbers with the best threshold, their loss with the price of the excess, and the least one without an excess."""

    numbers: np.ndarray
    worth: float
    feasible: float


@dataclass(frozen=True, eq=False)
class SmoothedSums:
    r"""Errors and bounds of smooth decisions, as functions of numbers that move the scores.

    With the scores :math:`s_i`, moves :math:`m_i` and numbers b, the row i is predicted positive to the degree

    .. math:: \sigma \left( \frac{s_i - m_i \cdot b}{h} \right), \qquad \sigma(z) = \frac{1}{1 + e^{-z}} .

    For a small width h that counts the decisions, and for a larger one the slopes show the way.

    References
    ----------
    Horowitz, A smoothed maximum score estimator for the binary response model, Econometrica 60(3), 1992: equation 2.
    """

    sums: CellSums
    #: Distances of the scores from the threshold, in the order of the cells.
    scores: np.ndarray  # of shape (n_kept,)
    moves: np.ndarray  # of shape (n_kept, n_numbers)
    #: Move of all scores by the last number.
    shift: float
    #: Takes the numbers; returns a penalty, which is added to the loss of smooth decisions, and its gradient.
    penalty: Callable[[np.ndarray], tuple[float, np.ndarray]]

    def distances(self, numbers: np.ndarray) -> np.ndarray:
        """Distances of the moved scores from the threshold; ndarray of shape (n_kept,)."""
        return self.scores - self.moves @ numbers

    @cached_property
    def _mobilities(self) -> np.ndarray:
        """Norms of the moves; ndarray of shape (n_kept,)."""
        return np.sqrt(np.einsum("ij,ij->i", self.moves, self.moves))

    def near(self, numbers: np.ndarray, reach: float) -> SmoothedSums:
        """Return the same of the rows whose decisions a change of the numbers by ``reach`` may turn.

        The others keep their decisions. Of the components, those stay that are the largest.
        """
        distances, reaches = self.distances(numbers), reach * self._mobilities
        places = np.flatnonzero(np.abs(distances) < reaches)
        above = self.sums.above + self.sums.by_cell(np.where(distances >= reaches, self.sums.weights, 0.0))
        sums = self.sums.part(places, above)
        components = sums.at(sums.by_cell(np.where(distances[places] > 0, sums.weights, 0.0)))[0][1:]
        kept = np.sort(np.argsort(-components, kind="stable")[:_MOST_BOUNDS])
        sums = replace(sums, amounts=sums.amounts[kept], constants=sums.constants[kept])
        return replace(self, sums=sums, scores=self.scores[places], moves=self.moves[places])

    def at(self, numbers: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
        """Values as those of `CellSums.at`, with the penalty, and gradients of shape (1 + n_components, n_numbers)."""
        degrees, cells = expit(self.distances(numbers) / width), self.sums.cells
        rates = self.sums.weights * degrees * (1 - degrees) / -width
        values, slopes = self.sums.at(np.array([degrees[own] @ self.sums.weights[own] for own in cells]))
        gradients = slopes @ np.array([rates[own] @ self.moves[own] for own in cells])
        penalty, gradient = self.penalty(numbers)
        values[0] += penalty
        gradients[0] += gradient
        return values, gradients

    def minimised(self, numbers: np.ndarray, width: float) -> tuple[np.ndarray, float, int]:
        """Minimise the loss where no component is above zero, from some numbers on, by sequential quadratic programs.

        Returns the numbers, the loss with the price of the largest component above zero, and the number of evaluations.
        """
        (loss, *components), end, n_evaluations = minimised_within(
            partial(self.at, width=width), numbers, _TOLERANCE, otherwise=numbers
        )
        return end, float(loss + _PRICE * max([0.0, *components])), n_evaluations

    def polished(
        self, numbers: np.ndarray, goal: float, step: float, reach: float, rng: np.random.Generator
    ) -> tuple[np.ndarray, int]:
        """Go on by random steps, each with the threshold that suits it best, while the counted loss misses the goal.

        The steps become longer after a success and shorter after a failure. Only rows are sorted whose decisions a
        change by ``reach`` may turn, and steps lead no further before they begin anew. The goal is the loss of smooth
        decisions, or minus infinity for all steps; ``step`` is the standard deviation of the first ones.

        Returns the numbers of the least loss without an excess, and the number of evaluations.
        """
        near = self.near(numbers, reach)
        found = near.counted(numbers, reach)
        best, least, within, feasible = found.numbers, found.worth, numbers, found.feasible
        n_trials, size, centre = 0, step, numbers
        while feasible > goal + _LOSS and n_trials < _MORE * _TRIALS:
            if n_trials % _TRIALS == 0:
                size, centre, near = step, best, self.near(best, reach)
            trial = best + size * rng.normal(size=numbers.size)
            found = near.counted(trial, reach - float(np.linalg.norm(trial - centre)))
            if found.feasible < feasible:
                within, feasible = trial, found.feasible
            size *= 1.5 if found.worth < least else 0.9
            if found.worth < least:
                best, least = found.numbers, found.worth
            n_trials += 1
        return within, n_trials + 1

    def counted(self, numbers: np.ndarray, most: float = np.inf) -> Counted:
        """Count the decisions for all thresholds that change the last number by ``most`` at most."""
        cuts, losses, excesses = self.sums.at_cuts(self.distances(numbers))
        shifts = cuts / self.shift
        worth = np.where(np.abs(shifts) <= most, losses + _PRICE * excesses, np.inf)
        best = int(np.argmin(worth))
        moved = np.append(numbers[:-1], numbers[-1] + shifts[best])
        return Counted(moved, float(worth[best]), float(worth[excesses <= 0].min(initial=np.inf)))


def _alike(keys: np.ndarray) -> tuple[np.ndarray, list[slice]]:
    """Rows of which the two keys are not zero, ordered by the quotient of the keys, and the places of equal ones."""
    rows = np.flatnonzero(np.abs(keys[0]) > 1e-14 * np.abs(keys[0]).max(initial=0.0))
    quotients = keys[1, rows] / keys[0, rows]
    order = np.argsort(quotients, kind="stable")
    steps = np.diff(quotients[order])
    ends = np.flatnonzero(steps > _ALIKE * (1 + np.abs(quotients[order[1:]]))) + 1
    return rows[order], [slice(a, b) for a, b in pairwise([0, *ends.tolist(), rows.size]) if b > a]
