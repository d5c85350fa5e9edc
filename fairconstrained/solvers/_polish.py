"""Random search around a solution for a better one within the exact bounds, where rows and coefficients are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, cast

import numpy as np

from fairconstrained.models import LinearModel
from fairconstrained.problem import Problem
from fairconstrained.solvers._newton_coordinates import NewtonCoordinates, has_convex_hessian, hessian_at

__all__ = ["NewtonMoves", "can_be_polished", "polished"]

#: Rows up to which one row more or less above a threshold matters, and coefficients up to which a random step is
#: likely enough to be a good one.
_MOST_ROWS, _MOST_PARAMS = 2_000, 16
#: Points that are tried together: many where metrics are measured at once, and few elsewhere.
_MANY, _FEW = 64, 4
#: Times that points are tried, at most.
_ROUNDS = 80
#: Length of the first step and of the last one, in multiples of the distance from the centre.
_FIRST, _LAST = 0.5, 0.02
#: Factors of the length after a better point, and such that it falls from the first to the last one without any.
_LONGER, _SHORTER = 1.5, (_LAST / _FIRST) ** (1 / _ROUNDS)
#: Share of the distance from the centre by which a point has to be nearer, and the largest one that is looked for.
_NEARER, _NEAREST = 1e-3, 0.3


def polished(problem: Problem, params: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
    r"""Find better parameters within the exact bounds, around those of a solution.

    Counts of rows are constant nearly everywhere, so a solver goes by smooth surrogates, and the last fraction of the
    objective is left to chance. In the coordinates u in which the objective has a Hessian of 1 at a centre c, it is
    about :math:`f(c) + |u - c|^2 / 2`. So points are drawn on a sphere around the centre, a little inside of the one
    through the solution and near to it. From those within the bounds, the way to the centre is followed, on which a
    convex objective falls. Steps become longer with every better point and shorter without.

    Parameters
    ----------
    problem : Problem
    params : ndarray of shape (n_params,)
        A solution within the bounds.
    others : sequence of ndarray of shape (n_params,)
        Parameters outside of the bounds, such as the unconstrained optimum. The centre is the one of least objective.

    Returns
    -------
    params : ndarray of shape (n_params,)
        Unchanged where nothing better is found, or the problem is none that `can_be_polished`.

    References
    ----------
    Arnold, Hansen, A (1+1)-CMA-ES for constrained optimisation, GECCO 2012, for random steps that stay within bounds.
    """
    if not others or not can_be_polished(problem):
        return params
    *objectives, own = (problem.objective_at(one, problem.scores(one)) for one in (*others, params))
    if min(objectives) >= own:
        return params
    search, step = _Search(problem, params, others[int(np.argmin(objectives))]), _FIRST
    rng = np.random.default_rng(0)  # the same steps in every fit, so that a fit does not depend on ``random_state``
    for _ in range(_ROUNDS):
        step = min(step * (_LONGER if search.improves(step, rng) else _SHORTER), _FIRST)
    return search.params


def can_be_polished(problem: Problem) -> bool:
    """Whether `polished` suits a problem: few rows, of which some are counted, few coefficients, a convex objective."""
    counts = any(c.counts_rows for c in problem.constraints)
    is_small = problem.data.n_samples <= _MOST_ROWS
    return counts and is_small and has_convex_hessian(problem) and problem.n_params <= _MOST_PARAMS


@dataclass(frozen=True, eq=False)
class NewtonMoves:
    """Steps from a centre in coordinates in which the objective has a Hessian of 1 there."""

    problem: Problem
    coordinates: NewtonCoordinates
    #: Scores at the centre.
    scores: np.ndarray  # of shape (n_samples,)
    #: Parameters of every coordinate, in columns.
    table: np.ndarray  # of shape (n_params, n_params)
    #: Scores of every coordinate, in rows.
    moves: np.ndarray  # of shape (n_params, n_samples)

    @classmethod
    def at(cls, problem: Problem, centre: np.ndarray) -> Self:
        """Steps from the parameters ``centre``, of shape (n_params,), of a problem that `has_convex_hessian`."""
        scores = problem.scores(centre)
        coordinates = NewtonCoordinates.of(problem.penalised_coordinates, hessian_at(problem, scores))
        table = np.column_stack([coordinates.to_params(unit) for unit in np.eye(centre.size)])
        model = cast(LinearModel, problem.model)  # see `has_convex_hessian`
        columns = list(table.reshape(model.n_copies, -1, centre.size))
        return cls(
            problem, coordinates, scores, table, np.ascontiguousarray(model.column_scores(columns, problem.data).T)
        )

    def excess(self, steps: np.ndarray) -> np.ndarray:
        """Excess over the first bound that is exceeded after a step, else the largest excess, which is at most 0.

        Returns an ndarray of shape (n_steps,).
        """
        scores = self.scores + steps @ self.moves
        largest = np.full(len(steps), -np.inf)
        for constraint in self.problem.constraints:
            holds = largest <= 0
            if not holds.any():
                break
            largest[holds] = np.maximum(
                largest[holds], constraint.excess(constraint.metrics(scores[holds])) - constraint.granularity
            )
        return largest


class _Search:
    """The best parameters so far, with their direction and distance from the centre."""

    def __init__(self, problem: Problem, params: np.ndarray, centre: np.ndarray) -> None:
        self._problem, self.params, self._centre = problem, params, centre
        self._moves = moves = NewtonMoves.at(problem, centre)
        self._least = problem.objective_at(params, problem.scores(params))
        way = moves.coordinates.from_params(params) - moves.coordinates.from_params(centre)
        self._distance = float(np.linalg.norm(way))
        self._direction = way / (self._distance or 1.0)
        at_once = all(c.measures_at_once for c in problem.constraints)
        self._size = _MANY if at_once else _FEW
        #: Distances that are tried on a way to the centre, as shares.
        self._shares = 1 - np.geomspace(_NEARER, _NEAREST, self._size)

    def improves(self, step: float, rng: np.random.Generator) -> bool:
        """Whether a better point was found after random steps of some length."""
        directions = self._direction + step / np.sqrt(self.params.size) * rng.normal(
            size=(self._size, self.params.size)
        )
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        first = np.flatnonzero(self._holds(self._shares[0] * self._distance * directions))
        return any(self._follows(directions[number]) for number in first[:_FEW])

    def _follows(self, direction: np.ndarray) -> bool:
        """Whether the nearest point to the centre within the bounds, in this direction, is better."""
        distances = self._distance * self._shares
        distance = float(distances[self._holds(distances[:, None] * direction)].min(initial=distances[0]))
        params = self._centre + distance * (self._moves.table @ direction)
        scores = self._problem.scores(params)
        value = self._problem.objective_at(params, scores)
        if value >= self._least or not self._problem.holds(scores):  # of the scores themselves, for their rounding
            return False
        self.params, self._least, self._direction, self._distance = params, value, direction, distance
        return True

    def _holds(self, steps: np.ndarray) -> np.ndarray:
        """Whether the bounds hold after steps from the centre; boolean ndarray of shape (n_steps,)."""
        return self._moves.excess(steps) <= 0
