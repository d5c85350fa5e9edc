"""Tables of the groups' means that the components of a constraint compare, one way to make them for every rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
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
#: Least ratio that a bound asks for; beyond it there is no bound.
_LEAST_RATIO = 1e-6
#: By how much linear bounds on ratios are tighter, so that means of zero, which have no ratio, do not keep them.
_ABOVE_ZERO = 1e-9


class _Sides(NamedTuple):
    """Numbers of the groups on both sides of every comparison; -1 is all rows, a common centre, or nothing."""

    first: np.ndarray
    second: np.ndarray
    #: Name of what -1 stands for; empty for nothing.
    other: str = ""


class _Form(ABC):
    r"""Components :math:`M_{first} - M_{second} \le b(\kappa)`, where M are means of groups."""

    #: Whether the logarithms of the means are compared.
    is_relative: ClassVar[bool] = False
    #: Whether every difference is bounded in both directions.
    is_two_sided: ClassVar[bool] = False
    #: Whether the metric follows from the largest component; otherwise both are beyond their limits at the same time.
    is_of_metric: ClassVar[bool] = True

    def limit(self, kappa: float) -> float:
        """Limit of a component."""
        return kappa

    def scale(self, kappa: float) -> float:
        """Change of a component where the metric changes by one, at the bound."""
        return 1.0

    @abstractmethod
    def sides(self, n_groups: int) -> _Sides:
        """Both sides of all comparisons."""

    def name(self, first: str, second: str, block: str) -> str:
        """Name of a component."""
        return f"[{first} - {second}{block}]"


class _Difference(_Form):
    is_two_sided: ClassVar[bool] = True

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
    is_two_sided: ClassVar[bool] = False

    @override
    def sides(self, n_groups: int) -> _Sides:
        return _Sides(np.arange(n_groups), np.full(n_groups, -1), "all")


class _Ratio(_Difference):
    """Differences of logarithms, since ``R_a / R_b >= 1 - kappa`` is ``log R_b - log R_a <= -log(1 - kappa)``.

    A multiple of all rates leaves them as they are. Differences ``(1 - kappa) R_b - R_a``, which are linear in the
    rates, would fall with all rates, and lead to models that accept hardly anybody.
    """

    is_relative: ClassVar[bool] = True
    is_two_sided: ClassVar[bool] = False

    @override
    def limit(self, kappa: float) -> float:
        return -np.log(_least_ratio(kappa))

    @override
    def scale(self, kappa: float) -> float:
        return 1 / _least_ratio(kappa)

    @override
    def name(self, first: str, second: str, block: str) -> str:
        return f"[{second} / {first}{block}]"


class _Shares(_Ratio):
    """Differences ``(1 - kappa) R_b - R_a <= 0``, with the factor in the tables.

    For searches that keep bounds exactly; what a penalty makes of them, see `_Ratio`.
    """

    is_relative: ClassVar[bool] = False
    is_of_metric: ClassVar[bool] = False

    @override
    def limit(self, kappa: float) -> float:
        return -_ABOVE_ZERO

    @override
    def scale(self, kappa: float) -> float:
        return 1.0


class _Ceiling(_Form):
    @override
    def sides(self, n_groups: int) -> _Sides:
        return _Sides(np.arange(n_groups), np.full(n_groups, -1))

    @override
    def name(self, first: str, second: str, block: str) -> str:
        return f"[{first or second}{block}]"


class _Floor(_Ceiling):
    @override
    def limit(self, kappa: float) -> float:
        return -kappa

    @override
    def sides(self, n_groups: int) -> _Sides:
        return _Sides(np.full(n_groups, -1), np.arange(n_groups))


_FORMS: dict[Reference, _Form] = {
    "pairwise": _Difference(),
    "overall": _ToOverall(),
    "excess": _Excess(),
    "ratio": _Ratio(),
    "ceiling": _Ceiling(),
    "floor": _Floor(),
}


def _least_ratio(kappa: float) -> float:
    """Least ratio of two means that a bound allows."""
    return max(1 - kappa, _LEAST_RATIO)


def _both_ways(n_groups: int, other: str) -> _Sides:
    groups, others = np.arange(n_groups), np.full(n_groups, -1)
    return _Sides(np.append(groups, others), np.append(others, groups), other)


class Comparisons(NamedTuple):
    """Tables of the means that the components compare; components are linear in them."""

    form: _Form
    #: Coefficients of the cells' means.
    cells: Any  # ndarray or csr_array of shape (n_components, n_cells)
    #: Coefficients of the means of all rows in the blocks.
    blocks: np.ndarray  # of shape (n_components, n_blocks)
    #: Coefficients of the centres.
    aux: np.ndarray  # of shape (n_components, n_aux)
    #: Names of the components.
    names: tuple[str, ...]
    #: Largest allowed value of a component, as a share of the limit.
    share: float
    #: Whether the only component is the mean of these.
    averaged: bool

    @classmethod
    def of(cls, compared: ComparedGroups, notion: Notion, bounded: bool) -> Comparisons:
        """Compare the groups by the rule of the notion, in each of the sums of its blocks."""
        labels, n_signs, form = compared.labels, len(notion.signs), _FORMS[notion.reference]
        first, second, other = form.sides(len(labels) if bounded and compared.differ(notion) else 0)
        n_pairs = first.size
        ends = np.equal(first, -1).astype(float)[:, None] - np.equal(second, -1).astype(float)[:, None]
        nothing = np.empty((n_signs * n_pairs, 0))
        names = (*labels, other)
        pairs = list(zip(first.tolist(), second.tolist(), strict=True))
        return cls(
            form=form,
            cells=_table(notion.signs, first, second, len(labels)),
            blocks=np.kron(notion.signs, ends) if other == "all" else nothing,
            aux=np.kron(np.eye(n_signs), ends) if other == "centre" else nothing,
            names=tuple(form.name(names[a], names[b], which) for which in notion.sign_names for a, b in pairs),
            share=0.5 if other == "centre" else 1.0,
            averaged=notion.agg == "mean" and n_pairs > 0,
        )

    def limit(self, kappa: float) -> float:
        """The limit of every component at a bound."""
        return self.form.limit(kappa) * self.share

    def linear(self, kappa: float) -> Comparisons:
        """Return the same bound on ratios with components that are linear in the means."""
        first = (abs(self.cells) + self.cells) / 2
        return self._replace(form=_Shares(), cells=self.cells - (1 - _least_ratio(kappa)) * first)


def _table(signs: np.ndarray, first: np.ndarray, second: np.ndarray, n_groups: int) -> Any:
    """Coefficients of the groups' means, 1 for the first side and -1 for the second; dense where it is small."""
    chosen = [np.flatnonzero(side >= 0) for side in (first, second)]
    values = np.repeat([1.0, -1.0], [rows.size for rows in chosen])
    places = np.concatenate(chosen), np.concatenate([first[chosen[0]], second[chosen[1]]])
    table = sp.kron(signs, sp.csr_array((values, places), shape=(first.size, n_groups)), format="csr")
    return table.toarray() if table.shape[0] * table.shape[1] <= _SMALL else sp.csr_array(table)
