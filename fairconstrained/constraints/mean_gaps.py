"""Bounds on what a rule makes of the groups' means of a function of the rows, such as a loss or a rate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from typing_extensions import override

from fairconstrained.cells import cell_sums
from fairconstrained.constraints._comparisons import Comparisons
from fairconstrained.constraints._optimism import KnowsOptimism
from fairconstrained.constraints._resolution import CellSizes
from fairconstrained.constraints._row_functions import TOLERANCE, BoundRowFunction, RowFunction
from fairconstrained.constraints.compared_groups import ComparedGroups, GroupLimits
from fairconstrained.data import FairData
from fairconstrained.metrics.cell_means import Blocks, Notion, by_group, mean_by_cell

__all__ = ["BoundMeanGaps"]

#: Fields that are kept from one mini-batch to the next where the groups of the rows are the same.
_OF_GROUPS = ("_cells", "_mass", "_counted_mass", "_absent", "_weights")
#: Factor of the logarithms of means, see `_unit_of_logarithms`. Measured on the four-fifths rule: larger ones lead to
#: models that accept hardly anybody where few are accepted anyway, smaller ones to bounds that are missed.
_SHARE_OF_SQUARE, _LEAST_FACTOR = 0.35, 0.01
#: Least factor for a class of several, all of which are rare, and are to be brought within the bound together.
_LEAST_OF_CLASS = 0.03
#: Other fields that are kept once they are computed.
_OF_ROWS = ("_blocks", "_block_shares", "_cell_sizes", "_is_hit", "_labels")


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundMeanGaps(KnowsOptimism, BoundRowFunction):
    """Bound on gaps between means. Components: every comparison of two sides, for each of the signs.

    On a mini-batch, the mean of a group that has no rows there, and all that is compared with it, count as equal.

    Attributes
    ----------
    notion : Notion
    groups : ComparedGroups
    comparisons : Comparisons
    limit : float
        The largest share of a cell that one row may have.
    unit : float
        Factor of the components: of logarithms, so that their quadratic penalties do not outweigh every loss; otherwise
        1 over the unit of the function, so that a solver sees the same problem whatever the units of the targets are.
    levels : ndarray of shape (n_cells,), or float
        Smooth means at the scores of the last refinement, around which the logarithms of ratios are linear; before the
        first one, the unit of the function.
    """

    notion: Notion
    groups: ComparedGroups
    comparisons: Comparisons
    limit: float = 1.0
    unit: float = 1.0
    levels: Any = 1.0
    optimism: np.ndarray | None = None

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
        **fields: Any,
    ) -> Self:
        """Bind a constraint that has ``kappa`` and the parameters that choose the compared groups."""
        notion = notion._replace(names=notion.names or tuple(map(data.label_name, notion.targets or ())))
        unit = 1.0 if notion.rule.is_relative else function.unit  # of kappa
        limits = GroupLimits.of(constraint, kappa / unit, counts_rows=function.is_step)
        groups = ComparedGroups.of(data, notion, limits, constraint)
        comparisons = Comparisons.of(groups, notion, bounded=constraint.kappa is not None)
        return cls(
            data=data,
            kappa=kappa,
            name=name,
            function=function,
            tolerance=tolerance * unit,
            notion=notion,
            groups=groups,
            comparisons=comparisons,
            limit=limits.share,
            unit=_unit_of_logarithms(function, data) if comparisons.form.is_relative else 1 / function.unit,
            levels=function.unit,
            **fields,
        )

    @property
    @override
    def compares(self) -> bool:
        return self.groups.differ(self.notion)

    @property
    @override
    def fewest_groups(self) -> int:
        return self.groups.fewest(self.notion)

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
        means = self._defined_means(scores)
        means = self._logarithms(means) if self.comparisons.form.is_relative else self.unit * means
        signed = self.notion.signed(means)
        return (signed.max(axis=1) + signed.min(axis=1)) / 2

    @override
    def fair_aux(self) -> np.ndarray:
        return self.initial_aux(np.zeros(self.data.n_samples))

    @override
    def metric_of_values(self, values: np.ndarray) -> float:
        return float(self._metrics_of_values(values))

    @override
    def metrics(self, scores: np.ndarray) -> np.ndarray:
        return self._metrics_of_values(np.stack([self._exact_values(of_one) for of_one in scores]))

    def _metrics_of_values(self, values: np.ndarray) -> np.ndarray:
        """Return the metrics, of shape (...), for values of the function; ndarray of shape (..., n_samples)."""
        if not self.compares:
            return np.full(values.shape[:-1], np.nan)
        return self.notion.values(self._exact_means(values), self._exact_overall(values))

    @override
    def metrics_with_weights(self, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
        if not self.compares:
            return np.full(len(weights), np.nan)
        averaged = self._averaged(self._exact_values(scores), weights)
        return self.notion.values(self._means_by_cell(*averaged), self._means_by_block(*averaged))

    def _averaged(self, values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values that the means of cells average, and their weights, from those of the function and of the rows."""
        return values, weights

    def _means_by_cell(self, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return mean_by_cell(values, self._cells, weights, self._shape, self.groups.unions)

    def _means_by_block(self, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        codes, n_blocks = self._blocks
        return mean_by_cell(values, codes, weights, (1, n_blocks))[..., 0, :]

    @override
    def differences(self, scores: np.ndarray) -> np.ndarray | None:
        table = self.comparisons
        is_largest = table.form.is_two_sided and table.names and not table.aux.size and not table.averaged
        if not is_largest or self.function.is_step:
            return None
        plain = replace(self, margin=0.0, correction=0.0, optimism=None)
        return plain._exact_components(scores) / self.unit + table.limit(self.kappa)

    @property
    @override
    def bounds_metric(self) -> bool:  # type: ignore[override]  # that of a constraint on other rows as well
        return self.optimism is None and self.comparisons.form.is_of_metric

    @property
    @override
    def bounds_from_below(self) -> bool:
        return self.notion.rule.is_floor

    @property
    @override
    def sees_cells_only(self) -> bool:
        return self.notion.sees_cells_only

    @property
    @override
    def is_fitted_loss(self) -> bool:
        rule = self.notion.rule
        return rule.works_on_one_group and not rule.is_floor and not self.function.is_step

    @property
    @override
    def scale(self) -> float:
        return self.unit * self.comparisons.form.scale(self.kappa)

    @property
    @override
    def damping(self) -> float:
        return self.unit if self.comparisons.form.is_relative else 1.0

    @override
    def _around(self, scores: np.ndarray) -> Self:
        if not self.comparisons.form.is_relative:
            return self
        means, _ = self._linear_means(self._smooth_values(scores))
        return self._changed(levels=np.maximum(means, self._least_unit))

    @override
    def for_class(self) -> Self:
        is_relative = self.comparisons.form.is_relative
        return self._changed(unit=max(self.unit, _LEAST_OF_CLASS)) if is_relative else self

    @override
    def uncorrected(self) -> Self:
        # smooth errors are more than those that are counted, which cancels out where groups are compared
        return self if self.notion.rule.works_on_one_group else super().uncorrected()

    @override
    def _exact_components(self, scores: np.ndarray) -> np.ndarray:
        if not self.comparisons.form.is_relative:
            return super()._exact_components(scores)
        return self._compared(self._logarithms(self.means(scores).ravel()), np.empty(0), np.zeros(self.n_aux))

    def _logarithms(self, means: np.ndarray) -> np.ndarray:
        """Logarithms of means as components compare them."""
        return self.unit * np.log(np.maximum(np.nan_to_num(means), self._least_unit))

    @property
    def _least_unit(self) -> float:
        """A mean below which groups are not told apart: what one row makes of it."""
        return self.function.unit * float(self._cell_sizes.steps.max(initial=TOLERANCE))

    def means(self, scores: np.ndarray) -> np.ndarray:
        """Return the exact mean of every cell; ndarray of shape (n_blocks, n_groups)."""
        return self._exact_means(self._exact_values(scores))

    def _defined_means(self, scores: np.ndarray) -> np.ndarray:
        """The exact means, and a likely one for every cell that has none at these scores."""
        return self.means(scores)

    def _exact_means(self, values: np.ndarray) -> np.ndarray:
        means = self._totals(self._weights * values) / self._counted_mass
        return means.reshape(*values.shape[:-1], self._shape[0], -1)

    def _exact_overall(self, values: np.ndarray) -> np.ndarray:
        return values @ self._block_shares.T

    @override
    def on(self, data: FairData) -> Self:
        same = self.notion.targets is None and data.codes is self.data.codes and data.weights is self.data.weights
        left = _OF_ROWS if same and self.notion.sees_cells_only else _OF_GROUPS + _OF_ROWS
        moved = self._changed(data=data)
        for name in left:
            moved.__dict__.pop(name, None)
        return moved

    def of_losses(self, losses: np.ndarray, aux: np.ndarray) -> np.ndarray:
        """Implement `RowLosses.of_losses`: the gaps minus their bounds."""
        means, overall = self._linear_means(losses)
        if self.comparisons.form.is_relative:
            means = self.unit * (np.log(self.levels) + means / self.levels - 1)
        else:
            means, overall = self.unit * means, self.unit * overall
        return self._compared(means, overall, aux)

    def _compared(self, means: np.ndarray, overall: np.ndarray, aux: np.ndarray) -> np.ndarray:
        """The components, from means of the cells, or their logarithms, and of the blocks."""
        table = self.comparisons
        values = table.cells @ means
        if table.blocks.size:
            values += table.blocks @ overall
        if table.aux.size:
            values += table.aux @ aux
        if self._absent is not None:
            values[self._absent] = 0.0
        if table.averaged:
            values = values.mean(keepdims=True)
        values -= self.unit * table.limit(self.tightened(self.margin))
        if self.optimism is not None:
            values += self.unit * self.optimism
        return values + self.correction

    @override
    def row_weights(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        table = self.comparisons
        if table.averaged:
            multipliers = np.repeat(multipliers / len(table.names), len(table.names), axis=-1)
        if self._absent is not None:
            multipliers = np.where(self._absent, 0.0, multipliers)
        cells, blocks = self.unit * (multipliers @ table.cells), multipliers @ table.blocks
        if table.form.is_relative:
            return self._pulled_back(cells / self.levels, blocks), multipliers @ table.aux
        return self._pulled_back(cells, self.unit * blocks), multipliers @ table.aux

    def _linear_means(self, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means of the cells and of the blocks, as functions that are linear in the losses."""
        overall = self._block_shares @ losses if self.comparisons.blocks.size else np.empty(0)
        return self._totals(self._weights * losses) / self._mass, overall

    def _pulled_back(self, cells: np.ndarray, blocks: np.ndarray) -> np.ndarray:
        """Slopes in the losses of the rows, from those in the means; ndarray of shape (..., n_samples)."""
        weights = self._of_rows(cells / self._mass)
        weights *= self._weights
        if blocks.size:
            weights += blocks @ self._block_shares
        return weights

    def _of_rows(self, of_cells: np.ndarray) -> np.ndarray:
        """Sum of the numbers of the cells that each row is in; ndarray of shape (..., n_samples)."""
        outer = of_cells.shape[:-1]
        if self._members is not None:
            of_cells = (of_cells.reshape(-1, self._members.shape[0]) @ self._members).reshape(*outer, -1)
        of_all = np.concatenate([of_cells, np.zeros((*outer, 1))], axis=-1)  # the last cell is of the rows in none
        return np.take(of_all, self._cells, axis=-1)

    def _totals(self, of_rows: np.ndarray | None) -> np.ndarray:
        """Return the sum (for None, the number) of the rows of every cell, block by block; shape (..., n_cells)."""
        n_blocks, n_parts = self._shape
        sums = cell_sums(self._cells, n_blocks * n_parts, of_rows)
        if self._members is None:
            return sums
        outer = sums.shape[:-1]
        return by_group(sums.reshape(*outer, *self._shape), self.groups.unions).reshape(*outer, -1)

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
    def _blocks(self) -> Blocks:
        return self.groups.blocks(self.data, self.notion)

    @cached_property
    def _cells(self) -> np.ndarray:
        return self.groups.cells(self.data, self.notion)

    @cached_property
    def _mass(self) -> np.ndarray:
        """Weight of every cell; 1 where there are no rows."""
        return np.nan_to_num(self._counted_mass, nan=1.0)

    @cached_property
    def _counted_mass(self) -> np.ndarray:
        """Weight of every cell; NaN where there are no rows."""
        mass = self._totals(self._weights)
        mass[mass == 0] = np.nan
        return mass

    @cached_property
    def _block_shares(self) -> np.ndarray:
        """Weights that sum to one in every block, zero elsewhere; ndarray of shape (n_blocks, n_samples)."""
        weights = self.data.weights.numpy() * self._blocks.members
        totals = weights.sum(axis=1, keepdims=True)
        return np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0)

    @cached_property
    def _absent(self) -> np.ndarray | None:
        """Whether each component compares a cell without rows; None if none does. Boolean, of shape (n_components,)."""
        counts = self._totals(None)
        if counts.all():
            return None
        return abs(self.comparisons.cells) @ (counts == 0) > 0


def _unit_of_logarithms(function: RowFunction, data: FairData) -> float:
    """Factor of the logarithms of means: a third of the square of a typical mean, at least 0.01.

    A typical mean is that of random decisions, as often positive as the labels are, and 1 for smooth values. The rarer
    an event, the larger the slopes of its logarithm.
    """
    if not function.is_step:
        return _SHARE_OF_SQUARE
    y, weights = data.y.numpy(), data.weights.numpy()
    share = float(weights @ (y > 0))
    negative, positive = (weights @ function.exact(np.full(y.size, side), y) for side in (-1.0, 1.0))
    return max(_SHARE_OF_SQUARE * float(share * positive + (1 - share) * negative) ** 2, _LEAST_FACTOR)
