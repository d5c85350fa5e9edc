"""AUC optimisation on a stream: the moments of every cell are all that the quadratic surrogate asks of the rows."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from fairconstrained.constraints._auc_sets import both_ways
from fairconstrained.constraints._base import check_bound
from fairconstrained.constraints._quadratic import pair_terms, quadratic_components
from fairconstrained.metrics._auc_sets import auc_differences
from fairconstrained.models import Moments
from fairconstrained.quadratics import PairTerms
from fairconstrained.solvers import QuadraticOptimum, Quadratics, minimise_quadratic, quadratics_of

__all__ = ["MomentStream", "StreamFit"]


class StreamFit(NamedTuple):
    """What a stream leads to so far.

    Attributes
    ----------
    coefficients : ndarray of shape (n_features,)
    intercept : float
    optimum : QuadraticOptimum
    surrogate : float
        Largest component of the surrogate, of which ``kappa`` is not subtracted.
    components : tuple of (int, int or None)
        Codes of the two sides of every component; None stands for all others.
    """

    coefficients: np.ndarray
    intercept: float
    optimum: QuadraticOptimum
    surrogate: float
    components: tuple[tuple[int | None, int | None], ...]


@dataclass
class MomentStream:
    """Moments by group and label, and the optimum that they lead to.

    Attributes
    ----------
    labels : tuple
        Of all the groups that may come.
    cells : dict of int to Moments
        Numbered as in `fairconstrained.metrics._auc_sets`.
    """

    labels: tuple[Hashable, ...]
    cells: dict[int, Moments] = field(default_factory=dict)

    def add(self, X: Any, codes: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> None:
        """Take rows into the moments; any order, any mixture."""
        cells = codes + len(self.labels) * ~positive
        for cell in np.unique(cells[weights > 0]).tolist():
            rows = np.flatnonzero((cells == cell) & (weights > 0))
            new = Moments.of(X[rows], weights[rows])
            self.cells[cell] = self.cells[cell].merged(new) if cell in self.cells else new

    def copy(self) -> Self:
        """A stream of its own; moments are never changed in place."""
        return replace(self, cells=dict(self.cells))

    def is_complete(self, metric: str, protected: int | None) -> bool:
        """Whether both classes and all sets that are compared have rows."""
        _, differences = auc_differences(metric, len(self.labels), protected)
        both = all(any(self._positive(cell) is sign for cell in self.cells) for sign in (True, False))
        return both and all(set(cells) & set(self.cells) for difference in differences for cells in difference)

    def solve(self, metric: str, protected: int | None, kappa: float | None, alpha: float) -> StreamFit:
        """The optimum for the rows so far."""
        numbers = sorted(self.cells)
        mass = np.array([self.cells[cell].weight for cell in numbers])
        place = {cell: k for k, cell in enumerate(numbers)}
        sides, differences = auc_differences(metric, len(self.labels), protected)
        components = quadratic_components([difference.renumbered(place) for difference in differences])
        classes = [tuple(place[cell] for cell in numbers if self._positive(cell) is sign) for sign in (True, False)]
        objective = self._quadratics(pair_terms([[(classes[0], classes[1])]], mass, 0.0), numbers)
        surrogate = self._quadratics(pair_terms(components, mass, -1.0), numbers)
        bounded = surrogate._replace(c=surrogate.c - check_bound(kappa)) if kappa is not None else _none_of(surrogate)
        optimum = minimise_quadratic(objective, np.full(objective.b.shape[1], alpha), bounded)
        return StreamFit(
            coefficients=optimum.w,
            intercept=self._intercept(optimum.w),
            optimum=optimum,
            surrogate=float(surrogate.values(optimum.w).max(initial=0.0)),
            components=both_ways(sides) if kappa is not None else (),
        )

    def _positive(self, cell: int) -> bool:
        return cell < len(self.labels)

    def _quadratics(self, terms: PairTerms, numbers: list[int]) -> Quadratics:
        means = np.stack([self.cells[cell].mean for cell in numbers])
        covariances = np.stack([self.cells[cell].covariance for cell in numbers])
        return quadratics_of([(terms.quadratics, (means, covariances))], means.shape[1])

    def _intercept(self, w: np.ndarray) -> float:
        """Where normal scores of both classes, with a common variance, are classified with the fewest errors."""
        weight, mean, variance = np.zeros(2), np.zeros(2), 0.0
        for cell, moments in self.cells.items():
            k = int(self._positive(cell))
            weight[k] += moments.weight
            mean[k] += moments.weight * float(moments.mean @ w)
        mean /= weight
        for cell, moments in self.cells.items():
            between = float(moments.mean @ w) - mean[int(self._positive(cell))]
            variance += moments.weight / weight.sum() * (float(w @ moments.covariance @ w) + between**2)
        gap = mean[1] - mean[0]
        shift = variance / gap * np.log(weight[1] / weight[0]) if gap > 0 else 0.0
        return float(shift - mean.sum() / 2)


def _none_of(quadratics: Quadratics) -> Quadratics:
    """No components."""
    return Quadratics(quadratics.hessians[:0], quadratics.which[:0], quadratics.b[:0], quadratics.c[:0])
