"""Bounds against accepting one group and rejecting another."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from typing_extensions import override

from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.constraints._cell_sums import BoundCellSums
from fairconstrained.constraints._constraint import Constraint
from fairconstrained.constraints._resolution import CellSizes, resolution
from fairconstrained.constraints._row_functions import RATE_FUNCTIONS, TOLERANCE
from fairconstrained.constraints.base import check_bound
from fairconstrained.data import FairData
from fairconstrained.metrics.shares import POSITIVE_RATES, parity_pair_of_rates

__all__ = ["ParityPair"]


@with_parameters
class ParityPair(Constraint):
    r"""Bound on the acceptance of one group together with the rejection of another.

    .. math:: \frac{1}{|a|} \sum_{i \in a} r(h(x_i)) + \beta \frac{1}{|b|} \sum_{i \in b} \bigl( 1 - r(h(x_i)) \bigr)
              \le \kappa \quad \text{for all groups } a \ne b

    Where both groups have the positive rate p, the left side is :math:`p + \beta (1 - p)`. So with :math:`\beta = 1`
    and :math:`\kappa = 1 + \epsilon` positive rates differ by at most :math:`\epsilon`; other values of :math:`\beta`
    also bound the rates themselves. No model keeps a :math:`\kappa` below :math:`\min(1, \beta)`.

    Parameters
    ----------
    kappa : float or None, default=1.05
        The bound, at least 0 (r in the paper). None is no bound: the value is only reported.
    beta : float, default=1.0
        Weight :math:`\beta` of the rejected share, positive.
    rate : {"sigmoid", "indicator"}, default="sigmoid"
        The function r of a score s: :math:`1 / (1 + e^{-s})`, or whether s is positive. The indicator is bounded
        exactly too, up to the share of one row.

    References
    ----------
    Ma, Lin, Yang, Proximally Constrained Methods for Weakly Convex Optimization with Weakly Convex Constraints,
    arXiv:1908.01871, section 1.1.
    """

    is_of_classes: ClassVar[bool] = True

    kappa: float | None = parameter(default=1.05, kw_only=False)
    beta: float = parameter(default=1.0, allowed=[Interval(Real, 0, None, closed="neither")])
    rate: str = parameter(default="sigmoid", allowed=[StrOptions(set(POSITIVE_RATES))])

    @override
    def _bind(self, data: FairData) -> BoundParityPair:
        if data.unions is not None:
            raise ValueError(
                "a ParityPair needs groups that do not overlap. Pass one column with the group of every row as "
                "sensitive_features, or bound 'intersectional' rates, which takes groups that overlap."
            )
        function, mass = RATE_FUNCTIONS[self.rate], data.sums()
        share = float((data.weights.numpy() / mass[data.codes]).max())
        return BoundParityPair(
            data=data,
            kappa=check_bound(self.kappa),
            name="parity_pair",
            function=function,
            tolerance=max(self.beta, 1.0) * share if function.is_step else TOLERANCE,
            mass=mass,
            beta=float(self.beta),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundParityPair(BoundCellSums):
    """The parity pairs of all ordered pairs of groups."""

    #: Weight of every group.
    mass: np.ndarray  # of shape (n_groups,)
    beta: float

    @property
    def resolution(self) -> float:
        """Implement `BoundConstraint.resolution`; of the bound, what exceeds the least value of two equal rates."""
        return resolution(self.kappa - min(self.beta, 1.0))

    def compared_cells(self) -> CellSizes:
        """Sizes of the groups."""
        return CellSizes.of_blocks((self.data.groups,), np.array([1 / max(self.beta, 1.0)]))

    @property
    def _pairs(self) -> np.ndarray:
        """The two groups of every component; ndarray of shape (2, n_components)."""
        pairs = list(permutations(range(self.mass.size), 2)) if np.isfinite(self.kappa) else []
        return np.array(pairs, dtype=int).reshape(-1, 2).T

    @property
    def component_names(self) -> tuple[str, ...]:
        """The groups accepted and rejected."""
        labels = self.data.labels
        return tuple(f"{self.name}[{labels[a]} + not {labels[b]}]" for a, b in self._pairs.T)

    @override
    def coefficients(self, kappa: float) -> np.ndarray:
        accepted, turned_down = np.eye(self.mass.size)[self._pairs]
        return (accepted - self.beta * turned_down) / self.mass

    @override
    def limits(self, kappa: float) -> np.ndarray:
        return np.full(self._pairs.shape[1], kappa - self.beta)

    @override
    def of_sums(self, sums: np.ndarray) -> float:
        return float(parity_pair_of_rates(sums / self.mass, self.beta).max())
