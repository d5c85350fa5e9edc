"""The proximal-perturbed Lagrangian alternating direction algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairconstrained.models import LinearModel
from fairconstrained.problem import Problem
from fairconstrained.solvers._options import Count, Fraction, Positive, Share
from fairconstrained.solvers._stochastic import Method, Source, StochasticSolver

__all__ = ["PLADA"]


@dataclass(frozen=True)
class PLADA(StochasticSolver):
    r"""The P-Lagrangian based alternating direction algorithm (Algorithm 1), on all rows or on mini-batches.

    With slacks :math:`u \ge 0`, perturbations z and multipliers :math:`\lambda, \mu`, the constraints are
    :math:`G(\theta) + u = z` and :math:`z = 0`. With :math:`\rho = \alpha / (1 + \alpha \beta)`, iteration k is

    .. math::
        \lambda &= \mu + \rho \, (G(\theta) + u), \\
        \theta &\leftarrow \Pi_\Theta \bigl( \theta - \eta \, (\nabla F(\theta) + \nabla G(\theta)^\top \lambda) \bigr),
        \qquad u \leftarrow \mathrm{clip}(u - \tau \lambda, 0, u_{\max}), \\
        \mu &\leftarrow \mu + \gamma_k (\lambda - \mu) / \rho, \qquad
        \gamma_k = \min \left\{ \gamma_0, \frac{\rho \delta_k}{\|\lambda - \mu\|^2 + 1} \right\}, \qquad
        \delta_k = \frac{\delta_0}{k + 1},

    for each constraint; :math:`z = (\lambda - \mu) / \alpha` enters no other step. This is the published order, begun
    with the multipliers. Two-sided bounds are two constraints each, which are smooth; the step on G is one along its
    gradient.

    ``kappa`` is met in the limit, as in the paper; the exact gap is reported.

    Parameters
    ----------
    max_epochs : int, default=50
    batch_size : int or None, default=None
        Rows of a mini-batch; None is all rows, and an epoch then has ``epoch_steps`` iterations.
    epoch_steps : int, default=20
        See ``batch_size``.
    max_time, balance, select, keep_on_interrupt, smoothing, averaging
        See `StochasticSolver`.
    learning_rate : float, default=1e-3
        :math:`\eta`; the paper's experiments with networks take 0.1.
    slack_rate : float, default=0.1
        :math:`\tau`; 0.01 with networks.
    alpha, beta : float, default=10.0 and 0.1
        Of the Lagrangian, :math:`\alpha > 0` and :math:`0 < \beta < 1`; networks take :math:`\beta = 0.5`.
    gamma : float, default=0.1
        :math:`\gamma_0`, in [0, 1].
    delta : float, default=1.0
        :math:`\delta_0`.
    max_slack : float, default=10.0
        :math:`u_{\max}`, a bound on the constraints' values.
    verbose : int, default=0
        Positive: print a line per epoch.

    References
    ----------
    "A modified proximal-perturbed Lagrangian for non-convex non-smooth representatives of fairness constraints",
    section 3.2, Algorithm 1, eqs. 6-13, Table 2.
    """

    name: ClassVar[str] = "plada"
    takes_all_rows: ClassVar[bool] = True

    max_epochs: Count = 50
    batch_size: Count | None = None  # type: ignore[assignment]  # the others have a number
    epoch_steps: Count = 20
    learning_rate: Positive = 1e-3
    slack_rate: Positive = 0.1
    alpha: Positive = 10.0
    beta: Fraction = 0.1
    gamma: Share = 0.1
    delta: Positive = 1.0
    max_slack: Positive = 10.0

    @classmethod
    def published(cls, problem: Problem) -> Mapping[str, Any]:
        """The parameters of Table 2: one set for linear scores, and one for networks."""
        if isinstance(problem.model, LinearModel):
            return {"learning_rate": 1e-3, "slack_rate": 0.1, "alpha": 10.0, "beta": 0.1, "gamma": 0.1}
        return {"learning_rate": 0.1, "slack_rate": 0.01, "alpha": 10.0, "beta": 0.5, "gamma": 0.1}

    def n_steps(self, problem: Problem) -> int:
        """See `StochasticSolver.n_steps`."""
        return self.epoch_steps if self.batch_size is None else super().n_steps(problem)

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _PLADA(self, z, len(problem.component_names))


class _PLADA(Method):
    def __init__(self, options: PLADA, z: np.ndarray, n_components: int) -> None:
        self._options = options
        self.z, self.n_steps = z, 0
        self.u = self.mu = self.multiplier = np.zeros(n_components)

    @property
    def multipliers(self) -> np.ndarray:
        """See `Method.multipliers`."""
        return self.multiplier

    def step(self, source: Source, problem: Problem) -> None:
        """See `Method.step`."""
        o = self._options
        rho = o.alpha / (1 + o.alpha * o.beta)
        point = source.batch().at(self.z)
        self.multiplier = self.mu + rho * (point.constraints + self.u)
        difference = self.multiplier - self.mu
        self.z = problem.project(self.z - o.learning_rate * point.gradient(1.0, self.multiplier))
        self.u = np.clip(self.u - o.slack_rate * self.multiplier, 0.0, o.max_slack)
        gamma = min(o.gamma, rho * o.delta / (self.n_steps + 1) / (difference @ difference + 1))
        self.mu = self.mu + gamma * difference / rho
        self.n_steps += 1
