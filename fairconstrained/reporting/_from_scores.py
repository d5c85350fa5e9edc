"""`fairness_report`: the report on labels and scores of any origin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy.typing as npt

from fairconstrained.reporting._model import bounds_of, check_fitted
from fairconstrained.reporting._report import FairnessReport
from fairconstrained.reporting._resamples import Resampling
from fairconstrained.reporting._rows import ReportRows

__all__ = ["fairness_report"]


def fairness_report(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike | None,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    y_pred: npt.ArrayLike | None = None,
    threshold: float | None = None,
    pos_label: Any = None,
    interval: Any = None,
    metrics: Iterable[str] | None = None,
    level: float = 0.95,
    n_resamples: int | None = None,
    random_state: Any = 0,
    model: Any = None,
    path: Any = None,
    title: str | None = None,
    verbose: int = 0,
    n_jobs: int | None = None,
) -> FairnessReport:
    """Measure the groups: rates, areas under the curve, losses, and every gap with an interval.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels, two or more. Columns of rows may be Dask collections.
    y_score : array-like of shape (n_samples,) or (n_samples, n_classes), or None
        Scores: log-odds, e.g. from ``decision_function``, probabilities of the positive label, or other numbers that
        are higher for it. Of more than two labels, scores or probabilities of all, in sorted order. None for a report
        of decisions alone.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features)
        Group of every row; several columns are combined. Groups that overlap (a table of booleans) are an error.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative; a weight of 2 stands for the same row twice, except in the counts of rows.
    y_pred : array-like of shape (n_samples,), default=None
        Decisions, in the encoding of ``y_true``; by default, whether a score exceeds ``threshold``, or the label of the
        largest score.
    threshold : float, default=None
        Score above which a decision is positive; 0.5 for probabilities. None is 0 for log-odds. Other scores, such as
        points (none is negative, and some are above 1), need one, unless there is ``y_pred``; they have no losses. For
        more than two labels it is not used.
    pos_label : object, default=None
        The positive label; None for the larger of two. Of more than two labels, the one to report on against all
        others; None for a report on every one of them.
    interval : pair of floats, list of pairs, or dict from group to either, default=None
        Percentile interval, as fractions from the top, for the partial gaps, and to mark in the figures.
    metrics : iterable of str, default=None
        Names of gaps, see :doc:`/guide/metrics`; None for all that apply.
    level : float, default=0.95
        Level of the intervals, between 0 and 1.
    n_resamples : int, default=None
        Resamples behind each interval; 0 for no intervals. None is the fewest that ``level`` allows,
        ``20 / (1 - level)``: 400 for 95%.
    random_state : int, RandomState or None, default=0
        Seed of the resamples.
    model : estimator, default=None
        The fitted model, whose bounds and prices are then shown: one of this package, alone, in a pipeline or a search.
    path : FairnessPath, default=None
        Result of :func:`~fairconstrained.paths.fairness_path`, to show the trade-off that the model is part of.
    title : str, default=None
        Heading of the page; "Fairness report" by default.
    verbose : int, default=0
        1 shows a progress bar. With 0 nothing is printed.
    n_jobs : int, default=None
        Number of processes for the resamples; see joblib. The report is the same.

    Returns
    -------
    report : FairnessReport

    Raises
    ------
    ValueError
        If there is a single label, lengths differ, scores are not finite, there is one group only or groups overlap,
        probabilities or points come without a ``threshold``, a gap is unknown or needs what is not there, or
        ``interval``, ``level`` or ``n_resamples`` is out of range.
    TypeError
        If ``model`` is not an estimator.
    NotFittedError
        If it is not fitted.

    Warns
    -----
    FairnessWarning
        If values of numbers or times make many small groups, groups or labels differ in blanks, capitals or type alone,
        or the threshold seems to be in other units than the scores, such as 0.5 for percentages.

    Examples
    --------
    >>> from fairconstrained.reporting import fairness_report
    >>> y_true, score = [1, 0, 1, 0, 1, 0, 1, 0], [2.0, 1.0, 3.0, -1.0, 1.0, -2.0, -1.0, -3.0]
    >>> report = fairness_report(y_true, score, sensitive_features=list("aaaabbbb"), n_resamples=0)
    >>> report.table["positive_rate"].tolist()
    [0.75, 0.25, 0.5]
    >>> float(report.gaps.loc["independence_gap", "value"])
    0.5
    >>> page = report.to_html()  # or report.to_html("report.html")
    """
    resampling = Resampling.of(level, n_resamples, random_state, n_jobs)
    if model is not None:
        check_fitted(model)
    rows = ReportRows.of(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        y_pred=y_pred,
        threshold=threshold,
        pos_label=pos_label,
        interval=interval,
    )
    bounds = [] if model is None else bounds_of(model)
    return FairnessReport.of_rows(rows, metrics, resampling, path, title, model, bounds, verbose)
