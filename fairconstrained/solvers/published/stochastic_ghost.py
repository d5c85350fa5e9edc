"""The stochastic ghost method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from typing_extensions import override

from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.points import objective_gradient
from fairconstrained.problem import FullBatchView, Problem
from fairconstrained.solvers._options import Fraction, NonNegative, Positive
from fairconstrained.solvers.loop import IterativeSolver
from fairconstrained.solvers.published.ghost_direction import ghost_direction
from fairconstrained.solvers.stochastic import Method, Source, StochasticSolver

__all__ = ["StochasticGhost"]


@dataclass(frozen=True)
class StochasticGhost(StochasticSolver):
    r"""Steps along the solution of a quadratic program, estimated without bias (Algorithm 1).

    With :math:`d(X)` the solution of the subproblem

    .. math:: \min_d \; \nabla f^\top d + \frac{\tau}{2} \|d\|^2 \quad \text{s.t.} \quad c + \nabla c \, d \le
              \kappa e, \quad \|d\|_\infty \le \beta

    on a mini-batch X (see `ghost_direction` for :math:`\kappa`), a geometric N of parameter :math:`p_0`, and
    mini-batches of 1 and of :math:`2^{N+1}` rows, the latter split in odd and even ones, the step is

    .. math:: x \leftarrow x + \alpha_k \left( d(X^1) + \frac{d(X^{2^{N+1}}) - \frac{1}{2} \bigl( d(\mathrm{odd}) +
              d(\mathrm{even}) \bigr)}{(1 - p_0)^N p_0} \right), \qquad
              \alpha_{k+1} = \alpha_k (1 - \hat\alpha \alpha_k).

    A mini-batch of J rows has J rows of every group for the constraints and, independent of them, J of all rows for the
    objective, drawn with replacement. Without a limit to N the mean number of rows would be infinite for
    :math:`p_0 \le 1/2`. So N ends where :math:`2^N` rows of every group are about as many as there are rows at all. On
    that last level all rows take the place of the largest mini-batch, and two mini-batches of :math:`2^N` rows that of
    the odd and even ones. The means then add up to d of all rows: the estimate of the direction is without bias.

    Parameters
    ----------
    batch_size : int, default=8
        Number of rows that an epoch counts for one step. It has no effect on the steps themselves.
    learning_rate : float, default=0.05
        Step length :math:`\alpha_0` of the first step.
    decay : float, default=0.05
        :math:`\hat\alpha`, by which the step length decreases.
    p0 : float, default=0.4
        Parameter of the geometric distribution of N, in (0, 1).
    tau : float, default=1.0
        Weight :math:`\tau` of the quadratic term of the subproblem.
    beta : float, default=10.0
        Largest absolute value :math:`\beta` of an entry of d.
    rho : float, default=0.8
        Largest entry of d in the definition of :math:`\kappa`, at most ``beta``; see `ghost_direction`.
    share : float, default=0.5
        :math:`\lambda` in the definition of :math:`\kappa`, in (0, 1): the larger it is, the more of the violation a
        step is to undo.

    Raises
    ------
    IncompatibleProblem
        From `solve`, for mini-batches of whole queries, which cannot be halved row by row.

    References
    ----------
    Kliachkin, Lepsova, Bareilles, Marecek, arXiv:2507.04033, section 3.2, eqs. 8-9, Algorithm 1; Facchinei and
    Kungurtsev, arXiv:2307.02943.
    """

    name: ClassVar[str] = "stochastic_ghost"

    learning_rate: Positive = 0.05
    decay: NonNegative = 0.05
    p0: Fraction = 0.4
    tau: Positive = 1.0
    beta: Positive = 10.0
    rho: Positive = 0.8
    share: Fraction = 0.5

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        if problem.data.clusters is not None:
            raise IncompatibleProblem(
                f"solver {self.name!r} halves its mini-batches row by row, so it takes none of whole queries: choose "
                "batches='pairs', or another solver."
            )
        return _Ghost(self, z, problem, rng.spawn(1)[0])


class _Pair(NamedTuple):
    """A mini-batch for the objective, and one for the constraints."""

    objective: FullBatchView
    constraints: FullBatchView


class _Ghost(Method):
    def __init__(self, options: StochasticGhost, z: np.ndarray, problem: Problem, rng: np.random.Generator) -> None:
        self.z, self.rate, self._rng = z, options.learning_rate, rng
        self.go_on(options, problem)

    def go_on(self, solver: IterativeSolver, problem: Problem) -> None:
        """Implement `Method.go_on`; the last level is that of these rows."""
        super().go_on(solver, problem)
        self._last = int(np.log2(problem.data.n_samples / np.unique(problem.strata).size))

    @override
    def step(self, source: Source, problem: Problem) -> None:
        direction = self.direction(source)
        self.z = problem.project(self.z + self.rate * direction)
        self.rate *= 1 - self._options.decay * self.rate

    def direction(self, source: Source) -> np.ndarray:
        """The estimate of the direction (eq. 9)."""
        p0 = self._options.p0
        level = min(int(self._rng.geometric(p0)) - 1, self._last)
        # the last level has the probability of all that it stands for
        probability = (1 - p0) ** level * (p0 if level < self._last else 1.0)
        large, odd, even = self._whole_and_halves(source, level)
        correction = self._solved(large) - (self._solved(odd) + self._solved(even)) / 2
        return self._solved(self._drawn(source, 1)) + correction / probability

    def _whole_and_halves(self, source: Source, level: int) -> tuple[_Pair, _Pair, _Pair]:
        """A mini-batch of twice 2^level rows and its halves; on the last level all rows and two mini-batches."""
        rows = 2**level
        if level < self._last:
            whole = self._drawn(source, 2 * rows)
            objective = self._halves(source, whole.objective, np.zeros(2 * rows))
            constraints = self._halves(source, whole.constraints, whole.constraints.problem.strata)
            return whole, _Pair(objective[0], constraints[0]), _Pair(objective[1], constraints[1])
        whole = _Pair(source.all_objective_rows(), source.all_rows())
        return whole, self._drawn(source, rows), self._drawn(source, rows)

    @staticmethod
    def _drawn(source: Source, rows: int) -> _Pair:
        return _Pair(source.objective_rows(rows), source.even_batch(rows))

    def _halves(self, source: Source, batch: FullBatchView, strata: np.ndarray) -> tuple[FullBatchView, FullBatchView]:
        """One row of every two neighbours in the strata that were drawn from, which a coin tells, and the other rows.

        Every row of a mini-batch comes from a part of its stratum of its own, see `Sampler`. So the odd rows are no
        mini-batch of half the size, and would make a bias; either half is one this way.
        """
        neighbours = np.lexsort((batch.problem.data.y.numpy(), strata)).reshape(-1, 2)
        halves = self._rng.permuted(neighbours, axis=1).T
        return source.part(batch, np.sort(halves[0])), source.part(batch, np.sort(halves[1]))

    def _solved(self, batch: _Pair) -> np.ndarray:
        """The direction on a mini-batch (eq. 8); NaN where a value is not finite."""
        o = self._options
        objective, point = FullBatchView.at_each(batch, self.z)
        m = point.constraints.size
        gradient = objective_gradient(objective)
        jacobian = np.stack([point.gradient(0.0, row) for row in np.eye(m)]) if m else np.empty((0, self.z.size))
        if not all(np.isfinite(part).all() for part in (gradient, point.constraints, jacobian)):
            return np.full(self.z.size, np.nan)
        return ghost_direction(gradient, point.constraints, jacobian, o.tau, o.beta, o.rho, o.share)
