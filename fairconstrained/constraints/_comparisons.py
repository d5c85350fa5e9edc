"""Tables of the groups' means that the components of a constraint compare, one way to make them for every rule."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import permutations
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from typing_extensions import override

from fairconstrained.constraints.compared_groups import ComparedGroups
from fairconstrained.metrics.cell_means import Notion
from fairconstrained.metrics.rules import Reference

__all__ = ["Comparisons"]

#: Groups up to which every pair is a component. More of them are compared with a common centre, which is the same and
#: takes two components for a group.
FEW_GROUPS = 8
#: Entries up to which tables are dense.
_SMALL = 10_000


class _Sides(NamedTuple):
    """Numbers of the groups on both sides of every comparison; the number of groups stands for the other side.

    The other side is all rows, a common centre, or nothing.
    """

    first: np.ndarray
    second: np.ndarray
    #: Name of the other side; empty for nothing.
    other: str = ""


@dataclass(frozen=True)
class _Form:
    r"""Components :math:`a(\kappa) M_{first} - M_{second} \le b(\kappa)`, where M are means of groups."""

    #: Whether components are divided by the largest mean, so that they are in units of a ratio.
    is_relative: ClassVar[bool] = False

    def factor(self, kappa: float) -> float:
        """Factor of the first side."""
        return 1.0

    @abstractmethod
    def limit(self, kappa: float) -> float:
        """Limit of a component."""

    @abstractmethod
    def sides(self, n_groups: int) -> _Sides:
        """Both sides of all comparisons."""

    def name(self, first: str, second: str, block: str) -> str:
        """Name of a component."""
        return f"[{first} - {second}{block}]"


class _Difference(_Form):
    @override
    def limit(self, kappa: float) -> float:
        return kappa

    @override
    def sides(self, n_groups: int) -> _Sides:
        if n_groups > FEW_GROUPS:
            return _both_ways(n_groups, "centre")
        first, second = np.array(list(permutations(range(n_groups), 2)), dtype=int).reshape(-1, 2).T
        return _Sides(first, second)


class _ToOverall(_Difference):
    @override
    def sides(self, n_groups: int) -> _Sides:
        return _both_ways(n_groups, "all")


class _Excess(_Difference):
    @override
    def sides(self, n_groups: int) -> _Sides:
        return _Sides(np.arange(n_groups), np.full(n_groups, n_groups), "all")


class _Ratio(_Difference):
    is_relative: ClassVar[bool] = True

    @override
    def factor(self, kappa: float) -> float:
        return 1 - kappa

    @override
    def limit(self, kappa: float) -> float:
        return 0.0

    @override
    def name(self, first: str, second: str, block: str) -> str:
        return f"[{second} / {first}{block}]"


class _Ceiling(_Form):
    @override
    def limit(self, kappa: float) -> float:
        return kappa

    @override
    def sides(self, n_groups: int) -> _Sides:
        return _Sides(np.arange(n_groups), np.full(n_groups, n_groups))

    @override
    def name(self, first: str, second: str, block: str) -> str:
        return f"[{first or second}{block}]"


class _Floor(_Ceiling):
    @override
    def limit(self, kappa: float) -> float:
        return -kappa

    @override
    def sides(self, n_groups: int) -> _Sides:
        return _Sides(np.full(n_groups, n_groups), np.arange(n_groups))


_FORMS: dict[Reference, _Form] = {
    "pairwise": _Difference(),
    "overall": _ToOverall(),
    "excess": _Excess(),
    "ratio": _Ratio(),
    "ceiling": _Ceiling(),
    "floor": _Floor(),
}


def _both_ways(n_groups: int, other: str) -> _Sides:
    groups, others = np.arange(n_groups), np.full(n_groups, n_groups)
    return _Sides(np.append(groups, others), np.append(others, groups), other)


class Comparisons(NamedTuple):
    """Tables of the means that the components compare; components are linear in them.

    Attributes
    ----------
    form : _Form
    first, second : ndarray or csr_array of shape (n_components, n_cells)
        Coefficients of the cells' means on both sides.
    blocks : ndarray of shape (n_components, n_blocks)
        Coefficients of the means of all rows in the blocks.
    aux : ndarray of shape (n_components, n_aux)
        Coefficients of the centres.
    names : tuple of str
        Names of the components.
    signs : ndarray of int, of shape (n_components,)
        Number of the sum of blocks that each component compares.
    share : float
        Largest allowed value of a component, as a share of the limit.
    averaged : bool
        Whether the only component is the mean of these.
    """

    form: _Form
    first: Any
    second: Any
    blocks: np.ndarray
    aux: np.ndarray
    names: tuple[str, ...]
    signs: np.ndarray
    share: float
    averaged: bool

    @classmethod
    def of(cls, compared: ComparedGroups, notion: Notion, bounded: bool) -> Comparisons:
        """Compare the groups by the rule of the notion, in each of the sums of its blocks."""
        labels, n_signs, form = compared.labels, len(notion.signs), _FORMS[notion.reference]
        n_groups = len(labels)
        sides = form.sides(n_groups if bounded and compared.differ(notion) else 0)
        first, second = (np.where(side == n_groups, -1, side) for side in sides[:2])
        n_pairs = first.size
        tables = [_table(notion.signs, side, n_groups) for side in (first, second)]
        ends = np.equal(first, -1).astype(float)[:, None] - np.equal(second, -1).astype(float)[:, None]
        nothing = np.empty((n_signs * n_pairs, 0))
        names = (*labels, sides.other)
        pairs = list(zip(first.tolist(), second.tolist(), strict=True))
        return cls(
            form=form,
            first=tables[0],
            second=tables[1],
            blocks=np.kron(notion.signs, ends) if sides.other == "all" else nothing,
            aux=np.kron(np.eye(n_signs), ends) if sides.other == "centre" else nothing,
            names=tuple(form.name(names[a], names[b], which) for which in notion.sign_names for a, b in pairs),
            signs=np.repeat(np.arange(n_signs), n_pairs),
            share=0.5 if sides.other == "centre" else 1.0,
            averaged=notion.agg == "mean" and n_pairs > 0,
        )

    def cells(self, kappa: float) -> Any:
        """Coefficients of the cells' means at a bound, of shape (n_components, n_cells)."""
        return self.form.factor(kappa) * self.first - self.second

    def limit(self, kappa: float) -> float:
        """The limit of every component at a bound."""
        return self.form.limit(kappa) * self.share


def _table(signs: np.ndarray, side: np.ndarray, n_groups: int) -> Any:
    """Coefficients of the means of the groups on one side; dense where it is small."""
    rows = np.flatnonzero(side >= 0)
    chosen = sp.csr_array((np.ones(rows.size), (rows, side[rows])), shape=(side.size, n_groups))
    table = sp.kron(signs, chosen, format="csr")
    return table.toarray() if table.shape[0] * table.shape[1] <= _SMALL else sp.csr_array(table)
