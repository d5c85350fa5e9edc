"""Rates of groups by name, the rows that they are taken among, and the number that a rule makes of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairconstrained.groups import Strata
from fairconstrained.metrics.cell_means import ROW_FUNCTIONS, ROW_LOSSES, Notion, mean_by_cell
from fairconstrained.metrics.comparisons import CellRates, Comparison, MetricRows
from fairconstrained.metrics.contrasts import Contrast, LargestCell, OverallGaps, PairGaps, RatioGaps
from fairconstrained.metrics.registry import register
from fairconstrained.metrics.rules import RULES, Reference
from fairconstrained.metrics.validation import (
    NAN_INSTEAD,
    GroupedRows,
    OnEmpty,
    check_groups,
    check_option,
    check_scores,
    check_true_labels,
)

__all__ = [
    "AMONG",
    "GROUP_RATES",
    "RULE_NAMES",
    "LabelledRows",
    "Rate",
    "checked_strata",
    "given_of",
    "group_rates",
    "means_compared",
    "rate_named",
    "rates_compared",
]

#: Functions of rows that are 0 or 1 by the decision, and functions that ask for no label.
_DECISIONS = ("indicator", "negative", "correct", "error")
_WITHOUT_LABELS = ("indicator", "negative", "sigmoid", "score")


class Rate(NamedTuple):
    """Mean of a function of the rows, among those of some targets, or among those with a decision."""

    #: Name of the function in `ROW_FUNCTIONS`.
    function: str
    #: Targets whose rows are taken, each by itself; None: all rows.
    targets: tuple[float, ...] | None = None
    #: Decision among whose rows the mean is taken, a name in `ROW_FUNCTIONS`.
    given: str | None = None
    #: Largest value of the function; infinity for a score or a loss.
    most: float = 1.0

    @property
    def counts_rows(self) -> bool:
        """Whether it is a share of rows, and no mean of smooth values."""
        return self.function in _DECISIONS or self.given is not None

    @property
    def asks_for_labels(self) -> bool:
        """Whether labels enter."""
        return self.targets is not None or self.function not in _WITHOUT_LABELS

    def values(self, scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Values of the rows whose mean is the rate; ndarray of shape (n_samples,)."""
        return ROW_FUNCTIONS[self.function](scores, targets)

    def weights(self, weights: np.ndarray, scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Weights of the rows in the mean; ndarray of shape (n_samples,)."""
        return weights if self.given is None else weights * ROW_FUNCTIONS[self.given](scores, targets)


#: Rates by name.
GROUP_RATES: dict[str, Rate] = {
    "selection": Rate("indicator"),
    "true_positive": Rate("indicator", (1.0,)),
    "false_positive": Rate("indicator", (-1.0,)),
    "true_negative": Rate("negative", (-1.0,)),
    "false_negative": Rate("negative", (1.0,)),
    "true_and_false_positive": Rate("indicator", (1.0, -1.0)),
    "error": Rate("error"),
    "accuracy": Rate("correct"),
    "positive_predictive_value": Rate("positive_label", given="indicator"),
    "negative_predictive_value": Rate("negative_label", given="negative"),
    "probability": Rate("sigmoid"),
    "score": Rate("score", most=np.inf),
    **{loss: Rate(loss, most=np.inf) for loss in ROW_LOSSES},
}
#: Rules by the names that users give them.
RULE_NAMES: dict[str, Reference] = {
    "difference": "pairwise",
    "to_overall": "overall",
    "ratio": "ratio",
    "floor": "floor",
    "ceiling": "ceiling",
}
#: Targets of the rows that are taken, by the names that users give them.
AMONG: dict[str, tuple[float, ...] | None] = {"all": None, "positives": (1.0,), "negatives": (-1.0,)}


def rate_named(name: str, among: str = "all") -> Rate:
    """Return the rate of a name, with or without the ending "_rate", among the rows of a label.

    Raises ValueError for an unknown name, and for rows that the rate excludes.
    """
    short = name.removesuffix("_rate") if isinstance(name, str) else name
    check_option("rate", short, GROUP_RATES)
    check_option("among", among, AMONG)
    rate, targets = GROUP_RATES[short], AMONG[among]
    if targets is None:
        return rate
    if rate.targets is not None and rate.targets != targets:
        raise ValueError(f"rate={name!r} is taken among rows of a label already; leave among='all'.")
    if rate.given is not None:
        raise ValueError(f"rate={name!r} is the share of a label, which is 0 or 1 among={among!r}; leave among='all'.")
    return rate._replace(targets=targets)


def checked_strata(strata: Any, n_samples: int) -> Strata | None:
    """Encode the strata of the rows, if there are any; raises ValueError for another number of rows."""
    return Strata.of_rows(strata, n_samples, "the labels or scores")


class LabelledRows(NamedTuple):
    """Scores, labels as booleans with their names, groups, and perhaps strata."""

    scores: np.ndarray
    positive: np.ndarray
    names: tuple[str, str]
    groups: GroupedRows
    strata: Strata | None = None

    @classmethod
    def of(
        cls,
        y_true: Any,
        y_score: Any,
        sensitive_features: Any,
        sample_weight: Any,
        pos_label: Any = None,
        strata: Any = None,
    ) -> Self:
        """Validate what a user gave."""
        scores = check_scores(y_score, y_true)
        positive, names = check_true_labels(y_true, pos_label)
        groups = check_groups(sensitive_features, sample_weight, scores.size, overlapping=True)
        return cls(scores, positive, names, groups, checked_strata(strata, scores.size))

    @property
    def targets(self) -> np.ndarray:
        """-1 and +1."""
        return np.where(self.positive, 1.0, -1.0)

    def is_alone(self, notion: Notion) -> bool:
        """Return whether there is a single group, which the notion has nothing to compare with.

        Of groups that may overlap, a single one need not have all rows, and can be compared with these.
        """
        groups, rule = self.groups, notion.rule
        has_others = groups.unions is not None and rule.compares_with_all
        return groups.n_groups == 1 and not (rule.works_on_one_group or has_others)

    def measured(self, rate: Rate, notion: Notion) -> RatesMeasured:
        """Return the rates of the groups in every block, and the number that the notion's rule makes of them."""
        if self.strata is not None:
            notion = notion._replace(strata=tuple(map(str, self.strata.labels)))
        groups, targets = self.groups, self.targets
        values, weights = rate.values(self.scores, targets), rate.weights(groups.weights, self.scores, targets)
        blocks = notion.blocks(targets, strata=self.strata)
        cells = blocks.cells(groups.codes, groups.n_parts)
        means = mean_by_cell(values, cells, weights, (blocks.n_blocks, groups.n_parts), groups.unions)
        (overall,) = mean_by_cell(values, blocks.codes, weights, (1, blocks.n_blocks))
        value = np.nan if self.is_alone(notion) else float(notion.values(means, overall))
        return RatesMeasured(value, means, notion.gaps(means, overall), notion)


class RatesMeasured(NamedTuple):
    """Rates of groups and the number that a rule makes of them."""

    #: NaN if a cell that is compared is empty, there is a single group that is compared with others, or a ratio is one
    #: of zeros or of negative numbers.
    value: float
    means: np.ndarray  # of shape (n_blocks, n_groups)
    gaps: np.ndarray  # of shape (n_groups,)
    notion: Notion

    def checked(self, rows: LabelledRows, rate: str, on_empty: OnEmpty) -> Self:
        """Raise ValueError where the value does not exist, or warn of a single group, unless ``on_empty`` is "nan"."""
        check_option("on_empty", on_empty, ("raise", "nan"))
        if rows.is_alone(self.notion):
            return self._replace(value=rows.groups.gap(self.value, on_empty))
        if on_empty == "nan" or not np.isnan(self.value):
            return self
        blocks = [name.removeprefix(", ") for name in self.notion.block_names]
        empty = [
            f"{rows.groups.labels[g]!r}" + (f" ({blocks[b]})" if blocks[b] else "")
            for b, g in np.argwhere(np.isnan(self.means))
        ]
        if empty:
            shown = ", ".join(empty[:10]) + (f" and {len(empty) - 10} more" if len(empty) > 10 else "")
            raise ValueError(
                f"the {rate.replace('_', ' ')} rate does not exist for these groups, as there are no rows to take it "
                f"among: {shown}. Merge small groups or strata, or use more data. {NAN_INSTEAD}"
            )
        reason = "a group has a rate below 0" if (self.means < 0).any() else "no group has a rate above 0"
        raise ValueError(
            f"the ratio of {rate.replace('_', ' ')} rates does not exist, as {reason}. "
            f"Compare differences (rule='difference'). {NAN_INSTEAD}"
        )

    def table(self, rows: LabelledRows, rate: str) -> pd.DataFrame:
        """Return one row for each group, with the rate in every block and the number that the rule compares."""
        columns = [rate + name.replace(", ", "_", 1) for name in self.notion.block_names]
        return rows.groups.table(**dict(zip(columns, self.means, strict=True)), gap=self.gaps)


def rates_compared(rows: MetricRows, rate: Rate, reference: Reference, strata: Any = None) -> Comparison:
    """Rates of the groups, as certificates compare them; of a floor the largest complement."""
    scores = check_scores(rows.response, rows.y_true)
    targets = np.ones(scores.size)
    if rate.asks_for_labels:
        targets = np.where(check_true_labels(rows.y_true)[0], 1.0, -1.0)
    found = checked_strata(strata, scores.size)
    strata_names = None if found is None else tuple(map(str, found.labels))
    notion = Notion(rate.targets, reference, strata=strata_names)
    members = notion.blocks(targets, strata=found).members
    if rate.given is not None:
        members = members & (ROW_FUNCTIONS[rate.given](scores, targets) > 0)
    values = rate.values(scores, targets)
    return means_compared(
        rows,
        1 - values if notion.rule.is_floor else values,
        members,
        tuple(name.removeprefix(", ") or "all rows" for name in notion.block_names),
        notion,
        limits=(0.0, 1.0) if rate.most == 1 else None,
        counts_events=rate.counts_rows,
    )


_CONTRASTS: dict[Reference, Callable[..., Contrast]] = {
    "pairwise": PairGaps,
    "overall": OverallGaps,
    "excess": partial(OverallGaps, signed=True),
    "ratio": RatioGaps,
    "floor": LargestCell,
    "ceiling": LargestCell,
}


def means_compared(
    rows: MetricRows, values: np.ndarray, blocks: np.ndarray, names: tuple[str, ...], notion: Notion, **facts: Any
) -> Comparison:
    """Return the comparison of the groups' means in every block by the rule of the notion.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
    blocks : ndarray of bool, of shape (n_blocks, n_samples)
    names : tuple of str
        Names of the blocks.
    **facts
        Further fields of `Comparison`.
    """
    groups = rows.groups
    contrast = _CONTRASTS[notion.reference](
        n_blocks=len(blocks), n_groups=len(groups.names), fold=notion.agg_labels, agg=rows.params.get("agg", "max")
    )
    with_overall = notion.reference in ("overall", "excess")
    return Comparison(values, blocks, names, groups, contrast, with_overall=with_overall, **facts)


def _named(params: dict[str, Any]) -> tuple[Rate, Reference]:
    rate = rate_named(params.get("rate", "selection"), params.get("among", "all"))
    rule = params.get("rule", "difference")
    check_option("rule", rule, RULE_NAMES)
    return rate, RULE_NAMES[rule]


def _compared(rows: MetricRows) -> Comparison:
    return rates_compared(rows, *_named(rows.params), strata=rows.params.get("strata"))


def given_of(rate: Rate, reference: Reference) -> tuple[str, ...]:
    """Strata of rows whose numbers a certificate takes as given."""
    by_label, by_response = rate.targets is not None, rate.given is not None
    within = (*(("label",) if by_label else ()), *(("response",) if by_response else ()))
    return within if reference == "overall" else ("group", *within)


@register(
    "decision_function",
    title="Rates of groups by a rule",
    description="Number that a rule, such as the largest difference or the least ratio, makes of the groups' rates.",
    reads="signed decisions",
    compared=CellRates(_compared),
    given=lambda params: given_of(*_named(params)),
    overlapping=True,
    is_gap=False,
    floor=lambda params: params.get("rule") == "floor",
    works_on_one_group=lambda params: RULES[_named(params)[1]].works_on_one_group,
)
def group_rates(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    rate: str = "selection",
    rule: str = "difference",
    among: str = "all",
    strata: Any = None,
    pos_label: Any = None,
    on_empty: OnEmpty = "raise",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Number that a rule makes of the rates of groups; `fairconstrained.constraints.GroupRates` bounds it.

    With the rate :math:`R_g` of group g and that of all rows R,

    ============  =====================================================================
    rule          value
    ============  =====================================================================
    "difference"  :math:`\max_{g,g'} |R_g - R_{g'}|`
    "to_overall"  :math:`\max_g |R_g - R|`
    "ratio"       :math:`1 - \min_{g,g'} R_g / R_{g'}`
    "floor"       :math:`\min_g R_g`
    "ceiling"     :math:`\max_g R_g`
    ============  =====================================================================

    The worst stratum counts where there are ``strata``, and the worse of both labels where both are compared. Rates
    that are 0 in all groups are equal, as the false positive rates of a perfect classifier are. Only where all rates
    are 0, as where nobody has a positive decision, there is no ratio.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        Labels: 0/1, -1/1, booleans, strings, ... None is enough for the rates "selection", "probability" and "score"
        with ``among="all"``.
    y_score : array-like of shape (n_samples,)
        Scores from ``decision_function``; positive ones are positive decisions.
    rate : str, default="selection"
        "selection", "true_positive", "false_positive", "true_negative", "false_negative", "true_and_false_positive"
        (each by itself), "error", "accuracy", "positive_predictive_value", "negative_predictive_value"; "probability",
        the mean of :math:`1 / (1 + e^{-s})`; "score", the mean score; or the mean of a loss: "log_loss", "hinge",
        "absolute", "squared".
    rule : {"difference", "to_overall", "ratio", "floor", "ceiling"}, default="difference"
        Rule that makes one number of the rates, as above.
    among : {"all", "positives", "negatives"}, default="all"
        Rows that the rate is taken among. Rates that are taken among rows of a label or of a decision already, such as
        "true_positive" and "positive_predictive_value", need "all".
    strata : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
        Stratum of every row, within which groups are compared, such as a department.
    pos_label : object, default=None
        The positive label, against all others; None for the larger of two. More than two labels need it.
    on_empty : {"raise", "nan"}, default="raise"
        Whether to raise or to return NaN where a rate does not exist, such as a true positive rate without positives,
        or a ratio of rates that are all 0, or of mean scores of which one is negative. For a single group and a rule
        that compares groups the value is NaN in either case, and "nan" leaves out the warning.

    Returns
    -------
    value : float
        Smaller is better, except for a floor. It is NaN for a single group and a rule that compares groups.
    groups : DataFrame
        One row for each group: ``n_samples``, ``weight``, the rate in every block of rows, and ``gap``, the number of
        the group that the rule compares. Only if ``return_groups``.

    Raises
    ------
    ValueError
        If ``rate``, ``rule`` or ``among`` is unknown, or ``among`` does not go with the rate.

    Warns
    -----
    FairnessWarning
        If there is a single group, and a rule that compares groups, so that the value is NaN (not with
        ``on_empty="nan"``).

    Examples
    --------
    >>> from fairconstrained.metrics import group_rates
    >>> y, s, g = [1, 0, 1, 0, 1], [2.0, 1.0, 1.0, -2.0, -1.0], ["a", "a", "b", "b", "b"]
    >>> print(f"{group_rates(y, s, sensitive_features=g, rule='ratio'):.3f}")  # 1 - (1/3) / (2/2)
    0.667
    >>> print(f"{group_rates(y, s, sensitive_features=g, rate='true_positive', rule='floor'):.3f}")
    0.500
    """
    check_option("rule", rule, RULE_NAMES)
    chosen = rate_named(rate, among)
    labels = np.ones(np.size(y_score)) if y_true is None and not chosen.asks_for_labels else y_true
    rows = LabelledRows.of(labels, y_score, sensitive_features, sample_weight, pos_label, strata)
    found = rows.measured(chosen, Notion(chosen.targets, RULE_NAMES[rule])).checked(rows, rate, on_empty)
    if not return_groups:
        return found.value
    return found.value, found.table(rows, rate)
