"""Groups that a constraint compares, of which small ones may be merged or left out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from fairconstrained.cells import cell_maxima, cell_sums
from fairconstrained.checks.messages import shortened
from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.constraints._constraint import Constraint
from fairconstrained.constraints._resolution import CellSizes, advice_on_numbers, in_words, remedies, resolution
from fairconstrained.data import FairData
from fairconstrained.groups import MERGED, Groups, Unions
from fairconstrained.metrics.cell_means import Blocks, Notion, by_group
from fairconstrained.metrics.validation import GroupedRows, check_groups

__all__ = ["ComparedGroups", "ComparesGroups", "GroupLimits", "by_label", "grouped_rows", "measured", "table_of_groups"]

#: Value of ``min_group_size`` that asks for as many rows as ``kappa`` needs.
AUTO = "auto"


class GroupLimits(NamedTuple):
    """Limits to how small a compared group may be."""

    #: Least number of rows in every cell of a group.
    min_size: int
    #: The largest share of a cell that one row may have.
    share: float

    @classmethod
    def of(cls, constraint: Any, kappa: float, counts_rows: bool) -> Self:
        """Return the limits of a constraint with ``kappa`` and ``min_group_size``.

        Where a gap moves with single rows, the rule of `resolution` holds whatever the user says. A mean of losses or
        of probabilities is met exactly, so there a size that the user gives takes the rule's place.
        """
        by_rule = constraint.kappa is not None and (constraint.min_group_size == AUTO or counts_rows)
        min_size = 1 if constraint.min_group_size == AUTO else int(constraint.min_group_size)
        return cls(min_size, resolution(kappa) if by_rule else 1.0)


@with_parameters
class ComparesGroups(Constraint):
    """Constraint that compares groups, some of which may be too small.

    Parameters
    ----------
    min_group_size : int or "auto", default="auto"
        Least number of rows of every cell (a group, or its rows of a label that is compared) with which a group takes
        part. "auto": so many that no row counts more than ``max(kappa, 0.02)``.
    small_groups : {"error", "merge", "ignore"}, default="error"
        Treatment of groups with smaller cells: "error" raises ValueError, "merge" puts them together, as one group
        named "(small groups)", with the next smaller ones if they are still too small, and "ignore" leaves them out of
        the constraint.
    """

    min_group_size: int | str = parameter(
        default=AUTO, allowed=[Interval(Integral, 0, None, closed="left"), StrOptions({AUTO})]
    )
    small_groups: str = parameter(default="error", allowed=[StrOptions({"error", "merge", "ignore"})])

    #: The classes, if there are more than two; see `for_classes`.
    _classes: ClassVar[tuple[Hashable, ...]] = ()

    def _of_classes(self, classes: Sequence[Hashable]) -> Self:
        """Return the constraint on scores of all of these classes."""
        changed = copy.copy(self)
        changed._classes = tuple(classes)  # type: ignore[misc]  # of this object alone
        return changed


def grouped_rows(data: FairData) -> GroupedRows:
    """Return the groups and weights of the rows, as metrics take them."""
    weights = data.weights.numpy()
    if data.unions is not None:
        return check_groups(data.unions.of_rows(data.codes), weights, data.n_samples, overlapping=True)
    present, codes = np.unique(data.codes, return_inverse=True)  # checked when the data were made
    return GroupedRows(Groups(codes, tuple(present.tolist())), weights)


def by_label(table: pd.DataFrame, data: FairData, classes: Sequence[Hashable] = ()) -> pd.DataFrame:
    """Return a metric's table of `grouped_rows` by the labels of the groups; those without rows are not in it.

    A table with a first level of numbers of classes gets the names of these, too.
    """
    if table.index.nlevels > 1:
        numbers = table.index.unique("class").to_numpy(dtype=int)
        parts = [by_label(table.loc[[number]].droplevel("class"), data) for number in numbers]
        return pd.concat(parts, keys=[classes[number] for number in numbers], names=["class"])
    labels = (data.unions or data).labels
    present = table.index.to_numpy(dtype=int)
    table.index = pd.Index([labels[code] for code in present], name="group", tupleize_cols=False)
    return table.rename(columns={"weight": "share"})


def measured(
    metric: Callable[..., Any], data: FairData, scores: np.ndarray, classes: Sequence[Hashable] = (), **options: Any
) -> Any:
    """Return what a metric of scores returns; its value is NaN where it does not exist."""
    rows = {"sensitive_features": grouped_rows(data), "pos_label": None if classes else 1.0}
    return metric(data.y.numpy(), scores, **rows, on_empty="nan", **options)


def table_of_groups(
    metric: Callable[..., Any], data: FairData, scores: np.ndarray, classes: Sequence[Hashable] = (), **options: Any
) -> pd.DataFrame:
    """Return the table of a metric of scores, `by_label`."""
    return by_label(measured(metric, data, scores, classes, return_groups=True, **options)[1], data, classes)


@dataclass(frozen=True, eq=False)
class ComparedGroups:
    """The groups that a constraint compares."""

    labels: tuple[str, ...]
    #: Names under which the groups of the user are compared; None for one that is left out.
    names: tuple[str | None, ...]
    #: Part that every code of the data belongs to; ``n_parts`` for a code that is left out.
    place: np.ndarray  # of shape (n_codes,)
    #: The number of groups, unless they overlap.
    n_parts: int
    #: The parts that every group consists of, if groups overlap.
    unions: Unions | None = None

    @classmethod
    def of(cls, data: FairData, notion: Notion, limits: GroupLimits, constraint: Any) -> Self:
        """Return the groups that a constraint compares: those that ``compared_as`` names, or all that are large enough.

        Raises ValueError if groups are too small, as described in `found`.
        """
        if constraint.compared_as is None:
            return cls.found(data, notion, limits.min_size, constraint.small_groups, limits.share)
        everything = cls.all(data)
        merged = {name for name in constraint.compared_as.values() if name is not None}
        told = np.array([label in {*constraint.compared_as, *merged} for label in everything.labels])
        return everything._without(told, next(iter(merged), None)) if told.any() else everything

    @classmethod
    def all(cls, data: FairData) -> Self:
        """Return the user's groups, each by itself."""
        labels = tuple(str(label) for label in (data.unions or data).labels)
        return cls(labels, labels, np.arange(data.n_groups), data.n_groups, data.unions)

    @classmethod
    def found(cls, data: FairData, notion: Notion, min_size: int, small: str, limit: float) -> Self:
        """Return the groups that are large enough, with the small ones treated as ``small`` says.

        Parameters
        ----------
        min_size : int
            Rows that a group needs in every cell.
        small : {"error", "merge", "ignore"}
            Treatment of groups that are too small.
        limit : float
            The largest share of a cell that one row may have, see `fairconstrained.constraints._resolution`. A group
            that breaks this rule is small too; where ``small`` is "error", it is for
            `BoundConstraint.check_resolution` to say so.

        Raises
        ------
        ValueError
            If a group has fewer rows and ``small`` is "error", or all but one together have fewer.
        """
        everything = cls.all(data)
        labels = everything.labels
        by_block = everything.sizes(data, notion)
        sizes = by_block.min(axis=0)
        is_small = everything._are_small(data, notion, min_size, 1.0 if small == "error" else limit)
        if not is_small.any():
            return everything
        counts = {label: int(size) for label, size, few in zip(labels, sizes, is_small, strict=True) if few}
        if notion.strata is not None:  # the stratum tells what is missing
            cells = everything.cell_sizes(data, notion)
            counts = {label: int(n) for label, n in zip(cells.labels, cells.counts, strict=True) if n < min_size}
        shown, numbers = shortened(counts), advice_on_numbers(len(counts))
        n_least = everything.fewest(notion)
        needed, n_small = max(min_size, 1), int(is_small.sum())
        ways = remedies(by_block / needed, n_small, n_least, small == "merge", notion.mergeable)
        lower = in_words([*ways, "lower min_group_size"])
        if small == "error":
            if not min(counts.values()):
                ways.append("bound a rate of all rows, as demographic_parity does")
                raise ValueError(
                    "these groups have no rows, or none with a label that is compared, so that their rates do not "
                    f"exist: {shown}. {in_words(ways)}.{numbers}"
                )
            raise ValueError(
                f"these groups have fewer than min_group_size={min_size} rows (of a label that is compared, if any "
                f"are): {shown}. {lower}.{numbers}"
            )
        if small == "ignore":
            return everything._without(is_small, None)
        is_small |= np.array(labels) == MERGED  # a group of that name which the user has put together
        merged = everything._without(is_small, MERGED)
        # enough groups have to be left to compare with
        while np.sum(~is_small) >= n_least and merged._are_small(data, notion, needed, limit)[-1]:
            is_small[np.where(is_small, np.inf, sizes).argmin()] = True
            merged = everything._without(is_small, MERGED)
        if merged.sizes(data, notion)[:, -1].min() < needed:
            raise ValueError(
                f"all small groups together still have fewer than min_group_size={min_size} rows: {shown}. {lower}."
            )
        return merged

    def _are_small(self, data: FairData, notion: Notion, min_size: int, limit: float) -> np.ndarray:
        """Whether groups have a cell of fewer rows, or one of whose rows has more than ``limit`` if it is below 1."""
        are_small = self.sizes(data, notion).min(axis=0) < min_size
        return are_small | self.cell_sizes(data, notion).is_small(limit) if limit < 1 else are_small

    def _without(self, is_small: np.ndarray, merged: str | None) -> Self:
        """Return the groups without the small ones, or with all small ones as one."""
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

    def differ(self, notion: Notion) -> bool:
        """Return whether there is anything to compare: two groups, a group and all rows, or a group and a limit."""
        return len(self.labels) >= self.fewest(notion)

    def fewest(self, notion: Notion) -> int:
        """Return the least number of groups with which there is anything to compare."""
        compares_with_others = self.unions is None or notion.reference == "pairwise"
        return 2 if compares_with_others and not notion.rule.works_on_one_group else 1

    def sizes(self, data: FairData, notion: Notion) -> np.ndarray:
        """Rows of every cell; ndarray of shape (n_blocks, n_groups)."""
        shape = notion.n_blocks, self.n_parts
        counts = cell_sums(self.cells(data, notion), shape[0] * shape[1])
        return by_group(counts.reshape(shape), self.unions)

    def cell_sizes(self, data: FairData, notion: Notion) -> CellSizes:
        """Sizes of the groups' cells of every target, the groups of the first one first."""
        shape = notion.n_blocks, self.n_parts
        cells, weights = self.cells(data, notion), data.weights.numpy()
        n_cells = shape[0] * shape[1]
        mass = cell_sums(cells, n_cells, weights).reshape(shape)
        by_part = cell_maxima(cells, n_cells, weights).reshape(shape)
        if self.unions is not None:
            members = self.unions.members
            by_part = np.stack([members.multiply(row).tocsr().max(axis=1).toarray().ravel() for row in by_part])
        of_groups = by_group(mass, self.unions)
        shares = np.divide(by_part, of_groups, out=np.ones_like(of_groups), where=of_groups > 0)
        labels = [f"{label}{block}" for block in notion.block_names for label in self.labels]
        counts = self.sizes(data, notion).astype(int)
        groups = np.tile(np.arange(len(self.labels)), shape[0])
        return CellSizes.of_rows(labels, counts.ravel(), shares.ravel(), groups, notion.mergeable)

    def cells(self, data: FairData, notion: Notion) -> np.ndarray:
        """Cells of the rows by group and block."""
        return self.blocks(data, notion).cells(self.place[data.codes], self.n_parts)

    @staticmethod
    def blocks(data: FairData, notion: Notion) -> Blocks:
        """Blocks of the rows."""
        return notion.blocks(data.y.numpy(), data.order, data.strata)
