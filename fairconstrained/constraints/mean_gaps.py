"""Bounds on the gaps between the groups' means of a function of the rows, such as a loss or a rate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from typing_extensions import override

from fairconstrained.constraints._resolution import CellSizes
from fairconstrained.constraints._row_functions import TOLERANCE, BoundRowFunction, RowFunction
from fairconstrained.constraints.compared_groups import ComparedGroups, GroupLimits
from fairconstrained.data import FairData
from fairconstrained.groups import cell_sums
from fairconstrained.metrics.cell_means import (
    Notion,
    aggregated_gap,
    blocks_of,
    gaps_of_means,
    mean_by_cell,
    signed_means,
)

__all__ = ["BoundMeanGaps", "Comparisons"]

#: Groups up to which every pair is a component. More of them are kept within kappa / 2 of a common centre, which is
#: the same and takes two components for a group.
FEW_GROUPS = 8
#: Fields that are kept from one mini-batch to the next where the groups of the rows are the same.
_OF_GROUPS = ("_cells", "_mass", "_absent", "_weights")
#: Other fields that are kept once they are computed.
_OF_ROWS = ("_block_shares", "_cell_sizes")
#: Entries up to which tables are dense.
_SMALL = 10_000


class Comparisons(NamedTuple):
    """Tables of the mean losses that the components compare; components are linear in them.

    Attributes
    ----------
    cells : ndarray or csr_array of shape (n_components, n_cells)
        Coefficients of the cells' mean losses.
    blocks : ndarray of shape (n_components, n_blocks)
        Coefficients of the mean losses of all rows in the blocks.
    aux : ndarray of shape (n_components, n_aux)
        Coefficients of the centres.
    names : tuple of str
        Names of the components.
    share : float
        Largest allowed value of a component, as a share of ``kappa``.
    averaged : bool
        Whether the only component is the mean of these.
    """

    cells: Any
    blocks: np.ndarray
    aux: np.ndarray
    names: tuple[str, ...]
    share: float
    averaged: bool

    @classmethod
    def of(cls, compared: ComparedGroups, notion: Notion, bounded: bool) -> Self:
        """Compare every pair of groups, or every group with all rows or the centre; both ways, for each sign."""
        labels, n_signs, reference = compared.labels, len(notion.signs), notion.reference
        n_groups = len(labels)
        groups = np.arange(n_groups if bounded and compared.differ(notion) else 0)
        kind = "pairs" if reference == "pairwise" and groups.size <= FEW_GROUPS else reference
        if kind == "pairs":
            first, second = np.array(list(permutations(groups, 2)), dtype=int).reshape(-1, 2).T
        else:
            other = np.full(groups.size, n_groups)
            first, second = np.append(groups, other), np.append(other, groups)
        if reference == "excess":
            first, second = groups, other
        ends = sp.csr_array(
            (np.repeat([1.0, -1.0], first.size), (np.tile(np.arange(first.size), 2), np.append(first, second))),
            shape=(first.size, n_groups + 1),
        )
        cells, last = sp.kron(notion.signs, ends[:, :n_groups], format="csr"), ends[:, [n_groups]].toarray()
        nothing = np.empty((cells.shape[0], 0))
        names = (*labels, "centre" if kind == "pairwise" else "all")
        pairs = list(zip(first.tolist(), second.tolist(), strict=True))
        against_all = kind in ("overall", "excess")
        return cls(
            cells=cells.toarray() if cells.shape[0] * cells.shape[1] <= _SMALL else sp.csr_array(cells),
            blocks=np.kron(notion.signs, last) if against_all else nothing,
            aux=np.kron(np.eye(n_signs), last) if kind == "pairwise" else nothing,
            names=tuple(f"[{names[a]} - {names[b]}{which}]" for which in notion.sign_names for a, b in pairs),
            share=0.5 if kind == "pairwise" else 1.0,
            averaged=notion.agg == "mean" and groups.size > 0,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundMeanGaps(BoundRowFunction):
    """Bound on gaps between means. Components: every comparison of two sides, for each of the signs.

    On a mini-batch, the mean of a group that has no rows there, and all that is compared with it, count as equal.

    Attributes
    ----------
    notion : Notion
    groups : ComparedGroups
    comparisons : Comparisons
    limit : float
        The largest share of a cell that one row may have.
    """

    notion: Notion
    groups: ComparedGroups
    comparisons: Comparisons
    limit: float = 1.0

    @classmethod
    def of(
        cls,
        constraint: Any,
        data: FairData,
        kappa: float,
        name: str,
        notion: Notion,
        function: RowFunction,
        tolerance: float = TOLERANCE,
    ) -> Self:
        """Bind a constraint that has ``kappa`` and the parameters that choose the compared groups."""
        limits = GroupLimits.of(constraint, kappa, counts_rows=function.is_step)
        groups = ComparedGroups.of(data, notion, limits, constraint)
        return cls(
            data=data,
            kappa=kappa,
            name=name,
            function=function,
            tolerance=tolerance,
            notion=notion,
            groups=groups,
            comparisons=Comparisons.of(groups, notion, bounded=constraint.kappa is not None),
            limit=limits.share,
        )

    @property
    @override
    def compares(self) -> bool:
        return self.groups.differ(self.notion)

    @property
    @override
    def compared_as(self) -> dict[str, str | None]:
        labels = (self.data.unions or self.data).labels
        names = zip(map(str, labels), self.groups.names, strict=True)
        return {label: name for label, name in names if name != label}

    @property
    @override
    def resolution(self) -> float:
        return self.limit

    def compared_cells(self) -> CellSizes:
        """Sizes of the groups' cells of every target."""
        return self._cell_sizes

    @cached_property
    def _cell_sizes(self) -> CellSizes:
        return self.groups.cell_sizes(self.data, self.notion)

    @property
    def component_names(self) -> tuple[str, ...]:
        """The two sides of every component."""
        sides = ("[mean]",) if self.comparisons.averaged else self.comparisons.names
        return tuple(f"{self.name}{of}" for of in sides)

    @property
    def strata(self) -> np.ndarray:
        """Implement `BoundConstraint.strata`; the groups that are compared, and all others together."""
        return self.groups.place[self.data.codes]

    @property
    def n_aux(self) -> int:
        """Number of centres: one for each of the notion's signs where there are many groups, otherwise 0."""
        return self.comparisons.aux.shape[1]

    def initial_aux(self, scores: np.ndarray) -> np.ndarray:
        """Return the middle of the groups' means for every centre."""
        if not self.n_aux:
            return np.empty(0)  # there may be no group at all
        signed = signed_means(self.means(scores), self.notion)
        return (signed.max(axis=1) + signed.min(axis=1)) / 2

    @override
    def fair_aux(self) -> np.ndarray:
        return self.initial_aux(np.zeros(self.data.n_samples))

    @override
    def metric_of_values(self, values: np.ndarray) -> float:
        if not self.compares:
            return np.nan
        return self._gap_of_means(self._exact_means(values), self._block_shares @ values)

    def _gap_of_means(self, means: np.ndarray, overall: np.ndarray) -> float:
        return aggregated_gap(gaps_of_means(means, overall, self.notion), means, self.notion)

    def means(self, scores: np.ndarray) -> np.ndarray:
        """Return the exact mean of every cell; ndarray of shape (n_blocks, n_groups)."""
        return self._exact_means(self._exact_values(scores))

    def _exact_means(self, values: np.ndarray) -> np.ndarray:
        return mean_by_cell(values, self._cells, self.data.weights.numpy(), self._shape, self.groups.unions)

    @override
    def on(self, data: FairData) -> Self:
        moved = object.__new__(type(self))  # `replace` would take as long as a layer of a small network
        same = self.notion.targets is None and data.codes is self.data.codes and data.weights is self.data.weights
        left = _OF_ROWS if same else _OF_GROUPS + _OF_ROWS
        known = self.__dict__ | {"data": data}
        for name in left:
            known.pop(name, None)
        moved.__dict__.update(known)
        return moved

    def of_losses(self, losses: np.ndarray, aux: np.ndarray) -> np.ndarray:
        """Implement `RowLosses.of_losses`: the gaps minus their bounds."""
        table = self.comparisons
        values = table.cells @ (self._totals(self._weights * losses) / self._mass)
        if table.blocks.size:
            values += table.blocks @ (self._block_shares @ losses)
        if table.aux.size:
            values += table.aux @ aux
        if self._absent is not None:
            values[self._absent] = 0.0
        if table.averaged:
            values = values.mean(keepdims=True)
        values -= max(self.kappa - self.margin, 0.0) * table.share
        return values + self.correction

    @override
    def row_weights(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        table = self.comparisons
        if table.averaged:
            multipliers = np.full(len(table.names), multipliers[0] / len(table.names))
        if self._absent is not None:
            multipliers = np.where(self._absent, 0.0, multipliers)
        slopes = multipliers @ table.cells / self._mass
        if self._members is not None:
            slopes = (slopes.reshape(self._shape[0], -1) @ self._members).ravel()
        padded = np.zeros(slopes.size + 1)  # the last cell is of the rows in none
        padded[:-1] = slopes
        weights = padded[self._cells]
        weights *= self._weights
        if table.blocks.size:
            weights += (multipliers @ table.blocks) @ self._block_shares
        return weights, multipliers @ table.aux

    def _totals(self, of_rows: np.ndarray | None) -> np.ndarray:
        """Return the sum (for None, the number) of the rows of every cell, block by block; shape (n_cells,)."""
        n_blocks, n_parts = self._shape
        sums = cell_sums(self._cells, n_blocks * n_parts, of_rows)
        return sums if self._members is None else (self._members @ sums.reshape(self._shape).T).T.ravel()

    @property
    def _shape(self) -> tuple[int, int]:
        """Blocks and parts."""
        return self.notion.n_blocks, self.groups.n_parts

    @property
    def _members(self) -> Any:
        """Membership of the parts in the groups, if these overlap; of shape (n_groups, n_parts)."""
        return None if self.groups.unions is None else self.groups.unions.members

    @cached_property
    def _weights(self) -> np.ndarray:
        return self.data.weights.numpy()

    @cached_property
    def _cells(self) -> np.ndarray:
        return self.groups.cells(self.data, self.notion)

    @cached_property
    def _mass(self) -> np.ndarray:
        """Weight of every cell; 1 where there are no rows."""
        mass = self._totals(self._weights)
        mass[mass == 0] = 1.0
        return mass

    @cached_property
    def _block_shares(self) -> np.ndarray:
        """Weights that sum to one in every block, zero elsewhere; ndarray of shape (n_blocks, n_samples)."""
        weights = self.data.weights.numpy() * blocks_of(self.data.y.numpy(), self.notion)
        totals = weights.sum(axis=1, keepdims=True)
        return np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0)

    @cached_property
    def _absent(self) -> np.ndarray | None:
        """Whether each component compares a cell without rows; None if none does. Boolean, of shape (n_components,)."""
        counts = self._totals(None)
        if counts.all():
            return None
        return abs(self.comparisons.cells) @ (counts == 0) > 0
