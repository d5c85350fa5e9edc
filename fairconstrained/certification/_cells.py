"""What a metric compares, read from a sample: a value of every row, the blocks of rows, and the groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.certification._contrasts import Contrast, OverallGaps, PairGaps, ParityPairs
from fairconstrained.certification._sample import Sample
from fairconstrained.groups import Groups
from fairconstrained.metrics._group_means import LOSS_NOTIONS, RATES, ROW_LOSSES, Notion, blocks_of, rate_notion
from fairconstrained.metrics._validation import check_groups, check_scores, check_true_labels

__all__ = ["Comparison", "cell_index", "everyone", "group_losses", "group_rates", "positive_rates"]

_ALL = "all rows"
_TARGET_NAMES = {1.0: "positive", -1.0: "negative"}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Values of rows whose means in the cells of group and block are compared.

    Attributes
    ----------
    values : ndarray of shape (n_samples,)
    blocks : ndarray of bool, of shape (n_blocks, n_samples)
    names : tuple of str
        Of the blocks.
    groups : Groups
    contrast : Contrast
    with_overall : bool
        Whether the cell of all rows of a block is compared too; it is the last column then.
    """

    values: np.ndarray
    blocks: np.ndarray
    names: tuple[str, ...]
    groups: Groups
    contrast: Contrast
    with_overall: bool = False

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over the cells; ndarray of shape (n_blocks, n_columns)."""
        by_group = np.stack([self.groups.sums(block * values) for block in self.blocks])
        return np.column_stack([by_group, self.blocks @ values]) if self.with_overall else by_group

    @property
    def counts(self) -> np.ndarray:
        """Numbers of rows in the cells; ndarray of shape (n_blocks, n_columns)."""
        return self.sums(np.ones(self.values.size))

    @property
    def index(self) -> pd.Index:
        """The cells, row by row of `sums`."""
        return cell_index([*self.groups.names, *([_ALL] if self.with_overall else [])], self.names)


def cell_index(groups: list[Any], blocks: tuple[str, ...]) -> pd.Index:
    """Names of cells, the groups of the first block first."""
    if len(blocks) == 1:
        return pd.Index(groups, name="group", tupleize_cols=False)
    return pd.MultiIndex.from_arrays([groups * len(blocks), np.repeat(blocks, len(groups))], names=["group", "rows"])


def group_rates(sample: Sample) -> Comparison:
    """What `rate_gap` compares."""
    rate = sample.params.get("rate", "indicator")
    notion = rate_notion(sample.params.get("constraint", "demographic_parity"), rate)
    return _of_notion(sample, RATES[rate], notion)


def group_losses(sample: Sample) -> Comparison:
    """What `loss_parity_gap` compares."""
    notion = LOSS_NOTIONS[sample.params.get("constraint", "demographic_parity")]
    notion = notion._replace(
        reference=sample.params.get("reference", "pairwise"), agg_labels=sample.params.get("agg_labels", "max")
    )
    return _of_notion(sample, ROW_LOSSES[sample.params.get("loss", "log_loss")], notion)


def positive_rates(sample: Sample) -> Comparison:
    """What `parity_pair` compares."""
    scores = check_scores(sample.response, sample.y_true)
    groups = check_groups(sample.sensitive_features, None, scores.size).groups
    values = RATES[sample.params.get("rate", "indicator")](scores, np.ones(scores.size))
    contrast = ParityPairs(n_groups=len(groups.names), beta=sample.params.get("beta", 1.0))
    return Comparison(values, everyone(scores.size), ("all",), groups, contrast)


def everyone(n_samples: int) -> np.ndarray:
    """One block of all rows."""
    return np.ones((1, n_samples), dtype=bool)


def _of_notion(sample: Sample, function: Callable[[np.ndarray, np.ndarray], np.ndarray], notion: Notion) -> Comparison:
    scores = check_scores(sample.response, sample.y_true)
    positive, _ = check_true_labels(sample.y_true)
    targets = np.where(positive, 1.0, -1.0)
    groups = check_groups(sample.sensitive_features, None, scores.size, overlapping=True).groups
    blocks = blocks_of(targets, notion)
    names = ("all",) if notion.targets is None else tuple(_TARGET_NAMES[target] for target in notion.targets)
    facts: dict[str, Any] = {
        "n_blocks": len(blocks),
        "n_groups": len(groups.names),
        "fold": notion.agg_labels,
        "agg": sample.params.get("agg", "max"),
    }
    pairwise = notion.reference == "pairwise"
    contrast = PairGaps(**facts) if pairwise else OverallGaps(**facts, signed=notion.reference == "excess")
    return Comparison(function(scores, targets), blocks, names, groups, contrast, with_overall=not pairwise)
