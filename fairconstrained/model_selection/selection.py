"""Choosing among fitted candidates: the refit rule under a bound on the gap, and the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.checks.messages import is_number, shortened, warn_user
from fairconstrained.exceptions import FairnessWarning

__all__ = ["BestFeasible", "best_feasible", "fairness_column", "pareto_front"]

# Means over folds carry rounding: three gaps of 0.1 average to a little more than 0.1.
ROUNDING = 1e-12


class BestFeasible:
    """The rule that :func:`best_feasible` returns, with its arguments; a class so that it pickles."""

    def __init__(self, gap_scorer: str, bound: float, performance_scorer: str) -> None:
        for name, scorer in {"gap_scorer": gap_scorer, "performance_scorer": performance_scorer}.items():
            if not isinstance(scorer, str):
                raise ValueError(f"{name} must be the name of a scorer; got {scorer!r}.")
        if not (is_number(bound) or bound == np.inf) or bound < 0:
            raise ValueError(f"bound must be a gap of at least 0; got {bound!r}.")
        self.gap_scorer = gap_scorer
        self.bound = bound
        self.performance_scorer = performance_scorer

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        """Index of the chosen candidate.

        Parameters
        ----------
        cv_results : dict of str to array-like of shape (n_candidates,)
            ``cv_results_`` of a search with several scorers.

        Returns
        -------
        best_index : int

        Raises
        ------
        ValueError
            If a scorer is not part of the search, every candidate has a missing score, or a gap score is positive (and
            so not a negated gap).

        Warns
        -----
        FairnessWarning
            If no candidate meets the bound.
        """
        performance = _column(cv_results, f"mean_test_{self.performance_scorer}", "performance_scorer")
        negated = _column(cv_results, f"mean_test_{self.gap_scorer}", "gap_scorer")
        if np.any(negated > ROUNDING):
            raise ValueError(
                f"The scores of {self.gap_scorer!r} are positive, so they are not negated gaps. "
                "Build the scorer with make_fairness_scorer, which negates."
            )
        gap = -negated
        scored = np.isfinite(gap) & np.isfinite(performance)
        if not scored.any():
            raise ValueError(
                f"No candidate has both a {self.gap_scorer!r} and a {self.performance_scorer!r} score; "
                "pass error_score='raise' to the search to see why."
            )
        feasible = scored & (gap <= self.bound + ROUNDING)
        if feasible.any():
            return _first(feasible, -performance, gap)
        chosen = _first(scored, gap, -performance)
        warn_user(
            f"No candidate has a mean held-out gap {self.gap_scorer!r} of at most {self.bound:g}. "
            f"The one of least gap, {gap[chosen]:.4g}, was chosen; allow a larger bound or search further.",
            FairnessWarning,
        )
        return chosen

    def __repr__(self) -> str:
        return f"best_feasible({self.gap_scorer!r}, {self.bound!r}, {self.performance_scorer!r})"


def best_feasible(gap_scorer: str, bound: float, performance_scorer: str) -> BestFeasible:
    """Rule for ``refit=``: the best performance among the candidates whose gap is within a bound.

    Of the candidates whose mean held-out gap is at most ``bound`` it takes the one of best mean performance,
    and the smaller gap among equals. If there is none, it takes the one of least gap and warns. A candidate
    with a missing score is never chosen.

    Parameters
    ----------
    gap_scorer : str
        Name of the gap among the ``scoring`` of the search; its scorer negates (greater is better).
    bound : float
        Largest mean held-out gap that is allowed, at least 0; infinity allows every gap.
    performance_scorer : str
        Name of the measure of performance among the ``scoring`` of the search.

    Returns
    -------
    rule : BestFeasible
        Maps ``cv_results_`` to the index of the chosen candidate.

    Raises
    ------
    ValueError
        If ``bound`` is negative or no number, or a scorer is not given by its name.

    Notes
    -----
    With a rule as ``refit`` a search has no single score: instead of ``search.score`` call
    ``search.scorer_["accuracy"](search.best_estimator_, X, y, sensitive_features=...)``.

    Examples
    --------
    >>> from fairconstrained.model_selection import best_feasible
    >>> rule = best_feasible("pSP", 0.1, "accuracy")
    >>> rule({"mean_test_accuracy": [0.90, 0.85, 0.80], "mean_test_pSP": [-0.30, -0.08, -0.02]})
    1
    """
    return BestFeasible(gap_scorer, bound, performance_scorer)


def pareto_front(
    results: Mapping[str, Any] | pd.DataFrame,
    performance: str = "mean_test_accuracy",
    fairness: str | None = None,
) -> pd.DataFrame:
    """Candidates that no other candidate beats in both performance and fairness.

    A row is dominated when another one is at least as good in both columns and better in one. Rows equal in
    both are kept together; rows with a missing value are left out.

    Parameters
    ----------
    results : dict or DataFrame
        ``cv_results_`` of a search, or any table.
    performance : str, default="mean_test_accuracy"
        Column, greater is better.
    fairness : str, default=None
        Column, greater is better (a negated gap, as the scorers give it). None: the only other column of scores that
        are never positive.

    Returns
    -------
    front : DataFrame
        The non-dominated rows with all columns of ``results``, from the least to the most fair (so from the
        best to the worst performance), under their original index.

    Raises
    ------
    ValueError
        If ``results`` is no table, a column is missing, or ``fairness`` is None and the columns leave a choice or none.

    Examples
    --------
    >>> from fairconstrained.model_selection import pareto_front
    >>> table = {"accuracy": [0.90, 0.85, 0.80, 0.80], "fairness": [-0.30, -0.08, -0.10, -0.02]}
    >>> pareto_front(table, "accuracy").index.tolist()
    [0, 1, 3]
    """
    performances = _column(results, performance, "performance")
    fairness = fairness_column(results, performance) if fairness is None else fairness
    fairnesses = _column(results, fairness, "fairness")
    table = pd.DataFrame(results)
    rows = np.flatnonzero(~np.isnan(performances) & ~np.isnan(fairnesses))
    # From the fairest down, of equally fair ones the best first: a row survives if it beats all before it ...
    rows = rows[np.lexsort((-performances[rows], -fairnesses[rows]))]
    points = np.column_stack([fairnesses[rows], performances[rows]])
    best_before = np.maximum.accumulate(np.r_[-np.inf, points[:, 1]])[:-1]
    new = points[:, 1] > best_before
    new[:1] = True
    # ... or equals the row before it, which then survived or fell for the same reason.
    repeats = np.zeros(rows.size, dtype=bool)
    repeats[1:] = (points[1:] == points[:-1]).all(axis=1)
    first_of_equals = np.maximum.accumulate(np.where(repeats, 0, np.arange(rows.size)))
    front = rows[new[first_of_equals]]
    return table.iloc[front[np.lexsort((front, fairnesses[front]))]]


def fairness_column(results: Mapping[str, Any] | pd.DataFrame, performance: str) -> str:
    """Return the name of the only column, besides ``performance``, whose scores are negated gaps: never positive.

    Raises ValueError if there is none, or more than one.
    """
    _column(results, performance, "performance")
    gaps = [name for name in _score_names(results) if name != performance and _is_negated_gap(results[name])]
    if len(gaps) == 1:
        return gaps[0]
    found = f"several, {shortened(gaps)}, may be meant" if gaps else f"none of {shortened(_score_names(results))} is"
    raise ValueError(f"fairness=None stands for the only column of scores that are never positive; {found}. Name one.")


def _is_negated_gap(column: Any) -> bool:
    """Whether a column holds numbers, none of them positive."""
    values = np.asarray(column)
    return values.dtype.kind in "fiu" and bool(np.any(values <= 0)) and not np.any(values > ROUNDING)


def _score_names(results: Mapping[str, Any] | pd.DataFrame) -> list[str]:
    """Return the names of the mean scores of a search, or of all columns of another table."""
    names = [str(key) for key in results]
    return [name for name in names if name.startswith("mean_test_")] or names


def _column(results: Mapping[str, Any] | pd.DataFrame, name: str, parameter: str) -> np.ndarray:
    """The numbers of the column that a parameter names."""
    if not isinstance(results, Mapping | pd.DataFrame):
        raise ValueError(f"results must be cv_results_ of a search, a dict or a DataFrame; got {results!r}.")
    if not isinstance(name, str) or name not in results:
        raise ValueError(f"{parameter}: there is no column {name!r}; there are {shortened(_score_names(results))}.")
    try:
        return np.asarray(results[name], dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{parameter}: the column {name!r} of results must hold numbers; {error}.") from error


def _first(candidates: np.ndarray, *keys: np.ndarray) -> int:
    """Position of the smallest candidate by the first key, ties by the next, then by position."""
    rows = np.flatnonzero(candidates)
    return int(rows[np.lexsort([key[rows] for key in reversed(keys)])[0]])
