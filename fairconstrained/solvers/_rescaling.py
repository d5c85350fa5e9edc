"""The best positive multiple and shift of some scores within the exact bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from scipy.optimize import minimize

from fairconstrained.problem import FullBatchView, Problem
from fairconstrained.solvers._score_plane import GAIN, HALVINGS, ROUNDING, Proposal, ScorePlane, is_within

__all__ = ["best_constant", "best_rescaled", "constant_scores", "least_of_constants", "no_worse_than_constants"]

#: Multiples of the scores of every class that may hedge better than the scores themselves.
_SMALLER = (*2.0 ** -np.arange(1, 6), 0.0)
#: Shifts of the scores of classes that are tried, at most, and powers of ten of their lengths in standard deviations.
_SHIFTS, _LENGTHS = 320, (-3.0, -1.0)
#: Shifts after which the excess over the bounds has to be below this share of what it was, or no more are tried.
_TRIAL, _LEFT = 64, 0.75
#: Shares of the way to a constant score at which the bounds are looked at until they hold.
_NEARER = (*(1 - 2.0 ** -np.arange(1, 7)).tolist(), 1.0)
#: Parts of the way between two states at whose ends the bounds are looked at.
_STEPS = 50


def best_rescaled(problem: Problem, candidates: Sequence[Any], is_stationary: bool = False) -> Any:
    """Find the best of some states of the model, and of those whose scores are multiples of theirs plus a constant.

    Parameters
    ----------
    problem : Problem
    candidates : sequence of object
        The first one is what a solver has come to; it is returned unless another one is within the bounds and better,
        or within the bounds while it is not.
    is_stationary : bool, default=False
        Whether no small change of the first one improves it much. Where it keeps the bounds and these vary smoothly,
        its multiples and shifts are then not searched for points on the border of what is allowed.

    Returns
    -------
    state : object
    """
    best = candidates[0]
    if not problem.constraints:
        return best
    first = Proposal(problem, best)
    tolerances = _tolerances(problem, first.scores)
    least = first.merit if problem.holds(first.scores) else np.inf
    is_settled = is_stationary and np.isfinite(least) and not any(c.counts_rows for c in problem.constraints)
    with_constants, ends = True, list[Proposal]()
    for own in chain([first], (Proposal(problem, state) for state in candidates[1:])):
        plane = ScorePlane.of(own, tolerances)
        searches = not (is_settled and own is first)
        others = (
            plane.proposals(least, with_constants, searches)
            if plane
            else _proposals_of_classes(own, least, tolerances, with_constants)
        )
        for proposal in chain([own], others):
            if proposal.objective >= least:
                continue
            is_better = proposal.merit < (least - GAIN * abs(least) if np.isfinite(least) else np.inf)
            if is_better and proposal.is_in_domain and proposal.keeps(tolerances):
                best, least = proposal.state, proposal.merit
        with_constants = False  # they are the same for every candidate
        ends += [own] if plane is None else []
    for end in ends if np.isfinite(least) else []:
        best, least = _on_the_way(Proposal(problem, best), end, least, tolerances)
    return best


def _on_the_way(inside: Proposal, outside: Proposal, least: float, tolerances: np.ndarray) -> tuple[Any, float]:
    """The best allowed state on the way from an allowed one to another with a lower objective, and its objective.

    Where decisions are counted, what is allowed may have gaps, so that the whole way is looked at.
    """
    problem = inside.problem
    if not problem.model.is_linear or outside.merit >= least:
        return inside.state, least
    for share in np.linspace(0, 1, _STEPS + 1)[1:-1]:
        scores = outside.scores_towards(inside, share)
        if is_within(problem, scores, tolerances):
            found = Proposal(problem, outside.state + share * (inside.state - outside.state))
            if found.merit < least and found.is_in_domain and found.keeps(tolerances):
                return found.state, found.merit
    return inside.state, least


def _proposals_of_classes(
    own: Proposal, least: float, tolerances: np.ndarray, with_constants: bool
) -> Iterator[Proposal]:
    """Proposals for a model with a score of every class: neither multiples nor common shifts move its decisions.

    The best constant scores, if ``with_constants``; smaller multiples of linear scores; and where no state is allowed
    yet, a state nearby, or states on the way to one class for all rows.
    """
    problem = own.problem
    states = problem.model.one_class_states(problem.data)
    if states and with_constants:
        yield _best_combination(problem, np.stack(states))
    for share in _SMALLER if problem.model.is_linear else ():
        yield Proposal(problem, share * own.state)
    if np.isfinite(least):
        return
    constants = [Proposal(problem, state) for state in states]
    shifts = _shifts_of_classes(own, constants) if constants else None
    nearby = own if shifts is None else Proposal(problem, own.state + shifts @ np.stack(states))
    if nearby is not own and nearby.is_in_domain:
        yield nearby
        return
    for state, constant in zip(states, constants, strict=True):
        share = _share_of_way(own, constant, tolerances)
        if share is not None:
            yield Proposal(problem, own.state + share * (state - own.state))


def _share_of_way(outside: Proposal, end: Proposal, tolerances: np.ndarray) -> float | None:
    """The share of the way to a state from which on the bounds hold; None where not even the end keeps them.

    Where a class is given to all rows or to none there may be no ratio, so that the ends are not allowed.
    """

    def holds(share: float) -> bool:
        return is_within(outside.problem, outside.scores_towards(end, share), tolerances)

    high = next(filter(holds, _NEARER), None)
    if high is None:
        return None
    low = max(share for share in (0.0, *_NEARER) if share < high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _best_combination(problem: Problem, states: np.ndarray) -> Proposal:
    """The linear combination of states of least objective, whatever the bounds are."""
    view, nothing = FullBatchView(problem.without_constraints()), np.empty(0)

    def along(factors: np.ndarray) -> tuple[float, np.ndarray]:
        point = view.at(factors @ states)
        return point.objective, states @ point.gradient(1.0, nothing)

    return Proposal(problem, minimize(along, np.zeros(len(states)), jac=True, method="L-BFGS-B").x @ states)


def _shifts_of_classes(own: Proposal, constants: Sequence[Proposal]) -> np.ndarray | None:
    """Small multiples of constant scores that bring scores within the bounds; ndarray of shape (n_classes,), or None.

    Solvers follow smooth surrogates, so that the last few rows on the wrong side are left to chance. Random shifts of
    the scores of every class move such rows: each is kept that leaves no more excess over the bounds of all classes.
    """
    problem, table = own.problem, np.stack([constant.scores for constant in constants])
    rng = np.random.default_rng(0)  # the same shifts in every fit, so that it does not depend on ``random_state``
    shifts, spread = np.zeros(len(table)), own.scores.std() / np.abs(table).max()

    def excess_after(shifts: np.ndarray) -> float:
        return _excess_of_classes(problem, own.scores + np.tensordot(shifts, table, 1))

    excess, before = excess_after(shifts), np.inf
    for number in range(_SHIFTS):
        if excess == 0.0:
            return _shortened(shifts, lambda there: excess_after(there) == 0.0)
        if number % _TRIAL == 0:
            if not excess < _LEFT * before:
                return None
            before = excess
        # a few of the classes move much further than the others
        moved = shifts + spread * 10 ** rng.uniform(*_LENGTHS) * rng.normal(size=shifts.size) ** 3
        there = excess_after(moved)
        if there <= excess:
            shifts, excess = moved, there
    return None


def _shortened(shifts: np.ndarray, holds: Callable[[np.ndarray], bool]) -> np.ndarray:
    """Shifts of which each is left out, or half of it, where the bounds hold without."""
    for share in (0.0, 0.5, 0.5, 0.5):
        for number in range(shifts.size):
            shorter = shifts.copy()
            shorter[number] *= share
            if holds(shorter):
                shifts = shorter
    return shifts


def _excess_of_classes(problem: Problem, scores: np.ndarray) -> float:
    """The sum of what the metrics of all classes are beyond the bounds; infinity where one does not exist."""
    total = 0.0
    for constraint in problem.constraints:
        values = np.array(list(constraint.class_values(scores).values()))
        is_known = values.size and constraint.bounds_metric
        excess = constraint.excess(values) if is_known else constraint.exact(scores)
        total += float(np.clip(np.nan_to_num(excess - constraint.granularity, nan=np.inf), 0.0, None).sum())
    return total


def constant_scores(problem: Problem, state: Any) -> Any:
    """Find the state of constant scores, the mean of those at ``state``; None where it is not in the domain or unknown.

    Scores that cannot be shifted are zero.
    """
    plane = ScorePlane.of(Proposal(problem, state), np.empty(0))
    constant = None if plane is None else plane.at(0.0, plane.centre)
    return constant if constant is not None and Proposal(problem, constant).is_in_domain else None


def least_of_constants(problem: Problem, state: Any) -> float:
    """Return the least objective of constant scores, whatever the bounds are, for a state with `constant_scores`."""
    plane = ScorePlane.of(Proposal(problem, state), np.empty(0))
    assert plane is not None  # otherwise there are no constant scores
    return plane.least_of_constants.objective


def best_constant(problem: Problem, state: Any) -> Any:
    """Return the state of the best constant scores within the bounds; None where there is none, or it is not known."""
    constant = constant_scores(problem, state)
    if constant is None:
        return None
    found = best_rescaled(problem, [constant])
    return found if problem.holds(problem.scores(found)) else None


def no_worse_than_constants(problem: Problem, state: Any) -> Any:
    """Return a state within the bounds, or that of constant scores within them if these have a lower loss."""
    found = best_constant(problem, state)
    if found is None:
        return state
    is_better = problem.loss_at(problem.scores(found)) < problem.loss_at(problem.scores(state)) * (1 - GAIN)
    return found if is_better else state


def _tolerances(problem: Problem, scores: np.ndarray) -> np.ndarray:
    """Tolerance of every metric above kappa: as much as the solver's result takes, or a row where that is outside."""
    granularity, excess = problem.granularities, problem.exact(scores)
    inside = np.minimum(np.clip(excess, 0, None) + ROUNDING, granularity)
    return granularity if (excess > granularity).any() else inside
