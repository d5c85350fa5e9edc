"""The inexact difference-of-convex algorithm on mini-batches: a primal-dual stochastic gradient method inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.problem import Point, Problem
from fairconstrained.solvers._options import Count, NonNegative, Positive
from fairconstrained.solvers.loop import IterativeSolver
from fairconstrained.solvers.method import Method
from fairconstrained.solvers.source import Source
from fairconstrained.terms import evaluated
from fairconstrained.views import DifferenceOfConvex, Exact, Stochastic

__all__ = ["StochasticIDCA"]

#: Change of the scores over which a slope is measured.
_DIFFERENCE = 1e-6
#: Scores that no step comes back from.
_UNBOUNDED = 1e9


@dataclass(frozen=True)
class StochasticIDCA(IterativeSolver):
    r"""IDCA (Algorithm 1) for large data and modules, its subproblems solved on mini-batches.

    At an outer iterate :math:`z_t` the concave part of the objective and of every constraint is replaced by its
    tangent, which leaves the functions :math:`F_0, F_1, \ldots, F_m`. Inner step :math:`k = 0 \ldots K - 1` draws a
    group-stratified mini-batch, on which they have the values :math:`\theta_i` and the gradients :math:`\zeta_i` at
    :math:`z_k`, and sets

    .. math::
        z_{k+1} &= \arg\min_z \Bigl( V \zeta_0 + {\textstyle\sum_i} Q_i \zeta_i \Bigr)^\top (z - z_k)
                   + \alpha |z - z_k|^2, \\
        Q_i &\leftarrow \max \bigl( Q_i + \theta_i + \zeta_i^\top (z_{k+1} - z_k),\, 0 \bigr),

    with :math:`Q_i = 0` at first, :math:`V = \sqrt{K}` and :math:`\alpha = K / \mathrm{step}`. The mean of the
    :math:`z_k` is the next outer iterate. Value and tangent of a mini-batch come from the same rows, which makes
    :math:`\theta_i` and :math:`\zeta_i` unbiased and lets most of the noise of the two parts cancel. A mini-batch
    costs three forward passes and one backward pass.

    The tangent is taken in the scores, where the split is convex. For a linear model this is the tangent in the
    parameters. For a module it makes :math:`F_i` an upper bound of the function that it replaces, which a tangent in
    the parameters would not; but :math:`F_i` is weakly convex only, and ``proximity`` makes it convex again.

    ``kappa`` bounds the *surrogate* here, as in the paper, and only up to the noise of the mini-batches; the exact
    metric is reported beside it.

    Parameters
    ----------
    max_outer : int, default=20
        Outer iterations.
    max_inner : int, default=500
        Mini-batches of every subproblem (K).
    batch_size : int, default=64
        Approximate number of rows of a mini-batch; every group has at least one.
    step : float, default=1.0
        Multiplies the length of all steps; the theory has 1.
    warm_queues : bool, default=True
        Whether a subproblem begins with the :math:`Q_i` at which the one before ended. False is the algorithm as
        published, where every subproblem first has to find out again which constraints matter; its iterates violate
        the constraints more.
    proximity : float, default=0.0
        :math:`\rho` of the term :math:`\rho/2 |z - z_t|^2` that is added to :math:`F_0, \ldots, F_m`: a weakly convex
        function is a difference of convex functions by this split (eq. 78). Sensible for modules.
    select : {"best", "last"}, default="best"
        "best" returns the outer iterate of least objective among those whose exact metrics are at most ``kappa`` plus
        their granularity, and the last iterate where there is none; "last" is the algorithm as published.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530, section 6 and section G.9; Ma, Lin, Yang, arXiv:1908.01871, Algorithm 3,
    after Yu, Neely, Wei (2017), Online convex optimization with stochastic constraints.
    """

    name: ClassVar[str] = "stochastic_idca"
    requires: ClassVar[tuple[type, ...]] = (DifferenceOfConvex, Stochastic, Exact)
    iterations_option: ClassVar[str] = "max_outer"
    step_option: ClassVar[str] = "step, or raise proximity"

    max_outer: Count = 20
    max_inner: Count = 500
    batch_size: Count = 64
    step: Positive = 1.0
    warm_queues: bool = True
    proximity: NonNegative = 0.0
    select: Literal["best", "last"] = "best"

    @property
    @override
    def returns_incumbent(self) -> bool:
        return self.select == "best"

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _Subproblems(self, z, len(problem.component_names))


class _Subproblems(Method):
    """A step is the approximate solution of the convex problem around the iterate."""

    def __init__(self, options: StochasticIDCA, z: np.ndarray, n_components: int) -> None:
        self._options, self.z, self._queues = options, z, np.zeros(n_components)

    @override
    def step(self, source: Source, problem: Problem) -> None:
        o, anchor = self._options, self.z
        importance, alpha = np.sqrt(o.max_inner), o.max_inner / o.step
        z, mean, queues = anchor, np.zeros_like(anchor), o.warm_queues * self._queues
        for _ in range(o.max_inner):
            mean += z / o.max_inner
            model = _BatchModel(source.sample(o.batch_size).problem, anchor, z, o.proximity)
            moved = problem.project(z - model.gradient(np.append(importance, queues)) / (2 * alpha))
            queues = np.maximum(queues + model.linearised(moved), 0)
            z = moved
        self.z, self._queues = mean, queues

    @override
    def numbers(self, point: Point) -> dict[str, Any]:
        return {"largest_multiplier": float(self._queues.max(initial=0.0)) / np.sqrt(self._options.max_inner)}


class _BatchModel:
    """``F_0 .. F_m`` on one mini-batch, as functions of ``u = (scores, aux)``.

    The tangents touch at the outer iterate, the anchor; z is the inner one.
    """

    def __init__(self, batch: Problem, anchor: np.ndarray, z: np.ndarray, proximity: float) -> None:
        self._batch, self._z, self._n_params = batch, z, batch.n_params
        scores, self._pullback = batch.parametric.forward(z[: self._n_params], batch.data)
        self._plus = _Part(batch, "plus", self._joined(scores.numpy(), z))
        self._minus = _Part(batch, "minus", self._scores_and_aux(anchor))
        self._proximity, self._offset = proximity, z - anchor

    def gradient(self, weights: np.ndarray) -> np.ndarray:
        """``sum_i weights_i zeta_i``, i = 0 .. m; ndarray of shape (n_variables,)."""
        slope = self._plus.slope(weights) - self._minus.slope(weights)
        n_samples = self._batch.data.n_samples
        gradient = np.concatenate([self._pullback(slope[:n_samples]), slope[n_samples:].numpy()])
        gradient[: self._n_params] += weights[0] * self._batch.parametric.penalty(self._z[: self._n_params])[1]
        return gradient + weights.sum() * self._proximity * self._offset

    def linearised(self, moved: np.ndarray) -> np.ndarray:
        """``theta_i + <zeta_i, moved - z>``, i = 1 .. m; ndarray of shape (m,)."""
        u_moved = self._scores_and_aux(moved)
        values = self._plus.tangent(u_moved) - self._minus.tangent(u_moved)
        proximal = self._offset @ (self._offset / 2 + moved - self._z)
        return values[1:].numpy() + self._proximity * proximal

    def _scores_and_aux(self, z: np.ndarray) -> Tensor:
        return self._joined(self._batch.scores(z), z)

    def _joined(self, scores: np.ndarray, z: np.ndarray) -> Tensor:
        u = np.concatenate([scores, z[self._n_params :]])
        if not (np.abs(u) < _UNBOUNDED).all():
            raise FloatingPointError("the scores or the auxiliary variables grow without limit")
        return torch.from_numpy(u)


class _Part:
    """The plus or the minus parts of the objective and of all constraints, around one ``u``."""

    def __init__(self, batch: Problem, part: str, u: Tensor) -> None:
        self._batch, self._part = batch, part
        self._u = u.clone().requires_grad_()
        self._values = self._evaluate(self._u)

    def slope(self, weights: np.ndarray) -> Tensor:
        """Gradient of the weighted sum of the parts; Tensor like ``u``."""
        combination = torch.from_numpy(weights) @ self._values
        if not combination.requires_grad:  # constant, such as the concave part of a convex objective may be
            return torch.zeros_like(self._u)
        return torch.autograd.grad(combination, self._u)[0]

    def tangent(self, at: Tensor) -> Tensor:
        """Values of all tangents at another ``u``; Tensor of shape (1 + m,).

        The slopes in this one direction are differences: to have them from the gradients would take a backward pass
        for every function, and the kernels of the surrogates offer no forward one.
        """
        values, u = self._values.detach(), self._u.detach()
        length = float((at - u).abs().max())
        if length == 0:
            return values
        step = _DIFFERENCE / length
        return values + (self._evaluate(u + step * (at - u)) - values) / step

    def _evaluate(self, u: Tensor) -> Tensor:
        n_samples = self._batch.data.n_samples
        return torch.cat(evaluated(self._batch, u[:n_samples], u[n_samples:], self._part))
