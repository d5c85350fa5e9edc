"""Ranks of all thresholds in every group, and the metrics that are made of them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from typing_extensions import override

from fairconstrained.certification.evidence import CellEvidence, Cells
from fairconstrained.certification.sample import Sample
from fairconstrained.metrics.comparisons import cell_index, contrast_of_ranks
from fairconstrained.metrics.contrasts import Contrast
from fairconstrained.metrics.ranks import rank_table
from fairconstrained.metrics.validation import check_groups, check_scores

__all__ = ["RankCells", "rank_cells"]


@dataclass(frozen=True, eq=False)
class RankCells(Cells):
    """Ranks ``P(score > threshold)`` of every threshold in every group."""

    #: The scores of the sample in decreasing order, then ``-inf``. Between them nothing changes.
    thresholds: np.ndarray  # of shape (n_thresholds,)
    ranks: np.ndarray  # of shape (n_thresholds, n_groups)
    counts: np.ndarray  # of shape (n_groups,)
    #: Names of the groups.
    labels: tuple[Hashable, ...]

    @classmethod
    def evidence(cls, sample: Sample) -> CellEvidence:
        """Return the evidence of a sample about the largest gap over all thresholds."""
        cells = cls(*rank_cells(sample))
        return CellEvidence(sample.gap, sample.n_samples, cells, contrast_of_ranks(sample.params, cells.labels))

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
