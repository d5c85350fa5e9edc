"""Search for linear scores whose order keeps the bounds, where rows and coefficients are few."""

from __future__ import annotations

import numpy as np

from fairconstrained.problem import FullBatchView, Problem
from fairconstrained.solvers._polish import NewtonMoves, can_be_polished

__all__ = ["ordered_within"]

#: Coefficients up to which directions are drawn densely enough.
_MOST_PARAMS = 9
#: Directions that are drawn first; those of the least excess, around which others are drawn, and how many for each.
_FIRST, _BEST, _AROUND = 4_000, 100, 20
#: Standard deviations of the later draws.
_WIDTHS = (0.05, 0.02, 0.006)
#: Share of the steepest descent that a direction must have.
_LEAST_DESCENT = 0.1
#: Directions whose scores are held at a time.
_BATCH = 64


def ordered_within(problem: Problem, constant: np.ndarray) -> np.ndarray | None:
    r"""Find parameters within bounds on the order of the scores, which a solver has missed.

    Multiples and shifts of scores keep their order, so that only the direction of the coefficients counts. With few
    rows the metric is rugged in the direction, and smooth surrogates lead past the allowed ones. So directions are
    drawn at random, and further ones around those of the least excess over the bounds, closer each time. In the
    coordinates in which the objective has a Hessian of 1 at the best constant score, with the gradient g, a direction d
    of length 1 takes about :math:`(g^T d)^2 / 2` off the objective. Of the allowed directions, the one that lowers the
    objective most is taken.

    Parameters
    ----------
    problem : Problem
    constant : ndarray of shape (n_params,)
        Parameters of the best constant scores.

    Returns
    -------
    params : ndarray of shape (n_params,), or None
        None where no direction is found, or the search does not suit the problem.
    """
    on_order = all(c.ignores_shifts and c.bounds_metric for c in problem.constraints)
    if not (on_order and can_be_polished(problem) and problem.n_params <= _MOST_PARAMS):
        return None
    moves = NewtonMoves.at(problem, constant)
    gradient = FullBatchView(problem.without_constraints()).at(constant).gradient(1.0, np.empty(0))
    downhill = -moves.coordinates.pull(gradient)
    steepest = float(np.linalg.norm(downhill))
    rng = np.random.default_rng(0)  # the same directions in every fit, so that it does not depend on ``random_state``
    best, most = None, _LEAST_DESCENT * steepest
    nearest, n_each = np.zeros((1, constant.size)), _FIRST
    for width in (1.0, *_WIDTHS):
        directions = np.repeat(nearest, n_each, axis=0)
        directions += width * rng.normal(size=directions.shape)
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        directions = directions[directions @ downhill > _LEAST_DESCENT * steepest]
        if not len(directions):
            break
        excess = np.concatenate(
            [moves.excess(own) for own in np.array_split(directions, -(-len(directions) // _BATCH))]
        )
        descents = np.where(excess <= 0, directions @ downhill, 0.0)
        if descents.max() > most:
            most, best = descents.max(), directions[descents.argmax()]
        nearest, n_each = directions[np.argsort(excess)[:_BEST]], _AROUND
    return None if best is None else constant + moves.table @ (most * best)
