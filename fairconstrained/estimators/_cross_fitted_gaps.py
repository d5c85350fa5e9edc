"""Scores of models that have not seen the rows they score, and what they say about a model of all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fairconstrained.constraints import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.estimators.shared_rows import SharedRows
from fairconstrained.problem import Problem, Start

__all__ = [
    "SIZE_BY_ROWS", "SIZE_OF_ITS_OWN", "HeldOutScores", "fold_obstacle", "for_all_rows", "held_out_scores", "optimism",
]  # fmt: skip

#: Powers of the number of rows by which optimism falls: of models whose size does not depend on it, and of those that
#: have fewer trees for fewer rows. The latter is what fits to Adult, Bank and law school show; on a9a, COMPAS and
#: credit risk estimates by it are off by -.002 in the mean.
SIZE_OF_ITS_OWN, SIZE_BY_ROWS = 0.5, 0.25
#: Fits on a part of the rows: takes the problem and where to start, returns a state of the model and a new start.
Fit = Callable[[Problem, "Start | None"], tuple[Any, Start]]


class HeldOutScores(NamedTuple):
    """Scores by models of which none has seen the row that it scores."""

    #: Scores of all rows, shaped as training scores are.
    scores: np.ndarray
    #: Where the fits ended, for those with another ``kappa``.
    starts: tuple[Start, ...]
    #: Metrics of the rows that the models have seen, means over the models.
    seen: np.ndarray  # of shape (n_constraints,)
    #: Differences of the rows that the models have seen, means over the models, see `BoundConstraint.differences`.
    differences: list[np.ndarray | None]
    #: Whether one of the models gives all rows the same score.
    has_constant: bool = False


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


def _splits(data: FairData, n_folds: int, units: np.ndarray | None) -> Iterator[tuple[np.ndarray, FairData]]:
    """Numbers of the rows of one fold after the other, and the data without them, see `FairData.folds`."""
    folds = data.folds(n_folds, units)
    for number in np.unique(folds):
        yield np.flatnonzero(folds == number), data.part(np.flatnonzero(folds != number))


def held_out_scores(
    problem: Problem,
    n_folds: int,
    units: np.ndarray | None,
    fit: Fit,
    starts: Sequence[Start | None],
    shared: SharedRows,
    ends_at_constant: bool = False,
) -> HeldOutScores:
    """Fit without one fold after the other, and score it.

    Parameters
    ----------
    units : ndarray of shape (n_samples,), or None
        See `FairData.folds`.
    fit : callable
        Takes a problem on a part of the rows and a start, and returns a state of the model and where the fit ended.
    starts : sequence of Start
        Where the fits with another ``kappa`` ended.
    shared : SharedRows
        Keeps the parts of the rows.
    ends_at_constant : bool, default=False
        Whether the fits end with the first model that gives all rows the same score, since nothing that the others find
        is used beside it. The scores of the rows that are left are 0.
    """
    starts = starts if len(starts) == n_folds else [None] * n_folds
    scores, ends, metrics, differences, spreads = None, [], [], [], []
    splits = shared.each(("folds", n_folds), lambda: _splits(problem.data, n_folds, units))
    for (unseen, data), start in zip(splits, starts, strict=True):
        rest = problem.on(data)
        known = start if start is not None and start.fingerprint == data.fingerprint else None
        state, end = fit(rest, known)
        ends.append(replace(end, fingerprint=data.fingerprint))
        of_seen, found = problem.model.scores_of_fold(state, problem.data, data, unseen)
        spreads.append(np.ptp(of_seen, axis=0).max())
        metrics.append([each.metric(of_seen) for each in rest.constraints])
        differences.append([each.differences(of_seen) for each in rest.constraints])
        if scores is None:  # a score of every row, or one of every class
            scores = np.zeros((problem.data.n_samples, *found.shape[1:]))
        scores[unseen] = found
        if ends_at_constant and not spreads[-1]:
            break
    assert scores is not None  # there are folds
    means = [None if own[0] is None else np.mean(own, axis=0) for own in zip(*differences, strict=True)]
    return HeldOutScores(scores, tuple(ends), np.mean(metrics, axis=0), means, not all(spreads))


def optimism(
    constraint: BoundConstraint, scores: np.ndarray, seen: np.ndarray | None, n_folds: int
) -> np.ndarray | None:
    """By how much larger differences are on new rows than on those that a fit to all rows has seen.

    Parameters
    ----------
    scores : ndarray
        Scores of all rows by models that were fitted without the row's fold.
    seen : ndarray of shape (n_components,) or None
        Differences of the rows that these models have seen.

    Returns
    -------
    optimism : ndarray of shape (n_components,) or None
        That of the models times the factor of `for_all_rows` for models of the same size, negative where differences
        are smaller; None where the constraint has no differences.
    """
    unseen = constraint.differences(scores)
    return None if unseen is None or seen is None else (1 - 1 / n_folds) ** SIZE_OF_ITS_OWN * (unseen - seen)


def for_all_rows(seen: float, unseen: float, n_folds: int, power: float = SIZE_OF_ITS_OWN) -> tuple[float, float]:
    r"""Return the metric on new rows of a fit to all rows, from those of fits without a fold, and its correction.

    By how much the metric of rows that a fit has not seen is beyond that of rows that it has seen falls as
    :math:`n^{-p}` in its number of rows, of which the fits without one of k folds have the share :math:`(k - 1) / k`:

    .. math:: \hat\theta = \theta_{\mathrm{seen}}
              + \left(\frac{k - 1}{k}\right)^p (\theta_{\mathrm{unseen}} - \theta_{\mathrm{seen}})

    Parameters
    ----------
    seen, unseen : float
        The metric of rows that the models have seen, NaN where it does not exist, and of those that they have not.
    power : float, default=0.5
        The power p.
    """
    correction = (1 - (1 - 1 / n_folds) ** power) * (unseen - (unseen if np.isnan(seen) else seen))
    return float(unseen - correction), float(abs(correction))
