"""Bounds on the rates of groups: any rate, compared by any rule, among any rows."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Self, cast

import numpy as np
import pandas as pd
from sklearn.utils._param_validation import StrOptions
from typing_extensions import override

from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.constraints._constraint import Constraint
from fairconstrained.constraints._decision_rates import BoundDecisionRates, BoundPredictiveValues
from fairconstrained.constraints._row_functions import RATE_FUNCTIONS, RowFunction, log_loss_of_classes
from fairconstrained.constraints.base import check_bound, check_kappa
from fairconstrained.constraints.compared_groups import ComparesGroups, table_of_groups
from fairconstrained.constraints.demographic_parity import DemographicParity
from fairconstrained.constraints.equal_opportunity import EqualOpportunity
from fairconstrained.constraints.mean_gaps import BoundMeanGaps
from fairconstrained.data import FairData
from fairconstrained.groups import Strata
from fairconstrained.metrics.cell_means import Notion
from fairconstrained.metrics.group_rates import AMONG, RULE_NAMES, Rate, group_rates, rate_named
from fairconstrained.objectives import Scaled, Score

__all__ = ["NAMED_RATES", "GroupRates"]

#: Parameters of the usual bounds, by their names; the metric of the same name is what ``kappa`` bounds.
NAMED_RATES: dict[str, dict[str, Any]] = {
    "demographic_parity_ratio": {"rate": "selection", "rule": "ratio"},
    "equal_opportunity_ratio": {"rate": "true_positive", "rule": "ratio"},
    "equalized_odds_ratio": {"rate": "true_and_false_positive", "rule": "ratio"},
    "predictive_equality": {"rate": "false_positive"},
    "predictive_equality_ratio": {"rate": "false_positive", "rule": "ratio"},
    "error_rate_parity": {"rate": "error"},
    "error_rate_ratio": {"rate": "error", "rule": "ratio"},
    "accuracy_ratio": {"rate": "accuracy", "rule": "ratio"},
    "predictive_parity": {"rate": "positive_predictive_value"},
    "predictive_parity_ratio": {"rate": "positive_predictive_value", "rule": "ratio"},
    "conditional_parity": {"rate": "selection", "within": "strata"},
    "bounded_group_loss": {"rate": "log_loss", "rule": "ceiling"},
}

#: Names of bounds by rate, rule and strata.
_USUAL_NAMES: dict[tuple[str, str, str | None], str] = {
    ("selection", "difference", None): "demographic_parity",
    ("true_positive", "difference", None): "equal_opportunity",
    ("true_and_false_positive", "difference", None): "equalized_odds",
    **{(own["rate"], own.get("rule", "difference"), own.get("within")): name for name, own in NAMED_RATES.items()},
}
#: Excess of a mean of smooth values over ``kappa`` that counts as met.
_TOLERANCE = 1e-9
#: Constraints on the same gap whose thresholds can be searched by group, by rate; for differences of pairs.
_SEARCH_FORMS: dict[str, type[Constraint]] = {"selection": DemographicParity, "true_positive": EqualOpportunity}


@with_parameters
class GroupRates(ComparesGroups):
    r"""Bound on the rates of groups, compared by a rule.

    With the rate :math:`R_g` of group g, a mean over its rows, and that of all rows R:

    ============  ==============================================================
    rule          bound
    ============  ==============================================================
    "difference"  :math:`|R_g - R_{g'}| \le \kappa` for all groups
    "to_overall"  :math:`|R_g - R| \le \kappa`
    "ratio"       :math:`R_g \ge (1 - \kappa) R_{g'}` for all groups
    "floor"       :math:`R_g \ge \kappa`
    "ceiling"     :math:`R_g \le \kappa`
    ============  ==============================================================

    A ratio of 0.8, the four-fifths rule, is ``kappa=0.2``. The metric is `fairconstrained.metrics.group_rates`; that of
    a ratio is one minus it, and that of a floor is the least rate, which ``kappa`` bounds from below.

    Parameters
    ----------
    rate : str, default="selection"
        Rate of decisions: "selection", "true_positive", "false_positive", "true_negative", "false_negative",
        "true_and_false_positive" (each by itself, equalized odds), "error", "accuracy", "positive_predictive_value",
        "negative_predictive_value". Smooth means: "probability", of :math:`1 / (1 + e^{-s})`; "score", of the scores;
        or of a loss: "log_loss", "hinge", "absolute", "squared", which is half the square of the error.
    rule : {"difference", "to_overall", "ratio", "floor", "ceiling"}, default="difference"
        Rule that compares the rates, as in the table above. "ratio" is for rates that are never negative, so that it
        does not go with "score".
    kappa : float or None, default=0.05
        Bound, in [0, 1] for rates of decisions and of probabilities, and for all ratios. For other rules of scores and
        losses it is at least 0, in their units. None is no bound: the metric is only reported.
    within : {"strata"} or None, default=None
        "strata" compares groups within each of the ``strata`` that are passed to `fit`, such as jobs or departments
        (conditional parity); the worst stratum counts.
    among : {"all", "positives", "negatives"}, label, or array-like of bool of shape (n_samples,), default="all"
        Rows that the rate is taken among: all rows, those of one label ("positives", "negatives", or the label itself,
        one of the two in y), or those that a mask of the rows passed to `fit` marks. A mask goes with these rows alone:
        other rows, and parts of them, such as the folds of a search, raise an error unless there are as many.
    min_group_size : int or "auto", default="auto"
        Least number of rows of every cell (a group, or its rows of a label or stratum) with which a group takes part.
        "auto": so many that no row counts more than ``max(kappa, 0.02)``, with ``kappa`` of a regressor in standard
        deviations of ``y``, or in its variance for squares. Rates of decisions need that many rows whatever is given
        here.

    Notes
    -----
    Predictive values are quotients of two rates; solvers see them linearised around the last scores, with exact values
    there.

    References
    ----------
    Agarwal, Beygelzimer, Dudik, Langford, Wallach, A reductions approach to fair classification, ICML 2018: rates as
    linear constraints (section 2). Celis, Huang, Keswani, Vishnoi, Classification with fairness constraints, FAT* 2019:
    ratios and predictive values.

    Examples
    --------
    >>> from fairconstrained import RateParityClassifier
    >>> from fairconstrained.constraints import GroupRates
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=2000, random_state=0)
    >>> four_fifths = GroupRates("selection", rule="ratio", kappa=0.2)
    >>> model = RateParityClassifier(constraint=four_fifths).fit(X, y, sensitive_features=group)
    >>> model.constraint_values_["demographic_parity_ratio"] <= 0.2
    True
    """

    is_of_classes: ClassVar[bool] = False
    #: Offset and scale of the targets that a solver sees, see `in_units`.
    _units: ClassVar[tuple[float, float]] = (0.0, 1.0)

    rate: str = parameter(default="selection", kw_only=False)
    rule: str = parameter(default="difference", allowed=[StrOptions(set(RULE_NAMES))])
    kappa: float | None = parameter(default=0.05)
    within: str | None = parameter(default=None, allowed=[StrOptions({"strata"}), None])
    among: Any = parameter(default="all")

    def named_rate(self) -> Rate:
        """Return the rate, with the label among whose rows it is taken; raises ValueError for an unknown one."""
        if np.ndim(self.among) == 0 and self.among not in list(AMONG):
            raise ValueError(
                f"among must be one of {sorted(AMONG)}, one of the two labels in y, or a mask with a boolean for each "
                f"row; got {self.among!r}."
            )
        return rate_named(self.rate, "all" if np.ndim(self.among) else self.among)

    def _bind(self, data: FairData) -> BoundMeanGaps:
        """Implement `Constraint.bind`; also raises ValueError for cells that are too small, with their sizes."""
        rate = self.named_rate()
        self._check_targets(rate, data)
        if rate.function == "score" and self.rule == "ratio":
            raise ValueError(
                "rule='ratio' needs rates that are not negative, which scores may be; set rule='difference'."
            )
        # a ratio is at least 1 - kappa, whatever the rates are
        kappa = check_kappa(self.kappa) if rate.most == 1 or self.rule == "ratio" else check_bound(self.kappa)
        if self.rule == "floor" and self.kappa is None:
            kappa = 0.0 if rate.most == 1 else -np.inf
        notion = Notion(rate.targets, RULE_NAMES[self.rule], strata=self._strata(data), mask=self._mask(data))
        name = self._name
        if rate.given is not None:
            function = RATE_FUNCTIONS[rate.given]
            return BoundPredictiveValues.of(self, data, kappa, name, notion, function, _TOLERANCE, rate=rate)
        bound_class = BoundDecisionRates if rate.counts_rows else BoundMeanGaps
        return bound_class.of(self, data, kappa, name, notion, self._function(rate), _TOLERANCE)

    @property
    @override
    def bounds_from_below(self) -> bool:
        return self.rule == "floor"

    @property
    @override
    def bounds_levels(self) -> bool:
        return self.rule == "ceiling"

    @property
    def _takes_all_rows(self) -> bool:
        return isinstance(self.among, str) and self.among == "all"

    @property
    def _name(self) -> str:
        rate = self.rate.removesuffix("_rate")
        if self._takes_all_rows:
            usual = _USUAL_NAMES.get((rate, self.rule, self.within))
            if usual is not None:
                return usual
        return f"{rate}_{'gap' if self.rule == 'difference' else self.rule}"

    def _function(self, rate: Rate) -> RowFunction:
        """The function of a row, in the units of the user."""
        if self._classes:
            return log_loss_of_classes(len(self._classes))
        function, (offset, scale) = RATE_FUNCTIONS[rate.function], self._units
        if (offset, scale) == (0.0, 1.0):
            return function
        if rate.function == "score":
            return RowFunction(Score(offset, scale), lambda s, y: offset + scale * s, unit=scale)
        factor = scale ** _POWERS[rate.function]
        return RowFunction(Scaled(function.smooth, factor), lambda s, y: factor * function.exact(s, y), unit=factor)

    @staticmethod
    def _check_targets(rate: Rate, data: FairData) -> None:
        if rate.most == 1 and rate.asks_for_labels and not np.isin(data.y.numpy(), [-1.0, 1.0]).all():
            raise ValueError(
                "rates that ask for labels need two classes; a regressor takes the rates of scores and losses."
            )

    def _strata(self, data: FairData) -> tuple[str, ...] | None:
        if self.within is None:
            return None
        if data.strata is None:
            raise ValueError(
                "within='strata' compares groups within strata; pass the stratum of every row to fit(strata=...)."
            )
        return tuple(map(str, data.strata.labels))

    def _mask(self, data: FairData) -> np.ndarray | None:
        if np.ndim(self.among) == 0:
            return None
        mask = np.asarray(self.among)
        if mask.dtype != bool or mask.ndim != 1:
            raise ValueError("among must have a boolean for each row if it is a mask.")
        data.check_mask(mask.size, "among has")
        return mask

    @override
    def of_labels(self, labels: Sequence[Hashable]) -> Self:
        sides = dict(zip(labels, ("negatives", "positives"), strict=False)) if len(labels) == 2 else {}
        if np.ndim(self.among) or self.among in AMONG or self.among not in sides:
            return self
        named = copy.copy(self)
        named.among = sides[self.among]
        return named

    @property
    @override
    def compares_within_strata(self) -> bool:
        return self.within is not None

    @override
    def in_units(self, offset: float, scale: float) -> Self:
        if (offset, scale) == (0.0, 1.0):
            return self
        if self.named_rate().function not in _POWERS:
            raise ValueError(
                f"rate={self.rate!r} is about the decisions of a classifier; a regressor takes rate='score' and the "
                "losses 'squared' and 'absolute'."
            )
        changed = copy.copy(self)
        changed._units = (offset, scale)  # type: ignore[misc]  # of this object alone
        return changed

    @override
    def for_classes(self, classes: Sequence[Hashable]) -> Constraint | None:
        """Return the bound on multinomial log losses, where losses of all rows are bounded."""
        if self.rate != "log_loss" or not self._takes_all_rows:
            return None
        return self._of_classes(classes)

    @override
    def search_form(self) -> Constraint | None:
        plain = self.rule == "difference" and self.within is None and self._takes_all_rows
        form = _SEARCH_FORMS.get(self.rate.removesuffix("_rate")) if plain else None
        return None if form is None else form(self.kappa)

    @override
    def group_table(self, data: FairData, scores: np.ndarray) -> pd.DataFrame | None:
        if np.ndim(self.among) or self._units != (0.0, 1.0) or self._classes:
            return None
        strata = None if self.within is None else cast(Strata, data.strata).values
        options = {"rate": self.rate, "rule": self.rule, "among": self.among, "strata": strata}
        return table_of_groups(group_rates, data, scores, **options)


#: Powers of the unit of the targets in the functions that a regressor may bound.
_POWERS = {"score": 1, "absolute": 1, "squared": 2}
