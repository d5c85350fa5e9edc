"""The rule for the least number of rows that a bound needs: how much a single row may change the metric."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple, Self

import numpy as np

from fairconstrained.data import Cells
from fairconstrained.groups import MERGED

__all__ = ["FINEST", "CellSizes", "advice_on_numbers", "check_sizes", "in_words", "remedies", "resolution"]

#: Weight that one row may have in a metric however small ``kappa`` is.
FINEST = 0.02
#: Cells that a message lists at most.
_SHOWN = 10
#: Small groups or cells from which on they may be numbers that nobody has cut into bands.
_MANY = 10
#: Rounding of shares, which are sums of floats.
_ROUNDING = 1e-9
#: Addition to advice to set small_groups; the parameter of an estimator is for constraints that do not have it.
_WHERE = "(in the constraint, where that is an object with this parameter)"
#: Advice where a cell has no rows.
_ONE_LABEL = (
    "A group whose rows all have one label, as where the groups are the labels, has nothing to compare by label: bound "
    "a rate of all rows, as demographic_parity does."
)


def resolution(kappa: float) -> float:
    """Return the largest change of a metric by one row that a bound ``kappa`` allows."""
    return max(kappa, FINEST)


class CellSizes(NamedTuple):
    """Sizes of the cells that a constraint compares."""

    #: Names of the cells in messages.
    labels: Sequence[str]
    #: Numbers of rows of the cells.
    counts: np.ndarray  # of shape (n_cells,)
    #: Share of the cell's weight that its heaviest row has; 1 for a cell without rows.
    shares: np.ndarray  # of shape (n_cells,)
    #: Change of the metric where the share of a cell changes by one.
    units: np.ndarray  # of shape (n_cells,)
    #: Code of the group whose rows the cell holds; -1 where it holds rows of several groups, or of none.
    groups: np.ndarray  # of shape (n_cells,)
    #: Name of the sets of rows that users may merge beside groups; empty if there are none.
    mergeable: str = ""

    @classmethod
    def of_rows(
        cls,
        labels: Sequence[str],
        counts: np.ndarray,
        shares: np.ndarray,
        groups: np.ndarray | None = None,
        mergeable: str = "",
    ) -> Self:
        """Return cells whose shares count in the metric as they are."""
        n_cells = len(labels)
        groups = np.full(n_cells, -1) if groups is None else groups
        return cls(labels, np.asarray(counts), np.asarray(shares), np.ones(n_cells), groups, mergeable)

    @classmethod
    def of_blocks(cls, blocks: Sequence[Cells], lengths: np.ndarray) -> Self:
        """Blocks of one cell for every group, whose shares count ``1 / lengths``."""
        n_groups = len(blocks[0])
        return cls(
            tuple(label for cells in blocks for label in cells.labels),
            np.array([rows.stop - rows.start for cells in blocks for rows in cells.slices]),
            np.concatenate([cells.largest_shares() for cells in blocks]),
            np.tile(1 / np.broadcast_to(lengths, n_groups), len(blocks)),
            np.tile(np.arange(n_groups), len(blocks)),
        )

    @property
    def steps(self) -> np.ndarray:
        """Change of the metric by the heaviest row of every cell; ndarray of shape (n_cells,)."""
        return self.shares * self.units

    def too_small(self, limit: float) -> np.ndarray:
        """Return the numbers of the cells that are empty, or in which one row changes the metric by too much."""
        coarse = (self.steps > limit * (1 + _ROUNDING)) & (limit < 1)
        return np.flatnonzero(coarse | (self.counts == 0))

    def is_small(self, limit: float) -> np.ndarray:
        """Return whether each group has a cell that is `too_small`; boolean ndarray of shape (n_groups,)."""
        return np.isin(np.arange(self.groups.max(initial=-1) + 1), self.small_groups(limit))

    def small_groups(self, limit: float) -> np.ndarray:
        """Codes of the groups with a cell that is `too_small`, ascending."""
        groups = np.unique(self.groups[self.too_small(limit)])
        return groups[groups >= 0]

    def by_group(self, limit: float) -> np.ndarray:
        """Rows of every cell in multiples of those that it needs, of shape (n_blocks, n_groups); infinite for none."""
        enough = limit / self.steps if limit < 1 else 1.0
        multiples = np.where(self.counts > 0, enough, 0.0)
        of_groups = [multiples[self.groups == group] for group in range(self.groups.max(initial=-1) + 1)]
        return np.array(list(zip_longest(*of_groups, fillvalue=np.inf)))

    def described(self, cells: np.ndarray) -> str:
        """Rows of some cells for a message, the smallest first; effective rows too where weights differ."""
        effective = 1 / self.shares
        smallest_first = cells[np.argsort(effective[cells], kind="stable")]
        parts = [
            f"{self.labels[k]!r}: {self.counts[k]}"
            + (f" (effectively {effective[k]:.3g})" if 0 < effective[k] < self.counts[k] * (1 - 1e-6) else "")
            for k in smallest_first[:_SHOWN].tolist()
        ]
        if cells.size > _SHOWN:
            parts.append(f"and {cells.size - _SHOWN} more")
        return "{" + ", ".join(parts) + "}"


def advice_on_numbers(n_small: int) -> str:
    """Return advice to cut numbers into bands for a message about ``n_small`` small groups or cells; empty for few."""
    if n_small <= _MANY:
        return ""
    return " If the groups are numbers, such as ages, cut them into bands first, for example with pandas.cut."


def remedies(sizes: np.ndarray, n_small: int, n_least: int, is_merged: bool, mergeable: str) -> list[str]:
    """Return what helps against small groups, for `in_words`, as far as it leaves enough of them to compare.

    Parameters
    ----------
    sizes : ndarray of shape (n_blocks, n_groups)
        Rows of every cell in multiples of those that it needs.
    n_small, n_least : int
        The number of groups that are too small, and the least number of groups that can be compared.
    is_merged : bool
        Whether the small groups have been merged already.
    mergeable : str
        Name of the sets of rows that users may merge beside groups; empty if there are none.
    """
    n_groups, is_enough = sizes.shape[1], _are_enough_together(sizes, n_least)
    n_merged = n_groups - max(n_small - 1, 1)  # a single small group is merged with the next larger one
    leaves = {"'merge'": n_merged if is_enough and not is_merged else 0, "'ignore'": n_groups - n_small}
    settings = " or ".join(value for value, n_left in leaves.items() if n_left >= n_least)
    kinds = ", or ".join(filter(None, [mergeable, "groups" if is_enough else ""]))
    ways = [f"merge {kinds}"] if kinds else []
    ways += [f"set small_groups={settings} {_WHERE}"] if settings else []
    return ways or ["pass more rows"]


def _are_enough_together(sizes: np.ndarray, n_least: int) -> bool:
    """Whether groups can be merged into ``n_least`` large ones: the largest first, each with those that lack most."""
    merged = np.zeros((len(sizes), n_least))
    for group in np.argsort(-sizes.min(axis=0), kind="stable"):
        merged[:, merged.min(axis=0).argmin()] += sizes[:, group]
    return bool(merged.min() > 1 - _ROUNDING)


def in_words(ways: Sequence[str]) -> str:
    """Return a sentence with all ways out of a problem, without its full stop."""
    *others, last = ways
    sentence = ", ".join([*others, f"or {last}" if others else last])
    return sentence[0].upper() + sentence[1:]


def check_sizes(notion: str, kappa: float, limit: float, sizes: CellSizes, n_least: int = 2) -> None:
    """Raise ValueError, with the counts, if a cell has no rows, or one of its rows counts more than the limit.

    Parameters
    ----------
    notion : str
        Name of the constraint in the message.
    kappa : float
        Bound that the message names.
    limit : float
        The largest change of the metric by one row that is allowed; 1 and more is no limit, since no gap of shares
        exceeds it.
    n_least : int, default=2
        The least number of groups that can be compared.
    """
    cells = sizes.too_small(limit)
    if not cells.size:
        return
    shown = sizes.described(cells)
    numbers = advice_on_numbers(cells.size)
    is_empty = sizes.counts[cells] == 0
    groups, n_filled = np.unique(sizes.groups[(sizes.counts > 0) & (sizes.groups >= 0)], return_counts=True)
    of_one_label = np.intersect1d(sizes.groups[cells[is_empty]], groups[n_filled == 1])
    by_label = f" {_ONE_LABEL}" if of_one_label.size else ""
    if of_one_label.size and of_one_label.size == sizes.groups.max() + 1:
        remedy = ""  # no number of rows helps
    else:
        ways = [f"merge {sizes.mergeable or 'small sets of rows'}"]
        if (sizes.groups[cells] >= 0).any():
            is_merged = any(str(sizes.labels[cell]).startswith(MERGED) for cell in cells)
            n_small = sizes.small_groups(limit).size
            ways = remedies(sizes.by_group(limit), n_small, n_least, is_merged, sizes.mergeable)
        ways += ["widen the interval"] if limit < 1 and (sizes.units[cells] > 1).any() else []
        ways += ["raise kappa"] if limit < 1 and not is_empty.all() else []  # which fills no empty cell
        remedy = f" {in_words(ways)}."
    advice = f"{remedy}{by_label}{numbers}"
    if limit >= 1:
        raise ValueError(f"{notion} compares cells of rows, but these have no rows: {shown}.{advice}")
    needed = int(np.ceil(sizes.units[cells].max() / limit - _ROUNDING))
    raise ValueError(
        f"{notion} with kappa={kappa:g} needs cells in which no row counts more than {limit:.3g}, that is at least "
        f"{needed} rows of equal weight in every cell that is compared, but these have fewer rows: {shown}.{advice}"
    )
