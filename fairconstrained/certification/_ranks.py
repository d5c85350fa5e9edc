"""The groups' ranks of all thresholds, and what the metrics of ranks make of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from typing_extensions import override

import fairconstrained.metrics as metrics
from fairconstrained.certification._cells import cell_index
from fairconstrained.certification._contrasts import Contrast, PairGaps, RankGaps
from fairconstrained.certification._evidence import Cells
from fairconstrained.certification._sample import Sample
from fairconstrained.metrics._intervals import PercentileIntervals
from fairconstrained.metrics._ranks import rank_table
from fairconstrained.metrics._validation import check_groups, check_scores

__all__ = ["RANK_METRICS", "RankCells", "contrast_of_ranks", "rank_cells"]

#: Metrics that are the largest gap over all thresholds.
RANK_METRICS = (metrics.statistical_parity_gap, metrics.partial_statistical_parity_gap)


@dataclass(frozen=True, eq=False)
class RankCells(Cells):
    """Ranks ``P(score > threshold)`` of every threshold in every group.

    Parameters
    ----------
    thresholds : ndarray of shape (n_thresholds,)
        The scores of the sample in decreasing order, then ``-inf``. Between them nothing changes.
    ranks : ndarray of shape (n_thresholds, n_groups)
    counts : ndarray of shape (n_groups,)
    labels : tuple
        Of the groups.
    """

    thresholds: np.ndarray
    ranks: np.ndarray
    counts: np.ndarray
    labels: tuple[Hashable, ...]

    @override
    def table(self, delta: float, contrast: Contrast) -> pd.DataFrame:
        lower, upper = self.ends(delta)
        worst = contrast.worst(lower, upper)
        columns = {
            "n_samples": self.counts.astype(int),
            "threshold": self.thresholds[worst],
            "estimate": self.ranks[worst],
            "lower": lower[worst, 0],
            "upper": upper[worst, 0],
        }
        return pd.DataFrame(columns, index=cell_index(list(self.labels), ("all",)))


def rank_cells(sample: Sample) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[Hashable, ...]]:
    """The parameters of `RankCells`."""
    scores = check_scores(sample.response)
    rows = check_groups(sample.sensitive_features, None, scores.size)
    thresholds, ranks = rank_table(scores, *rows.arrays)
    return thresholds, ranks, rows.table()["n_samples"].to_numpy(), rows.labels


def contrast_of_ranks(params: dict[str, Any], labels: Sequence[Hashable], n_blocks: int = 1) -> Contrast:
    """What a partial metric makes of ranks."""
    intervals = PercentileIntervals.parse(params.get("interval", (0.0, 1.0)), labels)
    facts: dict[str, Any] = {"n_blocks": n_blocks, "n_groups": len(labels), "agg": params.get("agg", "max")}
    return (PairGaps if params.get("normalize", True) else RankGaps)(**facts, intervals=intervals)
