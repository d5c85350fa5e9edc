"""Stochastic gradient descent, Adam, and the same with a penalty in place of the constraints: baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fairconstrained.points import objective_gradient
from fairconstrained.problem import Problem
from fairconstrained.solvers._options import Count, NonNegative, Positive, Share
from fairconstrained.solvers.stochastic import Method, Source, StochasticSolver

__all__ = ["SGD", "Adam", "AdamDirection", "StochasticPenalty"]


@dataclass(frozen=True)
class SGD(StochasticSolver):
    r"""Stochastic gradient descent on the objective alone; the constraints are only reported.

    .. math:: x \leftarrow x - \tau \nabla f(x, \xi)

    Parameters
    ----------
    learning_rate : float, default=0.01
        :math:`\tau`.

    References
    ----------
    Kliachkin, Lepsova, Bareilles, Marecek, arXiv:2507.04033, section 4.2 (a baseline).
    """

    name: ClassVar[str] = "sgd"
    weight: ClassVar[float] = 0.0

    balance: Share = 0.0
    learning_rate: Positive = 0.01

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _Penalised(self, z)


@dataclass(frozen=True)
class StochasticPenalty(StochasticSolver):
    r"""Stochastic gradient descent on the objective and a penalty on what exceeds ``kappa``.

    .. math:: x \leftarrow x - \tau \Bigl( \nabla f(x, \xi) + \lambda \sum_i 1[c_i(x, \xi) > 0] \, \nabla c_i(x, \xi)
              \Bigr)

    Because of the noise of mini-batches some gap exceeds ``kappa`` in most of them, so this is no bound, and the gap
    that results from a weight is known only after the fit.

    Parameters
    ----------
    learning_rate : float, default=0.01
        :math:`\tau`.
    weight : float, default=1.0
        :math:`\lambda`.

    References
    ----------
    Kliachkin, Lepsova, Bareilles, Marecek, arXiv:2507.04033, eq. 2 (a baseline).
    """

    name: ClassVar[str] = "penalty"

    learning_rate: Positive = 0.01
    weight: NonNegative = 1.0

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _Penalised(self, z)


class _Penalised(Method):
    @override
    def step(self, source: Source, problem: Problem) -> None:
        point = source.batch().at(self.z)
        weights = self._options.weight * (point.constraints > 0)
        self.z = problem.project(self.z - self._options.learning_rate * point.gradient(1.0, weights))


@dataclass(frozen=True)
class Adam(StochasticSolver):
    """Adam on the objective alone; the constraints are only reported.

    Parameters
    ----------
    learning_rate : float, default=0.001
        Learning rate of Adam.

    References
    ----------
    Kingma and Ba, Adam: a method for stochastic optimization, ICLR 2015, Algorithm 1.
    """

    name: ClassVar[str] = "adam"

    batch_size: Count = 256
    balance: Share = 0.0
    learning_rate: Positive = 0.001

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _Adam(self, z)


class _Adam(Method):
    def __init__(self, options: Adam, z: np.ndarray) -> None:
        super().__init__(options, z)
        self._direction = AdamDirection(z.size)

    @override
    def step(self, source: Source, problem: Problem) -> None:
        gradient = objective_gradient(source.batch().at(self.z))
        self.z = problem.project(self.z - self._options.learning_rate * self._direction.of(gradient))


class AdamDirection:
    """The direction of Adam's steps (Algorithm 1 there, with the usual constants 0.9, 0.999, 1e-8)."""

    def __init__(self, size: int) -> None:
        self._mean, self._square, self._step = np.zeros(size), np.zeros(size), 0

    def of(self, gradient: np.ndarray) -> np.ndarray:
        """The direction after one more gradient."""
        self._step += 1
        self._mean += 0.1 * (gradient - self._mean)
        self._square += 0.001 * (gradient**2 - self._square)
        mean, square = self._mean / (1 - 0.9**self._step), self._square / (1 - 0.999**self._step)
        return mean / (np.sqrt(square) + 1e-8)
