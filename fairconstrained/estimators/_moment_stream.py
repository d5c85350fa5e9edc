"""AUC optimisation on a stream: the moments of every cell are all that the quadratic surrogate asks of the rows."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from fairconstrained.constraints.auc_sets import both_ways
from fairconstrained.constraints.base import check_bound
from fairconstrained.constraints.quadratic_terms import pair_terms, quadratic_components
from fairconstrained.metrics.auc_sets import AUCDifference, auc_differences
from fairconstrained.models import LinearModel, Model, Moments
from fairconstrained.pairwise import PairTerms
from fairconstrained.solvers import Quadratics, Status, minimise_quadratic, quadratics_of

__all__ = ["MomentStream", "StreamFit", "StreamSettings", "normal_threshold"]


class StreamSettings(NamedTuple):
    """Settings of a stream, from the parameters of an estimator."""

    metric: str
    #: Code of the protected group.
    protected: int | None
    kappa: float | None
    alpha: float
    fit_intercept: bool
    #: Whether the objective is the loss of pairs, otherwise one of rows.
    objective_is_auc: bool

    def differences(self, n_groups: int) -> tuple[tuple[tuple[int, int | None], ...], tuple[AUCDifference, ...]]:
        """Sides and sets of the differences that the metric compares, see `auc_differences`."""
        return auc_differences(self.metric, n_groups, self.protected)

    def has_rows(self, cells: Collection[int], n_groups: int) -> bool:
        """Whether both classes and all sets that are compared have rows, if these cells have."""
        both = len({cell < n_groups for cell in cells}) == 2
        _, differences = self.differences(n_groups)
        return both and all(set(compared) & set(cells) for difference in differences for compared in difference)


class StreamFit(NamedTuple):
    """Fit to the rows of a stream so far."""

    model: Model
    params: np.ndarray  # of shape (n_params,)
    status: Status
    objective: float
    #: Excess of the surrogate over ``kappa``.
    violation: float
    #: Largest component of the surrogate, before ``kappa`` is subtracted.
    surrogate: float
    multipliers: np.ndarray  # of shape (n_components,)
    #: Codes of the two sides of every component; None stands for all others.
    components: tuple[tuple[int | None, int | None], ...]
    n_iter: int


def normal_threshold(means: np.ndarray, variance: float, weights: np.ndarray) -> float:
    """Return the shift after which normal scores of positives and negatives are classified at 0 with fewest errors.

    Parameters
    ----------
    means, weights : ndarray of shape (2,)
        Mean scores and weights of the positives and of the negatives.
    variance : float
        Variance of the scores, which both have.
    """
    gap = means[0] - means[1]
    shift = variance / gap * np.log(weights[0] / weights[1]) if gap > 0 else 0.0
    return float(shift - means.sum() / 2)


@dataclass
class MomentStream:
    """Moments by group and label, and the optimum that they lead to."""

    #: Labels of all groups that may come.
    labels: tuple[Hashable, ...]
    #: Settings, which may change: no row is looked at for them.
    settings: StreamSettings
    #: Moments of the cells, numbered as in `fairconstrained.metrics.auc_sets`.
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

    def under(self, settings: StreamSettings) -> Self:
        """Return the same moments under other settings."""
        return replace(self, settings=settings)

    @property
    def is_complete(self) -> bool:
        """Whether both classes and all sets that are compared have rows."""
        return self.settings.has_rows(self.cells, len(self.labels))

    def solve(self) -> StreamFit:
        """The optimum for the rows so far."""
        settings = self.settings
        numbers = sorted(self.cells)
        mass = np.array([self.cells[cell].weight for cell in numbers])
        place = {cell: k for k, cell in enumerate(numbers)}
        sides, differences = settings.differences(len(self.labels))
        components = quadratic_components([difference.renumbered(place) for difference in differences])
        classes = [tuple(place[cell] for cell in numbers if self._positive(cell) is sign) for sign in (True, False)]
        objective = self._quadratics(pair_terms([[(classes[0], classes[1])]], mass, 0.0), numbers)
        surrogate = self._quadratics(pair_terms(components, mass, -1.0), numbers)
        kappa = settings.kappa
        bounded = surrogate._replace(c=surrogate.c - check_bound(kappa)) if kappa is not None else _none_of(surrogate)
        optimum = minimise_quadratic(objective, np.full(objective.b.shape[1], settings.alpha), bounded)
        intercept = [self._intercept(optimum.w)] if settings.fit_intercept else []
        return StreamFit(
            model=LinearModel(optimum.w.size, 1, settings.fit_intercept, settings.alpha),
            params=np.append(optimum.w, intercept),
            status=Status.OPTIMAL if optimum.converged else Status.MAX_ITER,
            objective=optimum.objective,
            violation=optimum.violation,
            surrogate=float(surrogate.values(optimum.w).max(initial=0.0)),
            multipliers=optimum.multipliers,
            components=both_ways(sides) if kappa is not None else (),
            n_iter=optimum.n_iter,
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
        return normal_threshold(mean[::-1], variance, weight[::-1])


def _none_of(quadratics: Quadratics) -> Quadratics:
    """No components."""
    return Quadratics(quadratics.hessians[:0], quadratics.which[:0], quadratics.b[:0], quadratics.c[:0])
