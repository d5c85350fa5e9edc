"""Entries of the metrics: names, sentence in a report, the response that is read, and the numbers that are compared."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from sklearn.utils._param_validation import InvalidParameterError

from fairconstrained.checks.docstrings import documented_by
from fairconstrained.checks.messages import meant
from fairconstrained.metrics.classes import over_classes
from fairconstrained.metrics.comparisons import Compared

__all__ = [
    "METRICS",
    "UNITS",
    "MetricInfo",
    "check_options",
    "documented_metric",
    "find_metric",
    "info_of",
    "metric_names",
    "needed_options",
    "register",
    "similar_gap",
]

#: Units of the metrics, in the order of a report.
UNITS = ("rate", "ratio", "AUC", "squared probability", "loss")
#: Parameters that several metrics have, with the documentation that they share.
_PARAMETERS = """Parameters
----------
y_true : array-like of shape (n_samples,)
    Labels: 0/1, -1/1, booleans, strings, ...
y_pred : array-like of shape (n_samples,)
    Predicted labels, in the same encoding.
y_score : array-like of shape (n_samples,)
    Scores, e.g. from ``decision_function``. Only their order matters. Of more than two labels, shape (n_samples,
    n_labels): a column for every label, in sorted order.
sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features)
    Group of every row; several columns are combined. Rows belong together by their position, whatever the index of a
    Series is, as in scikit-learn.
sample_weight : array-like of shape (n_samples,), default=None
    Non-negative; a weight of 2 stands for the same row twice.
pos_label : object, default=None
    The positive label, against all others; None for the larger of two. With more than two labels and None, every label
    in turn is the positive one, and the result is the largest gap.
interval : pair of floats, list of pairs, or dict from group to either, default=(0.0, 1.0)
    Percentile interval as fractions, a union of disjoint ones, or one of these for each group. Rank 0 is the top:
    ``(0, 0.2)`` compares the top fifths. The default compares the whole groups.
agg : {"max", "mean"}, default="max"
    Aggregate of the gaps.
on_empty : {"raise", "nan"}, default="raise"
    Whether to raise or to return NaN if a cell of rows that is compared, such as the positives of a group, is empty.
    The gap of a single group is NaN in either case; "nan" leaves out the warning.
threshold : float, default=0.0
    A row is predicted positive if its score exceeds this: 0 for ``decision_function``, 0.5 for probabilities.
normalize : bool, default=True
    Divide by the length of the interval (of each group's own, if they differ).
protected : object, default=None
    A group, to be compared with all other rows together, as if there were two groups; None compares every pair of
    groups.
return_groups : bool, default=False
    Whether to return the table by group as well. With more than two labels and no ``pos_label`` there is a table for
    every label, under the level ``class`` of the index.
"""
_IGNORED_LABELS = """Parameters
----------
y_true : array-like of shape (n_samples,) or None
    Ignored; present so that all metrics share one signature.
"""
_OVERLAPPING = """Parameters
----------
sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features)
    Group of every row; several columns are combined. Or, dense or sparse, a table of booleans that says which groups a
    row belongs to; they may overlap, and the columns of a DataFrame name them.
"""
_CUT_SCORES = """Parameters
----------
y_score : array-like of shape (n_samples,)
    Scores, e.g. from ``decision_function``. Of more than two labels, shape (n_samples, n_labels): a column for every
    label, in sorted order.
"""
#: Warnings of gaps that compare groups, with an end for those that have ``on_empty``.
_WARNS = """Warns
-----
FairnessWarning
    If there is a single group, so that there is nothing to compare and the value is NaN{}.
"""
_SILENT = " (not with ``on_empty='nan'``)"
#: Reasons for which a metric that has the parameter raises ValueError.
_REASONS = {
    "interval": "the interval is empty, reversed, overlapping or outside [0, 1]",
    "y_score": "scores are not finite",
    "pos_label": "``pos_label`` is not a label",
    "protected": "``protected`` is not a group",
    "on_empty": "a cell of rows that is compared is empty (the message says which one)",
    "agg": "an option is unknown",
    "sensitive_features": "lengths differ, or a group has no weight",
}
#: Arguments of metrics that are not for users to give beside the rows.
_NO_OPTIONS = {
    "sensitive_features": "it comes with the rows",
    "sample_weight": "weights, where there are some, come with the rows",
    "return_groups": "the result is one number",
}
Response = Literal["predict", "decision_function", "predict_proba"]
Metric = TypeVar("Metric", bound=Callable[..., Any])

#: Response that a report gives to a metric, by the one that an estimator would give it.
_READS = {"predict": "decisions", "decision_function": "scores", "predict_proba": "probabilities"}


@dataclass(frozen=True, kw_only=True)
class MetricInfo:
    """Entry of a metric; scorers, certificates, reports, figures and the documentation read it.

    Parameters
    ----------
    function : callable
        ``function(y_true, response, *, sensitive_features, sample_weight=None, ...)``, smaller is better.
    response : {"predict", "decision_function", "predict_proba"}
        The estimator method that yields the second argument. ``"decision_function"`` means raw scores;
        ``"predict_proba"`` the probability of the positive class.
    title : str
        Short name in reports.
    description : str
        One or two sentences for readers of a report, who need not know the field.
    label : str, default=""
        Name in figures; empty for the function's name with spaces.
    unit : {"rate", "ratio", "AUC", "loss", "squared probability"}, default="rate"
        Gaps of the same unit can be compared.
    aliases : tuple of str, default=()
        Other names of the same number. The function's name without "_gap" is one by itself.
    symbol : str, default=""
        Name in the tables and figures of papers, such as "Sp"; empty if there is none.
    symbol_params : dict, default={}
        Arguments with which the metric is the number that papers call by the symbol.
    reads : str, default=""
        Input of the metric in a report: "decisions", "signed decisions" (-1 and 1), "scores", "log-odds" or
        "probabilities"; empty for the input that follows from ``response``.
    report_params : dict, default={}
        Arguments in reports, beyond those that follow from the report.
    compared : Compared or None, default=None
        Numbers that the metric compares, from which certificates take their bounds; None leaves the bootstrap.
    given : tuple of str or callable, default=("group",)
        Numbers of rows that count as given in a certificate, and are not left to chance: those by "group", "label",
        "response" or "side" (the protected group and the others). A callable takes the arguments of the metric.
    is_gap : bool, default=True
        Whether 0 is fair; only such metrics are listed in ``METRICS`` and have lines in reports.
    compares_groups : bool, default=True
        Whether the metric compares groups, or takes the largest or least of their numbers.
    works_on_one_group : callable, optional
        Takes the arguments of the metric; returns whether it is a number of a single group as well with these.
    overlapping : bool, default=False
        Whether ``sensitive_features`` may say which of several groups every row belongs to.
    complement : bool, default=False
        Whether the metric is better when large, so that a certificate bounds one minus it, as ``kappa`` does.
    floor : callable, optional
        Takes the arguments of the metric; returns whether it is better when large with these, and ``kappa`` the least
        value of the metric itself.
    by_class : bool, default=False
        Whether it is the largest gap of a label against all others where there are more than two labels.
    """

    function: Callable[..., Any]
    response: Response
    title: str = ""
    description: str = ""
    label: str = ""
    unit: Literal["rate", "ratio", "AUC", "loss", "squared probability"] = "rate"
    aliases: tuple[str, ...] = ()
    symbol: str = ""
    symbol_params: Mapping[str, Any] = field(default_factory=dict)
    reads: str = ""
    report_params: Mapping[str, Any] = field(default_factory=dict)
    compared: Compared | None = None
    given: tuple[str, ...] | Callable[[dict[str, Any]], tuple[str, ...]] = ("group",)
    is_gap: bool = True
    compares_groups: bool = True
    works_on_one_group: Callable[[Mapping[str, Any]], bool] | None = None
    overlapping: bool = False
    complement: bool = False
    floor: Callable[[Mapping[str, Any]], bool] | None = None
    by_class: bool = False

    def __post_init__(self) -> None:
        words = self.name.replace("_", " ").replace("auc", "AUC")
        object.__setattr__(self, "label", self.label or words)
        object.__setattr__(self, "reads", self.reads or _READS[self.response])

    @property
    def name(self) -> str:
        """Name of the function."""
        return str(getattr(self.function, "__name__", self.function))

    @property
    def names(self) -> tuple[str, ...]:
        """All names that stand for the metric with its default arguments, the function's own first."""
        return tuple(dict.fromkeys((self.name, self.name.removesuffix("_gap"), *self.aliases)))

    @property
    def plain_names(self) -> tuple[str, ...]:
        """All `names`, and the symbol in papers where it stands for the metric with its default arguments as well."""
        return (*self.names, self.symbol) if self.symbol and not self.symbol_params else self.names

    def is_better_large(self, params: Mapping[str, Any]) -> bool:
        """Whether the metric is better when large, with these arguments."""
        return self.complement or self.is_floor(params)

    def is_floor(self, params: Mapping[str, Any]) -> bool:
        """Whether ``kappa`` is the least value of the metric, with these arguments."""
        return self.floor is not None and self.floor(params)

    def least_groups(self, params: Mapping[str, Any]) -> int:
        """Number of groups without which there is nothing to measure, with these arguments of the metric."""
        if not self.compares_groups:
            return 0
        return 1 if self.works_on_one_group is not None and self.works_on_one_group(params) else 2

    def bounded_name(self, params: Mapping[str, Any]) -> str:
        """Name of the number that a certificate bounds from above, with these arguments of the metric."""
        return f"1 - {self.name}" if self.is_better_large(params) else self.name

    def given_rows(self, params: dict[str, Any]) -> tuple[str, ...]:
        """Strata whose numbers of rows count as given, with these arguments of the metric."""
        return self.given(params) if callable(self.given) else self.given


#: The gaps by name, each with its entry.
METRICS: dict[str, MetricInfo] = {}
#: All metrics with an entry, those included that are no gaps.
_ENTRIES: dict[str, MetricInfo] = {}


def register(response: Response, by_class: bool = True, **entry: Any) -> Callable[[Metric], Metric]:
    """List the decorated metric under its own name, for scorers, certificates, reports and figures.

    Parameters
    ----------
    response : {"predict", "decision_function", "predict_proba"}
        The estimator method that yields the second argument of the metric.
    by_class : bool, default=True
        Whether a gap is the largest of those of a label against all others where there are more than two labels, see
        `fairconstrained.metrics.classes`. False is for a metric that takes any number of labels itself.
    **entry : object
        Further fields of `MetricInfo`.

    Returns
    -------
    decorator : callable
        It returns the function, with the documentation of the parameters that several metrics have.

    Raises
    ------
    ValueError
        If another metric has one of the names.
    """

    def add(function: Metric) -> Metric:
        splits = by_class and entry.get("is_gap", True)
        if splits:
            function = over_classes(function, response)
        info = MetricInfo(function=function, response=response, by_class=splits, **entry)
        known = _by_name()
        for name in (*info.names, *([info.symbol] if info.symbol else [])):
            other = known.get(name)
            if other is not None and other[0].name != info.name:
                raise ValueError(f"{info.name} cannot be called {name!r}: {other[0].name} is.")
        _ENTRIES[info.name] = info
        if info.is_gap:
            METRICS[info.name] = info
        return documented_metric(function, info.overlapping, info.is_gap and info.compares_groups)

    return add


def documented_metric(function: Metric, overlapping: bool = False, compares_groups: bool = False) -> Metric:
    """Complete the documentation of a metric by parameters that several have, and by reasons for errors."""
    parameters = inspect.signature(function).parameters
    special = {
        _IGNORED_LABELS: "None" in str(parameters.get("y_true")),
        _OVERLAPPING: overlapping,
        _CUT_SCORES: "threshold" in parameters,
    }
    shared = [text for text, applies in special.items() if applies] + [_PARAMETERS]
    reasons = ", ".join(reason for name, reason in _REASONS.items() if name in parameters)
    errors = "Raises\n------\nValueError\n" + textwrap.indent(textwrap.fill(f"If {reasons}.", 116), "    ")
    warns = [_WARNS.format(_SILENT if "on_empty" in parameters else "")] if compares_groups else []
    return documented_by(*shared, errors, *warns)(function)


def info_of(function: Callable[..., Any]) -> MetricInfo:
    """Return the entry of a function; one with default values if it has none."""
    for info in _ENTRIES.values():
        if info.function is function:
            return info
    return MetricInfo(function=function, response="predict")


def similar_gap(name: str, gaps: Iterable[MetricInfo]) -> str:
    """End of a message about an unknown gap: a question with the one of this symbol or of the most similar name.

    It is empty if there is none.
    """
    gaps = list(gaps)
    for info in gaps:
        if info.symbol and info.symbol == name:
            return meant(info.name, [info.name])
    return meant(name, [each for info in gaps for each in info.plain_names])


def check_options(function: Callable[..., Any], options: Mapping[str, Any], given_as: str = "") -> None:
    """Raise an error for arguments that are not the user's to give to a metric, or that it does not have.

    Parameters
    ----------
    function : callable
        Metric.
    options : mapping
        Arguments by name.
    given_as : str, default=""
        Name of the parameter that holds them, for the message.

    Raises
    ------
    InvalidParameterError
        A TypeError and a ValueError; the message lists the arguments that the metric has.
    """
    known = list(inspect.signature(function).parameters.values())[2:] if options else []
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known)
    allowed = [p.name for p in known if p.kind is not p.VAR_KEYWORD and p.name not in _NO_OPTIONS]
    metric, where = info_of(function).name, given_as and f"{given_as}: "
    for name in options:
        if name in _NO_OPTIONS:
            reason = _NO_OPTIONS[name]
            raise InvalidParameterError(f"{where}{name!r} is no argument to give to {metric} here: {reason}.")
        if name not in allowed and not takes_any:
            raise InvalidParameterError(f"{where}{metric} has no argument {name!r}; choose from {allowed}.")


def needed_options(function: Callable[..., Any]) -> list[str]:
    """Names of the arguments of a metric that have no default and that are the user's to give."""
    known = list(inspect.signature(function).parameters.values())[2:]
    return [
        p.name
        for p in known
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name not in _NO_OPTIONS
    ]


def find_metric(name: str) -> tuple[MetricInfo, dict[str, Any]]:
    """Return the entry of a metric by one of its names.

    Parameters
    ----------
    name : str
        Name of the function, one of its other names, or its symbol in papers; see `metric_names`.

    Returns
    -------
    info : MetricInfo
    params : dict
        Arguments with which the metric is what the name says; of most names none.

    Raises
    ------
    ValueError
        For an unknown name; the message lists those there are.
    """
    known = _by_name()
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"metric must be one of {metric_names()}, or a function; got {name!r}." + meant(name, known))
    info, params = known[name]
    return info, dict(params)


def metric_names() -> list[str]:
    """Return the names and symbols of all metrics, sorted.

    Returns
    -------
    names : list of str
    """
    return sorted(_by_name())


def _by_name() -> dict[str, tuple[MetricInfo, Mapping[str, Any]]]:
    named: dict[str, tuple[MetricInfo, Mapping[str, Any]]] = {
        name: (info, {}) for info in _ENTRIES.values() for name in info.names
    }
    return named | {info.symbol: (info, info.symbol_params) for info in _ENTRIES.values() if info.symbol}
