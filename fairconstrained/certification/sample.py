"""Samples of unseen rows as a metric takes them, and the numbers of rows that count as given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.checks.messages import is_number
from fairconstrained.checks.protected import protected_code
from fairconstrained.groups import Groups
from fairconstrained.metrics.classes import about_class, class_questions
from fairconstrained.metrics.comparisons import CellMeans, Comparison, NotOffered
from fairconstrained.metrics.registry import check_options, find_metric, info_of, needed_options

__all__ = [
    "Sample",
    "as_loss_bound",
    "groups_of",
    "resolve_metric",
    "strata_of",
]


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows and the value of a metric on them."""

    metric: Callable[..., Any]
    #: Labels or targets.
    y_true: np.ndarray  # of shape (n_samples,)
    #: Predictions, scores or probabilities of the model.
    response: np.ndarray  # of shape (n_samples,)
    #: Groups of the rows; None for a metric that compares no groups.
    sensitive_features: Any
    #: Further arguments of the metric.
    params: dict[str, Any]
    #: Limits between which all losses lie, in the sample and outside it.
    loss_bound: tuple[float, float] | None = None
    n_resamples: int = 1000
    #: Seed of the bootstrap.
    random_state: Any = None
    #: All classes of the model, also those without rows here; None: those of the rows.
    classes: Sequence[Any] | None = None
    #: Number of processes for the resamples.
    n_jobs: int | None = None
    #: The rows as seen by a metric that takes several classes one by one, each against all others; empty otherwise.
    by_class: dict[Any, Sample] = field(init=False, repr=False)
    #: Value of the metric, or one minus it, which is small for a good model.
    gap: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_class", dict(self._by_class()))
        gap = max((part.gap for part in self.by_class.values()), default=np.nan)
        if not self.by_class:
            gap = self.gap_of(self.y_true, self.response, sensitive_features=self.sensitive_features)
        if np.isnan(gap):
            raise ValueError(f"{self.name} is NaN on these rows: a cell that it compares is empty. Use more rows.")
        object.__setattr__(self, "gap", gap)

    def _by_class(self) -> Iterator[tuple[Any, Sample]]:
        info = info_of(self.metric)
        if not info.by_class:
            return
        for label, (actual, said) in class_questions(info.response, self.y_true, self.response, self.classes).items():
            with about_class(label):
                part = replace(self, y_true=actual, response=said, classes=None)
            yield label, part

    @property
    def name(self) -> str:
        """Name of the number that is to be small."""
        return info_of(self.metric).bounded_name(self.params)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(np.shape(self.response)[0])

    @property
    def groups(self) -> Groups:
        """Groups of the rows as the metric takes them; see `groups_of`."""
        return groups_of(self.metric, self.sensitive_features)

    def gap_of(self, y_true: Any, response: Any, **rows: Any) -> float:
        """Return the gap that is to be small, on any rows; ``rows`` are arguments with an entry for each of them."""
        value = float(self.metric(y_true, response, **{**self.params, **rows}))
        return self.of_small(value, value)[0]

    def of_small(self, low: float, high: float) -> tuple[float, float]:
        """Return the ends of an interval as those of the number that is to be small, and the other way round."""
        return (1 - high, 1 - low) if info_of(self.metric).is_better_large(self.params) else (low, high)

    def comparison(self) -> Comparison:
        """Return the cells of rows whose rates or means the metric compares; it may raise `NotOffered`."""
        compared = info_of(self.metric).compared
        if not isinstance(compared, CellMeans):
            raise NotOffered(f"{self.name} is not computed from means over rows.")
        return compared.read(self)


def groups_of(metric: Callable[..., Any], sensitive_features: Any) -> Groups:
    """The groups as the metric takes them: columns of booleans may say who belongs to which, or be combined."""
    return Groups.of(sensitive_features, overlapping=info_of(metric).overlapping)


def strata_of(
    metric: Callable[..., Any],
    params: dict[str, Any],
    sensitive_features: Any,
    y_true: np.ndarray | None,
    response: np.ndarray | None = None,
) -> tuple[np.ndarray, pd.DataFrame]:
    """The stratum of every row: numbers of rows in strata count as given.

    A metric that takes several classes one by one compares rows of one class with those of all others, which are a
    random mixture. So of more than two labels, their numbers do not count as given.

    Parameters
    ----------
    metric : callable
        Metric. For an unknown one, the numbers of rows in the groups count as given.
    sensitive_features : object
    y_true, response : ndarray of shape (n_samples,), optional
        Strata are not told apart by what is not there.

    Returns
    -------
    codes : ndarray of int, of shape (n_samples,)
    table : DataFrame
        Description of every stratum, and its number of rows ``n_samples``.
    """
    wanted: Sequence[str] = info_of(metric).given_rows(params)
    if info_of(metric).by_class and y_true is not None and len(pd.unique(y_true)) > 2:
        wanted = [name for name in wanted if name not in ("label", "response")]
    columns: dict[str, Any] = {"label": y_true, "response": response}
    if {"group", "side"} & set(wanted):
        columns |= _by_group(groups_of(metric, sensitive_features), params)
    n_samples = len(response if response is not None else y_true)  # type: ignore[arg-type]
    frame = pd.DataFrame({name: columns[name] for name in wanted if columns[name] is not None}, range(n_samples))
    if frame.empty:
        return np.zeros(n_samples, dtype=np.int64), pd.DataFrame({"n_samples": [n_samples]}, index=["all rows"])
    grouped = frame.groupby(list(frame), sort=True)
    return grouped.ngroup().to_numpy(), grouped.size().rename("n_samples").reset_index()


def _by_group(groups: Groups, params: dict[str, Any]) -> dict[str, Any]:
    """Columns of strata that come from the groups.

    Rows of groups that overlap are left to chance: were their parts fixed, a rate would not be that of equal draws.
    """
    if groups.unions is not None:
        return {"group": None}
    names = np.empty(len(groups.labels), dtype=object)
    names[:] = groups.labels
    columns: dict[str, Any] = {"group": names[groups.codes]}
    if params.get("protected") is not None:
        inside = groups.codes == protected_code(groups.labels, params["protected"])
        columns["side"] = np.where(inside, "protected", "others")
    return columns


def resolve_metric(
    metric: Any, metric_params: Any = None, given_later: Collection[str] = ()
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return the function of a name, or the function itself, and its arguments: those of the name and the user's.

    Raises ValueError for an unknown name, a metric of queries, whose rows are not independent, arguments that
    `check_options` refuses, and those that the metric needs and that are neither there nor ``given_later``.
    """
    if not isinstance(metric_params, Mapping | None):
        raise ValueError(f"metric_params must be a dict of arguments of the metric, or None; got {metric_params!r}.")
    function, params = metric, dict[str, Any]()
    if not callable(metric):
        info, params = find_metric(metric)
        function = info.function
    if "qid" in inspect.signature(function).parameters:
        raise ValueError(
            f"{info_of(function).name} compares rows of one query, which are not independent draws, so nothing can be "
            "certified about it. Choose a metric of single rows, or report its mean over held-out queries."
        )
    check_options(function, metric_params or {}, "metric_params")
    params = {**params, **(metric_params or {})}
    lacking = [name for name in needed_options(function) if name not in params and name not in given_later]
    if lacking:
        raise ValueError(f"{info_of(function).name} needs the arguments {lacking}; give them in metric_params.")
    return function, params


def as_loss_bound(loss_bound: Any) -> tuple[float, float] | None:
    """Return the ends of the interval in which all losses lie.

    Raises ValueError if there are not one or two, or the first is not below the second.
    """
    if loss_bound is None:
        return None
    numbers = [0.0, loss_bound] if np.ndim(loss_bound) == 0 else list(loss_bound)
    if not (len(numbers) == 2 and all(map(is_number, numbers)) and numbers[0] < numbers[1]):
        raise ValueError(
            f"loss_bound must be a positive number or a pair (low, high) with low < high; got {loss_bound!r}."
        )
    return float(numbers[0]), float(numbers[1])
