"""Bounds on what a rule makes of the rates of decisions in groups, also of those among rows with a decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import numpy as np
from typing_extensions import override

from fairconstrained.cells import cell_sums, quotients, sums_above
from fairconstrained.constraints.mean_gaps import BoundMeanGaps
from fairconstrained.constraints.offsets import shared_offset
from fairconstrained.metrics.cell_means import ROW_FUNCTIONS, by_group
from fairconstrained.metrics.group_rates import Rate

__all__ = ["BoundDecisionRates", "BoundPredictiveValues"]

#: Scores of a negative and of a positive decision.
_NEGATIVE, _POSITIVE = -1.0, 1.0
#: Rules whose bounds are on one side, so that decisions a little beyond meet them whatever one row counts.
_MET_EXACTLY = ("ratio", "floor", "ceiling")
#: Function of the scores and of the targets of rows; and sums of its values in cells and in blocks.
_RateFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]
_Sums = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundDecisionRates(BoundMeanGaps):
    """Bound on rates of decisions, with sigmoids for their slopes."""

    counts_rows: ClassVar[bool] = True

    @property
    def granularity(self) -> float:
        """Largest share of a cell that one row stands for; rounding for a bound on one side, which can be met."""
        if self.notion.reference in _MET_EXACTLY:
            return self.tolerance
        return float(self._cell_sizes.steps.max(initial=0.0))

    @override
    def exact(self, scores: np.ndarray) -> float:
        """Implement `Exact.exact`; a rate that does not exist, or a ratio of zeros, counts as the worst there is."""
        if not self.bounds_metric:
            return float(self._exact_components(scores).max(initial=-np.inf))
        value = self.metric(scores)
        return float(self.excess(self._worst if np.isnan(value) else value))

    @override
    def with_linear_components(self) -> Self:
        if not self.comparisons.form.is_relative or self.n_aux:
            return self
        return self._changed(comparisons=self.comparisons.linear(self.tightened(self.margin)), unit=1.0)

    @override
    def caveat(self, scores: np.ndarray) -> str | None:
        if not np.isnan(self.metric(scores)):
            return super().caveat(scores) or self._caveat_about_few(scores)
        return (
            f"{self.name} does not exist for these decisions: a group has no row to take its rate among, or no group "
            "has a rate above 0, and the bound counts as not kept. Raise kappa, or bound another rate."
        )

    def _caveat_about_few(self, scores: np.ndarray) -> str | None:
        """Return a warning of a ratio to which so few rows contribute that one changes it by more than ``kappa``."""
        fewest = self._few(scores) if self.comparisons.form.is_relative else None
        if fewest is None:
            return None
        return (
            f"{self.name} is a ratio of rates, one of which counts only {fewest:.0f} of a group's rows here: each of "
            f"these changes it by up to {1 / fewest:.2g}, and on new rows it may be far from kappa. Compare "
            "differences, or weigh classes by class_weight='balanced'."
        )

    def _few(self, scores: np.ndarray) -> float | None:
        """The fewest rows of a cell that count in its rate, or of those with a decision, of cells that have any.

        None where one of them changes such a rate by no more than ``kappa``.
        """
        counts = self._totals((self._exact_values(scores) > 0).astype(float))
        fewest = float(counts[counts > 0].min(initial=np.inf))
        return fewest if 1 / fewest > self.resolution else None

    @override
    def complaint(self, value: float, rows: str = "training rows") -> str:
        undefined = " A rate that does not exist counts as this value, and so does a ratio of zeros."
        return super().complaint(value, rows) + (undefined if abs(value - self._worst) < self.tolerance else "")

    @property
    def _worst(self) -> float:
        return 0.0 if self.notion.rule.is_floor else 1.0

    @override
    def values_at_cuts(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray | None:
        ((hits, all_hits),) = self._sums_at(scores, cuts, self.function.exact)
        mass, whole = self._sizes
        return self.notion.values(hits / mass, all_hits / whole)

    @override
    def offsets(self, scores: np.ndarray, gains: np.ndarray, threshold: float, shared: bool) -> np.ndarray:
        """Implement `BoundConstraint.offsets`: one offset for all groups, where they move alike."""
        if not shared:  # intercepts of their own are better than one shift, which may be far
            return np.zeros(self.data.n_groups)
        allowed = shared_offset(scores, gains, lambda at: self._is_kept(scores, at), threshold)
        return np.full(self.data.n_groups, allowed)

    def _is_kept(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
        values = self.values_at_cuts(scores, cuts)
        assert values is not None
        return np.nan_to_num(self.excess(values), nan=np.inf) <= self.granularity

    @property
    def _sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the cells and of the blocks; of shapes (n_blocks, n_groups) and (n_blocks,)."""
        codes, n_blocks = self._blocks
        return self._mass.reshape(n_blocks, -1), cell_sums(codes, n_blocks, self._weights)

    def _at_decisions(self, function: _RateFunction) -> tuple[np.ndarray, np.ndarray]:
        """Weighted values of the rows for a negative and for a positive decision."""
        y, w = self.data.y.numpy(), self._weights
        return w * function(np.full(y.size, _NEGATIVE), y), w * function(np.full(y.size, _POSITIVE), y)

    def _sums_at(self, scores: np.ndarray, cuts: np.ndarray, *functions: _RateFunction) -> list[_Sums]:
        """Sums of functions of the rows in every cell and block, by the decisions that each cut makes.

        For each function two arrays, of shapes (n_cuts, n_blocks, n_groups) and (n_cuts, n_blocks).
        """
        n_blocks, n_parts = self._shape

        def sums(codes: np.ndarray, n_codes: int, negative: np.ndarray, positive: np.ndarray) -> np.ndarray:
            changes = sums_above(scores, cuts, codes, n_codes, positive - negative)
            return changes + cell_sums(codes, n_codes, negative)

        found = []
        for function in functions:
            values = self._at_decisions(function)
            of_parts = sums(self._cells, n_blocks * n_parts, *values).reshape(-1, n_blocks, n_parts)
            of_groups = by_group(of_parts, self.groups.unions)
            found.append((of_groups, sums(self._blocks.codes, n_blocks, *values)))
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundPredictiveValues(BoundDecisionRates):
    r"""Bound on rates of a label among the rows with a decision, such as the positive predictive value.

    The rate :math:`P = N / D` is a quotient of two sums over decisions. Around the scores of the last refinement it is

    .. math:: P \approx P_0 + \frac{1}{D_0} \sum_i w_i (\ell_i - P_0) d_i,

    with the labels :math:`\ell_i` and smooth decisions :math:`d_i`: linear in decisions, and exact there.
    """

    rate: Rate
    #: base and share: :math:`P_0`, and :math:`D_0` over the weight of the cell; before a refinement those of positive
    #: decisions alone.
    base: Any = None  # ndarray of shape (n_cells,)
    share: Any = 1.0  # ndarray of shape (n_cells,)
    #: whole_base and whole_share: the two numbers for all rows of a block.
    whole_base: Any = None  # ndarray of shape (n_blocks,)
    whole_share: Any = 1.0  # ndarray of shape (n_blocks,)

    @override
    def _around(self, scores: np.ndarray) -> Self:
        decisions = self._smooth_values(scores)
        shares, whole = self._totals(self._weights * decisions) / self._mass, self._block_shares @ decisions
        known = self._changed(
            base=self._exact_means(decisions).ravel(),
            share=np.maximum(shares, self._least_unit),
            whole_base=self._exact_overall(decisions),
            whole_share=np.maximum(whole, self._least_unit),
        )
        return super(BoundPredictiveValues, known)._around(scores)

    @override
    def _exact_components(self, scores: np.ndarray) -> np.ndarray:
        means, overall = self._defined_means(scores).ravel(), self._exact_overall(self._exact_values(scores))
        overall = np.where(np.isnan(overall), self._bases[1], overall)
        if self.comparisons.form.is_relative:
            means = self._logarithms(means)
        return self._compared(means, overall, np.zeros(self.n_aux))

    @override
    def _caveat_about_few(self, scores: np.ndarray) -> str | None:
        """Return a warning of groups with so few of the decisions that one changes the metric by more than kappa."""
        fewest = self._few(scores)
        if fewest is None:
            return None
        return (
            f"{self.name} is a rate among decisions, of which a group has only {fewest:.0f} here: each of them changes "
            f"it by up to {1 / fewest:.2g}, and on new rows it may be far from kappa. Bound the selection rate from "
            "below as well, with GroupRates('selection', rule='floor'), or weigh classes by class_weight='balanced'."
        )

    @override
    def _defined_means(self, scores: np.ndarray) -> np.ndarray:
        means = self.means(scores)
        return np.where(np.isnan(means), self._bases[0].reshape(means.shape), means)

    @override
    def with_linear_components(self) -> Self:
        return self  # quotients of two sums are not linear in decisions

    @override
    def values_at_cuts(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray | None:
        given = ROW_FUNCTIONS[cast(str, self.rate.given)]
        sums = self._sums_at(scores, cuts, given, lambda s, y: given(s, y) * self._is_hit)
        (mass, whole), (hits, all_hits) = sums
        return self.notion.values(quotients(hits, mass), quotients(all_hits, whole))

    @cached_property
    def _is_hit(self) -> np.ndarray:
        """Whether each row has the label; ndarray of shape (n_samples,)."""
        y = self.data.y.numpy()
        return self.rate.values(y, y)

    @cached_property
    def _labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Shares of the label in the cells and in the blocks, whatever the decisions."""
        return self._totals(self._weights * self._is_hit) / self._mass, self._block_shares @ self._is_hit

    @override
    def _averaged(self, values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._is_hit, weights * values

    @override
    def _exact_means(self, values: np.ndarray) -> np.ndarray:
        return self._means_by_cell(*self._averaged(values, self._weights))

    @override
    def _exact_overall(self, values: np.ndarray) -> np.ndarray:
        return self._means_by_block(*self._averaged(values, self._weights))

    @override
    def _linear_means(self, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        base, whole = self._bases
        hits, all_of = (self._totals(self._weights * values) for values in (self._is_hit * losses, losses))
        over = (self._block_shares @ values for values in (self._is_hit * losses, losses))
        first, second = over
        means = base + (hits - base * all_of) / (self.share * self._mass)
        return means, whole + (first - whole * second) / self.whole_share

    @override
    def _pulled_back(self, cells: np.ndarray, blocks: np.ndarray) -> np.ndarray:
        base, whole = self._bases
        of_cells = cells / (self._mass * self.share)
        weights = self._weights * (self._is_hit * self._of_rows(of_cells) - self._of_rows(of_cells * base))
        if blocks.size:
            of_blocks = blocks / self.whole_share
            weights += self._is_hit * (of_blocks @ self._block_shares) - (of_blocks * whole) @ self._block_shares
        return weights

    @property
    def _bases(self) -> tuple[np.ndarray, np.ndarray]:
        """Rates of cells and blocks around which the constraint is linear; those of the labels where none is known."""
        if self.base is None:
            return self._labels
        known = zip((self.base, self.whole_base), self._labels, strict=True)
        base, whole = (np.where(np.isnan(own), of_labels, own) for own, of_labels in known)
        return base, whole
