"""Scores of models that have not seen the rows they score, and what such scores say about the bounded metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fairconstrained.problem import Problem, Start

__all__ = ["HeldOutScores", "fold_obstacle", "held_out_scores", "standard_errors"]

#: Parts of the rows that are left out in turn for a standard error.
_PARTS = 10
#: Fits on a part of the rows: takes the problem and where to start, returns a state of the model and a new start.
Fit = Callable[[Problem, "Start | None"], tuple[Any, Start]]


class HeldOutScores(NamedTuple):
    """Scores by models of which none has seen the row that it scores; of the shape of training scores.

    ``starts`` are where the fits ended, for those with another ``kappa``.
    """

    scores: np.ndarray
    starts: tuple[Start, ...]


def fold_obstacle(problem: Problem, n_folds: int, units: np.ndarray | None = None) -> str:
    """Why the rows cannot be divided, empty if they can: every compared cell needs two rows in every fold."""
    known = problem.data.clusters if units is None else units
    if known is not None and (n_units := np.unique(known).size) < 2 * n_folds:
        return f"{n_folds} folds need {2 * n_folds} queries or other clusters of rows, and there are {n_units}"
    if not problem.works_on_other_rows:
        return "a term of the problem cannot be measured on a part of the rows"
    for constraint in problem.constraints:
        sizes = constraint.compared_cells()
        counts = np.bincount(problem.data.codes) if sizes is None else sizes.counts
        fewest = int(np.min(counts, initial=problem.data.n_samples))
        if fewest < 2 * n_folds:
            return f"{n_folds} folds need {2 * n_folds} rows in every cell that is compared, and one has {fewest}"
    return ""


def held_out_scores(
    problem: Problem, folds: np.ndarray, fit: Fit, starts: Sequence[Start | None] = ()
) -> HeldOutScores:
    """Fit without one fold after the other, and score it.

    Parameters
    ----------
    problem : Problem
    folds : ndarray of shape (n_samples,)
        See `FairData.folds`.
    fit : callable
        Takes a problem on a part of the rows and a start, and returns a state of the model and where the fit ended.
    starts : sequence of Start, optional
        Where the fits with another ``kappa`` ended.
    """
    numbers = np.unique(folds)
    starts = starts if len(starts) == numbers.size else [None] * numbers.size

    def without(number: int, start: Start | None) -> tuple[Any, Start]:
        """Fit to the rows that are not in a fold."""
        seen = problem.data.part(np.flatnonzero(folds != number))
        known = start if start is not None and start.fingerprint == seen.fingerprint else None
        state, end = fit(problem.on(seen), known)
        return state, replace(end, fingerprint=seen.fingerprint)

    scores, ends = None, []
    for number, start in zip(numbers, starts, strict=True):
        state, end = without(number, start)
        ends.append(end)
        unseen = np.flatnonzero(folds == number)
        found = problem.model.training_scores(state, problem.data.part(unseen))
        if scores is None:  # a score of every row, or one of every class
            scores = np.empty((problem.data.n_samples, *found.shape[1:]))
        scores[unseen] = found
    assert scores is not None  # there are folds
    return HeldOutScores(scores, tuple(ends))


def standard_errors(problem: Problem, scores: np.ndarray, units: np.ndarray | None = None) -> dict[str, float]:
    r"""Standard error of every bounded metric at fixed scores, by the grouped jackknife.

    .. math:: \mathrm{SE}^2 = \frac{B - 1}{B} \sum_{b=1}^{B} (\theta_{(b)} - \bar\theta)^2

    with the metrics :math:`\theta_{(b)}` without the b-th of B = 10 parts of the rows.

    References
    ----------
    Efron, Stein, The jackknife estimate of variance, Annals of Statistics 9(3), 1981.
    """
    parts = problem.data.folds(_PARTS, units)
    without = replace(problem.data, X=np.empty((problem.data.n_samples, 0)))  # no metric asks for features
    found: dict[str, list[float]] = {constraint.name: [] for constraint in problem.constraints}
    for part in np.unique(parts):
        rows = np.flatnonzero(parts != part)
        data = without.part(rows)
        for constraint in problem.constraints:
            found[constraint.name].append(constraint.on(data).metric(scores[rows]))  # type: ignore[attr-defined]
    return {name: float(np.sqrt((len(each) - 1) * np.var(each))) for name, each in found.items()}
