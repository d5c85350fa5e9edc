"""The sets of rows that an AUC gap compares, on data."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from fairconstrained.cells import cell_maxima, cell_sums
from fairconstrained.checks.messages import check_arguments
from fairconstrained.checks.protected import protected_code
from fairconstrained.constraints._last_of_scores import LastOfScores
from fairconstrained.constraints._resolution import CellSizes
from fairconstrained.data import FairData, Rows
from fairconstrained.kernels import Kernel
from fairconstrained.metrics.auc_gaps import centred_aucs
from fairconstrained.metrics.auc_sets import (
    AUC_METRICS,
    AUCDifference,
    CellUnions,
    auc_differences,
    checked_masks,
    mask_cells,
)
from fairconstrained.pairwise import pair_table

__all__ = ["AUCSets", "both_ways", "side_names"]

#: Name of the constraint where the user gives the sets.
MASKS_NAME = "subset_auc"
#: Differences of AUCs below this are not told from zero.
RESOLUTION = 1e-4
_SET_NAMES = ("G1", "G1'", "G2", "G2'")
#: Groups of a union that a message names.
_NAMED = 3


@dataclass(frozen=True, eq=False)
class AUCSets:
    """The sets ``G1, G1', G2, G2'`` of every AUC difference that a constraint compares with zero."""

    data: FairData
    #: A key of `AUC_METRICS`, or masks in the order of the rows that the caller gave.
    constraint: Any  # str or sequence of four masks
    #: Label of the protected group.
    protected: Any
    #: Cell of every row; ``n_cells`` for rows in no set.
    codes: np.ndarray  # of shape (n_samples,)
    #: Cells that have rows.
    n_cells: int
    differences: tuple[AUCDifference, ...]
    #: Names of the two sides of every difference.
    sides: tuple[tuple[str, str], ...]
    #: Number of a cell here, by its number in `fairconstrained.metrics.auc_sets`, for cells that have rows.
    place: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, data: FairData, constraint: Any, protected: Hashable | None) -> Self:
        """The sets of ``data``; ``constraint`` may also be a function that returns masks, see `AUCGap`.

        Raises ValueError if the constraint or the protected group is unknown, masks do not fit the data, or targets are
        not -1 and +1 where positives are told from negatives.
        """
        given: Any = _ask(constraint, data) if callable(constraint) else constraint
        return (cls._of_groups if isinstance(given, str) else cls._of_masks)(data, given, protected)

    @classmethod
    def _of_groups(cls, data: FairData, constraint: str, protected: Hashable | None) -> Self:
        if constraint not in AUC_METRICS:
            raise ValueError(f"constraint must be one of {sorted(AUC_METRICS)} or four masks, got {constraint!r}.")
        if AUC_METRICS[constraint].by_label and not np.isin(data.y.numpy(), [-1.0, 1.0]).all():
            raise ValueError(
                f"constraint={constraint!r} compares positives with negatives, so y must have two classes. For "
                "numbers take constraint='group_auc', which needs no labels."
            )
        labels = [str(label) for label in data.labels]
        code = None if protected is None else protected_code(data.labels, protected)
        pairs, differences = auc_differences(constraint, data.n_groups, code)
        sides = tuple((labels[a], "others" if b is None else labels[b]) for a, b in pairs)
        codes = data.codes + data.n_groups * (data.y.numpy() <= 0)
        # Cells without rows take no part: a group may lack positives where labels are not compared.
        present, codes = np.unique(codes, return_inverse=True)
        place = {int(cell): k for k, cell in enumerate(present)}
        renumbered = tuple(difference.renumbered(place) for difference in differences)
        return cls(data, constraint, protected, codes, present.size, renumbered, sides, place)

    @classmethod
    def _of_masks(cls, data: FairData, constraint: Any, protected: Hashable | None) -> Self:
        if protected is not None:
            raise ValueError("protected works with constraints by name only; masks say which rows are compared.")
        masks = checked_masks(constraint, "a constraint of AUCs by masks must be")
        data.check_mask(masks.shape[1], "masks have")
        codes, n_cells, difference = mask_cells(masks[:, data.order])
        return cls(data, constraint, protected, codes, n_cells, (difference,), (("first", "second"),))

    @property
    def are_named(self) -> bool:
        """Whether groups and labels say which rows are in the sets, and no masks."""
        return isinstance(self.constraint, str)

    def on(self, data: FairData) -> Self:
        """Return these sets among other rows, where they may be empty."""
        return self.of(data, self.constraint, self.protected)

    @property
    def name(self) -> str:
        """Name of the constraint."""
        return self.constraint if self.are_named else MASKS_NAME

    @cached_property
    def mass(self) -> np.ndarray:
        """Weight of every cell; ndarray of shape (n_cells,)."""
        return cell_sums(self.codes, self.n_cells, self.data.weights.numpy())

    @cached_property
    def cell_rows(self) -> tuple[Rows, ...]:
        """The rows of every cell, a slice where they stand together."""
        order = np.argsort(self.codes, kind="stable")
        ends = np.searchsorted(self.codes[order], np.arange(self.n_cells + 1))
        return tuple(_compact(order[a:b]) for a, b in pairwise(ends))

    @cached_property
    def shares(self) -> Tensor:
        """Weights that sum to one in every cell, zero for rows in none; Tensor of shape (n_samples,)."""
        per_cell = np.append(1 / self.mass, 0.0)
        return torch.from_numpy(self.data.weights.numpy() * per_cell[self.codes])

    def group_cells(self, group: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The cells of the positives and of the negatives of a group, each one cell or none."""
        numbers = group, self.data.n_groups + group
        positives, negatives = (tuple(self.place[cell] for cell in [n] if cell in self.place) for n in numbers)
        return positives, negatives

    @cached_property
    def unions(self) -> CellUnions:
        """The sets of the differences as unions of cells, each once."""
        return CellUnions.of(self.differences, self.n_cells)

    @cached_property
    def _counted(self) -> tuple[Rows, np.ndarray, np.ndarray]:
        """The rows in any cell, their shares of its weight, and their cells."""
        rows = _compact(np.flatnonzero(self.codes < self.n_cells))
        return rows, self.shares.numpy()[rows], self.codes[rows]

    @cached_property
    def _cell_shares(self) -> np.ndarray:
        """Shares of the cells in every union, zero in an empty one; ndarray of shape (n_unions, n_cells)."""
        weights = self.unions.members * self.mass
        return weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)

    def smooth(
        self, kernel: Kernel, width: float, scores: np.ndarray
    ) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """The differences of the AUCs with a kernel in place of the indicator, and what gives their slopes.

        All of them are sums over one table of the cells, in which a cell is level with itself.

        Returns
        -------
        differences : ndarray of shape (n_differences,)
        pull : callable
            Takes multipliers of the differences, and returns the slopes of the combination in the scores.
        """
        rows, shares, codes = self._counted
        table, pull_table = pair_table(kernel, scores[rows], shares, codes, self.n_cells, width)
        of_unions, unions = self._cell_shares, self.unions
        aucs = of_unions @ (table - 0.5 * (1 - np.eye(self.n_cells))) @ of_unions.T

        def pull(multipliers: np.ndarray) -> np.ndarray:
            factors, slopes = np.zeros_like(aucs), np.zeros_like(scores)
            np.add.at(factors, (unions.above, unions.below), multipliers[:, None] * [1.0, -1.0])
            slopes[rows] = pull_table(of_unions.T @ factors @ of_unions)
            return slopes

        first, second = aucs[unions.above, unions.below].T
        return first - second, pull

    def exact(self, scores: np.ndarray) -> np.ndarray:
        """The differences of the AUCs, ties one half; ndarray of shape (n_differences,), not to be written to."""
        return self._last_exact.at(scores, lambda: self._exact_of(scores, self.codes, self.data.weights.numpy()))

    @cached_property
    def _last_exact(self) -> LastOfScores:
        """Cache of the last differences; constraints that differ only in their bounds share it."""
        return LastOfScores()

    def exact_with_weights(self, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """`exact` for several weights of shape (n_draws, n_samples); ndarray of shape (n_draws, n_differences)."""
        order = np.argsort(-scores)  # once for all draws: sorting rows that are in order takes hardly any time
        rows = scores[order], self.codes[order]
        return np.stack([self._exact_of(*rows, own[order]) for own in weights])

    def _exact_of(self, scores: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The differences for rows in any order."""
        aucs = self.unions.aucs(*centred_aucs(scores, codes, weights, self.n_cells))
        aucs = np.where(np.isnan(aucs), 0.5, aucs)  # of an empty set, as in a mini-batch, none is ahead
        return aucs[:, 0] - aucs[:, 1]

    @cached_property
    def granularity(self) -> float:
        """Largest change of a difference by one pair of rows; at least `RESOLUTION` where one row changes it by more.

        A sum over two sets counts a pair ``1 / (n m)``, which is 1e-8 for some thousand rows, and one row ``1 / n``:
        a difference of AUCs that is far below what a single row makes is zero for every purpose.
        """
        heaviest, unions = cell_maxima(self.codes, self.n_cells, self.data.weights.numpy()), self.unions
        mass = np.maximum(unions.members @ self.mass, np.finfo(float).tiny)
        shares = (unions.members * heaviest).max(axis=1, initial=0.0) / mass
        above, below = shares[unions.above], shares[unions.below]
        # the weights of a pair and of a row in both AUCs; a set against itself is one half whatever the scores
        pair, row = (
            np.where(unions.above == unions.below, 0.0, weights).sum(axis=1).max(initial=0.0)
            for weights in (above * below, np.maximum(above, below))
        )
        return float(min(max(pair, RESOLUTION), row))

    def sizes(self) -> CellSizes:
        """Sizes of the sets that are compared; those that are compared with themselves count for nothing."""
        return self._group_sizes() if self.are_named else self._mask_sizes()

    def _group_sizes(self) -> CellSizes:
        """Sizes of the unions of groups' positives and negatives, which may be empty."""
        data, n_groups = self.data, self.data.n_groups
        code = None if self.protected is None else protected_code(data.labels, self.protected)
        cells = data.codes + n_groups * (data.y.numpy() <= 0)
        unions = _compared(auc_differences(self.constraint, n_groups, code)[1])
        members = [sorted({cell % n_groups for cell in union}) for union in unions]
        sides = [{cell // n_groups for cell in union} for union in unions]
        labels = [
            ("all rows" if len(groups) == n_groups else " or ".join(str(data.labels[g]) for g in groups[:_NAMED]))
            + (" ..." if len(groups) not in (*range(_NAMED + 1), n_groups) else "")
            + ("" if len(side) == 2 else f", y={data.label_name(-1.0 if side == {1} else 1.0)}")
            for groups, side in zip(members, sides, strict=True)
        ]
        groups = np.array([group[0] if len(group) == 1 else -1 for group in members], dtype=int)
        return CellSizes.of_rows(labels, *_sizes(cells, data, 2 * n_groups, unions), groups)

    def _mask_sizes(self) -> CellSizes:
        """Sizes of the sets that masks mark."""
        unions = [cells for difference in self.differences for cells in difference]
        sizes = _sizes(self.codes, self.data, self.n_cells, unions)
        return CellSizes.of_rows([f"mask {name}" for name in _SET_NAMES], *sizes)


def _compared(differences: Sequence[AUCDifference]) -> list[tuple[int, ...]]:
    """The sets of the AUCs that depend on the scores, each once."""
    pairs = [pair for d in differences for pair in ((d.above, d.below), (d.reference_above, d.reference_below))]
    return list(dict.fromkeys(cells for pair in pairs if pair[0] != pair[1] for cells in pair))


def _sizes(
    codes: np.ndarray, data: FairData, n_cells: int, unions: Sequence[Sequence[int]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of rows of every union, and the share of its heaviest row (1 for none); shapes (n_unions,)."""
    weights = data.weights.numpy()
    counts, mass = cell_sums(codes, n_cells), cell_sums(codes, n_cells, weights)
    heaviest = cell_maxima(codes, n_cells, weights)
    rows = [list(union) for union in unions]
    shares = [float(heaviest[cells].max() / mass[cells].sum()) if counts[cells].any() else 1.0 for cells in rows]
    return np.array([int(counts[cells].sum()) for cells in rows], dtype=int), np.array(shares)


def both_ways(sides: Sequence[tuple[Any, Any]]) -> tuple[tuple[Any, Any], ...]:
    """The two sides of every component: differences first, then the same with the other sign."""
    return (*sides, *((b, a) for a, b in sides))


def side_names(name: str, sides: Sequence[tuple[Any, Any]]) -> tuple[str, ...]:
    """Return the names of components that compare two sides."""
    return tuple(f"{name}[{a} - {b}]" for a, b in sides)


def _ask(constraint: Callable[[np.ndarray, np.ndarray], Any], data: FairData) -> np.ndarray:
    """Return the masks that a function makes, with an entry for every row of the caller.

    It is asked once, for all rows in the caller's order: of a mini-batch, or of sorted rows, it may know nothing.
    """
    labels = np.empty(data.n_groups, dtype=object)
    labels[:] = data.labels
    rows = np.argsort(data.order)
    columns = data.y.numpy()[rows] > 0, labels[data.codes[rows]]
    check_arguments(
        constraint,
        "a constraint of AUCs by a function needs two arguments, (positive, groups), and four masks",
        *columns,
    )
    masks = np.zeros((4, data.n_given), dtype=bool)
    masks[:, data.order[rows]] = checked_masks(constraint(*columns), "constraint must return", rows.size)
    return masks


def _compact(rows: np.ndarray) -> Rows:
    """Return a slice if the rows, in ascending order, stand together, otherwise the rows."""
    if rows.size and rows[-1] - rows[0] + 1 == rows.size:
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows
