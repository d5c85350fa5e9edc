"""Bounds on the gaps between the groups' means of a function of the rows, such as a loss or a rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from typing_extensions import override

from fairconstrained.constraints._resolution import CellSizes, resolution
from fairconstrained.constraints.base import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.groups import MERGED, Unions
from fairconstrained.metrics.cell_means import (
    Notion,
    aggregated_gap,
    blocks_of,
    by_group,
    cells_of,
    gaps_of_means,
    mean_by_cell,
    signed_means,
)
from fairconstrained.objectives import Loss
from fairconstrained.views import RowLosses, Stochastic

__all__ = ["BoundMeanGaps", "ComparedGroups", "Comparisons", "GroupLimits", "RowFunction", "check_options"]

#: Groups up to which every pair is a component. More of them are kept within kappa / 2 of a common centre, which is
#: the same and takes two components for a group.
FEW_GROUPS = 8
#: ``min_group_size`` of as many rows as ``kappa`` needs.
AUTO = "auto"
#: Fields that are kept from one mini-batch to the next where the groups of the rows are the same.
_OF_GROUPS = ("_cells", "_mass", "_absent", "_weights")
#: Other fields that are kept once they are computed.
_OF_ROWS = ("_block_shares", "_cell_sizes")
#: Entries up to which tables are dense.
_SMALL = 10_000
#: Small groups that a message lists.
_SHOWN = 10


class GroupLimits(NamedTuple):
    """How small a compared group may be.

    Attributes
    ----------
    min_size : int
        Rows that it needs in every cell.
    share : float
        The largest share of a cell that one row may have.
    """

    min_size: int
    share: float

    @classmethod
    def of(cls, constraint: Any, kappa: float, counts_rows: bool) -> Self:
        """The limits of a constraint with ``kappa`` and ``min_group_size``.

        Where a gap moves with single rows, the rule of `resolution` holds whatever the user says. A mean of losses or
        of probabilities is met exactly, so there a size that the user gives takes the rule's place.
        """
        by_rule = constraint.kappa is not None and (constraint.min_group_size == AUTO or counts_rows)
        min_size = 1 if constraint.min_group_size == AUTO else int(constraint.min_group_size)
        return cls(min_size, resolution(kappa) if by_rule else 1.0)


def check_options(constraint: Any, choices: Mapping[str, Sequence[str]]) -> None:
    """Raise ValueError for a parameter that is none of its choices, or ``min_group_size`` out of range."""
    for name, known in choices.items():
        if getattr(constraint, name) not in known:
            raise ValueError(f"{name} must be one of {sorted(known)}, got {getattr(constraint, name)!r}.")
    least = constraint.min_group_size
    is_size = isinstance(least, Integral) and not isinstance(least, bool) and int(least) >= 0
    if least != AUTO and not is_size:
        raise ValueError(f"min_group_size must be {AUTO!r} or an integer of at least 0, got {least!r}.")


class RowFunction(NamedTuple):
    """A function of a row's score and target, for solvers and for the metric."""

    smooth: Loss
    exact: Callable[[np.ndarray, np.ndarray], np.ndarray]
    #: The decisions that ``exact`` is a smooth stand-in for, if it is one.
    decisions: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None


@dataclass(frozen=True, eq=False)
class ComparedGroups:
    """The groups that a constraint compares.

    Attributes
    ----------
    labels : tuple of str
    names : tuple of str or None
        What every group of the user is called here; None for one that is left out.
    place : ndarray of shape (n_codes,)
        Part that every code of the data stands for; ``n_parts`` for one that is left out.
    n_parts : int
        The number of groups, unless they overlap.
    unions : Unions, optional
        What the groups are made of, if they overlap.
    """

    labels: tuple[str, ...]
    names: tuple[str | None, ...]
    place: np.ndarray
    n_parts: int
    unions: Unions | None = None

    @classmethod
    def of(cls, data: FairData, notion: Notion, limits: GroupLimits, constraint: Any) -> Self:
        """The groups that a constraint compares: as it was told, or those that are large enough.

        Raises
        ------
        ValueError
            See `found`.
        """
        if constraint.compared_as is None:
            return cls.found(data, notion, limits.min_size, constraint.small_groups, limits.share)
        everything = cls.all(data)
        told = np.array([label in constraint.compared_as for label in everything.labels])
        merged = {name for name in constraint.compared_as.values() if name is not None}
        return everything._without(told, next(iter(merged), None)) if told.any() else everything

    @classmethod
    def all(cls, data: FairData) -> Self:
        """The user's groups, every one by itself."""
        labels = tuple(str(label) for label in (data.unions or data).labels)
        return cls(labels, labels, np.arange(data.n_groups), data.n_groups, data.unions)

    @classmethod
    def found(cls, data: FairData, notion: Notion, min_size: int, small: str, limit: float = 1.0) -> Self:
        """Find the groups that are large enough, and do with the others as ``small`` says.

        Parameters
        ----------
        data : FairData
        notion : Notion
        min_size : int
            Rows that a group needs in every cell.
        small : {"error", "merge", "ignore"}
        limit : float, default=1.0
            The largest share of a cell that one row may have, see `fairconstrained.constraints._resolution`. A group
            that breaks this rule is small too; where ``small`` is "error", it is for
            `BoundConstraint.check_resolution` to say so.

        Raises
        ------
        ValueError
            If a group has fewer rows and ``small`` is "error", or all small ones together have fewer.
        """
        everything = cls.all(data)
        labels = everything.labels
        sizes = everything.sizes(data, notion).min(axis=0)
        is_small = sizes < min_size
        if small != "error" and limit < 1:
            is_small |= everything.cell_sizes(data, notion).is_small(limit)
        if not is_small.any():
            return everything
        counts = {label: int(size) for label, size, few in zip(labels, sizes, is_small, strict=True) if few}
        shown = dict(list(counts.items())[:_SHOWN]) | ({"...": len(counts)} if len(counts) > _SHOWN else {})
        if small == "error":
            raise ValueError(
                f"these groups have fewer than min_group_size={min_size} rows (of a label that is compared, if any "
                f"are): {shown}. Set small_groups='merge' or 'ignore', lower min_group_size, or merge groups."
            )
        if small == "ignore":
            return everything._without(is_small, None)
        merged = everything._without(is_small, MERGED)
        if merged.sizes(data, notion)[:, -1].min() < max(min_size, 1):
            raise ValueError(
                f"all small groups together still have fewer than min_group_size={min_size} rows: {shown}. Set "
                "small_groups='ignore' or lower min_group_size."
            )
        return merged

    def _without(self, is_small: np.ndarray, merged: str | None) -> Self:
        """Without the small groups, or with all of them as one."""
        kept = np.flatnonzero(~is_small)
        names = tuple(merged if small else label for label, small in zip(self.labels, is_small, strict=True))
        labels = tuple(self.labels[g] for g in kept) + (() if merged is None else (merged,))
        if self.unions is None:
            place = np.full(is_small.size, kept.size)
            place[kept] = np.arange(kept.size)
            return type(self)(labels, names, place, len(labels))
        members = [self.unions.members[kept]]
        if merged is not None:
            members.append(sp.csr_array(self.unions.members[is_small].max(axis=0)).reshape(1, -1))
        return replace(self, labels=labels, names=names, unions=Unions(labels, sp.csr_array(sp.vstack(members))))

    @property
    def are_all(self) -> bool:
        """Whether these are the user's groups, none of them merged or left out."""
        return self.names == self.labels

    def differ(self, notion: Notion) -> bool:
        """Whether there is anything to compare: two groups, or one that is not all rows and these."""
        return len(self.labels) > (self.unions is None or notion.reference == "pairwise")

    def sizes(self, data: FairData, notion: Notion) -> np.ndarray:
        """Rows of every cell; ndarray of shape (n_blocks, n_groups)."""
        shape = notion.n_blocks, self.n_parts
        counts = np.bincount(self.cells(data, notion), minlength=shape[0] * shape[1] + 1)[:-1]
        return by_group(counts.reshape(shape), self.unions)

    def cell_sizes(self, data: FairData, notion: Notion) -> CellSizes:
        """Sizes of the groups' cells of every target, the groups of the first one first."""
        shape = notion.signs.shape[1], self.n_parts
        cells, weights = self.cells(data, notion), data.weights.numpy()
        mass = np.bincount(cells, weights, minlength=shape[0] * shape[1] + 1)[:-1].reshape(shape)
        heaviest = np.zeros(shape[0] * shape[1] + 1)
        np.maximum.at(heaviest, cells, weights)
        by_part = heaviest[:-1].reshape(shape)
        if self.unions is not None:
            members = self.unions.members
            by_part = np.stack([members.multiply(row).tocsr().max(axis=1).toarray().ravel() for row in by_part])
        of_groups = by_group(mass, self.unions)
        shares = np.divide(by_part, of_groups, out=np.ones_like(of_groups), where=of_groups > 0)
        targets = [""] if notion.targets is None else [f", y={target:+g}" for target in notion.targets]
        labels = [f"{label}{target}" for target in targets for label in self.labels]
        counts = self.sizes(data, notion).astype(int)
        groups = np.tile(np.arange(len(self.labels)), shape[0])
        return CellSizes.of_rows(labels, counts.ravel(), shares.ravel(), groups)

    def cells(self, data: FairData, notion: Notion) -> np.ndarray:
        """Cells of the rows by group and label."""
        return cells_of(self.place[data.codes], self.n_parts, data.y.numpy(), notion)


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
    share : float
        Of kappa, that they may come to.
    averaged : bool
        Whether it is their mean that is bounded, as the only component.
    """

    cells: Any
    blocks: np.ndarray
    aux: np.ndarray
    names: tuple[str, ...]
    share: float
    averaged: bool

    @classmethod
    def of(cls, compared: ComparedGroups, notion: Notion, bounded: bool) -> Self:
        """Every pair of groups, or every group and all rows or the centre; both ways, for each of the signs."""
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


@dataclass(frozen=True, eq=False)
class BoundMeanGaps(BoundConstraint, RowLosses, Stochastic):
    """Gaps between means of at most ``kappa``. Components: every comparison of two sides, for each of the signs.

    On a mini-batch, the mean of a group that has no rows there, and all that is compared with it, count as equal.

    Attributes
    ----------
    function : RowFunction
    notion : Notion
    groups : ComparedGroups
    comparisons : Comparisons
    margin : float
        What the tolerance falls short of ``kappa``.
    tolerance : float
        What a gap may exceed ``kappa`` by. The means vary continuously with the scores, so they have no granularity;
        solvers settle the gap to this.
    limit : float
        The largest share of a cell that one row may have.
    """

    data: FairData
    kappa: float
    name: str
    function: RowFunction
    notion: Notion
    groups: ComparedGroups
    comparisons: Comparisons
    margin: float = 0.0
    tolerance: float = 1e-9
    limit: float = 1.0

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
    def granularity(self) -> float:
        """The numerical tolerance."""
        return self.tolerance

    @property
    def n_aux(self) -> int:
        """One centre for each of the notion's signs, where there are too many pairs."""
        return self.comparisons.aux.shape[1]

    def initial_aux(self, scores: np.ndarray) -> np.ndarray:
        """The middle of the groups' means."""
        if not self.n_aux:
            return np.empty(0)  # there may be no group at all
        signed = signed_means(self.means(scores), self.notion)
        return (signed.max(axis=1) + signed.min(axis=1)) / 2

    @override
    def fair_aux(self) -> np.ndarray:
        return self.initial_aux(np.zeros(self.data.n_samples))

    def metric(self, scores: np.ndarray) -> float:
        """The largest gap, see `fairconstrained.metrics.group_means`."""
        return self._gap_of(self._exact_values(scores))

    @override
    def of_decisions(self, scores: np.ndarray) -> float | None:
        decisions = self.function.decisions
        return None if decisions is None else self._gap_of(decisions(scores, self.data.y.numpy()))

    def _gap_of(self, values: np.ndarray) -> float:
        """The largest gap between the groups' means of values of the rows."""
        if not self.compares:
            return np.nan
        return self._gap_of_means(self._exact_means(values), self._block_shares @ values)

    def _gap_of_means(self, means: np.ndarray, overall: np.ndarray) -> float:
        return aggregated_gap(gaps_of_means(means, overall, self.notion), means, self.notion)

    def means(self, scores: np.ndarray) -> np.ndarray:
        """Exact mean of every cell; ndarray of shape (n_blocks, n_groups)."""
        return self._exact_means(self._exact_values(scores))

    def _exact_values(self, scores: np.ndarray) -> np.ndarray:
        return self.function.exact(scores, self.data.y.numpy())

    def _exact_means(self, values: np.ndarray) -> np.ndarray:
        return mean_by_cell(values, self._cells, self.data.weights.numpy(), self._shape, self.groups.unions)

    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Self:
        """Implement `Exact.refined`; the bound is on this very loss, so only the margin changes."""
        return replace(self, margin=margin)

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

    @property
    @override
    def row_loss(self) -> Loss:
        return self.function.smooth

    def of_losses(self, losses: np.ndarray, aux: np.ndarray) -> np.ndarray:
        """Implement `RowLosses.of_losses`; the gaps minus what they may be."""
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
        return values

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
        """Sum over the rows of every cell (their number, for None), block by block; ndarray of shape (n_cells,)."""
        n_blocks, n_parts = self._shape
        sums = np.bincount(self._cells, of_rows, minlength=n_blocks * n_parts + 1)[:-1]
        return sums if self._members is None else (self._members @ sums.reshape(self._shape).T).T.ravel()

    @property
    def _shape(self) -> tuple[int, int]:
        """Blocks and parts."""
        return self.notion.n_blocks, self.groups.n_parts

    @property
    def _members(self) -> Any:
        """Which parts the groups are made of, if they overlap; of shape (n_groups, n_parts)."""
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
        """Which components compare a cell without rows, if any does; boolean, of shape (n_components,)."""
        counts = self._totals(None)
        if counts.all():
            return None
        return abs(self.comparisons.cells) @ (counts == 0) > 0
