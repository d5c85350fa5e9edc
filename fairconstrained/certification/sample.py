"""Samples of unseen rows as a metric takes them, and the numbers of rows that count as given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.checks.messages import is_number
from fairconstrained.checks.protected import protected_code
from fairconstrained.groups import Groups
from fairconstrained.metrics.comparisons import CellMeans, Comparison, NotOffered
from fairconstrained.metrics.registry import find_metric, info_of

__all__ = [
    "Sample",
    "check_fraction",
    "check_params",
    "groups_of",
    "resolve_metric",
    "strata_of",
]

#: Arguments of metrics that are no choice of the user's.
_TAKEN = {
    "sensitive_features": "pass it by its own name",
    "sample_weight": "certificates take no weights, and gap_interval has an argument for them",
    "return_groups": "a bound is one number",
}


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows and the value of a metric on them.

    Attributes
    ----------
    metric : callable
    y_true : ndarray of shape (n_samples,)
        Labels or targets.
    response : ndarray of shape (n_samples,)
        Predictions, scores or probabilities of the model.
    sensitive_features : object
        Groups of the rows; None for a metric that compares no groups.
    params : dict
        Further arguments of the metric.
    loss_bound : tuple of float, optional
        Limits between which all losses lie, in the sample and outside it.
    n_resamples : int
    random_state : object
        Seed of the bootstrap.
    gap : float
        Value of the metric, or one minus it, which is small for a good model.
    """

    metric: Callable[..., Any]
    y_true: np.ndarray
    response: np.ndarray
    sensitive_features: Any
    params: dict[str, Any]
    loss_bound: tuple[float, float] | None = None
    n_resamples: int = 1000
    random_state: Any = None
    gap: float = field(init=False)

    def __post_init__(self) -> None:
        gap = self.gap_of(self.y_true, self.response, sensitive_features=self.sensitive_features)
        if np.isnan(gap):
            raise ValueError(f"{self.name} is NaN on these rows: a cell that it compares is empty. Use more rows.")
        object.__setattr__(self, "gap", gap)

    @property
    def name(self) -> str:
        """Name of the number that is to be small."""
        return info_of(self.metric).bounded_name

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(np.shape(self.response)[0])

    def gap_of(self, y_true: Any, response: Any, **rows: Any) -> float:
        """Return the gap that is to be small, on any rows."""
        value = float(self.metric(y_true, response, **rows, **self.params))
        return 1 - value if info_of(self.metric).complement else value

    def comparison(self) -> Comparison:
        """Return the cells of rows whose rates or means the metric compares; it may raise `NotOffered`."""
        compared = info_of(self.metric).compared
        if not isinstance(compared, CellMeans):
            raise NotOffered(f"{self.name} is not computed from means over rows.")
        return compared.read(self)


def groups_of(metric: Callable[..., Any], sensitive_features: Any) -> Groups:
    """The groups as the metric takes them: columns of booleans may say who belongs to which, or be combined."""
    return Groups.of(sensitive_features, overlapping=info_of(metric).overlapping)


def check_params(metric_params: Mapping[str, Any] | None, metric: Callable[..., Any]) -> dict[str, Any]:
    """The further arguments of a metric.

    Raises
    ------
    ValueError
        If there are some among them that are not the user's to give here, or that the metric does not have.
    """
    if not isinstance(metric_params, Mapping | None):
        raise ValueError(f"metric_params must be a dict of arguments of the metric, or None; got {metric_params!r}.")
    params = dict(metric_params or {})
    for name in _TAKEN.keys() & params.keys():
        raise ValueError(f"metric_params must not hold {name!r}: {_TAKEN[name]}.")
    known = inspect.signature(metric).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    options = [name for name, parameter in known.items() if parameter.kind is parameter.KEYWORD_ONLY]
    if unknown := [] if takes_any else [name for name in params if name not in known]:
        allowed = [name for name in options if name not in _TAKEN]
        raise ValueError(f"metric_params has {unknown}, but {info_of(metric).name} takes {allowed}.")
    return params


def strata_of(
    metric: Callable[..., Any],
    params: dict[str, Any],
    sensitive_features: Any,
    y_true: np.ndarray | None,
    response: np.ndarray | None = None,
) -> tuple[np.ndarray, pd.DataFrame]:
    """The stratum of every row: numbers of rows in strata count as given.

    Parameters
    ----------
    metric : callable
        Metric. For an unknown one, the numbers of rows in the groups count as given.
    params : dict
    sensitive_features : object
    y_true, response : ndarray of shape (n_samples,), optional
        Strata are not told apart by what is not there.

    Returns
    -------
    codes : ndarray of int, of shape (n_samples,)
    table : DataFrame
        Description of every stratum, and its number of rows ``n_samples``.
    """
    wanted = info_of(metric).given_rows(params)
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


def check_fraction(name: str, value: Any) -> float:
    """Raise a ValueError unless ``value`` lies strictly between 0 and 1."""
    if not (is_number(value) and 0 < value < 1):
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {value!r}.")
    return float(value)


def resolve_metric(metric: Any, metric_params: Any = None) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return the function of a name, or the function itself, and its arguments: those of the name and the user's.

    Raises
    ------
    ValueError
        For an unknown name, a metric of queries, whose rows are not independent, and arguments that `check_params`
        refuses.
    """
    if not callable(metric):
        info, params = find_metric(metric)
        return info.function, params | check_params(metric_params, info.function)
    if "qid" in inspect.signature(metric).parameters:
        raise ValueError(f"{info_of(metric).name} compares rows of one query, which are not independent draws.")
    return metric, check_params(metric_params, metric)
