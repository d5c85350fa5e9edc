"""The proximal-perturbed Lagrangian alternating direction algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from typing_extensions import override

from fairconstrained.models import LinearModel
from fairconstrained.problem import FullBatchView, Point, Problem
from fairconstrained.solvers._options import Count, Fraction, Positive, Share
from fairconstrained.solvers.stochastic import Method, Source, StochasticSolver

__all__ = ["PLADA", "PLagrangian", "p_lagrangian"]


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

    ``kappa`` is kept in the limit, as in the paper; the exact gap is reported. A record of the history also has
    ``slacks`` (u), ``auxiliary_multipliers`` (:math:`\mu`), ``perturbations`` (z), ``dual_distance``
    (:math:`\|\lambda - \mu\|`, which vanishes in the limit by Theorem 2) and ``p_lagrangian`` (eq. 7), all for the
    iterate on all rows; `fairconstrained.solvers.p_lagrangian` computes the residual of Theorem 1 from them.

    Parameters
    ----------
    batch_size : int or None, default=None
        Rows of a mini-batch; None is all rows, and an epoch then has ``epoch_steps`` iterations.
    epoch_steps : int, default=20
        Iterations of an epoch on all rows, see ``batch_size``.
    learning_rate : float, default=1e-3
        :math:`\eta`; the paper's experiments with networks take 0.1. Convergence is proved below
        :math:`1 / (L_F + 3 \rho M_G^2)`, with a Lipschitz constant of :math:`\nabla F` and a bound on the slope of G.
    slack_rate : float, default=0.05
        :math:`\tau`; 0.01 with networks. Convergence is proved below :math:`1 / (3 \rho)`, which is 0.067 for the
        default :math:`\rho = 5`: the published 0.1 is above the paper's own bound (Lemma 4).
    alpha, beta : float, default=10.0 and 0.1
        Parameters of the Lagrangian, :math:`\alpha > 0` (the paper asks for :math:`\alpha > 1`) and
        :math:`0 < \beta < 1`; networks take :math:`\beta = 0.5`.
    gamma : float, default=0.1
        :math:`\gamma_0`, in [0, 1].
    delta : float, default=100.0
        :math:`\delta_0`, :math:`\kappa` in the paper, which requires a positive number and gives none. The auxiliary
        multipliers move by at most :math:`\delta_k / 2` in step k, so that in n steps they come no farther than about
        :math:`\delta_0 (1 + \log n) / 2`, and far more slowly while the constraints are close to their bounds. With 100
        rather than 10 the loss was lower in 9 and higher in 4 of 16 comparisons with equal steps, on two data sets
        (`benchmarks.rate_parity.tuning`).
    max_slack : float, default=10.0
        :math:`u_{\max}`, a bound on the constraints' values.

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
    slack_rate: Positive = 0.05
    alpha: Positive = 10.0
    beta: Fraction = 0.1
    gamma: Share = 0.1
    delta: Positive = 100.0
    max_slack: Positive = 10.0

    @classmethod
    def published(cls, problem: Problem) -> Mapping[str, Any]:
        """The parameters of Table 2: one set for linear scores, and one for networks."""
        if isinstance(problem.model, LinearModel):
            return {"learning_rate": 1e-3, "slack_rate": 0.1, "alpha": 10.0, "beta": 0.1, "gamma": 0.1}
        return {"learning_rate": 0.1, "slack_rate": 0.01, "alpha": 10.0, "beta": 0.5, "gamma": 0.1}

    @property
    def rho(self) -> float:
        """The dual step size, below eq. 7."""
        return self.alpha / (1 + self.alpha * self.beta)

    @override
    def n_steps(self, problem: Problem) -> int:
        return self.epoch_steps if self.batch_size is None else super().n_steps(problem)

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _PLADA(self, z, len(problem.component_names))


class PLagrangian(NamedTuple):
    r"""The proximal-perturbed Lagrangian at a point, and the distance of the point from a solution.

    Attributes
    ----------
    value : float
        :math:`L_{\alpha \beta}`, eq. 7.
    multipliers : ndarray of shape (n_components,)
        :math:`\lambda = \mu + \rho (G(\theta) + u)`, eq. 8.
    dual_distance : float
        :math:`\|\lambda - \mu\| = \rho \|G(\theta) + u\|`.
    residual : float
        Norm of the projected gradient in :math:`(\theta, u, z)` of Lemma 5 and Theorem 1; its parts are
        :math:`\theta - \Pi_\Theta[\theta - \nabla F(\theta) - \nabla G(\theta)^\top \lambda]`,
        :math:`u - \Pi_U[u - \lambda]` and 0.
    kkt : float
        Largest violation of the KKT conditions (4) by :math:`(\theta, \lambda)`: the part of ``residual`` in
        :math:`\theta`, :math:`\max_j G_j`, :math:`\max_j -\lambda_j` and :math:`\max_j |\lambda_j G_j|`.
    """

    value: float
    multipliers: np.ndarray
    dual_distance: float
    residual: float
    kkt: float


def p_lagrangian(
    problem: Problem, params: np.ndarray, slacks: np.ndarray, auxiliary_multipliers: np.ndarray, solver: PLADA
) -> PLagrangian:
    r"""Evaluate the proximal-perturbed Lagrangian on all rows, and the residuals of the paper's theorems.

    .. math::
        L_{\alpha \beta}(\theta, u, z, \lambda, \mu) = F(\theta) + \langle \lambda, G(\theta) + u - z \rangle
        + \langle \mu, z \rangle + \tfrac{\alpha}{2} \|z\|^2 - \tfrac{\beta}{2} \|\lambda - \mu\|^2

    with z and :math:`\lambda` the best ones for :math:`(\theta, u, \mu)` (eqs. 6 to 8).

    Parameters
    ----------
    problem : Problem
    params : ndarray of shape (n_params,)
        :math:`\theta`. Auxiliary variables of the constraints are those that fit the scores.
    slacks, auxiliary_multipliers : array-like of shape (n_components,)
        u and :math:`\mu`, such as those of a record of the history.
    solver : PLADA
        Has :math:`\alpha`, :math:`\beta` and :math:`u_{\max}`.

    Returns
    -------
    PLagrangian

    Raises
    ------
    ValueError
        If ``slacks`` or ``auxiliary_multipliers`` do not have one number for every component.

    References
    ----------
    "A modified proximal-perturbed Lagrangian for non-convex non-smooth representatives of fairness constraints",
    eqs. 4 and 6 to 8, Lemma 5, Theorem 1.
    """
    n = len(problem.component_names)
    u, mu = np.asarray(slacks, dtype=float), np.asarray(auxiliary_multipliers, dtype=float)
    for name, values in (("slacks", u), ("auxiliary_multipliers", mu)):
        if values.shape != (n,):
            raise ValueError(f"{name} must have one number for each of the {n} components; got shape {values.shape}.")
    z = problem.start(params)
    point = FullBatchView(problem).at(z)
    multipliers = _multipliers(solver, point, u, mu)
    gradient = point.gradient(1.0, multipliers)
    in_theta = float(np.linalg.norm(z - problem.project(z - gradient)))
    in_u = u - np.clip(u - multipliers, 0.0, solver.max_slack)
    constraints = point.constraints
    return PLagrangian(
        value=_value(solver, point, u, mu),
        multipliers=multipliers,
        dual_distance=float(np.linalg.norm(multipliers - mu)),
        residual=float(np.hypot(in_theta, np.linalg.norm(in_u))),
        kkt=float(np.max([in_theta, 0.0, *constraints, *-multipliers, *np.abs(multipliers * constraints)])),
    )


def _multipliers(o: PLADA, point: Point, u: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Eq. 8."""
    return mu + o.rho * (point.constraints + u)


def _value(o: PLADA, point: Point, u: np.ndarray, mu: np.ndarray) -> float:
    """Eq. 7."""
    multipliers = _multipliers(o, point, u, mu)
    away = multipliers - mu
    return point.objective + float(multipliers @ (point.constraints + u)) - float(away @ away) / (2 * o.rho)


class _PLADA(Method):
    _multipliers: np.ndarray

    def __init__(self, options: PLADA, z: np.ndarray, n_components: int) -> None:
        super().__init__(options, z)
        self.n_steps = 0
        self.u = self.mu = self._multipliers = np.zeros(n_components)

    @override
    def numbers(self, point: Point) -> dict[str, Any]:
        difference = _multipliers(self._options, point, self.u, self.mu) - self.mu
        return {
            "slacks": tuple(self.u.tolist()),
            "auxiliary_multipliers": tuple(self.mu.tolist()),
            "perturbations": tuple((difference / self._options.alpha).tolist()),
            "dual_distance": float(np.linalg.norm(difference)),
            "p_lagrangian": _value(self._options, point, self.u, self.mu),
        }

    @override
    def step(self, source: Source, problem: Problem) -> None:
        o = self._options
        point = source.batch().at(self.z)
        self._multipliers = _multipliers(o, point, self.u, self.mu)
        difference = self._multipliers - self.mu
        self.z = problem.project(self.z - o.learning_rate * point.gradient(1.0, self._multipliers))
        self.u = np.clip(self.u - o.slack_rate * self._multipliers, 0.0, o.max_slack)
        gamma = min(o.gamma, o.rho * o.delta / (self.n_steps + 1) / (difference @ difference + 1))
        self.mu = self.mu + gamma * difference / o.rho
        self.n_steps += 1
