"""Means of a function of the rows in groups, such as a loss, and the number that a rule makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from fairconstrained.cells import cell_sums
from fairconstrained.groups import Strata, Unions
from fairconstrained.metrics.rates import AggregateLabels, block_signs
from fairconstrained.metrics.rules import RULES, Reference, Rule

__all__ = [
    "LOSS_NOTIONS",
    "RATES",
    "RATE_NOTIONS",
    "ROW_FUNCTIONS",
    "ROW_LOSSES",
    "Blocks",
    "Notion",
    "Reference",
    "by_group",
    "mean_by_cell",
    "rate_notion",
]

#: Losses of a row, of its score and its target (-1 or +1).
ROW_LOSSES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "log_loss": lambda s, y: np.logaddexp(0.0, -y * s),
    "hinge": lambda s, y: np.maximum(1.0 - y * s, 0.0),
    "absolute": lambda s, y: np.abs(s - y),
    "squared": lambda s, y: (s - y) ** 2 / 2,
}
#: Functions of the same two whose means are rates of groups: decisions, labels, probabilities, scores and losses.
ROW_FUNCTIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "indicator": lambda s, y: (s > 0).astype(float),
    "negative": lambda s, y: (s <= 0).astype(float),
    "correct": lambda s, y: ((s > 0) == (y > 0)).astype(float),
    "error": lambda s, y: ((s > 0) != (y > 0)).astype(float),
    "positive_label": lambda s, y: (y > 0).astype(float),
    "negative_label": lambda s, y: (y <= 0).astype(float),
    "sigmoid": lambda s, y: expit(s),
    "score": lambda s, y: s,
    **ROW_LOSSES,
}
#: Those that are rates of positive predictions, or surrogates of it.
RATES = {name: ROW_FUNCTIONS[name] for name in ("indicator", "sigmoid", "hinge")}


class Blocks(NamedTuple):
    """Disjoint blocks of rows, within which groups are compared."""

    #: Block of every row; ``n_blocks`` for rows in none.
    codes: np.ndarray  # of shape (n_samples,)
    n_blocks: int

    @property
    def members(self) -> np.ndarray:
        """Whether each row is in each block; boolean ndarray of shape (n_blocks, n_samples)."""
        return self.codes == np.arange(self.n_blocks)[:, None]

    def cells(self, parts: np.ndarray, n_parts: int) -> np.ndarray:
        """Cell of every row, the parts of the first block first; those in none come last. Shape (n_samples,).

        Parameters
        ----------
        parts : ndarray of shape (n_samples,)
            Part of every row, in ``0 .. n_parts``; rows of part ``n_parts`` are in no cell.
        """
        takes_part = (parts < n_parts) & (self.codes < self.n_blocks)
        return np.where(takes_part, self.codes * n_parts + parts, self.n_blocks * n_parts)


class Notion(NamedTuple):
    """Rows and groups whose means are compared, and how the comparisons become one number."""

    #: The means of the rows of each of these targets are compared. None: of all rows.
    targets: tuple[float, ...] | None = None
    #: Rule by which the means of a group are compared, see `fairconstrained.metrics.rules`.
    reference: Reference = "pairwise"
    #: Aggregate of the gaps of the groups.
    agg: str = "max"  # "max" or "mean"
    #: Aggregate, over the targets, of the gaps of two groups.
    agg_labels: AggregateLabels = "max"
    #: Names of the strata; groups are compared within each of them. None: there is one.
    strata: tuple[str, ...] | None = None
    #: Rows that are compared, in the order of the rows that the caller gave. None: all.
    mask: np.ndarray | None = None  # of bool
    #: Names of the targets, for messages. None: their values.
    names: tuple[str, ...] | None = None

    @property
    def rule(self) -> Rule:
        """Rule by which groups are compared."""
        return RULES[self.reference]

    @property
    def n_blocks(self) -> int:
        """Blocks of rows whose means are compared: one for every target in every stratum."""
        targets, strata = (1 if parts is None else len(parts) for parts in (self.targets, self.strata))
        return targets * strata

    @property
    def block_names(self) -> list[str]:
        """Names of the blocks behind that of a group, the targets of the first stratum first."""
        labels = self.names or [f"{target:+g}" for target in self.targets or ()]
        targets = [""] if self.targets is None else [f", y={label}" for label in labels]
        strata = [""] if self.strata is None else [f", {stratum}" for stratum in self.strata]
        return [target + stratum for stratum in strata for target in targets]

    @property
    def mergeable(self) -> str:
        """Name of the sets of rows that users may merge beside groups; empty if there are none."""
        return "" if self.strata is None else "strata, in each of which groups are compared"

    @property
    def sees_cells_only(self) -> bool:
        """Whether rows of one group and target are all in one block."""
        return self.strata is None and self.mask is None

    @property
    def signs(self) -> np.ndarray:
        """Signs of the blocks in sums of means, see `block_signs`; ndarray of shape (n_signs, n_blocks)."""
        return block_signs(self.agg_labels, self.n_blocks)

    @property
    def sign_names(self) -> list[str]:
        """Return the suffixes of the sums, behind the names of two groups."""
        if self.n_blocks == 1:
            return [""]
        return [", sum", ", difference"] if self.agg_labels == "sum" else self.block_names

    def blocks(self, targets: np.ndarray, order: np.ndarray | None = None, strata: Strata | None = None) -> Blocks:
        """Blocks of the rows.

        Parameters
        ----------
        targets : ndarray of shape (n_samples,)
        order : ndarray of shape (n_samples,), optional
            Numbers of the rows among those that the caller gave; None: as they come.
        strata : Strata, optional
            Strata of the rows, where groups are compared within them.
        """
        n_targets = 1 if self.targets is None else len(self.targets)
        codes = np.zeros(targets.size, dtype=np.int64)
        takes_part = np.ones(targets.size, dtype=bool)
        if self.targets is not None:
            is_target = targets == np.array(self.targets)[:, None]
            codes, takes_part = is_target.argmax(axis=0), is_target.any(axis=0)
        if self.strata is not None:
            assert strata is not None  # those who name strata have them
            codes = strata.codes * n_targets + codes
        if self.mask is not None:
            takes_part = takes_part & (self.mask if order is None else self.mask[order])
        return Blocks(np.where(takes_part, codes, self.n_blocks), self.n_blocks)

    def signed(self, means: np.ndarray) -> np.ndarray:
        """The sums over the blocks that the rule compares; (..., n_signs, n_groups) from (..., n_blocks, n_groups)."""
        return self.signs @ means

    def gaps(self, means: np.ndarray, overall: np.ndarray) -> np.ndarray:
        """Return the number of every group that the rule compares; ndarray of shape (..., n_groups).

        Parameters
        ----------
        means : ndarray of shape (..., n_blocks, n_groups)
        overall : ndarray of shape (..., n_blocks)
            Means of all rows.
        """
        return self.rule.by_group(self.signed(means), overall @ self.signs.T)

    def values(self, means: np.ndarray, overall: np.ndarray) -> np.ndarray:
        """Return the one number that is bounded, of shape (...); see `gaps`."""
        return self.rule.value(self.signed(means), overall @ self.signs.T, self.agg)


#: Table 1 of the paper on stochastic approximation, whose "equalized_odds" takes the sum over the labels.
LOSS_NOTIONS: dict[str, Notion] = {
    "demographic_parity": Notion(),
    "equal_opportunity": Notion((1.0,)),
    "equalized_odds": Notion((1.0, -1.0)),
}
#: Eqs. 15, 17 and 18 of the paper on proximal-perturbed Lagrangians.
RATE_NOTIONS: dict[str, Notion] = LOSS_NOTIONS | {"intersectional": Notion(reference="overall")}


def rate_notion(constraint: str, rate: str) -> Notion:
    """Return the notion of a rate; a hinge is a loss, of which no group may have more than all rows have."""
    notion = RATE_NOTIONS[constraint]
    return notion._replace(reference="excess") if (notion.reference, rate) == ("overall", "hinge") else notion


def mean_by_cell(
    values: np.ndarray, cells: np.ndarray, weights: np.ndarray, shape: tuple[int, int], unions: Unions | None = None
) -> np.ndarray:
    """Weighted mean of every cell, NaN for an empty one; ndarray of shape (..., n_blocks, n_groups).

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
    cells : ndarray of shape (n_samples,)
        Parts of the first block first; rows of the last number are left out.
    weights : ndarray of shape (..., n_samples)
    shape : tuple of int
        Blocks and parts.
    unions : Unions, optional
        The groups, if they are not the parts.
    """
    n_cells, outer = shape[0] * shape[1], weights.shape[:-1]
    mass, total = (
        by_group(cell_sums(cells, n_cells, of_rows).reshape(*outer, *shape), unions)
        for of_rows in (weights, weights * values)
    )
    return np.divide(total, mass, out=np.full(total.shape, np.nan), where=mass > 0)


def by_group(sums: np.ndarray, unions: Unions | None) -> np.ndarray:
    """Sums over the groups from sums over the parts, of shape (..., n_parts)."""
    if unions is None:
        return sums
    rows = sums.reshape(-1, sums.shape[-1])
    return (unions.members @ rows.T).T.reshape(*sums.shape[:-1], -1)
