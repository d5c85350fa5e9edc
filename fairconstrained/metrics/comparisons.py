"""Comparisons that a metric reads from rows, so that bounds for the population follow from the metric's own entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import pandas as pd

from fairconstrained.cells import quotients
from fairconstrained.groups import Groups
from fairconstrained.metrics.contrasts import Contrast, PairGaps, RankGaps
from fairconstrained.metrics.intervals import PercentileIntervals

__all__ = [
    "AUCDifferences",
    "CellMeans",
    "CellRates",
    "Compared",
    "Comparison",
    "MetricRows",
    "NotOffered",
    "PartialAUCs",
    "QuantileDistances",
    "RanksOfThresholds",
    "cell_index",
    "contrast_of_ranks",
    "everyone",
    "given_labelled_sides",
    "given_sides",
    "label_blocks",
]

_ALL = "all rows"


class NotOffered(ValueError):
    """There is no bound of some kind for a metric with these parameters; the message says what it would need."""

    @classmethod
    def of_smooth_rate(cls, rate: Any) -> Self:
        """Return the error for bounds that need a count of positive predictions."""
        return cls(
            f"Its bounds need positive predictions that can be counted; rate={rate!r} is a mean of smooth values."
        )


class MetricRows(Protocol):
    """Rows as a metric takes them.

    Attributes
    ----------
    y_true : ndarray of shape (n_samples,)
        Labels or targets.
    response : ndarray of shape (n_samples,)
        Predictions, scores or probabilities of the model.
    sensitive_features : object
        Groups of the rows; None for a metric that compares no groups.
    groups : Groups
        Groups of the rows as the metric takes them: columns of booleans may say who is in which, or be combined.
    params : dict
        Further arguments of the metric.
    """

    @property
    def y_true(self) -> np.ndarray: ...  # noqa: D102
    @property
    def response(self) -> np.ndarray: ...  # noqa: D102
    @property
    def sensitive_features(self) -> Any: ...  # noqa: D102
    @property
    def groups(self) -> Groups: ...  # noqa: D102
    @property
    def params(self) -> dict[str, Any]: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class Comparison:
    """Values of rows whose means in the cells of group and block are compared."""

    values: np.ndarray  # of shape (n_samples,)
    #: Whether each row is in each block, such as that of one label.
    blocks: np.ndarray  # of bool, of shape (n_blocks, n_samples)
    #: Names of the blocks.
    names: tuple[str, ...]
    groups: Groups
    #: Function that makes the metric of the means of the cells.
    contrast: Contrast
    #: Whether the cell of all rows of a block is compared too; it is the last column then.
    with_overall: bool = False
    #: Numbers between which the values of all rows lie, those of the population included; None if they are not known.
    limits: tuple[float, float] | None = (0.0, 1.0)
    #: Whether the values are 0 and 1, so that sums of them are binomial.
    counts_events: bool = True

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over the cells; ndarray of shape (n_blocks, n_columns)."""
        by_group = np.stack([self.groups.sums(block * values) for block in self.blocks])
        return np.column_stack([by_group, self.blocks @ values]) if self.with_overall else by_group

    @property
    def counts(self) -> np.ndarray:
        """Numbers of rows in the cells; ndarray of shape (n_blocks, n_columns)."""
        return self.sums(np.ones(self.values.size))

    @property
    def cell_values(self) -> list[np.ndarray]:
        """Values of the rows of every cell, row by row of `sums`."""
        columns = [*self.groups.rows(), *([np.arange(self.values.size)] if self.with_overall else [])]
        return [self.values[rows[block[rows]]] for block in self.blocks for rows in columns]

    @property
    def index(self) -> pd.Index:
        """The cells, row by row of `sums`."""
        return cell_index([*self.groups.names, *([_ALL] if self.with_overall else [])], self.names)

    @property
    def table(self) -> pd.DataFrame:
        """Numbers of rows and of events in the cells, and their rates, NaN without rows."""
        counts, hits = self.counts.ravel(), self.sums(self.values).ravel()
        columns = {"n_samples": counts.astype(int), "n_hits": hits.astype(int), "estimate": quotients(hits, counts)}
        return pd.DataFrame(columns, index=self.index)


@dataclass(frozen=True)
class Compared:
    """Kind of numbers that a metric compares, which decides the bounds that there are for it."""


@dataclass(frozen=True)
class CellMeans(Compared):
    """Means of the rows of cells."""

    #: Function from `MetricRows` to the `Comparison`. Raises `NotOffered` for parameters with which there is none.
    read: Callable[[MetricRows], Comparison]


@dataclass(frozen=True)
class CellRates(CellMeans):
    """Rates of an event in cells of rows."""


@dataclass(frozen=True)
class RanksOfThresholds(Compared):
    """Ranks of the groups at every threshold, of which the largest gap counts."""


@dataclass(frozen=True)
class PartialAUCs(Compared):
    """AUCs of every pair of groups, on an interval of their ranks."""


@dataclass(frozen=True)
class AUCDifferences(Compared):
    """Differences of AUCs between sets of rows."""

    #: Name of the sets in `AUC_METRICS`; None if the user passes the sets as ``subsets``.
    sets: str | None


@dataclass(frozen=True)
class QuantileDistances(Compared):
    """Distances between the groups' quantile functions."""


def cell_index(groups: list[Any], blocks: tuple[str, ...]) -> pd.Index:
    """Names of cells, the groups of the first block first."""
    if len(blocks) == 1:
        return pd.Index(groups, name="group", tupleize_cols=False)
    return pd.MultiIndex.from_arrays([groups * len(blocks), np.repeat(blocks, len(groups))], names=["group", "rows"])


def everyone(n_samples: int) -> np.ndarray:
    """Return a single block, of all rows."""
    return np.ones((1, n_samples), dtype=bool)


def label_blocks(
    positive: np.ndarray, what: str, names: tuple[str, str], labels: Sequence[int] = (0, 1)
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The blocks of the rows of some labels, 0 for the negative and 1 for the positive one, and their names."""
    return np.stack([positive == label for label in labels]), tuple(f"{what}={names[label]}" for label in labels)


def contrast_of_ranks(params: dict[str, Any], labels: Sequence[Any], n_blocks: int = 1) -> Contrast:
    """Differences of the groups' ranks, on the interval that a partial metric is given."""
    intervals = PercentileIntervals.parse(params.get("interval", (0.0, 1.0)), labels)
    facts: dict[str, Any] = {"n_blocks": n_blocks, "n_groups": len(labels), "agg": params.get("agg", "max")}
    return (PairGaps if params.get("normalize", True) else RankGaps)(**facts, intervals=intervals)


def given_sides(params: dict[str, Any]) -> tuple[str, ...]:
    """Numbers of rows by group; of the protected side where one side is everybody else, whose groups are not fixed."""
    return ("group",) if params.get("protected") is None else ("side",)


def given_labelled_sides(params: dict[str, Any]) -> tuple[str, ...]:
    """Numbers of rows of each label on each side."""
    return (*given_sides(params), "label")
