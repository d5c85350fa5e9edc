"""Rows whose scores move along a few directions: steps and thresholds of the least error under bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from fairconstrained.data import FairData
from fairconstrained.models import LinearModel
from fairconstrained.problem import Problem
from fairconstrained.solvers._directions import smooth_slopes
from fairconstrained.solvers._smoothed_sums import CellSums, SmoothedSums
from fairconstrained.solvers._span_values import Counts
from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.solvers.sequential_quadratic import SequentialQuadratic

__all__ = ["LEAST_MULTIPLE", "PRICES", "End", "SpanRows"]

#: Steps along a direction that are tried at first, in standard deviations of the scores.
_STEPS = 0.02 * 2.0 ** np.arange(8)
#: Steps of a sweep along a direction, in standard deviations of the scores, and the most directions that are swept.
_SWEPT, _MOST_SWEPT = np.linspace(-1.5, 1.5, 21), 2
#: Error rates that count as much as an excess of one, in turn. With the first, the search stays near thresholds that
#: classify well; with the last, no excess pays, as the error falls by less than a group's share per unit of its rates.
PRICES = (0.25, 0.5, 1.0, 2.0)
#: Singular values of the directions, relative to the first one, below which a direction is left out.
_RANK = 1e-3
#: The smallest multiple of the scores that is tried at last.
LEAST_MULTIPLE = 0.25


class End(NamedTuple):
    """Parameters, what they are worth, and by how much they exceed the bounds.

    The worth is the error less that of predicting no row positive.
    """

    params: np.ndarray
    worth: float
    excess: float


@dataclass(frozen=True, eq=False)
class SpanRows:
    """Scores of some rows as functions of the steps along the directions, and what their decisions are worth."""

    terms: Problem
    #: Coefficients and intercept of the unconstrained model.
    params: np.ndarray  # of shape (n_params,)
    directions: np.ndarray  # of shape (n_params, n_directions)
    #: Scores of the unconstrained model.
    scores: np.ndarray  # of shape (n_samples,)
    #: Changes of the scores for a step along every direction.
    moves: np.ndarray  # of shape (n_samples, n_directions)
    #: Standard deviation of the scores and of every move, where rows weigh as in the curvature of the loss.
    deviation: float
    #: The first directions, which are those of the slopes of the bounds.
    n_steep: int

    @classmethod
    def of(cls, problem: Problem, params: np.ndarray, most: int, every: int = 0) -> SpanRows:
        """Find the directions at the unconstrained model; all there are of a model with up to ``every`` parameters."""
        model, data = cast(LinearModel, problem.model), problem.data
        at_params, pullback = model.forward(params, data)
        scores = at_params.numpy()
        slopes = [pullback(slope) for slope in smooth_slopes(problem, scores)]
        by_row = data.weights.numpy() * expit(scores) * expit(-scores)
        hessian = model.curvature(data, by_row) / (by_row.sum() or 1.0)
        hessian[np.diag_indices_from(hessian)] += 1e-6 * (hessian.trace() / len(hessian) + 1e-12)
        root = np.linalg.cholesky(hessian)
        # A shift and a multiple of the scores are chosen by themselves.
        own, sizes = np.linalg.qr(root.T @ np.column_stack([_shift(params.size), params]))
        steep = np.linalg.solve(root, np.column_stack([np.empty((params.size, 0)), *slopes]))
        # Directions that move the scores alike are one: the leading singular vectors of their moves.
        left, lengths, _ = np.linalg.svd(steep - own @ (own.T @ steep), full_matrices=False)
        kept = left[:, : min(most, int((lengths > _RANK * lengths.max(initial=0.0)).sum()))]
        n_steep = kept.shape[1]
        if params.size <= every:
            other, lengths, _ = np.linalg.svd(np.eye(params.size) - own @ own.T - kept @ kept.T)
            kept = np.hstack([kept, other[:, lengths > 0.5]])
        deviation = abs(sizes[1, 1]) or 1.0
        directions = np.linalg.solve(root.T, kept) * deviation
        return cls(problem, params, directions, scores, _moves(model, data, directions), deviation, n_steep)

    def on(self, data: FairData) -> SpanRows:
        """Return the same directions on some of the rows."""
        model = cast(LinearModel, self.terms.model)
        moves = _moves(model, data, self.directions)
        return replace(self, terms=self.terms.on(data), scores=model.training_scores(self.params, data), moves=moves)

    @cached_property
    def counts(self) -> Counts:
        """Gains of decisions, counted."""
        return Counts(self.terms)

    @property
    def n_directions(self) -> int:
        return self.moves.shape[1]

    def moved(self, steps: np.ndarray) -> np.ndarray:
        """Scores after some steps; ndarray of shape (n_samples,)."""
        return self.scores - self.moves @ steps

    def searched(self, n_scans: int, rng: np.random.Generator) -> tuple[list[np.ndarray], int]:
        """Steps that may be good ones, and the number of evaluations that they took."""
        steps, n_evaluations = self._scanned(n_scans)
        found = [steps]
        if self.n_directions > 1:  # along one direction after the other the largest of several gaps may be stuck
            start, n_smooth = self._smooth_solution(rng)
            steps, n_sweeps = self.refined(start, PRICES[-1], share=0.3, n_sweeps=15 + 10 * self.n_directions)
            found += [start, steps]
            n_evaluations += n_smooth + n_sweeps
        return found, n_evaluations

    def searched_near(self, steps: np.ndarray) -> tuple[list[np.ndarray], int]:
        """Steps near those of another bound, and the number of sweeps that they took."""
        found, n_sweeps = self.refined(steps, PRICES[-1], share=0.5, n_sweeps=15 + 10 * self.n_directions)
        return [steps, found], n_sweeps

    def _scanned(self, n_scans: int) -> tuple[np.ndarray, int]:
        """Steps from scans along one direction after the other and refinement, with one price after the other."""
        steps, n_sweeps = np.zeros(self.n_directions), 0
        for price in PRICES:
            for unit in np.tile(np.eye(self.n_directions), (n_scans, 1)):
                tried = steps + np.concatenate([[0.0], _STEPS, -_STEPS])[:, None] * unit
                values = [self.counted(one, price) for one in tried]
                n_sweeps += len(values)
                steps = tried[int(np.argmin(values))]
            steps, n_more = self.refined(steps, price, share=0.3, n_sweeps=15 + 10 * self.n_directions)
            n_sweeps += n_more
        return steps, n_sweeps

    def _smooth_solution(self, rng: np.random.Generator) -> tuple[np.ndarray, int]:
        """Steps of the solution for a smooth objective in the span, none if it leads nowhere; with the evaluations."""
        terms, model = self.terms, LinearModel(1 + self.n_directions)
        data = replace(terms.data, X=np.column_stack([self.scores, self.moves]))
        smooth = replace(terms, data=data, model=model).with_easiest_objective()
        solver = AugmentedLagrangian() if SequentialQuadratic.obstacle(smooth) else SequentialQuadratic()
        found = solver.solve(smooth, None, rng)
        own, *others = found.model_state[:-1]
        return -np.array(others) / own if own > 0 else np.zeros(self.n_directions), found.n_evaluations

    def refined(self, steps: np.ndarray, price: float, share: float, n_sweeps: int) -> tuple[np.ndarray, int]:
        """Search around the steps by the method of Nelder and Mead; ``share`` of each is the first move."""
        if not steps.size:
            return steps, 0
        moves = np.diag(np.maximum(share * np.abs(steps), share * _STEPS[0]))
        options = {
            "initial_simplex": np.vstack([steps, steps + moves]),
            "maxfev": n_sweeps,
            "xatol": 1e-4,
            "fatol": 1e-7,
        }
        found = minimize(self.counted, steps, args=(price,), method="Nelder-Mead", options=options)
        return found.x, found.nfev

    def counted(self, steps: np.ndarray, price: float) -> float:
        """The least counted error, with the price of the excess, over many thresholds."""
        return self.counts.least(self.moved(steps), price)

    def finished(self, steps: np.ndarray) -> End:
        """Choose the threshold of the fewest errors of all that keep the bounds."""
        scores = self.moved(steps)
        levels = np.unique(scores)
        beyond = 1e-6 * (1 + np.abs(levels[[0, -1]]))
        ends = np.concatenate([levels[:1] - beyond[0], levels, levels[-1:] + beyond[1]])
        cuts = (ends[1:] + ends[:-1]) / 2
        worth = self.counts.errors(scores, cuts)
        best, excess = self.counts.first_within(scores, cuts, np.argsort(worth, kind="stable"))
        return End(self.params_at(steps, cuts[best] - self.terms.threshold), float(worth[best]), excess)

    def swept(self, smoothed: SmoothedSums) -> tuple[np.ndarray, int]:
        """Numbers of a sweep by counts over the steps along the steepest directions in turn; with the evaluations."""
        numbers, n_swept = np.zeros(self.n_directions + 1), min(self.n_steep, _MOST_SWEPT)
        for unit in np.eye(numbers.size)[:n_swept]:
            tried = [smoothed.counted(numbers + step * unit) for step in _SWEPT]
            numbers = min(tried, key=lambda found: found.worth).numbers
        return numbers, n_swept * _SWEPT.size

    def finished_by(self, smoothed: SmoothedSums, numbers: np.ndarray) -> End:
        """Choose the best threshold, as `finished` does, from the sums of cells."""
        cuts, losses, excesses = smoothed.sums.at_cuts(smoothed.distances(numbers))
        best = np.lexsort((losses, excesses))[0]
        params = self.params_at(numbers[:-1], self.deviation * numbers[-1] + cuts[best])
        return End(params, float(losses[best]), float(excesses[best]))

    def params_at(self, steps: np.ndarray, shift: float) -> np.ndarray:
        """Parameters after some steps and a shift of the scores downwards; ndarray of shape (n_params,)."""
        return self.params - self.directions @ steps - shift * _shift(self.params.size)

    def numbers_of(self, params: np.ndarray) -> np.ndarray | None:
        """Steps, and a shift in deviations, that lead to a multiple of some parameters; None if none does.

        The threshold is where the scores are zero, here and there.
        """
        shift = _shift(params.size)
        origin = self.terms.threshold * shift
        columns = np.column_stack([self.params - origin, -self.directions, -self.deviation * shift])
        own, *others = np.linalg.lstsq(columns, params - origin, rcond=None)[0]
        return np.array(others) / own if own > 0 else None

    def smoothed(self, sums: CellSums) -> SmoothedSums:
        """Smoothed errors and bounds as functions of the steps and a shift in deviations.

        The penalty is that of the smallest multiple of the scores, as decisions do not depend on it.
        """
        model, shift = cast(LinearModel, self.terms.model), self.deviation * _shift(self.params.size)
        columns = LEAST_MULTIPLE * np.column_stack([self.directions, shift])

        def penalty(numbers: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = model.penalty(LEAST_MULTIPLE * self.params - columns @ numbers)
            return value, -gradient @ columns

        scores = self.scores[sums.order] - self.terms.threshold
        moves = np.column_stack([self.moves[sums.order], np.full(sums.order.size, self.deviation)])
        return SmoothedSums(sums, scores, moves, self.deviation, penalty)


def _shift(n_params: int) -> np.ndarray:
    """Parameters that add one to all scores; ndarray of shape (n_params,)."""
    return np.eye(n_params)[-1]


def _moves(model: LinearModel, data: FairData, directions: np.ndarray) -> np.ndarray:
    """Changes of the scores for a step along every direction; ndarray of shape (n_samples, n_directions)."""
    moves = [model.training_scores(direction, data) for direction in directions.T]
    return np.column_stack([np.empty((data.n_samples, 0)), *moves])
