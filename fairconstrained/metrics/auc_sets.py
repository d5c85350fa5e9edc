"""Sets of rows that every AUC gap compares, by the name of the gap.

Every AUC metric compares ``AUC(G1, G1')`` with ``AUC(G2, G2')``, and every one of these sets is a union of disjoint
*cells*: the positives or the negatives of a group, or what four masks cut the rows into. With the AUCs between the
cells, which one sort gives, the metric is a matter of a few sums.

Cells of groups and labels are numbered like this: the positives of group g are cell g, its negatives cell n_groups + g.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from fairconstrained.metrics.cell_aucs import ScoredRows, largest_centred_auc

__all__ = ["AUC_METRICS", "AUCDifference", "CellUnions", "auc_differences", "checked_masks", "mask_cells"]


class AUCDifference(NamedTuple):
    """``AUC(above, below) - AUC(reference_above, reference_below)``; every set is a tuple of cells."""

    above: tuple[int, ...]
    below: tuple[int, ...]
    reference_above: tuple[int, ...]
    reference_below: tuple[int, ...]

    def renumbered(self, place: Mapping[int, int]) -> AUCDifference:
        """Return the sets where cell c has the number ``place[c]``; cells that have none are left out."""
        return AUCDifference(*(tuple(place[c] for c in cells if c in place) for cells in self))


class CellUnions(NamedTuple):
    """The sets of several differences, each once: every pair of groups has "everything", which is summed up once."""

    #: 1 for the cells of a set, 0 for others.
    members: np.ndarray  # of shape (n_unions, n_cells)
    #: Numbers of the sets of a difference's AUC, and of its reference.
    above: np.ndarray  # of int, of shape (n_differences, 2)
    below: np.ndarray  # of int, of shape (n_differences, 2)

    @classmethod
    def of(cls, differences: Sequence[AUCDifference], n_cells: int) -> CellUnions:
        """Number the sets."""
        number: dict[tuple[int, ...], int] = {}
        places = [[number.setdefault(cells, len(number)) for cells in sets] for sets in differences]
        members = np.zeros((len(number), n_cells))
        for union, cells in zip(members, number, strict=True):
            union[list(cells)] = 1.0
        above, below = np.array(places, dtype=int).reshape(-1, 2, 2).transpose(2, 0, 1)
        return cls(members, above, below)

    def aucs(self, centred: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """The two AUCs of every difference, of shape (n_differences, 2); NaN if a set has no weight.

        Parameters
        ----------
        centred : ndarray of shape (n_cells, n_cells)
            AUCs of the cells, minus one half.
        mass : ndarray of shape (n_cells,)
            Weight of every cell.
        """
        totals = self.members @ mass
        sums = self.members @ (mass[:, None] * centred * mass) @ self.members.T
        with np.errstate(invalid="ignore"):
            return 0.5 + sums[self.above, self.below] / (totals[self.above] * totals[self.below])


class _Side(NamedTuple):
    """The cells of some groups."""

    positives: tuple[int, ...]
    negatives: tuple[int, ...]
    rows: tuple[int, ...]

    @classmethod
    def of(cls, groups: Sequence[int], n_groups: int) -> _Side:
        positives, negatives = tuple(groups), tuple(n_groups + g for g in groups)
        return cls(positives, negatives, positives + negatives)


class AUCMetric(NamedTuple):
    """A metric by its sets."""

    #: Whether it compares two groups with each other, and not one group with everything.
    compares_sides: bool
    #: Function from the protected side, the other side and everything to the four sets.
    sets: Callable[[_Side, _Side, _Side], tuple[tuple[int, ...], ...]]
    #: Function from the positives and the negatives, or from all rows and none where labels do not matter, to the
    #: largest gap of two groups, or to the gap of every group with everything.
    gaps: Callable[[ScoredRows, ScoredRows], np.ndarray]
    #: Whether positives are told from negatives.
    by_label: bool = True


#: The examples of the AUC fairness paper (section 3 and appendix A) by name.
AUC_METRICS: dict[str, AUCMetric] = {
    "group_auc": AUCMetric(
        compares_sides=True,
        sets=lambda a, b, every: (a.rows, b.rows, every.rows, every.rows),
        gaps=lambda rows, none: np.array([largest_centred_auc(rows.steps())]),
        by_label=False,
    ),
    "inter_group": AUCMetric(
        compares_sides=True,
        sets=lambda a, b, every: (a.positives, b.negatives, b.positives, a.negatives),
        gaps=lambda positives, negatives: np.array([largest_centred_auc(positives.steps(), negatives.steps())]),
    ),
    "intra_group": AUCMetric(
        compares_sides=True,
        sets=lambda a, b, every: (a.positives, a.negatives, b.positives, b.negatives),
        gaps=lambda positives, negatives: np.ptp(positives.within(negatives), keepdims=True),
    ),
    "positive_equality": AUCMetric(
        compares_sides=False,
        sets=lambda a, b, every: (a.positives, every.positives, every.rows, every.rows),
        gaps=lambda positives, negatives: np.abs(positives.against(positives)),
    ),
    "negative_equality": AUCMetric(
        compares_sides=False,
        sets=lambda a, b, every: (a.negatives, every.negatives, every.rows, every.rows),
        gaps=lambda positives, negatives: np.abs(negatives.against(negatives)),
    ),
    "bpsn_bnsp": AUCMetric(
        compares_sides=False,
        sets=lambda a, b, every: (every.positives, a.negatives, a.positives, every.negatives),
        # the first AUC has the group below
        gaps=lambda positives, negatives: np.abs(negatives.against(positives) + positives.against(negatives)),
    ),
}


def auc_differences(
    metric: str, n_groups: int, protected: int | None
) -> tuple[tuple[tuple[int, int | None], ...], tuple[AUCDifference, ...]]:
    """Return the differences of a named metric.

    Parameters
    ----------
    metric : str
        A key of `AUC_METRICS`.
    protected : int or None
        Code of the protected group, which is compared with all other rows. With None, metrics of two groups compare
        every pair, and the others every group with everything.

    Returns
    -------
    sides : tuple of (int, int or None)
        Codes of the groups that every difference compares; None stands for all the others.
    differences : tuple of AUCDifference
        Empty for a single group.
    """
    compares_sides, sets, *_ = AUC_METRICS[metric]
    groups = range(n_groups)
    sides: list[tuple[int, int | None]]
    if n_groups < 2:
        sides = []
    elif protected is not None:
        sides = [(protected, None)]
    elif compares_sides:
        sides = list(combinations(groups, 2))
    else:
        sides = [(g, None) for g in groups]
    every = _Side.of(groups, n_groups)
    differences = []
    for first, second in sides:
        others = [g for g in groups if g != first] if second is None else [second]
        differences.append(AUCDifference(*sets(_Side.of([first], n_groups), _Side.of(others, n_groups), every)))
    return tuple(sides), tuple(differences)


def checked_masks(masks: Any, what: str, n_samples: int | None = None) -> np.ndarray:
    """Return four masks as a boolean ndarray of shape (4, n_samples); ``what`` begins the message if they are none.

    Without ``n_samples``, the masks only have to be of one length.
    """
    found = [np.asarray(mask) for mask in masks] if isinstance(masks, Iterable) else []
    shapes, kinds = [mask.shape for mask in found], [mask.dtype.name for mask in found]
    expected = found[0].size if found and n_samples is None else n_samples
    if shapes != [(expected,)] * 4 or kinds != ["bool"] * 4:
        got = f"{len(found)} of shapes {shapes[:5]} and types {kinds[:5]}" if found else repr(masks)
        raise ValueError(
            f"{what} four boolean masks of shape ({n_samples or 'n_samples'},), for G1, G1', G2 and G2'; got {got}."
        )
    return np.array(found)


def mask_cells(masks: np.ndarray) -> tuple[np.ndarray, int, AUCDifference]:
    """Return the cells of four sets of rows that may overlap.

    Parameters
    ----------
    masks : ndarray of shape (4, n_samples)
        Boolean: G1, G1', G2 and G2'.

    Returns
    -------
    codes : ndarray of shape (n_samples,)
        Cell of every row; the rows of cell ``n_cells``, if any, are in none of the sets.
    n_cells : int
    difference : AUCDifference
    """
    membership = 2 ** np.arange(4) @ masks.astype(int)
    # rows in no set come last
    kinds, codes = np.unique(np.where(membership == 0, 16, membership), return_inverse=True)
    kinds = kinds[kinds < 16]
    cells = [tuple(np.flatnonzero(kinds & 2**k).tolist()) for k in range(4)]
    return codes, kinds.size, AUCDifference(*cells)
