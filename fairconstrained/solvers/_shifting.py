"""The shifts of the scores that make the fewest errors, by exact search."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairconstrained.problem import Problem

__all__ = ["beats_constants", "best_shifted"]


def best_shifted(problem: Problem, state: Any) -> Any:
    """Shift the scores so that they make the fewest errors, by exact search, where the objective wants it.

    Parameters
    ----------
    problem : Problem
    state : object
        A state of the model.

    Returns
    -------
    state : object
        Unchanged for other objectives, for models whose scores cannot be shifted, and where the search would break
        a constraint: with several of them, each one's search sees its own only.
    """
    decisions = problem.objective.decisions
    shifts = None if decisions is None else problem.shifts
    if decisions is None or shifts is None:
        return state
    shared = problem.objective.shift == "shared" or not problem.has_group_shifts
    granularity, scores = problem.granularities, problem.scores(state)
    before = problem.exact(scores)
    for search in problem.offset_searches():
        for step in range(decisions.n_steps):
            gains = decisions.gains(scores > problem.threshold)
            offsets = search(scores, gains, problem.threshold, shared)
            shifted = problem.project(shifts.moved(state, offsets[: shifts.n_shifts]))
            moved = problem.scores(shifted)
            after = problem.exact(moved)
            if not (after <= np.maximum(before, granularity)).all():
                break
            # the first step may have to give up some of the objective for a bound that is not kept
            may_lose = not step and (before > granularity).any()
            gained = decisions.of(scores > problem.threshold) - decisions.of(moved > problem.threshold)
            if not may_lose and (gained < 0 or (gained == 0 and problem.objective.counts_errors)):
                break
            state, scores, before = shifted, moved, after
    return state


def beats_constants(problem: Problem, state: Any, better: Any = None) -> bool:
    """Whether the decisions of a state have less loss than the same decision for all rows.

    Parameters
    ----------
    problem : Problem
    state : object
        A state of the model.
    better : object, optional
        A state without bounds. Then the loss has to be less than halfway from its loss to that of the same decision.

    Returns
    -------
    is_better : bool
        True where the objective is not about decisions.
    """
    decisions = problem.objective.decisions
    if decisions is None:
        return True
    positive = problem.scores(state) > problem.threshold
    most = min(decisions.of(np.full_like(positive, same)) for same in (False, True))
    if better is not None:
        most = (most + min(most, decisions.of(problem.scores(better) > problem.threshold))) / 2
    return decisions.of(positive) < most
