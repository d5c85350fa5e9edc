"""Notions of fairness: the gap on given rows, and how large sampling alone makes it on new rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm

from benchmarks.any_model.data import Part
from fairconstrained.metrics import (
    group_auc_gap,
    inter_group_auc_gap,
    intra_group_auc_gap,
    loss_parity_gap,
    partial_statistical_parity_gap,
)

#: Ranks within a group on which statistical parity is required.
INTERVAL = (0.05, 0.3)
KAPPAS = (0.01, 0.02, 0.05, 0.1)
LOSS_KAPPAS = (0.005, *KAPPAS)
#: Fronts of several rates bend most between these bounds, and a chord would lie below them.
ODDS_KAPPAS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1)
#: Further bounds of heads on rates: methods whose gaps on new rows are far above their bounds are compared with the
#: fronts of heads, too.
FRONT_KAPPAS = (0.03, 0.07, 0.15, 0.2)
#: Samples by which the floor of the largest of several differences is found.
_N_SAMPLES = 100


class Response(NamedTuple):
    """The answer of a model for some rows.

    ``decisions`` are probabilities of a positive decision, 0 or 1 unless the method decides at random; ``scores`` are
    log-odds, None where a method has decisions only.
    """

    decisions: np.ndarray
    scores: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Response:
        """The answers for the given rows."""
        return Response(self.decisions[rows], None if self.scores is None else self.scores[rows])


class Measured(NamedTuple):
    """A gap, and the standard error of the difference that it is the absolute value of."""

    gap: float
    error: float


@dataclass(frozen=True)
class Notion:
    """A notion: how its gap is measured, and the name and further arguments of the package's constraint.

    ``of_several`` says that the gap is the largest of several differences, which samples exceed more often than one.
    """

    title: str
    measure: Callable[[Part, Response], Measured]
    constraint: str
    kind: str
    kappas: tuple[float, ...] = KAPPAS
    params: dict[str, Any] = field(default_factory=dict)
    of_several: bool = False

    @property
    def needs_scores(self) -> bool:
        """Whether decisions alone have no gap."""
        return self.kind != "rate"

    @property
    def performance(self) -> str:
        """Measure on new rows that the fronts show."""
        return "auc" if self.kind == "auc" else "accuracy"


def _two_groups(part: Part) -> tuple[np.ndarray, np.ndarray]:
    names = np.unique(part.groups)
    if names.size != 2:
        raise ValueError(f"the benchmark compares two groups; there are {names.tolist()}")
    return part.groups == names[0], part.groups == names[1]


def _difference(values: np.ndarray, first: np.ndarray, second: np.ndarray) -> Measured:
    """Compare the means of two independent samples of rows."""
    a, b = values[first], values[second]
    return Measured(abs(a.mean() - b.mean()), float(np.sqrt(a.var() / a.size + b.var() / b.size)))


def _rates(labels: tuple[int, ...] | None) -> Callable[[Part, Response], Measured]:
    """Gap of the rates of decisions, in all rows or the largest of those within labels."""

    def measure(part: Part, response: Response) -> Measured:
        first, second = _two_groups(part)
        within = [np.ones(part.y.size, dtype=bool)] if labels is None else [part.y == label for label in labels]
        return max(_difference(response.decisions, first & rows, second & rows) for rows in within)

    return measure


def _loss(part: Part, response: Response) -> Measured:
    first, second = _two_groups(part)
    losses = np.logaddexp(0, -(2 * part.y - 1) * _scores(response))
    gap = loss_parity_gap(part.y, _scores(response), sensitive_features=part.groups)
    return Measured(float(gap), _difference(losses, first, second).error)


def _statistical_parity(part: Part, response: Response) -> Measured:
    first, second = _two_groups(part)
    gap, table = partial_statistical_parity_gap(
        part.y, _scores(response), sensitive_features=part.groups, interval=INTERVAL, return_groups=True
    )
    threshold = float(table["threshold"].iloc[0])
    variance = 0.0
    for group in (first, second):
        rank = float(np.mean(_scores(response)[group] > threshold))
        # a rank outside the interval counts as the interval's end, however it varies
        if INTERVAL[0] < rank < INTERVAL[1]:
            variance += rank * (1 - rank) / group.sum()
    return Measured(float(gap), float(np.sqrt(variance)) / (INTERVAL[1] - INTERVAL[0]))


def _auc_variance(above: np.ndarray, below: np.ndarray) -> float:
    """Variance of P(s > s') of two samples, from the placements of either in the other (DeLong et al. 1988)."""
    low, high = np.sort(above), np.sort(below)
    of_above = (np.searchsorted(high, above, "left") + np.searchsorted(high, above, "right")) / (2 * high.size)
    of_below = (np.searchsorted(low, below, "left") + np.searchsorted(low, below, "right")) / (2 * low.size)
    return float(of_above.var() / above.size + of_below.var() / below.size)


def _auc(
    metric: Callable[..., float], pairs: Callable[..., list[tuple[np.ndarray, np.ndarray]]]
) -> Callable[[Part, Response], Measured]:
    """Gap of a metric; ``pairs`` gives the independent pairs of sets whose AUCs it compares."""

    def measure(part: Part, response: Response) -> Measured:
        first, second = _two_groups(part)
        scores = _scores(response)
        compared = pairs(first, second, part.y == 1, part.y == 0)
        variance = sum(_auc_variance(scores[above], scores[below]) for above, below in compared)
        return Measured(float(metric(part.y, scores, sensitive_features=part.groups)), float(np.sqrt(variance)))

    return measure


def _scores(response: Response) -> np.ndarray:
    if response.scores is None:
        raise ValueError("the method has decisions only")
    return response.scores


NOTIONS: dict[str, Notion] = {
    "demographic_parity": Notion("demographic parity", _rates(None), "demographic_parity", "rate"),
    "equal_opportunity": Notion("equal opportunity", _rates((1,)), "equal_opportunity", "rate"),
    "equalized_odds": Notion("equalized odds", _rates((0, 1)), "equalized_odds", "rate", ODDS_KAPPAS, of_several=True),
    "loss_parity": Notion("loss parity", _loss, "loss_parity", "loss", LOSS_KAPPAS),
    "statistical_parity": Notion(
        "statistical parity, 5 to 30 %",
        _statistical_parity,
        "statistical_parity",
        "partial",
        KAPPAS,
        {"interval": INTERVAL},
        of_several=True,
    ),
    "group_auc": Notion("AUC between groups", _auc(group_auc_gap, lambda a, b, pos, neg: [(a, b)]), "group_auc", "auc"),
    "inter_group": Notion(
        "inter-group AUC",
        _auc(inter_group_auc_gap, lambda a, b, pos, neg: [(a & pos, b & neg), (b & pos, a & neg)]),
        "inter_group",
        "auc",
    ),
    "intra_group": Notion(
        "intra-group AUC",
        _auc(intra_group_auc_gap, lambda a, b, pos, neg: [(a & pos, a & neg), (b & pos, b & neg)]),
        "intra_group",
        "auc",
    ),
}


def floor(kappa: Any, error: Any) -> Any:
    """Mean of the absolute value of a normal number of mean kappa: the gap that sampling alone explains.

    Takes numbers or arrays.
    """
    errors = np.where(error > 0, error, 1.0)
    means = 2 * errors * norm.pdf(kappa / errors) + kappa * (1 - 2 * norm.cdf(-kappa / errors))
    return np.where(error > 0, means, kappa)[()]


def floor_of_several(notion: Notion, kappa: float, rows: Part, response: Response, size: int) -> float:
    """Gap that sampling alone explains where the gap is the largest of several differences.

    That is ``kappa`` and the mean by which samples of the rows of the bound exceed the gap of these rows. Of a single
    difference that is equal to ``kappa`` there, `floor` says the same by a formula.

    Parameters
    ----------
    notion : Notion
    kappa : float
    rows : Part
        Rows of the bound, from which samples are drawn with replacement.
    response : Response
        The answers that the bound is about.
    size : int
        Rows of a sample: as many as the new rows.

    Returns
    -------
    floor : float
    """
    rng, own = np.random.default_rng(0), notion.measure(rows, response).gap
    rows = rows._replace(X=pd.DataFrame(index=range(rows.y.size)))  # gaps do not need the features
    draws = [rng.integers(rows.y.size, size=size) for _ in range(_N_SAMPLES)]
    gaps = [notion.measure(rows.take(draw), response.take(draw)).gap for draw in draws]
    return kappa + float(np.mean(gaps)) - own
