"""The bootstrap: rows resampled within strata, and bias-corrected and accelerated quantiles of a statistic.

This is the only family that is valid in the limit of many rows only. It is available for every metric.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.validation import _num_samples
from typing_extensions import override

from fairconstrained.certification.evidence import Evidence, offers
from fairconstrained.certification.resampling import (
    MOST_LOST,
    acceleration,
    draws,
    fewest_resamples,
    values_of,
    without_blocks,
)
from fairconstrained.certification.sample import Sample, resolve_metric, strata_of
from fairconstrained.checks.inputs import as_table, check_group_of_every_row, refuse_masked, without_none
from fairconstrained.checks.messages import check_fraction
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.groups import GroupEncoder
from fairconstrained.metrics.registry import info_of

__all__ = ["BootstrapEvidence", "Replicates", "gap_interval", "resampled", "statistic_of"]


@dataclass(frozen=True, eq=False)
class Replicates:
    """Values of a statistic: of the sample, of resamples, and without some of the rows."""

    estimate: float
    #: Values of the statistic in the resamples, in increasing order.
    resampled: np.ndarray  # of shape (n_resamples,)
    acceleration: float

    @classmethod
    def of(
        cls,
        statistic: Callable[[np.ndarray], float],
        strata: np.ndarray,
        n_resamples: int,
        random_state: Any,
        n_jobs: int | None = None,
    ) -> Replicates:
        """Compute the replicates of a statistic.

        Parameters
        ----------
        statistic : callable
            Function of row numbers, which may repeat. May raise ValueError where a cell is empty.
        strata : ndarray of int, of shape (n_samples,)
            The number of rows of every stratum stays.
        random_state : object
        n_jobs : int, optional
            Number of processes; see joblib.

        Raises
        ------
        ValueError
            If more than a tenth of the resamples have no statistic.
        """
        estimate = statistic(np.arange(strata.size))
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        values = resampled(statistic, strata, n_resamples, rng, n_jobs)
        or_nan = partial(_or_nan, statistic)
        left_out = [np.array(list(values_of(or_nan, kept, n_jobs))) for kept in without_blocks(strata, rng)]
        return cls(estimate, np.sort(values), acceleration(left_out))

    @property
    def bias(self) -> float:
        """``z_0``, of the share of resamples below the estimate; ties count one half."""
        below = (self.resampled < self.estimate).mean() + (self.resampled == self.estimate).mean() / 2
        least = 0.5 / self.resampled.size
        return float(norm.ppf(np.clip(below, least, 1 - least)))

    def upper(self, level: float) -> float:
        """Upper end with this confidence: the larger one of the corrected quantile and the plain one.

        A gap is an absolute value. Near zero resampled gaps lie above that of the sample, and the correction takes this
        for a bias so large that the corrected quantile may fall below the gap of the sample itself.
        """
        return max(self.corrected_quantile(level), float(np.quantile(self.resampled, level)))

    def lower(self, level: float) -> float:
        """Lower end with this confidence, no larger than the estimate."""
        return min(self.corrected_quantile(1 - level), float(np.quantile(self.resampled, 1 - level)), self.estimate)

    def corrected_quantile(self, level: float) -> float:
        """The BCa quantile, equation 14.10 of Efron and Tibshirani."""
        bias, spread = self.bias, norm.ppf(level)
        bent = 1 - self.acceleration * (bias + spread)
        corrected = bias + (bias + spread) / bent if bent > 0 else np.copysign(np.inf, bias + spread)
        return float(np.quantile(self.resampled, norm.cdf(corrected)))


def resampled(
    statistic: Callable[[np.ndarray], float],
    strata: np.ndarray,
    n_resamples: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> np.ndarray:
    """The statistic of rows drawn anew within strata, where it has a value; see `Replicates.of`."""
    values: list[float] = []
    found = values_of(partial(_or_nan, statistic), draws(strata, n_resamples, rng), n_jobs)
    for drawn, value in enumerate(found, start=1):
        values += [] if np.isnan(value) else [value]
        if drawn - len(values) > MOST_LOST * n_resamples:
            raise ValueError(
                f"{drawn - len(values)} of {drawn} resamples have an empty cell, so the bootstrap says nothing. "
                "Use more rows, or merge small groups."
            )
    return np.array(values)


def _or_nan(statistic: Callable[[np.ndarray], float], rows: np.ndarray) -> float:
    """Return the statistic; NaN where a cell is empty."""
    try:
        return statistic(rows)
    except ValueError:
        return np.nan


@dataclass(frozen=True, eq=False)
class BootstrapEvidence(Evidence):
    """Upper quantiles of the bootstrap."""

    replicates: Replicates = field(repr=False)
    #: Description of every stratum, and its number of rows.
    strata: pd.DataFrame
    n_resamples: int
    method: ClassVar[str] = "bootstrap"
    is_distribution_free: ClassVar[bool] = False

    @property
    @override
    def n_events(self) -> int:
        return 1

    @property
    @override
    def union(self) -> str:
        return "no union: one quantile of the resampled gap, right only in the limit of many rows"

    def upper(self, delta: float, scale: float = 1.0) -> float:
        """Implement `Evidence.upper`; for other numbers of rows its distance to the gap shrinks with their root."""
        _check_resamples(self.n_resamples, delta)
        return float(self.gap + (self.replicates.upper(1 - delta) - self.gap) / np.sqrt(scale))

    def cells(self, delta: float) -> pd.DataFrame:
        """Implement `Evidence.cells`; only counts."""
        return self.strata


@offers("bootstrap")
def _resampled(sample: Sample) -> Evidence:
    rows = (sample.sensitive_features, sample.y_true, sample.response)
    strata, table = strata_of(sample.metric, sample.params, *rows)
    groups, y_true, response = rows
    statistic = statistic_of(sample.gap_of, y_true, response, groups, params=sample.params)
    replicates = Replicates.of(statistic, strata, sample.n_resamples, sample.random_state, sample.n_jobs)
    return BootstrapEvidence(sample.gap, sample.n_samples, replicates, table, sample.n_resamples)


#: Arguments of metrics with an entry for every row, and how those of some rows are taken.
_OF_ROWS: dict[str, Callable[[Any, np.ndarray], Any]] = {
    "strata": _safe_indexing,
    "subsets": lambda masks, rows: masks if callable(masks) else np.asarray(masks)[:, rows],
}


def statistic_of(
    function: Callable[..., float],
    y_true: Any,
    response: Any,
    sensitive_features: Any,
    sample_weight: Any = None,
    params: Mapping[str, Any] | None = None,
) -> Callable[[np.ndarray], float]:
    """The metric of some of the rows; of its ``params`` only those with an entry for every row are read."""
    columns = without_none(sensitive_features=_quick(sensitive_features), sample_weight=sample_weight)
    own = {name: value for name, value in (params or {}).items() if name in _OF_ROWS}

    def of_rows(rows: np.ndarray) -> float:
        taken = {name: _safe_indexing(column, rows) for name, column in columns.items()}
        taken |= {name: _OF_ROWS[name](value, rows) for name, value in own.items()}
        return float(function(None if y_true is None else y_true[rows], response[rows], **taken))

    return of_rows


def _quick(sensitive_features: Any) -> Any:
    """Return one column of groups as categories, which are encoded in no time."""
    table = None if sensitive_features is None else as_table(sensitive_features)
    if not isinstance(table, pd.DataFrame) or table.shape[1] != 1:
        return table
    column = table.iloc[:, 0]
    if column.dtype.kind in "biuf":
        return column
    groups = GroupEncoder(column)
    names = pd.Index(groups.labels, dtype=object, tupleize_cols=False)
    return pd.Series(pd.Categorical.from_codes(groups.codes, categories=names))


@validate_params(
    {
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    },
    prefer_skip_nested_validation=False,
)
def gap_interval(
    metric: Any,
    y_true: Any,
    y_response: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: Any = None,
    metric_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
) -> tuple[float, float]:
    """Two-sided bootstrap interval of a metric.

    Rows are resampled within strata: the groups, the cells of group and label for a metric that compares rows of equal
    label, or other cells whose numbers of rows the metric takes as given. The ends are the bias-corrected and
    accelerated (BCa) quantiles, or the plain ones where these lie farther out; the lower end is no larger than the
    metric. They are valid in the limit of many rows. For small cells and for gaps near zero they may fail more often;
    `certify` has bounds that do not.

    Parameters
    ----------
    metric : str or callable
        A name of a metric, see `fairconstrained.metrics.metric_names`, or ``metric(y_true, y_response, *,
        sensitive_features, sample_weight=None, **metric_params)``.
    y_true : array-like of shape (n_samples,) or None
        Labels or targets.
    y_response : array-like of shape (n_samples,)
        Predictions, scores or probabilities, whichever the metric takes.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features)
        Group of every row.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative; drawn together with the rows.
    level : float, default=0.95
        Confidence, in (0, 1). Each end fails with half of the remaining probability.
    n_resamples : int, default=1000
        Number of resamples, at least ``20 / (1 - level)``.
    random_state : int, RandomState instance or None, default=None
        Seed of the resamples.
    metric_params : dict, default=None
        Further arguments of the metric.
    n_jobs : int, default=None
        Number of processes for the resamples; see joblib. The interval is the same.

    Returns
    -------
    low, high : float
        Lower and upper end, in units of the metric.

    Raises
    ------
    ValueError
        For an unknown name, a level outside (0, 1), too few resamples, lengths that differ, a metric that does not
        exist on the rows, as for a single group, more than a tenth of the resamples with an empty cell, and for what
        the metric raises.

    References
    ----------
    .. [1] B. Efron, R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, section 14.3.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.certification import gap_interval
    >>> groups, predicted = np.repeat(["a", "b"], 500), np.tile([0, 1, 1, 1, 1], 200)
    >>> predicted[:150] = 0
    >>> low, high = gap_interval("independence_gap", None, predicted, sensitive_features=groups, random_state=0)
    >>> bool(low < 0.24 < high)
    True
    """
    function, params = resolve_metric(metric, metric_params)
    check_fraction("level", level)
    refuse_masked(y_true=y_true, y_response=y_response, sample_weight=sample_weight)
    sensitive_features = as_table(sensitive_features)
    check_consistent_length(y_response, y_true, sample_weight)
    check_group_of_every_row(_num_samples(sensitive_features), _num_samples(y_response))
    y_true = None if y_true is None else np.asarray(y_true)
    response = np.asarray(y_response)
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    statistic = statistic_of(partial(function, **params), y_true, response, sensitive_features, weights, params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        if np.isnan(statistic(np.arange(len(response)))):
            raise ValueError(
                f"{info_of(function).name} is NaN on these rows, for example because there is a single group or a "
                "compared cell is empty: there is no interval. Pass rows of several groups, each with the labels that "
                "the metric compares."
            )
    strata, _ = strata_of(function, params, sensitive_features, y_true, response)
    _check_resamples(n_resamples, (1 - level) / 2)
    replicates = Replicates.of(statistic, strata, n_resamples, random_state, n_jobs)
    return replicates.lower((1 + level) / 2), replicates.upper((1 + level) / 2)


def _check_resamples(n_resamples: int, tail: float) -> None:
    needed = fewest_resamples(tail)
    if n_resamples < needed:
        raise ValueError(f"n_resamples={n_resamples} are too few for a quantile of {tail:g}; use {needed} or more.")
