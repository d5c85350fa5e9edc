"""Bounds on the share of the positive predictions that goes to a minority."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from typing_extensions import override

from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.checks.protected import named_code
from fairconstrained.constraints._cell_sums import BoundCellSums
from fairconstrained.constraints._constraint import Constraint
from fairconstrained.constraints._resolution import CellSizes, resolution
from fairconstrained.constraints._row_functions import RATE_FUNCTIONS, TOLERANCE
from fairconstrained.constraints.base import check_kappa
from fairconstrained.data import FairData
from fairconstrained.metrics.cell_means import RATES
from fairconstrained.metrics.shares import POSITIVE_RATES, share_of_first

__all__ = ["MinorityShare"]


@with_parameters
class MinorityShare(Constraint):
    r"""Bound on the share of positive predictions that goes to a minority M, from below.

    .. math:: c \sum_{i} r(h(x_i)) \le \sum_{i \in M} r(h(x_i))

    The metric is the share that goes to the *others*, which ``kappa = 1 - c`` bounds from above.

    Parameters
    ----------
    min_share : float or None, default=0.2
        The least share c, in (0, 1). None is no bound: the share is only reported.
    minority : object, default=None
        Label of the group M, a tuple where several sensitive features are combined. None takes the group with the
        fewest rows.
    rate : {"sigmoid", "indicator"}, default="sigmoid"
        The function r of a score s: :math:`1 / (1 + e^{-s})`, or whether s is positive. The indicator is bounded
        exactly too, up to the share of the rows that one row stands for.
    ignored_groups : collection, default=()
        Labels of groups whose rows do not take part, such as rows that only the objective sees.

    References
    ----------
    Ma, Lin, Yang, Proximally Constrained Methods for Weakly Convex Optimization with Weakly Convex Constraints,
    arXiv:1908.01871, section 5.
    """

    is_of_classes: ClassVar[bool] = True

    min_share: float | None = parameter(
        default=0.2, allowed=[Interval(Real, 0, 1, closed="neither"), None], kw_only=False
    )
    minority: Any = parameter(default=None)
    rate: str = parameter(default="sigmoid", allowed=[StrOptions(set(POSITIVE_RATES))])
    ignored_groups: Collection[Hashable] = parameter(default=())

    @property
    def kappa(self) -> float | None:
        """Bound on the share of the others."""
        return None if self.min_share is None else 1 - self.min_share

    def _bind(self, data: FairData) -> BoundMinorityShare:
        """Implement `Constraint.bind`; also raises ValueError if there is no row of the minority, or none of others."""
        if data.unions is not None:
            raise ValueError(
                "the minority must be one of several groups that do not overlap. Pass one column with the group of "
                "every row as sensitive_features."
            )
        counts = {label: count for label, count in data.counts().items() if label not in self.ignored_groups}
        names = tuple(counts)
        code = int(np.argmin(list(counts.values())))
        if self.minority is not None:
            code = named_code(names, self.minority, "minority")
        minority = names[code]
        takes_part = np.array([label in counts for label in data.labels])
        weights = data.weights.numpy() * takes_part[data.codes]
        mass, function = float(weights.sum()), RATE_FUNCTIONS[self.rate]
        return BoundMinorityShare(
            data=data,
            kappa=check_kappa(self.kappa),
            name="majority_share",
            function=function,
            tolerance=float(weights.max() / mass) if function.is_step else TOLERANCE,
            takes_part=takes_part / mass,
            is_minority=np.array([label == minority for label in data.labels]),
            minority=minority,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundMinorityShare(BoundCellSums):
    """Share of the others in the positive predictions.

    The component is ``c`` times the mean rate of all rows minus the minority's part of it. This alone would also
    vanish with the rates themselves, so a refinement divides it by their mean, and it is then about the share.
    """

    #: Zero for a group that takes no part, otherwise the factor that makes the weights of all that do sum to one.
    takes_part: np.ndarray  # of shape (n_groups,)
    is_minority: np.ndarray  # of bool, of shape (n_groups,)
    #: Label of the minority.
    minority: Any
    #: Mean rate of all rows, by which the component is divided.
    mean_rate: float = 1.0

    @property
    def resolution(self) -> float:
        """Implement `BoundConstraint.resolution`; the bound is as far from nothing as from everything."""
        return resolution(min(self.kappa, 1 - self.kappa)) if self.kappa < 1 else 1.0

    def compared_cells(self) -> CellSizes:
        """Number of all rows, whose positive predictions are shared out."""
        weights = self.data.weights.numpy() * self.takes_part[self.data.codes]
        return CellSizes.of_rows(["all rows"], np.array([np.count_nonzero(weights)]), np.array([weights.max()]))

    @override
    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Self:
        mean_rate = float(self._sums(self._exact_values(scores)) @ self.takes_part)
        about_share = replace(self, mean_rate=max(mean_rate, self.tolerance))
        return super(BoundMinorityShare, about_share).refined(scores, blur=blur, margin=margin)

    @override
    def coefficients(self, kappa: float) -> np.ndarray:
        return ((~self.is_minority - kappa) * self.takes_part / self.mean_rate)[None]

    @override
    def limits(self, kappa: float) -> np.ndarray:
        return np.zeros(1)

    @override
    def of_sums(self, sums: np.ndarray) -> float:
        rates = sums * (self.takes_part > 0)
        return 1 - share_of_first(float(rates @ self.is_minority), float(rates.sum()))

    @override
    def complaint_about_decisions(self, value: float, rows: str = "training rows") -> str:
        return (
            f"min_share={1 - self.kappa:g} bounds the share of the minority {self.minority!r} in the probabilities; in "
            f"the positive predictions it is {1 - value:.4g} on the {rows}. Set rate='indicator' to bound that."
        )

    def caveat(self, scores: np.ndarray) -> str | None:
        """Implement `BoundConstraint.caveat`; of no positive predictions everybody has any share."""
        if self._sums(RATES["indicator"](scores, self.data.y.numpy())) @ (self.takes_part > 0) > 0:
            return None
        return (
            f"nobody is predicted positive, so the minority {self.minority!r} has a share of 1 by definition, which "
            "means nothing. Weight rows with positive labels more (sample_weight), or add features."
        )

    @override
    def complaint(self, value: float, rows: str = "training rows") -> str:
        return (
            f"the minority {self.minority!r} has a share of {1 - value:.4g} in the positive predictions on the {rows}, "
            f"less than min_share={1 - self.kappa:g} by more than the tolerance ({self.tolerance:.2g})."
        )
