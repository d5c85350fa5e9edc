"""The proxy-Lagrangian method: surrogates for the steps of the model, exact metrics for those of the multipliers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import logsumexp
from typing_extensions import override

from fairconstrained.domains import Simplex
from fairconstrained.models import Coordinates
from fairconstrained.points import largest_violation
from fairconstrained.problem import FullBatchView, Point, Problem
from fairconstrained.solvers._base import SolverResult
from fairconstrained.solvers._options import Count, Positive
from fairconstrained.solvers.loop import IterativeSolver
from fairconstrained.solvers.method import Incumbent, Method
from fairconstrained.solvers.source import Source
from fairconstrained.terms import Measured
from fairconstrained.views import Stochastic

__all__ = ["ProxyLagrangian"]

#: Parameters that no step comes back from.
_UNBOUNDED = 1e9


@dataclass(frozen=True)
class ProxyLagrangian(IterativeSolver):
    r"""Proxy-Lagrangian method: two players with different constraints.

    For the objective :math:`f`, the constraints :math:`c_j \le 0` that the metric makes and their smooth surrogates
    :math:`\tilde c_j`, in step :math:`t = 0, 1, \ldots` the model player descends on its Lagrangian, which has the
    surrogates, and the constraint player ascends on its own, which has the true constraints:

    .. math::
        w &\leftarrow \Pi_W \Bigl( w - \tfrac{\eta}{\sqrt{t + 1}} \bigl( \lambda_0 \nabla f(w)
            + {\textstyle\sum_j} \lambda_j \nabla \tilde c_j(w) \bigr) \Bigr) \\
        \lambda &\leftarrow \Pi_\Lambda \Bigl( \lambda + \tfrac{\eta_\lambda}{\sqrt{t + 1}}\, c(w) \Bigr), \qquad
        \Lambda = \{\lambda \ge 0 : \lambda_1 + \ldots + \lambda_m \le R\}, \quad \lambda_0 = 1.

    Both use the same w, and :math:`\lambda = 0` at first. This is ``regret="external"``. With ``regret="swap"``, for
    which the theory holds, the weights :math:`p = (p_0, \ldots, p_m)` are the stationary distribution of a matrix with
    columns of sum one, all of whose entries are equal at first:

    .. math::
        p = M p, \qquad M_{ij} \leftarrow \frac{M_{ij} \exp(\eta_\lambda p_j R\, c_i(w) / \sqrt{t + 1})}{
            \sum_k M_{kj} \exp(\eta_\lambda p_j R\, c_k(w) / \sqrt{t + 1})}, \qquad c_0 = 0,
            \qquad \lambda_0 = p_0, \quad \lambda_j = R\, p_j.

    The publication returns a random choice among the iterates, or a mixture of few of them; the paper on AUC
    constraints returns the feasible iterate that is best on validation data. Here the result is one model: the recorded
    iterate with the least objective among those whose *exact* metrics are at most ``kappa`` plus their granularity. If
    there is none, it is the recorded iterate with the least excess. All scores are zero at the start of a linear model,
    which is feasible for most metrics: a run that finds no better feasible iterate returns this one.

    The width of the surrogates is proportional to the standard deviation of the present scores, unless the user chose
    it. Auxiliary variables, such as the thresholds of statistical parity, are chosen to fit the present scores. The
    levels of statistical parity do not change, so with more of them (``n_levels``) more iterates are within ``kappa``.
    For constraints that bound a surrogate, such as `fairconstrained.constraints.PairwiseParity`, both players use the
    surrogate.

    Parameters
    ----------
    max_iter : int, default=1000
        Steps.
    batch_size : int or None, default=None
        Approximate number of rows of a mini-batch; every group has at least one. In a step both players use one
        mini-batch. None is all rows, without randomness.
    step : float, default=1.0
        :math:`\eta`. The paper on AUC constraints tunes it over 0.01, 0.1 and 1. Without a domain the steps of a linear
        model are in the coefficients of the standardised features.
    multiplier_step : float, default=3.0
        :math:`\eta_\lambda`.
    radius : float, default=10.0
        :math:`R`, the largest sum of the multipliers; it should exceed that at the solution.
    regret : {"external", "swap"}, default="external"
        Regret that the constraint player keeps small: "external" by projected gradient ascent, "swap" by multiplicative
        updates of a matrix.
    blur : float, default=0.1
        Blur of the surrogates in standard deviations of the scores.
    n_records : int, default=500
        Approximate number of iterates that are measured on all rows, evenly spread over the run; they are the history,
        and the result is one of them. With mini-batches this takes most of the time.

    Raises
    ------
    IncompatibleProblem
        From `solve`, if ``batch_size`` is given and a term has no view of mini-batches.

    Notes
    -----
    ``multipliers`` of the result are the means of :math:`\lambda_j` over all steps, divided by that of
    :math:`\lambda_0`.

    References
    ----------
    Cotter, Jiang, Gupta, Wang, Narayan, You, Sridharan (2019), Optimization with Non-Differentiable Constraints with
    Applications to Fairness, Recall, Churn, and Other Goals, JMLR 20(172): sections 4.2 to 4.5, Algorithms 2 and 3 for
    the matrix, Algorithm 1 and eq. 14 for :math:`\Lambda`. Used as a baseline in the paper on AUC constraints, section
    E.2.
    """

    name: ClassVar[str] = "proxy_lagrangian"
    restores: ClassVar[bool] = True
    records_start: ClassVar[bool] = True
    step_option: ClassVar[str] = "step"

    max_iter: Count = 1000
    batch_size: Count | None = None
    step: Positive = 1.0
    multiplier_step: Positive = 3.0
    radius: Positive = 10.0
    regret: Literal["external", "swap"] = "external"
    blur: Positive = 0.1
    n_records: Count = 500

    @override
    def record_every(self, problem: Problem) -> int:
        return max(self.max_iter // self.n_records, 1)

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        if self.batch_size is not None:
            problem.check((Stochastic,), solver=f"{self.name}(batch_size={self.batch_size})")
        return _TwoPlayers(self, z, len(problem.component_names))


class _TwoPlayers(Method):
    """A step of both players. The auxiliary variables in ``z`` are those of the start; those that suit are computed."""

    def __init__(self, options: ProxyLagrangian, z: np.ndarray, n_components: int) -> None:
        self._options, self.z, self._t = options, z, 0
        self._player = _PLAYERS[options.regret](n_components, options.radius)
        self._total = np.zeros(1 + n_components)
        self._best = Incumbent()
        #: The problem at the iterate, where a record has seen it.
        self._seen: _Seen | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_seen": None}

    @override
    def step(self, source: Source, problem: Problem) -> None:
        seen, weights = self._next_sight(source, problem), self._player.weights
        shrinking = 1 / np.sqrt(self._t + 1)
        self._total = self._total + weights
        gradient = seen.gradient(weights)
        params = _descended(problem, self.z[: problem.n_params], gradient, self._options.step * shrinking)
        self.z = np.concatenate([params, self.z[problem.n_params :]])
        self._player.ascend(seen.values, self._options.multiplier_step * shrinking)
        self._t += 1
        self._seen = None

    def _next_sight(self, source: Source, problem: Problem) -> _Seen:
        """The problem at the iterate, on all rows or on a new mini-batch."""
        o = self._options
        if o.batch_size is not None:
            return _Seen(source.sample(o.batch_size).problem, self.z[: problem.n_params], o.blur)
        return self._on_all_rows(source, problem)

    def _on_all_rows(self, source: Source, problem: Problem) -> _Seen:
        if self._seen is None:
            self._seen = _Seen(problem, self.z[: problem.n_params], self._options.blur)
            source.count(problem.data.n_samples)
        return self._seen

    @override
    def point(self, source: Source, problem: Problem) -> Point:
        return self._on_all_rows(source, problem).point

    @override
    def observe(self, point: Point, measured: Measured) -> None:
        self._best.offer(self.z, point.objective, measured.excess)

    @override
    def numbers(self, point: Point) -> dict[str, Any]:
        weights = self._player.weights
        return {"largest_multiplier": float(weights[1:].max(initial=0.0) / weights[0])}

    @property
    @override
    def multipliers(self) -> np.ndarray:
        """Means over all steps, in units of the objective's weight."""
        return self._total[1:] / self._total[0] if self._t else self._total[1:]

    @override
    def output(self) -> np.ndarray:
        """The best recorded iterate, or the one nearest to ``kappa`` where none is within."""
        return self._best.best_or(self.z)

    @override
    def conclude(self, result: SolverResult, problem: Problem) -> SolverResult:
        sharp, z = _sharpened(problem, result.model_state, self._options.blur)
        point = FullBatchView(sharp).at(z)
        return replace(result, surrogate_violation=largest_violation(point.constraints), aux=z[problem.n_params :])


class _Seen:
    """A problem at some parameters: true values of the constraints, slopes of their surrogates.

    `Exact.refined` makes both of one object: it corrects the surrogate such that its values at these scores are the
    exact ones.

    Attributes
    ----------
    point : Point
    values : ndarray of shape (n_components,)
        Values of the problem's own components; those that refinement appends are left out, for they have no
        multipliers.
    """

    def __init__(self, problem: Problem, params: np.ndarray, blur: float) -> None:
        sharp, z = _sharpened(problem, params, blur)
        self._n_params = problem.n_params
        self.point = FullBatchView(sharp).at(z)
        # refinement appends what it adds, constraint by constraint
        counts = [
            (len(plain.component_names), len(refined.component_names))
            for plain, refined in zip(problem.constraints, sharp.constraints, strict=True)
        ]
        self._own = np.concatenate([np.arange(after) < before for before, after in counts] or [np.empty(0, dtype=bool)])
        self.values = self.point.constraints[self._own]

    def gradient(self, weights: np.ndarray) -> np.ndarray:
        """Gradient of the model player's Lagrangian in the parameters; ``weights`` has shape (1 + n_components,)."""
        multipliers = np.zeros(self._own.size)
        multipliers[self._own] = weights[1:]
        return self.point.gradient(weights[0], multipliers)[: self._n_params]


def _sharpened(problem: Problem, params: np.ndarray, blur: float) -> tuple[Problem, np.ndarray]:
    """The problem with surrogates whose values at ``params`` are exact, and ``z`` there."""
    scores = problem.scores(params)
    sharp = problem.refined(scores, blur)
    return sharp, np.concatenate([params, sharp.initial_aux(scores)])


def _descended(problem: Problem, params: np.ndarray, gradient: np.ndarray, step: float) -> np.ndarray:
    """The parameters after a plain gradient step in well-scaled coordinates.

    In a domain the coordinates are the parameters themselves: the Euclidean projection of steps in other ones would
    come to rest at points that are not stationary.
    """
    coordinates = problem.coordinates if problem.domain is None else Coordinates()
    u = coordinates.from_params(params) - step * coordinates.pull(gradient)
    moved = problem.project(coordinates.to_params(u))
    if not (np.abs(moved) < _UNBOUNDED).all():
        raise FloatingPointError("the parameters grow without limit")
    return moved


class _Player(ABC):
    """The constraint player."""

    @abstractmethod
    def __init__(self, n_components: int, radius: float) -> None: ...

    @property
    @abstractmethod
    def weights(self) -> np.ndarray:
        """Weight of the objective and of every component; ndarray of shape (1 + n_components,)."""

    @abstractmethod
    def ascend(self, values: np.ndarray, step: float) -> None:
        """A step up the player's Lagrangian, given the true constraint values."""


class _ProjectedGradient(_Player):
    """Multipliers at least zero and with a bounded sum, after Algorithm 1 and eq. 14."""

    def __init__(self, n_components: int, radius: float) -> None:
        self._radius = radius
        self._multipliers = np.zeros(n_components)

    @property
    def weights(self) -> np.ndarray:
        """Implement `_Player.weights`; that of the objective is one."""
        return np.append(1.0, self._multipliers)

    @override
    def ascend(self, values: np.ndarray, step: float) -> None:
        moved = np.maximum(self._multipliers + step * values, 0.0)
        self._multipliers = Simplex(self._radius).project(moved) if moved.sum() > self._radius else moved


class _SwapRegret(_Player):
    """The stationary distribution of a matrix whose columns are updated multiplicatively, after Algorithm 3."""

    def __init__(self, n_components: int, radius: float) -> None:
        self._scale = np.append(1.0, np.full(n_components, radius))
        # Logarithms, so that an entry that has become negligible can grow again.
        self._log_matrix = np.full((1 + n_components, 1 + n_components), -np.log(1 + n_components))

    @property
    def weights(self) -> np.ndarray:
        """Implement `_Player.weights`; together one, but for the factor ``radius`` of the components."""
        return self._scale * self._stationary

    @property
    def _stationary(self) -> np.ndarray:
        size = len(self._log_matrix)
        system = np.vstack([np.exp(self._log_matrix) - np.eye(size), np.ones(size)])
        solution = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0].clip(min=0.0)
        return solution / solution.sum()

    @override
    def ascend(self, values: np.ndarray, step: float) -> None:
        true = self._scale * np.append(0.0, values)
        moved = self._log_matrix + step * np.outer(true, self._stationary)
        self._log_matrix = moved - logsumexp(moved, axis=0)


_PLAYERS: dict[str, type[_Player]] = {"external": _ProjectedGradient, "swap": _SwapRegret}
