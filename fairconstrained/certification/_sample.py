"""Rows that no fit has seen, as a metric takes them, and which numbers of them count as given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

import fairconstrained.metrics as metrics
from fairconstrained._messages import is_number
from fairconstrained._protected import protected_code
from fairconstrained.groups import Groups

__all__ = [
    "Sample",
    "check_fraction",
    "check_params",
    "compares_groups",
    "gap_name",
    "groups_of",
    "resolve_metric",
    "strata_of",
]

_BY_GROUP = ("group",)
_BY_CELL = ("group", "label")


def _strata_of_sides(params: dict[str, Any]) -> tuple[str, ...]:
    """Of AUCs between two sides; where one is everybody but a group, the shares of those in it are left to chance."""
    return _BY_GROUP if params.get("protected") is None else ("side",)


def _strata_of_ranks(params: dict[str, Any]) -> tuple[str, ...]:
    """Of the metrics among the rows of a label; ranks in the whole group depend on the labels' shares of it."""
    return _BY_GROUP if params.get("ranks") == "group" else _BY_CELL


def _strata_of_notion(params: dict[str, Any]) -> tuple[str, ...]:
    """Of the metrics that compare means of groups by the name of a notion."""
    constraint = params.get("constraint", "demographic_parity")
    by_label = constraint in ("equal_opportunity", "equalized_odds")
    if params.get("reference") == "overall" or constraint == "intersectional":
        return ("label",) if by_label else ()
    return _BY_CELL if by_label else _BY_GROUP


#: Numbers of rows that a metric is defined given, of metrics that do not compare whole groups. The distribution of the
#: sample's gap is that of draws with these numbers fixed, and with everything else left to chance.
_STRATA: dict[Callable[..., Any], Callable[[dict[str, Any]], tuple[str, ...]]] = {
    metrics.equal_opportunity_gap: lambda params: _BY_CELL,
    metrics.separation_gap: lambda params: _BY_CELL,
    metrics.partial_equal_opportunity_gap: _strata_of_ranks,
    metrics.partial_equalized_odds_gap: _strata_of_ranks,
    metrics.group_auc_gap: _strata_of_sides,
    metrics.inter_group_auc_gap: lambda params: (*_strata_of_sides(params), "label"),
    metrics.intra_group_auc_gap: lambda params: (*_strata_of_sides(params), "label"),
    metrics.sufficiency_gap: lambda params: ("group", "response"),
    metrics.positive_equality_gap: lambda params: ("label",),
    metrics.negative_equality_gap: lambda params: ("label",),
    metrics.bpsn_bnsp_gap: lambda params: ("label",),
    metrics.subset_auc_gap: lambda params: (),
    metrics.inaccuracy: lambda params: (),
    metrics.minority_share: lambda params: (),
    metrics.rate_gap: _strata_of_notion,
    metrics.loss_parity_gap: _strata_of_notion,
}
#: What is bounded from above where it is not the metric: a share that is to be large.
_COMPLEMENTS: dict[Callable[..., Any], str] = {metrics.minority_share: "1 - minority_share"}
_NAMED: dict[str, Callable[..., Any]] = {name: info.function for name, info in metrics.METRICS.items()} | {
    function.__name__: function for function in (metrics.minority_share, metrics.parity_pair, metrics.subset_auc_gap)
}
_WITHOUT_GROUPS = (metrics.inaccuracy, metrics.subset_auc_gap)
_WITH_OVERLAP = (metrics.rate_gap, metrics.loss_parity_gap)
#: Arguments of metrics that are no choice of the user's.
_TAKEN = {
    "sensitive_features": "pass it by its own name",
    "sample_weight": "certificates take no weights, and gap_interval has an argument for them",
    "return_groups": "a bound is one number",
}


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows and what a metric makes of them.

    Attributes
    ----------
    metric : callable
    y_true : ndarray of shape (n_samples,)
        Labels or targets.
    response : ndarray of shape (n_samples,)
        What the model said.
    sensitive_features : object
        None for a metric that compares no groups.
    params : dict
        Further arguments of the metric.
    loss_bound : tuple of float, optional
        Between which all losses lie, in the sample and outside it.
    n_resamples : int
    random_state : object
        Of the bootstrap.
    gap : float
        What is to be small.
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
        """Of what is to be small."""
        return gap_name(self.metric)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(np.shape(self.response)[0])

    def gap_of(self, y_true: Any, response: Any, **rows: Any) -> float:
        """What is to be small, on any rows."""
        value = float(self.metric(y_true, response, **rows, **self.params))
        return 1 - value if self.metric in _COMPLEMENTS else value


def gap_name(metric: Callable[..., Any]) -> str:
    """What a certificate calls the metric."""
    return _COMPLEMENTS.get(metric) or str(getattr(metric, "__name__", metric))


def compares_groups(metric: Callable[..., Any]) -> bool:
    """Whether there is nothing to bound with a single group."""
    return metric not in _WITHOUT_GROUPS


def groups_of(metric: Callable[..., Any], sensitive_features: Any) -> Groups:
    """The groups as the metric takes them: columns of booleans may say who belongs to which, or be combined."""
    return Groups.of(sensitive_features, overlapping=metric in _WITH_OVERLAP)


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
        raise ValueError(
            f"metric_params has {unknown}, but {gap_name(metric)} takes {[n for n in options if n not in _TAKEN]}."
        )
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
        Of one that is not known the numbers of rows in the groups count as given.
    params : dict
    sensitive_features : object
    y_true, response : ndarray of shape (n_samples,), optional
        Strata are not told apart by what is not there.

    Returns
    -------
    codes : ndarray of int, of shape (n_samples,)
    table : DataFrame
        What the rows of every stratum have in common, and how many they are, ``n_samples``.
    """
    wanted = _STRATA.get(metric, lambda params: _BY_GROUP)(params)
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


def resolve_metric(metric: Any) -> Callable[..., Any]:
    """The function of that name, or the function itself.

    Raises
    ------
    ValueError
        For an unknown name, or a metric of queries, whose rows are not independent.
    """
    if callable(metric):
        if "qid" in inspect.signature(metric).parameters:
            raise ValueError(f"{gap_name(metric)} compares rows of one query, which are not independent draws.")
        return metric
    if not isinstance(metric, str) or metric not in _NAMED:
        raise ValueError(f"metric must be one of {sorted(_NAMED)}, or a function; got {metric!r}.")
    return _NAMED[metric]
