"""Rows whose scores move along a few directions: steps and thresholds of the least error under bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple, cast

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from fairconstrained.data import FairData
from fairconstrained.models import LinearModel
from fairconstrained.problem import Problem
from fairconstrained.solvers._directions import smooth_slopes
from fairconstrained.solvers._span_values import Counts, Expectations
from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.solvers.sequential_quadratic import SequentialQuadratic

__all__ = ["PRICES", "End", "SpanRows"]

#: Steps along a direction that are tried at first, in standard deviations of the scores.
_STEPS = 0.02 * 2.0 ** np.arange(8)
#: Error rates that count as much as an excess of one, in turn. With the first, the search stays near thresholds that
#: classify well; with the last, no excess pays, as the error falls by less than a group's share per unit of its rates.
PRICES = (0.25, 0.5, 1.0, 2.0)
#: Singular values of the directions, relative to the first one, below which a direction is left out.
_RANK = 1e-3
#: Multiples of the steps that are tried for the counted bounds.
_FACTORS = np.append(1.0, np.linspace(0.75, 1.25, 11))
#: First moves of the last search, as a share of the steps.
_NARROW = 0.03
#: Prices of a counted excess there, in turn.
_COUNTED_PRICES = (2.0, 10.0)
#: Thresholds of least expected error that are counted first.
_FIRST = 32
#: Steps that are finished, of which the best is taken.
_ENDS = 6
#: Random steps that are tried, and their largest size, in multiples of the steps of the smooth solution.
_SCATTERED, _WIDTH = 150, 2.5


class End(NamedTuple):
    """Steps, the parameters there with the best threshold, what they are worth, and the counted excess.

    The worth is the error less that of predicting no row positive, counted or expected.
    """

    steps: np.ndarray
    params: np.ndarray
    worth: float
    excess: float


@dataclass(frozen=True, eq=False)
class SpanRows:
    """Scores of some rows as functions of the steps along the directions, and what their decisions are worth.

    Attributes
    ----------
    terms : Problem
    params : ndarray of shape (n_params,)
        Coefficients and intercept of the unconstrained model.
    directions : ndarray of shape (n_params, n_directions)
    scores : ndarray of shape (n_samples,)
        Scores of the unconstrained model.
    moves : ndarray of shape (n_samples, n_directions)
        Changes of the scores for a step along every direction.
    mixing : ndarray of shape (n_directions, n_components)
        Combinations of the moves that are the regressions of the bounded components, see `Expectations`.
    expected : Expectations or None
        Expected values to search by; without them the search counts.
    """

    terms: Problem
    params: np.ndarray
    directions: np.ndarray
    scores: np.ndarray
    moves: np.ndarray
    mixing: np.ndarray
    expected: Expectations | None = None

    @classmethod
    def of(cls, problem: Problem, params: np.ndarray, most: int) -> SpanRows:
        """Find the directions at the unconstrained model."""
        model, data = cast(LinearModel, problem.model), problem.data
        at_params, pullback = model.forward(params, data)
        scores = at_params.numpy()
        slopes = [pullback(slope) for slope in smooth_slopes(problem, scores)]
        hessian = model.curvature(data, data.weights.numpy() * expit(scores) * expit(-scores))
        hessian[np.diag_indices_from(hessian)] += 1e-6 * (hessian.trace() / len(hessian) + 1e-12)
        root = np.linalg.cholesky(hessian)
        # Directions that move the scores alike are one: the leading singular vectors of their moves.
        steep = np.linalg.solve(root, np.column_stack([np.empty((params.size, 0)), *slopes]))
        left, sizes, right = np.linalg.svd(steep, full_matrices=False)
        kept = min(most, int((sizes > _RANK * sizes.max(initial=0.0)).sum()))
        directions = np.linalg.solve(root.T, left[:, :kept])
        moves = _moves(model, data, directions)
        deviation = moves.std(axis=0)
        deviation = np.where(deviation > 0, deviation, 1.0) / (scores.std() or 1.0)
        mixing = (deviation * sizes[:kept])[:, None] * right[:kept]
        return cls(problem, params, directions / deviation, scores, moves / deviation, mixing)

    def on(self, data: FairData) -> SpanRows:
        """Return the same directions on some of the rows."""
        model = cast(LinearModel, self.terms.model)
        moves = _moves(model, data, self.directions)
        return replace(self, terms=self.terms.on(data), scores=model.training_scores(self.params, data), moves=moves)

    def expecting(self, line: tuple[float, float]) -> SpanRows:
        """Return the same with expected values; the scores times a factor plus a constant are log-odds of the label."""
        log_odds = line[0] * self.scores + line[1]
        return replace(self, expected=Expectations.of(self.terms, log_odds, self.moves, self.mixing))

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
            found += [start, steps, self._scattered(start, rng)]
            n_evaluations += n_smooth + n_sweeps + _SCATTERED
        return found, n_evaluations

    def _scattered(self, start: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The best of random steps by counts, of the size of given ones, either way.

        Several bounds together are kept on narrow ridges, between which no search goes that follows the values. The
        expected values, which are not exact there, do not show the best of them.
        """
        tried = _WIDTH * np.abs(start) * rng.uniform(-1, 1, (_SCATTERED, self.n_directions))
        return min(tried, key=lambda one: self.counted(one, PRICES[-1]))

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
                values = [self.value(one, price) for one in tried]
                n_sweeps += len(values)
                steps = tried[int(np.argmin(values))]
            steps, n_more = self.refined(steps, price, share=0.3, n_sweeps=15 + 10 * self.n_directions)
            n_sweeps += n_more
        return steps, n_sweeps

    def _smooth_solution(self, rng: np.random.Generator) -> tuple[np.ndarray, int]:
        """Steps of the solution for a smooth objective in the span, none if it leads nowhere; with the evaluations."""
        terms, model = self.terms, LinearModel(1 + self.n_directions)
        data = replace(terms.data, X=np.column_stack([self.scores, self.moves]))
        smooth = replace(terms, objective=terms.objective.loss.path()[0].bind(data), data=data, model=model)
        solver = AugmentedLagrangian() if SequentialQuadratic.obstacle(smooth) else SequentialQuadratic()
        found = solver.solve(smooth, None, rng)
        own, *others = found.model_state[:-1]
        return -np.array(others) / own if own > 0 else np.zeros(self.n_directions), found.n_evaluations

    def refined(self, steps: np.ndarray, price: float, share: float, n_sweeps: int) -> tuple[np.ndarray, int]:
        """Search around the steps for the least value; ``share`` of each is the first move."""
        return _refined(lambda one: self.value(one, price), steps, share, n_sweeps)

    def value(self, steps: np.ndarray, price: float) -> float:
        """The least error, with the price of the excess, over many thresholds: expected, or counted without that."""
        return self.counted(steps, price) if self.expected is None else self.expected.least(self.moved(steps), price)

    def counted(self, steps: np.ndarray, price: float) -> float:
        """The least counted error, with the price of the excess, over many thresholds."""
        return self.counts.least(self.moved(steps), price)

    def finished(self, steps: np.ndarray) -> End:
        """Choose the best threshold of all that keep the bounds, counted; expected values choose where there are any.

        Expected values have a price of their excess, so that a threshold that keeps the bounds by luck is left out.
        """
        scores = self.moved(steps)
        levels = np.unique(scores)
        beyond = 1e-6 * (1 + np.abs(levels[[0, -1]]))
        ends = np.concatenate([levels[:1] - beyond[0], levels, levels[-1:] + beyond[1]])
        cuts = (ends[1:] + ends[:-1]) / 2
        if self.expected is None:
            worth = self.counts.errors(scores, cuts)
        else:
            worth = self.expected.at_cuts(scores, cuts, PRICES[-1])
        best, excess = self.counts.first_within(scores, cuts, np.argsort(worth, kind="stable"))
        params = self.params - self.directions @ steps
        params[-1] -= cuts[best] - self.terms.threshold
        return End(steps, params, float(worth[best]), excess)

    def error(self, end: End) -> float:
        """The counted error of an end."""
        return self.counts.error(cast(LinearModel, self.terms.model).training_scores(end.params, self.terms.data))

    def exact_at(self, steps: np.ndarray, cut: float, components: np.ndarray) -> SpanRows:
        """Return the same with expected values that are exact for the decisions above a cut after some steps."""
        assert self.expected is not None
        return replace(self, expected=self.expected.exact_at(self.moved(steps), cut, components))

    def best_cut(self, steps: np.ndarray) -> float:
        """The best threshold after some steps by expected values."""
        assert self.expected is not None
        cuts, worths = self.expected.spread(self.moved(steps), PRICES[-1])
        return float(cuts[int(np.argmin(worths))])

    def within_counts(self, steps: np.ndarray) -> list[np.ndarray]:
        """Steps near these that are good by expected values and keep, or hardly exceed, the counted bounds.

        Multiples of the steps are tried, and then steps around the best one, with a higher price of the counted excess.
        """
        tried: list[tuple[float, np.ndarray]] = []

        def worth(one: np.ndarray, price: float) -> float:
            expected, counted = self._within_both(one)
            tried.append((float((expected + _COUNTED_PRICES[-1] * counted).min()), one))
            return float((expected + price * counted).min())

        best = steps * _FACTORS[int(np.argmin([worth(each * steps, _COUNTED_PRICES[0]) for each in _FACTORS]))]
        for price in _COUNTED_PRICES:
            best, _ = _refined(partial(worth, price=price), best, _NARROW, 10 + 5 * self.n_directions)
        return [one for _, one in sorted(tried, key=lambda each: each[0])[:_ENDS]]

    def _within_both(self, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The expected error with the price of the excess, and the counted excess, at thresholds that may be the best.

        As no counted excess is below zero, the worth of the thresholds of least expected error is a bound for others.
        """
        assert self.expected is not None
        scores = self.moved(steps)
        cuts, expected = self.expected.spread(scores, PRICES[-1])
        first = np.sort(np.argsort(expected)[:_FIRST])
        most = (expected[first] + _COUNTED_PRICES[-1] * self.counts.excess(scores, cuts[first])).min()
        kept = np.flatnonzero(expected <= most)
        return expected[kept], self.counts.excess(scores, cuts[kept])


def _refined(
    function: Callable[[np.ndarray], float], steps: np.ndarray, share: float, n_sweeps: int
) -> tuple[np.ndarray, int]:
    """Search around the steps by the method of Nelder and Mead; ``share`` of each is the first move."""
    if not steps.size:
        return steps, 0
    moves = np.diag(np.maximum(share * np.abs(steps), share * _STEPS[0]))
    options = {"initial_simplex": np.vstack([steps, steps + moves]), "maxfev": n_sweeps}
    found = minimize(function, steps, method="Nelder-Mead", options=options | {"xatol": 1e-4, "fatol": 1e-7})
    return found.x, found.nfev


def _moves(model: LinearModel, data: FairData, directions: np.ndarray) -> np.ndarray:
    """Changes of the scores for a step along every direction; ndarray of shape (n_samples, n_directions)."""
    moves = [model.training_scores(direction, data) for direction in directions.T]
    return np.column_stack([np.empty((data.n_samples, 0)), *moves])
