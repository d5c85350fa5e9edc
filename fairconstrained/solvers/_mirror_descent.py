"""Stochastic mirror descent for saddle functions of single rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import torch

from fairconstrained.data import FairData
from fairconstrained.problem import Problem
from fairconstrained.solvers._saddle import DualSet, SaddleSample
from fairconstrained.views import SingleRows

__all__ = ["Averages", "MirrorDescent"]

#: Rows that are gathered at once, in mini-batches.
_GATHERED = 6400


@dataclass(eq=False)
class Averages:
    """Sums over the steps at one level.

    Attributes
    ----------
    n_steps : int
    x, y : ndarray of shape (n_variables,) and (n_components,)
        Sums of the iterates, which count alike in the output of Algorithm 2.
    tau : float
        Sum of the dual step sizes, by which the other sums are weighted (eq. 30; eq. 48 leaves them out).
    u, v : ndarray of shape (n_components,) and (n_terms,)
        Of F and G.
    proximal : float
        Of the proximal term, which the paper forgets to weight too.
    """

    x: np.ndarray
    y: np.ndarray
    u: np.ndarray
    v: np.ndarray
    n_steps: int = 0
    tau: float = 0.0
    proximal: float = 0.0

    def add(self, x: np.ndarray, y: np.ndarray, sample: SaddleSample, tau: float, proximal: float) -> None:
        """One more step."""
        self.n_steps += 1
        self.x += x
        self.y += y
        self.tau += tau
        self.u += tau * sample.u
        self.v += tau * sample.v
        self.proximal += tau * proximal

    @property
    def multipliers(self) -> np.ndarray:
        """Of the constraint components: their mean weight over that of the objective."""
        return self.y[1:] / max(float(self.y[0]), 1e-9 * self.n_steps)

    def upper_bound(self, dual: DualSet) -> float:
        """U(r), the stochastic upper bound of the level-set function (eq. 30)."""
        return dual.upper_bound(self.u / self.tau, self.v / self.tau) + float(self.proximal / self.tau)


@dataclass(eq=False)
class MirrorDescent:
    r"""Stochastic mirror descent (Algorithm 2), in standardised coordinates.

    .. math:: \min_x \max_y \; E[\Phi(x, y)] - d_y(y) + \tfrac{\hat\rho}{2} \|x - \tilde x\|^2

    (eq. 27) over ``x = (coordinates of the parameters, a, b)`` in a ball and over y in a `DualSet`. Step t draws rows
    from *all* data in proportion to their weight, one by one, and has the step sizes

    .. math:: \eta_t = c / \sqrt{t + 1}, \qquad \tau_t = D_y^2 \eta_t,

    which is eq. 31 for a distance :math:`D_x = 1` in x, the size of coefficients of standardised features. The ball is
    larger, only there to keep x bounded. A step in the parameters, in an a or in a b is never longer than the one that
    minimises the batch's function along the gradient there: a standardised feature that few rows have makes some
    batches so steep that steps of :math:`\eta_t` diverge from them on.

    Attributes
    ----------
    problem : Problem
    dual : DualSet
    rng : numpy.random.Generator
    x : ndarray of shape (n_variables,)
    batch_size : int
    step : float
        c.
    radius : float
        Of the ball.
    proximity : float
        :math:`\hat\rho`.
    """

    problem: Problem
    dual: DualSet
    rng: np.random.Generator
    x: np.ndarray
    batch_size: int
    step: float
    radius: float
    proximity: float = 0.0
    n_steps: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._cumulative = torch.cumsum(self.problem.data.weights, 0).numpy()
        self._coordinates, self._n_params = self.problem.coordinates, self.problem.n_params
        self._objective = cast(SingleRows, self.problem.objective)
        self.restart(self.x)

    def restart(self, x: np.ndarray) -> None:
        """Begin anew at ``x``, with long steps, equal weights of all components and alpha = 0."""
        form = self.dual.form
        self.x = self.anchor = x
        self._log_y = np.full(form.constant.size, -np.log(form.constant.size))
        self._alpha = np.zeros(form.c1.size)
        self._t = 0

    def averages(self) -> Averages:
        """Nothing yet."""
        form = self.dual.form
        u, v = np.zeros(form.constant.size), np.zeros(form.c1.size)
        return Averages(np.zeros_like(self.x), np.zeros_like(u), u, v)

    def params(self, x: np.ndarray) -> np.ndarray:
        """Parameters of the model at ``x``."""
        return self._coordinates.to_params(x[: self._n_params])

    def run(self, level: float, n_steps: int, averages: Averages) -> None:
        """Some steps at the level ``r``; ``averages`` of the same level are continued."""
        for batch, weights in self._draw(n_steps):
            self._step(level, batch, weights, averages)
        self.n_steps += n_steps

    def _draw(self, n_batches: int) -> Iterator[tuple[FairData, np.ndarray]]:
        """Mini-batches, and what their rows count in the sets."""
        at_once = max(_GATHERED // self.batch_size, 1)
        for first in range(0, n_batches, at_once):
            shape = min(at_once, n_batches - first), self.batch_size
            uniform = np.sort(self.rng.random(shape) * self._cumulative[-1], axis=1)  # rows of a group stand together
            rows = np.searchsorted(self._cumulative, uniform, side="right").clip(max=self._cumulative.size - 1)
            weights = self.dual.form.set_weights(rows) / self.batch_size
            yield from zip(self.problem.data.batches(rows), weights, strict=True)

    def _step(self, level: float, batch: FairData, weights: np.ndarray, averages: Averages) -> None:
        model, x, n_params = self.problem.model, self.x, self._n_params
        params, y = self.params(x), np.exp(self._log_y)
        scores, pullback = model.forward(params, batch)
        sample = self.dual.form.sample(scores.numpy(), weights, x[n_params:].reshape(2, -1), y, self._alpha)
        penalty, slope = model.penalty(params)
        row_mean, row_slopes = self._objective.row_mean(scores.numpy(), batch)
        sample.u[0] += row_mean + penalty - level
        d_scores = torch.from_numpy(sample.scores + y[0] * row_slopes)
        gradient = np.empty_like(x)
        gradient[:n_params] = self._coordinates.pull(pullback(d_scores) + y[0] * slope)
        gradient[n_params:] = sample.ab.ravel()
        eta = self.step / math.sqrt(self._t + 1)
        tau = self.dual.diameter * eta
        averages.add(x, y, sample, tau, self.proximal(x))
        steps = np.empty_like(x)
        trial = model.forward(self.params(x - eta * gradient), batch)[0].numpy()
        change = trial - scores.numpy()
        bends = sample.curvature * change + y[0] * (self._objective.row_mean(trial, batch)[1] - row_slopes)
        steps[:n_params] = eta * self._shortening(change, bends, gradient[:n_params], eta)
        steps[n_params:] = eta / np.maximum(1.0, eta * sample.ab_curvature.ravel())
        moved = x - steps * gradient
        if self.proximity:
            moved = (moved + steps * self.proximity * self.anchor) / (1 + steps * self.proximity)
        length = math.sqrt(moved @ moved)
        self.x = moved if length <= self.radius else moved * (self.radius / length)
        self._log_y, self._alpha = self.dual.step(self._log_y, self._alpha, sample.u, sample.v, tau)
        self._t += 1

    @staticmethod
    def _shortening(change: np.ndarray, bends: np.ndarray, gradient: np.ndarray, eta: float) -> float:
        """Return the factor of a step that would not pass the batch's minimum along it, at most 1.

        The step changes the scores by ``change``, and the slopes in them by ``bends``.
        """
        rise = float(bends @ change)
        fall = eta * float(gradient @ gradient)
        return fall / rise if rise > fall else 1.0

    def proximal(self, x: np.ndarray) -> float:
        """``d_x``, which pulls towards the anchor."""
        if not self.proximity:
            return 0.0
        offset = x - self.anchor
        return self.proximity / 2 * float(offset @ offset)
