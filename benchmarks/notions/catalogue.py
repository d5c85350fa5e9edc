"""Notions of the benchmark: the number that is bounded, measured without the package, and how the package is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from benchmarks.any_model.notions import Measured, Response
from fairconstrained.constraints import GroupRates

#: Ending of the name of a data set of which all training rows are taken, however many there are.
WHOLE = "_whole"


class Rows(NamedTuple):
    """Rows of a data set: features, labels 0 or 1, group and stratum of every row."""

    X: Any
    y: np.ndarray
    groups: np.ndarray
    strata: np.ndarray

    def take(self, rows: np.ndarray) -> Rows:
        """The given rows."""
        X = self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]
        return Rows(X, self.y[rows], self.groups[rows], self.strata[rows])


class Mean(NamedTuple):
    """Mean of a group, and its standard error."""

    value: float
    error: float


def _mean(values: np.ndarray, weights: np.ndarray) -> Mean:
    """Weighted mean of independent rows; NaN without any weight."""
    total = weights.sum()
    if total <= 0:
        return Mean(np.nan, np.nan)
    mean = float(weights @ values / total)
    return Mean(mean, float(np.sqrt(weights**2 @ (values - mean) ** 2)) / float(total))


def _wrong(response: Response, y: np.ndarray) -> np.ndarray:
    """Probability of a wrong decision."""
    return np.abs(y - response.decisions)


def _log_losses(response: Response, y: np.ndarray) -> np.ndarray:
    if response.scores is None:
        raise ValueError("the method has decisions only")
    return np.logaddexp(0, -(2 * y - 1) * response.scores)


#: Values of the rows and their weights, whose mean is the rate. Random decisions count with their probability.
RATES: dict[str, Callable[[Response, np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "selection": lambda response, y: (response.decisions, np.ones(y.size)),
    "true_positive": lambda response, y: (response.decisions, y),
    "false_positive": lambda response, y: (response.decisions, 1 - y),
    "false_negative": lambda response, y: (1 - response.decisions, y),
    "error": lambda response, y: (_wrong(response, y), np.ones(y.size)),
    "accuracy": lambda response, y: (1 - _wrong(response, y), np.ones(y.size)),
    "positive_predictive_value": lambda response, y: (y, response.decisions),
    "log_loss": lambda response, y: (_log_losses(response, y), np.ones(y.size)),
}


def _difference(means: Sequence[Mean]) -> Measured:
    return _largest(Measured(abs(a.value - b.value), np.hypot(a.error, b.error)) for a, b in combinations(means, 2))


def _ratio(means: Sequence[Mean]) -> Measured:
    """One minus the ratio of the smaller mean to the larger."""

    def of(low: Mean, high: Mean) -> Measured:
        if not high.value > 0:
            return Measured(np.nan, np.nan)
        ratio = low.value / high.value
        return Measured(1 - ratio, np.hypot(low.error, ratio * high.error) / high.value)

    return _largest(of(*sorted(pair)) for pair in combinations(means, 2))


def _ceiling(means: Sequence[Mean]) -> Measured:
    return _largest(Measured(*mean) for mean in means)


def _largest(found: Any) -> Measured:
    """The largest number; NaN if one of them does not exist."""
    numbers = list(found)
    missing = [number for number in numbers if np.isnan(number.gap)]
    largest = missing[0] if missing else max(numbers)
    return Measured(float(largest.gap), float(largest.error))


RULES: dict[str, Callable[[Sequence[Mean]], Measured]] = {
    "difference": _difference,
    "ratio": _ratio,
    "ceiling": _ceiling,
}


@dataclass(frozen=True)
class Entry:
    """A notion.

    Parameters
    ----------
    title : str
    rates : tuple of str
        Names in `RATES`; the largest number of them counts.
    rule : str
        Name in `RULES`.
    bound : float or dict
        Largest value that is allowed, the same for all data sets or one for each.
    ask : callable
        From the bound to the parameters of the package's classifiers.
    within : bool, default=False
        Whether groups are compared within the strata.
    """

    title: str
    rates: tuple[str, ...]
    rule: str
    bound: float | dict[str, float]
    ask: Callable[[float], dict[str, Any]]
    within: bool = False

    @property
    def of_several(self) -> bool:
        """Whether the number is the largest of several."""
        return len(self.rates) > 1 or self.within or self.rule == "ceiling"

    def bound_for(self, data: str) -> float:
        """Bound for a data set."""
        return self.bound if isinstance(self.bound, float) else self.bound[data.removesuffix(WHOLE)]

    def measure(self, part: Rows, response: Response) -> Measured:
        """Number of a model on given rows, and its standard error."""
        blocks = [part.strata == name for name in np.unique(part.strata)] if self.within else [part.y >= 0]
        found = []
        for name in self.rates:
            values, weights = RATES[name](response, part.y)
            for block in blocks:
                members = [block & (part.groups == group) for group in np.unique(part.groups)]
                found.append(RULES[self.rule]([_mean(values[rows], weights[rows].astype(float)) for rows in members]))
        return _largest(found)


def _named(name: str) -> Callable[[float], dict[str, Any]]:
    return lambda bound: {"constraint": name, "kappa": bound}


def _of_rate(rate: str, rule: str) -> Callable[[float], dict[str, Any]]:
    return lambda bound: {"constraint": GroupRates(rate, rule=rule, kappa=bound)}


def _floor(rate: str) -> Callable[[float], dict[str, Any]]:
    """The complement of the rate has the bound."""
    return lambda bound: {"constraint": GroupRates(rate, rule="floor", kappa=1 - bound)}


_FALSE_NEGATIVES = {"adult": 0.4, "bank": 0.4, "compas": 0.45, "law_school": 0.05, "generated": 0.4}
_FALSE_POSITIVES = {"adult": 0.07, "bank": 0.08, "compas": 0.25, "law_school": 0.7, "generated": 0.2}
_ERRORS = {"adult": 0.1797, "bank": 0.24, "compas": 0.33, "law_school": 0.212, "generated": 0.3}
_LOG_LOSSES = {"adult": 0.3784, "bank": 0.475, "compas": 0.62, "law_school": 0.44, "generated": 0.6}

ENTRIES: dict[str, Entry] = {
    "demographic_parity": Entry(
        "demographic parity", ("selection",), "difference", 0.05, _named("demographic_parity")
    ),
    "demographic_parity_ratio": Entry(
        "four-fifths rule", ("selection",), "ratio", 0.2, _named("demographic_parity_ratio")
    ),
    "equal_opportunity": Entry(
        "equal opportunity", ("true_positive",), "difference", 0.05, _named("equal_opportunity")
    ),
    "equalized_odds": Entry(
        "equalized odds", ("true_positive", "false_positive"), "difference", 0.05, _named("equalized_odds")
    ),
    "equalized_odds_ratio": Entry(
        "equalized odds, ratio", ("true_positive", "false_positive"), "ratio", 0.2, _named("equalized_odds_ratio")
    ),
    "predictive_equality": Entry(
        "false positive rates", ("false_positive",), "difference", 0.05, _named("predictive_equality")
    ),
    "error_rate_parity": Entry("error rates", ("error",), "difference", 0.05, _named("error_rate_parity")),
    "error_rate_ratio": Entry("error rates, ratio", ("error",), "ratio", 0.4, _named("error_rate_ratio")),
    "accuracy_ratio": Entry("accuracies, ratio", ("accuracy",), "ratio", 0.1, _named("accuracy_ratio")),
    "predictive_parity": Entry(
        "predictive parity", ("positive_predictive_value",), "difference", 0.05, _named("predictive_parity")
    ),
    "conditional_parity": Entry(
        "parity within strata", ("selection",), "difference", 0.05, _named("conditional_parity"), within=True
    ),
    "true_positive_floor": Entry(
        "floor, true positives", ("false_negative",), "ceiling", _FALSE_NEGATIVES, _floor("true_positive")
    ),
    "false_positive_ceiling": Entry(
        "ceiling, false positives",
        ("false_positive",),
        "ceiling",
        _FALSE_POSITIVES,
        _of_rate("false_positive", "ceiling"),
    ),
    "error_ceiling": Entry("ceiling, errors", ("error",), "ceiling", _ERRORS, _of_rate("error", "ceiling")),
    "bounded_group_loss": Entry(
        "ceiling, log loss", ("log_loss",), "ceiling", _LOG_LOSSES, _named("bounded_group_loss")
    ),
}  # fmt: skip
