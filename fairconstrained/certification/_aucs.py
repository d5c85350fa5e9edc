"""AUCs that a metric compares in a sample, and the sets of rows behind them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.cells import cell_sums
from fairconstrained.certification.sample import Sample
from fairconstrained.metrics.auc_gaps import GroupComparison, compare_groups, difference_aucs
from fairconstrained.metrics.auc_sets import AUC_METRICS, AUCDifference, mask_cells
from fairconstrained.metrics.comparisons import AUCDifferences
from fairconstrained.metrics.registry import info_of
from fairconstrained.metrics.validation import check_scores

__all__ = ["ComparedAUCs", "auc_of_scores", "compared_aucs"]

Set = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ComparedAUCs:
    """Disjoint cells of rows, and pairs of AUCs between unions of cells."""

    scores: np.ndarray  # of shape (n_samples,)
    #: Cell of every row, in ``0 .. n_cells``; the rows of cell ``n_cells`` are in no set.
    cells: np.ndarray  # of int, of shape (n_samples,)
    n_cells: int
    #: Differences that count.
    differences: tuple[AUCDifference, ...]
    #: Names of the sets.
    names: dict[Set, str]

    @property
    def counts(self) -> np.ndarray:
        """Rows of the cells."""
        return cell_sums(self.cells, self.n_cells)

    @property
    def pairs(self) -> list[tuple[Set, Set]]:
        """The sets of all AUCs, two AUCs for every difference."""
        return [sets for difference in self.differences for sets in (difference[:2], difference[2:])]

    def size(self, cells: Set) -> int:
        """Rows of a set."""
        return int(self.counts[list(cells)].sum())

    def scores_of(self, cells: Set) -> np.ndarray:
        """Scores of the rows of a set."""
        return self.scores[np.isin(self.cells, cells)]

    def auc(self, above: Set, below: Set) -> float:
        """AUC of the sample between two sets."""
        sets = AUCDifference(above, below, above, below)
        return float(difference_aucs(self.scores, self.cells, np.ones(self.scores.size), self.n_cells, [sets])[0, 0])

    @property
    def are_disjoint(self) -> bool:
        """Whether the four sets of each difference have no rows in common, so that its two AUCs are independent."""
        return all(len(set(cells)) == len(cells) for cells in (list(chain(*sets)) for sets in self.differences))

    def table(self, estimates: Sequence[float], **ends: np.ndarray) -> pd.DataFrame:
        """Return one row for every AUC that is not 1/2 by definition.

        Parameters
        ----------
        estimates : sequence of float
            AUCs of the sample, in the order of ``pairs``.
        **ends : ndarray of shape (n_differences, 2)
            Further columns.
        """
        above, below = zip(*self.pairs, strict=True)
        columns = {
            "above": [self.names[cells] for cells in above],
            "below": [self.names[cells] for cells in below],
            "n_above": list(map(self.size, above)),
            "n_below": list(map(self.size, below)),
            "estimate": estimates,
        }
        table = pd.DataFrame(columns | {name: values.ravel() for name, values in ends.items()})
        return table[[set(pair[0]) != set(pair[1]) for pair in self.pairs]].reset_index(drop=True)


def auc_of_scores(above: np.ndarray, below: np.ndarray) -> float:
    """AUC of two samples of scores; ties count one half."""
    below = np.sort(below)
    lower, upper = (np.searchsorted(below, above, side).sum() for side in ("left", "right"))
    return float((lower + upper) / (2 * above.size * below.size))


def compared_aucs(sample: Sample) -> ComparedAUCs:
    """Return the AUCs that the metric of a sample compares."""
    compared = info_of(sample.metric).compared
    name = compared.sets if isinstance(compared, AUCDifferences) else None
    if name is None:
        return _of_subsets(sample)
    found = compare_groups(
        name, sample.y_true, sample.response, sample.sensitive_features, protected=sample.params.get("protected")
    )
    n_cells = 2 * found.rows.n_groups
    differences = found.differences[: found.n_compared]
    sets = {cells for difference in differences for cells in difference}
    names = {cells: _name(cells, found, AUC_METRICS[name].by_label) for cells in sets}
    return ComparedAUCs(found.scores, found.cells, n_cells, differences, names)


def _name(cells: Set, found: GroupComparison, by_label: bool) -> str:
    """``group``, ``group, positive`` or ``all, positive``."""
    labels: tuple[Hashable, ...] = found.rows.labels
    groups, signs = {cell % len(labels) for cell in cells}, {cell // len(labels) for cell in cells}
    group = "all" if len(groups) > 1 else f"{labels[min(groups)]}"
    return f"{group}, {('positive', 'negative')[min(signs)]}" if by_label and len(signs) == 1 else group


def _of_subsets(sample: Sample) -> ComparedAUCs:
    scores, subsets = check_scores(sample.response), sample.params["subsets"]
    masks: list[Any] = []

    def recorded(positive: np.ndarray, groups: np.ndarray | None) -> Any:
        masks.append(subsets(positive, groups))
        return masks[-1]

    if callable(subsets):
        arguments = sample.params | {"subsets": recorded}
        sample.metric(sample.y_true, scores, sensitive_features=sample.sensitive_features, **arguments)
        subsets = masks[-1]
    cells, n_cells, difference = mask_cells(np.array([np.asarray(mask) for mask in subsets]))
    names = dict(zip(reversed(difference), ("G2'", "G2", "G1'", "G1"), strict=True))
    return ComparedAUCs(scores, cells, n_cells, (difference,), names)
