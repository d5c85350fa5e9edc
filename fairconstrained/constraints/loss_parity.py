"""Bounds on the gaps between the mean losses of groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np

from fairconstrained.constraints._base import BoundConstraint, Constraint, check_bound
from fairconstrained.data import FairData
from fairconstrained.metrics._group_losses import (
    NOTIONS,
    ROW_LOSSES,
    LossNotion,
    loss_gaps,
    mean_losses,
    signed_losses,
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
#: Small groups that a message lists.
_SHOWN = 10
_CHOICES = {
    "constraint": list(NOTIONS),
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
        notion = NOTIONS[self.constraint]
        groups = ComparedGroups.of(data, notion, self.min_group_size, self.small_groups)
        return BoundLossParity(
            data=data,
            kappa=kappa,
            name="loss_parity",
            loss=self.loss,
            notion=notion,
            reference=self.reference,
            groups=groups,
            sides=_sides(len(groups.labels), self.reference, bounded=self.kappa is not None),
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
    def of(cls, data: FairData, notion: LossNotion, min_size: int, small: str) -> Self:
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

    def sizes(self, data: FairData, notion: LossNotion) -> np.ndarray:
        """Rows of every cell; ndarray of shape (n_blocks, n_compared)."""
        n_blocks, n_groups = notion.signs.shape[1], len(self.labels)
        counts = np.bincount(self.cells(data, notion).ravel(), minlength=n_blocks * n_groups + 1)
        return counts[:-1].reshape(n_blocks, n_groups)

    def cells(self, data: FairData, notion: LossNotion) -> np.ndarray:
        """Cell of every row, the groups of the first block first; those in none come last. Shape (n_samples,)."""
        n_groups, n_cells = len(self.labels), len(self.labels) * notion.signs.shape[1]
        groups = self.place[data.codes]
        if notion.targets is None:
            return np.where(groups < n_groups, groups, n_cells)
        cells = np.full(groups.size, n_cells)
        targets = data.y.numpy()
        for block, target in enumerate(notion.targets):
            chosen = (targets == target) & (groups < n_groups)
            cells[chosen] = block * n_groups + groups[chosen]
        return cells


class Sides(NamedTuple):
    """What the components compare: numbers of groups; the one after the last is all rows, or the centre.

    Attributes
    ----------
    first, second : ndarray of shape (n_pairs,)
    share : float
        Of kappa, that they may differ by.
    """

    first: np.ndarray
    second: np.ndarray
    share: float = 1.0

    def pulled(self, slopes: np.ndarray, size: int) -> np.ndarray:
        """The transpose of ``values[first] - values[second]``, for ``size`` values."""
        return np.bincount(self.first, slopes, minlength=size) - np.bincount(self.second, slopes, minlength=size)


def _sides(n_groups: int, reference: str, bounded: bool) -> Sides:
    groups = np.arange(n_groups)
    if not bounded or n_groups < 2:
        return Sides(groups[:0], groups[:0])
    if reference == "pairwise" and n_groups <= FEW_GROUPS:
        first, second = np.array(list(permutations(groups, 2))).T
        return Sides(first, second)
    other = np.full(n_groups, n_groups)
    share = 1.0 if reference == "overall" else 0.5
    return Sides(np.append(groups, other), np.append(other, groups), share)


@dataclass(frozen=True, eq=False)
class BoundLossParity(BoundConstraint, RowLosses, Stochastic):
    """See `LossParity`. Components: every comparison of two sides, for the first of the notion's signs, then the next.

    On a mini-batch, the mean loss of a group that has no rows there, and all that is compared with it, count as equal.

    Attributes
    ----------
    loss, reference : str
    notion : LossNotion
    groups : ComparedGroups
    sides : Sides
    margin : float
        What the tolerance falls short of ``kappa``.
    """

    data: FairData
    kappa: float
    name: str
    loss: str
    notion: LossNotion
    reference: Any
    groups: ComparedGroups
    sides: Sides
    margin: float = 0.0

    @property
    def component_names(self) -> tuple[str, ...]:
        """The two sides of every component."""
        labels = (*self.groups.labels, "all" if self.reference == "overall" else "centre")
        sums = [""] if len(self.notion.signs) == 1 else [", sum", ", difference"]
        pairs = list(zip(self.sides.first.tolist(), self.sides.second.tolist(), strict=True))
        return tuple(f"{self.name}[{labels[a]} - {labels[b]}{which}]" for which in sums for a, b in pairs)

    @property
    def granularity(self) -> float:
        """Numerical tolerance: a mean loss varies continuously and has no grain."""
        return TOLERANCE

    @property
    def n_aux(self) -> int:
        """One centre for each of the notion's signs, where there are too many pairs."""
        return len(self.notion.signs) if self.sides.share < 1 else 0

    def initial_aux(self, scores: np.ndarray) -> np.ndarray:
        """The middle of the groups' losses."""
        if not self.n_aux:
            return np.empty(0)  # there may be no group at all
        signed = signed_losses(self.mean_losses(scores), self.notion)
        return (signed.max(axis=1) + signed.min(axis=1)) / 2

    def fair_aux(self) -> np.ndarray:
        """See `BoundConstraint.fair_aux`."""
        return self.initial_aux(np.zeros(self.data.n_samples))

    def metric(self, scores: np.ndarray) -> float:
        """The largest gap, as `fairconstrained.metrics.loss_parity_gap` has it."""
        if len(self.groups.labels) < 2:
            return 0.0
        losses, weights = self._row_losses(scores), self.data.weights.numpy()
        blocks = self._blocks
        overall = np.array([mean_losses(losses, np.where(block, 0, 1), weights, 1)[0] for block in blocks])
        return float(loss_gaps(self.mean_losses(scores), overall, self.notion, self.reference).max())

    def mean_losses(self, scores: np.ndarray) -> np.ndarray:
        """Exact mean loss of every cell; ndarray of shape (n_blocks, n_groups)."""
        n_blocks, n_groups = self._shape
        weights = self.data.weights.numpy()
        return mean_losses(self._row_losses(scores), self._cells, weights, n_blocks * n_groups).reshape(self._shape)

    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Self:
        """See `Exact.refined`; the bound is on this very loss, so only the margin changes."""
        return replace(self, margin=margin)

    def on(self, data: FairData) -> Self:
        """See `Stochastic.on`."""
        return replace(self, data=data)

    @property
    def row_loss(self) -> Loss:
        """See `RowLosses.row_loss`."""
        return ROW_LOSS_OBJECTIVES[self.loss]

    def of_losses(self, losses: np.ndarray, aux: np.ndarray) -> np.ndarray:
        """See `RowLosses.of_losses`: the gaps minus what they may be."""
        if not self.sides.first.size:
            return np.empty(0)
        signs = self.notion.signs
        totals = np.bincount(self._cells, self._shares * losses, minlength=self._mass.size)
        parts = [signs @ totals[:-1].reshape(self._shape)]
        if self.reference == "overall":
            parts.append((signs @ (self._block_shares @ losses))[:, None])
        elif self.n_aux:
            parts.append(aux[:, None])
        values = np.concatenate(parts, axis=1)
        gaps = (values[:, self.sides.first] - values[:, self.sides.second]) * self._is_there
        return gaps.ravel() - max(self.kappa - self.margin, 0.0) * self.sides.share

    def row_weights(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `RowLosses.row_weights`."""
        signs, (_, n_groups) = self.notion.signs, self._shape
        slopes = multipliers.reshape(len(signs), -1) * self._is_there
        values = np.stack([self.sides.pulled(row, n_groups + 1) for row in slopes])
        totals = np.append(signs.T @ values[:, :-1], 0.0)
        weights = totals[self._cells] * self._shares
        if self.reference == "overall":
            weights = weights + (signs.T @ values[:, -1]) @ self._block_shares
        return weights, values[:, -1][: self.n_aux]

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

    def _row_losses(self, scores: np.ndarray) -> np.ndarray:
        return ROW_LOSSES[self.loss](scores, self.data.y.numpy())

    @cached_property
    def _cells(self) -> np.ndarray:
        return self.groups.cells(self.data, self.notion)

    @cached_property
    def _mass(self) -> np.ndarray:
        """Weight of every cell, and of the rows in none."""
        n_blocks, n_groups = self._shape
        return np.bincount(self._cells, self.data.weights.numpy(), minlength=n_blocks * n_groups + 1)

    @cached_property
    def _shares(self) -> np.ndarray:
        """Weights that sum to one in every cell; ndarray of shape (n_samples,)."""
        return self.data.weights.numpy() / self._mass[self._cells]

    @cached_property
    def _block_shares(self) -> np.ndarray:
        """Weights that sum to one in every block, zero elsewhere; ndarray of shape (n_blocks, n_samples)."""
        weights = self.data.weights.numpy() * np.stack(self._blocks)
        totals = weights.sum(axis=1, keepdims=True)
        return np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0)

    @cached_property
    def _is_there(self) -> np.ndarray | float:
        """1 for comparisons that have rows on both sides, 0 for the others; shape (n_pairs,) unless all have."""
        there = (self._mass[:-1] > 0).reshape(self._shape).all(axis=0)
        if there.all():
            return 1.0
        there = np.append(there, True)
        return (there[self.sides.first] & there[self.sides.second]).astype(float)
