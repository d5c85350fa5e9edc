"""Bounds on the gaps between the mean losses of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import permutations
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from fairconstrained.constraints._base import BoundConstraint, Constraint, check_bound
from fairconstrained.data import FairData
from fairconstrained.metrics._group_means import (
    LOSS_NOTIONS,
    ROW_LOSSES,
    Notion,
    gaps_of_means,
    mean_by_cell,
    signed_means,
)
from fairconstrained.objectives import ROW_LOSS_OBJECTIVES, Loss
from fairconstrained.views import RowLosses, Stochastic

__all__ = ["LossParity"]

#: What a gap may exceed ``kappa`` by: a mean loss varies continuously with the scores, so it has no grain.
TOLERANCE = 1e-9
#: Groups up to which every pair is a component. More of them are kept within kappa / 2 of a common centre, which is
#: the same and takes two components for a group.
FEW_GROUPS = 8
#: What small groups are called when they are put together.
MERGED = "(small groups)"
#: What is kept from one mini-batch to the next where the groups of the rows are the same.
_OF_GROUPS = frozenset({"_cells", "_mass", "_absent"})
#: Entries up to which the table of the components is dense.
_SMALL = 10_000
#: Small groups that a message lists.
_SHOWN = 10
_CHOICES = {
    "constraint": list(LOSS_NOTIONS),
    "loss": list(ROW_LOSSES),
    "reference": ["pairwise", "overall"],
    "small_groups": ["error", "merge", "ignore"],
}


class LossParity(Constraint):
    r"""Bound on the gaps between the mean losses of groups.

    .. math:: |L_g - L_{g'}| \le \kappa \quad \text{for all groups } g, g', \qquad
              L_g = \frac{1}{|g|} \sum_{i \in g} \ell(h(x_i), y_i)

    ("demographic_parity"); the same of the positive rows ("equal_opportunity"); or
    :math:`\sum_{v \in \{+,-\}} |L_{g,v} - L_{g',v}| \le \kappa` ("equalized_odds"). With ``reference="overall"`` the
    mean loss of all rows stands in place of :math:`L_{g'}`.

    With more than eight groups, pairwise gaps are bounded through auxiliary variables t,
    :math:`|L_g - t| \le \kappa / 2` (in "equalized_odds" one for either sum of the two labels' losses with signs), so
    that the number of components grows with that of the groups and not with its square. This is equivalent.

    Parameters
    ----------
    kappa : float or None, default=0.005
        Bound on the gap, at least 0, in units of the loss. None is no bound: the gap is only reported.
    constraint : {"demographic_parity", "equal_opportunity", "equalized_odds"}, default="demographic_parity"
    loss : {"log_loss", "hinge", "absolute", "squared"}, default="log_loss"
    reference : {"pairwise", "overall"}, default="pairwise"
    min_group_size : int, default=1
        Rows that every cell (a group, or its rows of a label that is compared) needs to take part.
    small_groups : {"error", "merge", "ignore"}, default="error"
        What becomes of groups with smaller cells: "error" raises ValueError, "merge" puts them together, as one group
        named "(small groups)", and "ignore" leaves them out of the constraint.

    References
    ----------
    Kliachkin, Lepsova, Bareilles, Marecek, Benchmarking Stochastic Approximation Algorithms for Fairness-Constrained
    Training of Deep Neural Networks: Table 1 and eq. 4.
    """

    def __init__(
        self,
        kappa: float | None = 0.005,
        *,
        constraint: str = "demographic_parity",
        loss: str = "log_loss",
        reference: str = "pairwise",
        min_group_size: int = 1,
        small_groups: str = "error",
    ) -> None:
        self.kappa = kappa
        self.constraint = constraint
        self.loss = loss
        self.reference = reference
        self.min_group_size = min_group_size
        self.small_groups = small_groups

    def bind(self, data: FairData) -> BoundLossParity:
        """See `Constraint.bind`; also raises ValueError for cells that are too small, with their sizes."""
        kappa = check_bound(self.kappa)
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {sorted(known)}, got {getattr(self, name)!r}.")
        least = self.min_group_size
        if isinstance(least, bool) or not isinstance(least, Integral) or least < 0:
            raise ValueError(f"min_group_size must be an integer of at least 0, got {least!r}.")
        notion = LOSS_NOTIONS[self.constraint]
        groups = ComparedGroups.of(data, notion, self.min_group_size, self.small_groups)
        return BoundLossParity(
            data=data,
            kappa=kappa,
            name="loss_parity",
            loss=self.loss,
            notion=notion,
            reference=self.reference,
            groups=groups,
            comparisons=Comparisons.of(groups.labels, notion, self.reference, bounded=self.kappa is not None),
        )


@dataclass(frozen=True, eq=False)
class ComparedGroups:
    """The groups that a constraint compares.

    Attributes
    ----------
    labels : tuple of str
    place : ndarray of shape (n_groups,)
        Number of every group of the data among them; ``len(labels)`` for one that is left out.
    """

    labels: tuple[str, ...]
    place: np.ndarray

    @classmethod
    def of(cls, data: FairData, notion: Notion, min_size: int, small: str) -> Self:
        """Find the groups that have ``min_size`` rows in every cell, and do with the others as ``small`` says.

        Raises
        ------
        ValueError
            If a group is too small and ``small`` is "error", or still is when all small ones are merged.
        """
        everything = cls(tuple(str(label) for label in data.labels), np.arange(data.n_groups))
        sizes = everything.sizes(data, notion).min(axis=0)
        is_small = sizes < min_size
        if not is_small.any():
            return everything
        counts = {label: int(size) for label, size in zip(everything.labels, sizes, strict=True) if size < min_size}
        shown = dict(list(counts.items())[:_SHOWN]) | ({"...": len(counts)} if len(counts) > _SHOWN else {})
        if small == "error":
            raise ValueError(
                f"these groups have fewer than min_group_size={min_size} rows (of a label that is compared, if any "
                f"are): {shown}. Set small_groups='merge' or 'ignore', lower min_group_size, or merge groups."
            )
        kept = np.flatnonzero(~is_small)
        labels = tuple(everything.labels[g] for g in kept)
        place = np.full(data.n_groups, len(kept))
        place[kept] = np.arange(kept.size)
        if small == "ignore":
            return cls(labels, place)
        merged = cls((*labels, MERGED), place)
        if merged.sizes(data, notion)[:, -1].min() < min_size:
            raise ValueError(
                f"all small groups together still have fewer than min_group_size={min_size} rows: {shown}. Set "
                "small_groups='ignore' or lower min_group_size."
            )
        return merged

    @property
    def names(self) -> list[str | None]:
        """What every group of the data is called here; None for one that is left out."""
        known = (*self.labels, None)
        return [known[place] for place in self.place]

    def sizes(self, data: FairData, notion: Notion) -> np.ndarray:
        """Rows of every cell; ndarray of shape (n_blocks, n_compared)."""
        n_blocks, n_groups = notion.signs.shape[1], len(self.labels)
        counts = np.bincount(self.cells(data, notion).ravel(), minlength=n_blocks * n_groups + 1)
        return counts[:-1].reshape(n_blocks, n_groups)

    def cells(self, data: FairData, notion: Notion) -> np.ndarray:
        """Cell of every row, the groups of the first block first; those in none come last. Shape (n_samples,)."""
        n_groups, n_cells = len(self.labels), len(self.labels) * notion.signs.shape[1]
        groups = self.place[data.codes]
        if notion.targets is None:
            return groups  # those left out have the number that follows already
        cells = np.full(groups.size, n_cells)
        targets = data.y.numpy()
        for block, target in enumerate(notion.targets):
            chosen = (targets == target) & (groups < n_groups)
            cells[chosen] = block * n_groups + groups[chosen]
        return cells


class Comparisons(NamedTuple):
    """What the components compare: tables that are linear in mean losses.

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
    """

    cells: Any
    blocks: np.ndarray
    aux: np.ndarray
    names: tuple[str, ...]
    share: float

    @classmethod
    def of(cls, labels: Sequence[str], notion: Notion, reference: str, bounded: bool) -> Self:
        """Every pair of groups, or every group and all rows or the centre; both ways, for each of the signs."""
        n_groups, n_signs = len(labels), len(notion.signs)
        groups = np.arange(n_groups if bounded and n_groups > 1 else 0)
        kind = reference if reference == "overall" or groups.size > FEW_GROUPS else "pairs"
        if kind == "pairs":
            first, second = np.array(list(permutations(groups, 2)), dtype=int).reshape(-1, 2).T
        else:
            other = np.full(groups.size, n_groups)
            first, second = np.append(groups, other), np.append(other, groups)
        ends = sp.csr_array(
            (np.repeat([1.0, -1.0], first.size), (np.tile(np.arange(first.size), 2), np.append(first, second))),
            shape=(first.size, n_groups + 1),
        )
        cells, last = sp.kron(notion.signs, ends[:, :n_groups], format="csr"), ends[:, [n_groups]].toarray()
        nothing = np.empty((cells.shape[0], 0))
        names = (*labels, "all" if kind == "overall" else "centre")
        sums = [""] if n_signs == 1 else [", sum", ", difference"]
        pairs = list(zip(first.tolist(), second.tolist(), strict=True))
        return cls(
            cells=cells.toarray() if cells.shape[0] * cells.shape[1] <= _SMALL else sp.csr_array(cells),
            blocks=np.kron(notion.signs, last) if kind == "overall" else nothing,
            aux=np.kron(np.eye(n_signs), last) if kind == "pairwise" else nothing,
            names=tuple(f"[{names[a]} - {names[b]}{which}]" for which in sums for a, b in pairs),
            share=0.5 if kind == "pairwise" else 1.0,
        )


@dataclass(frozen=True, eq=False)
class BoundLossParity(BoundConstraint, RowLosses, Stochastic):
    """See `LossParity`. Components: every comparison of two sides, for the first of the notion's signs, then the next.

    On a mini-batch, the mean loss of a group that has no rows there, and all that is compared with it, count as equal.

    Attributes
    ----------
    loss, reference : str
    notion : Notion
    groups : ComparedGroups
    comparisons : Comparisons
    margin : float
        What the tolerance falls short of ``kappa``.
    """

    data: FairData
    kappa: float
    name: str
    loss: str
    notion: Notion
    reference: Any
    groups: ComparedGroups
    comparisons: Comparisons
    margin: float = 0.0

    @property
    def component_names(self) -> tuple[str, ...]:
        """The two sides of every component."""
        return tuple(f"{self.name}{sides}" for sides in self.comparisons.names)

    @property
    def strata(self) -> np.ndarray:
        """See `BoundConstraint.strata`: the groups that are compared, and all others together."""
        return self.groups.place[self.data.codes]

    @property
    def granularity(self) -> float:
        """Numerical tolerance: a mean loss varies continuously and has no grain."""
        return TOLERANCE

    @property
    def n_aux(self) -> int:
        """One centre for each of the notion's signs, where there are too many pairs."""
        return self.comparisons.aux.shape[1]

    def initial_aux(self, scores: np.ndarray) -> np.ndarray:
        """The middle of the groups' losses."""
        if not self.n_aux:
            return np.empty(0)  # there may be no group at all
        signed = signed_means(self.mean_by_cell(scores), self.notion)
        return (signed.max(axis=1) + signed.min(axis=1)) / 2

    def fair_aux(self) -> np.ndarray:
        """See `BoundConstraint.fair_aux`."""
        return self.initial_aux(np.zeros(self.data.n_samples))

    def metric(self, scores: np.ndarray) -> float:
        """The largest gap, as `fairconstrained.metrics.loss_parity_gap` has it."""
        if len(self.groups.labels) < 2:
            return 0.0
        losses = ROW_LOSSES[self.loss](scores, self.data.y.numpy())
        overall = self._block_shares @ losses
        return float(gaps_of_means(self._means(losses), overall, self.notion, self.reference).max())

    def mean_by_cell(self, scores: np.ndarray) -> np.ndarray:
        """Exact mean loss of every cell; ndarray of shape (n_blocks, n_groups)."""
        return self._means(ROW_LOSSES[self.loss](scores, self.data.y.numpy()))

    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Self:
        """See `Exact.refined`; the bound is on this very loss, so only the margin changes."""
        return replace(self, margin=margin)

    def on(self, data: FairData) -> Self:
        """See `Stochastic.on`."""
        moved = object.__new__(type(self))  # `replace` would take as long as a layer of a small network
        same = self.notion.targets is None and data.codes is self.data.codes and data.weights is self.data.weights
        kept = _FIELDS | _OF_GROUPS if same else _FIELDS
        moved.__dict__.update((name, value) for name, value in self.__dict__.items() if name in kept)
        moved.__dict__["data"] = data
        return moved

    @property
    def row_loss(self) -> Loss:
        """See `RowLosses.row_loss`."""
        return ROW_LOSS_OBJECTIVES[self.loss]

    def of_losses(self, losses: np.ndarray, aux: np.ndarray) -> np.ndarray:
        """See `RowLosses.of_losses`: the gaps minus what they may be."""
        table, cells = self.comparisons, self._cells
        totals = np.bincount(cells, self.data.weights.numpy() * losses, minlength=self._mass.size)
        values = table.cells @ (totals / self._mass)[:-1]
        if table.blocks.size:
            values += table.blocks @ (self._block_shares @ losses)
        if table.aux.size:
            values += table.aux @ aux
        if self._absent is not None:
            values[self._absent] = 0.0
        values -= max(self.kappa - self.margin, 0.0) * table.share
        return values

    def row_weights(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `RowLosses.row_weights`."""
        table = self.comparisons
        if self._absent is not None:
            multipliers = np.where(self._absent, 0.0, multipliers)
        slopes = np.append(multipliers @ table.cells, 0.0) / self._mass
        weights = slopes[self._cells]
        weights *= self.data.weights.numpy()
        if table.blocks.size:
            weights += (multipliers @ table.blocks) @ self._block_shares
        return weights, multipliers @ table.aux

    @property
    def _shape(self) -> tuple[int, int]:
        """Blocks and groups."""
        return self.notion.signs.shape[1], len(self.groups.labels)

    @property
    def _blocks(self) -> list[np.ndarray]:
        """The rows of every block, of all groups; each a boolean ndarray of shape (n_samples,)."""
        targets = self.data.y.numpy()
        everything = np.ones(targets.size, dtype=bool)
        return [everything] if self.notion.targets is None else [targets == target for target in self.notion.targets]

    def _means(self, losses: np.ndarray) -> np.ndarray:
        n_blocks, n_groups = self._shape
        return mean_by_cell(losses, self._cells, self.data.weights.numpy(), n_blocks * n_groups).reshape(self._shape)

    @cached_property
    def _cells(self) -> np.ndarray:
        return self.groups.cells(self.data, self.notion)

    @cached_property
    def _mass(self) -> np.ndarray:
        """Weight of every cell, and of the rows in none; 1 where there are no rows."""
        n_blocks, n_groups = self._shape
        mass = np.bincount(self._cells, self.data.weights.numpy(), minlength=n_blocks * n_groups + 1)
        mass[mass == 0] = 1.0
        return mass

    @cached_property
    def _block_shares(self) -> np.ndarray:
        """Weights that sum to one in every block, zero elsewhere; ndarray of shape (n_blocks, n_samples)."""
        weights = self.data.weights.numpy() * np.stack(self._blocks)
        totals = weights.sum(axis=1, keepdims=True)
        return np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0)

    @cached_property
    def _absent(self) -> np.ndarray | None:
        """Which components compare a cell without rows, if any does; boolean, of shape (n_components,)."""
        counts = np.bincount(self._cells, minlength=self._mass.size)[:-1]
        if counts.all():
            return None
        return abs(self.comparisons.cells) @ (counts == 0) > 0


_FIELDS = frozenset(field.name for field in fields(BoundLossParity))
