"""Stochastic mirror descent for saddle functions of single rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import cast

import numpy as np
import torch

from fairconstrained.data import FairData
from fairconstrained.models import Coordinates, ParametricModel
from fairconstrained.problem import Problem
from fairconstrained.solvers.published._duals import DualVariables
from fairconstrained.solvers.published.saddle_form import SaddleSample
from fairconstrained.views import SingleRows

__all__ = ["Averages", "LateAverages", "MirrorDescent", "RowMean", "SaddleSteps"]

RowMean = Callable[[np.ndarray, FairData], tuple[float, np.ndarray]]

#: Rows that are gathered at once, in mini-batches.
_GATHERED = 6400


@dataclass(eq=False)
class Averages:
    """Sums over some steps."""

    #: Sums of the iterates and of the factors of the components, which count alike in the output of Algorithm 2.
    x: np.ndarray  # of shape (n_variables,)
    y: np.ndarray  # of shape (n_components,)
    #: Sums of F and G.
    u: np.ndarray  # of shape (n_components,)
    v: np.ndarray  # of shape (n_terms,)
    #: Number of steps, of which those with fewer rows than usual count less.
    n_steps: float = 0.0
    #: Sum of the dual step sizes, by which the other sums are weighted (eq. 30; eq. 48 leaves them out).
    tau: float = 0.0
    #: Sum of the proximal term, which the paper forgets to weight too.
    proximal: float = 0.0

    def add(
        self, x: np.ndarray, y: np.ndarray, sample: SaddleSample, tau: float, proximal: float, share: float = 1.0
    ) -> None:
        """One more step, which counts by its share."""
        self.n_steps += share
        self.x += share * x
        self.y += share * y
        self.tau += tau
        self.u += tau * sample.u
        self.v += tau * sample.v
        self.proximal += tau * proximal

    def __add__(self, other: Averages) -> Averages:
        """Return the sums over both."""
        return Averages(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(self)))

    @property
    def multipliers(self) -> np.ndarray:
        """Multipliers of the constraint components: their mean factor over that of the objective."""
        return self.y[1:] / max(float(self.y[0]), 1e-9 * self.n_steps)

    def upper_bound(self, dual: DualVariables) -> float:
        """U(r), the stochastic upper bound of the level-set function (eq. 30): ``max_y u'y~ + v'alpha~ - d_y``."""
        return float(dual.largest(self.u / self.tau, self.v / self.tau).max()) + self.proximal / self.tau


class LateAverages:
    """Sums over the last half to three quarters of the steps, however many there will be.

    Parameters
    ----------
    new : callable
        Makes `Averages` of no steps.

    Attributes
    ----------
    newest : Averages
        Sums that the next step adds to.
    """

    def __init__(self, new: Callable[[], Averages]) -> None:
        self._new = new
        self._older, self.newest = new(), new()

    def copy(self) -> LateAverages:
        """Sums of their own; older ones no longer change."""
        other = LateAverages(self._new)
        other._older, other.newest = self._older, self.newest + self._new()
        return other

    def roll(self) -> None:
        """Forget the older half as soon as the newest steps are twice as many."""
        if self.newest.n_steps >= max(2 * self._older.n_steps, 1):
            self._older, self.newest = self.newest, self._new()

    @property
    def sums(self) -> Averages:
        """Both parts together."""
        return self._older + self.newest

    @property
    def mean(self) -> np.ndarray:
        """The mean iterate; ndarray of shape (n_variables,)."""
        sums = self.sums
        return sums.x / sums.n_steps


@dataclass(eq=False)
class SaddleSteps:
    r"""Steps of stochastic mirror descent (Algorithm 2) on rows that come from anywhere, in standardised coordinates.

    .. math:: \min_x \max_y \; E[\Phi(x, y)] - d_y(y) + \tfrac{\hat\rho}{2} \|x - \tilde x\|^2

    (eq. 27) over ``x = (coordinates of the parameters, a, b)`` in a ball and over `DualVariables`. Step t has the
    step sizes

    .. math:: \eta_t = c / \sqrt{t + 1}, \qquad \tau_t = D_y^2 \eta_t,

    with the pace of the dual variables for :math:`D_y^2`. This is eq. 31 for a distance :math:`D_x = 1` in x, the size
    of coefficients of standardised features. The ball is larger, only there to keep x bounded. A step in the
    parameters, in an a or in a b is never longer than the one that minimises the batch's function along the
    gradient there: a standardised feature that few rows have makes some batches so steep that steps of
    :math:`\eta_t` diverge from them on.
    """

    model: ParametricModel
    #: Coordinates of the model's parameters.
    coordinates: Coordinates
    #: Part of the objective that is a mean over rows, see `SingleRows.row_mean`.
    row_mean: RowMean
    dual: DualVariables
    x: np.ndarray  # of shape (n_variables,)
    #: c.
    step: float
    #: Radius of the ball.
    radius: float
    #: :math:`\hat\rho`.
    proximity: float = 0.0

    def __post_init__(self) -> None:
        self.restart(self.x)

    def restart(self, x: np.ndarray) -> None:
        """Begin anew at ``x``, with long steps, the first weights of the components and alpha = 0."""
        self.x = self.anchor = x
        self._log_y = self.dual.start()
        self._alpha = np.zeros(self.dual.form.c1.size)
        self._t = 0.0

    def averages(self) -> Averages:
        """Nothing yet."""
        form = self.dual.form
        u, v = np.zeros(form.constant.size), np.zeros(form.c1.size)
        return Averages(np.zeros_like(self.x), np.zeros_like(u), u, v)

    def params(self, x: np.ndarray) -> np.ndarray:
        """Parameters of the model at ``x``."""
        return self.coordinates.to_params(x[: self.model.n_params])

    def take(self, level: float, batch: FairData, weights: np.ndarray, averages: Averages, share: float = 1.0) -> None:
        """Take one step at the level ``r``, and add it to ``averages``, the sums over the steps of this level.

        ``weights`` are those of the batch's rows in the sets (`SaddleForm.set_weights`), divided by the number of these
        rows. ``share`` is the length of this step, and its progress in the step sizes, relative to a whole step.
        """
        model, x, n_params = self.model, self.x, self.model.n_params
        params, y = self.params(x), self.dual.component_weights(np.exp(self._log_y))
        scores, pullback = model.forward(params, batch)
        sample = self.dual.form.sample(scores.numpy(), weights, x[n_params:].reshape(2, -1), y, self._alpha)
        penalty, slope = model.penalty(params)
        row_mean, row_slopes = self.row_mean(scores.numpy(), batch)
        sample.u[0] += row_mean + penalty - level
        d_scores = torch.from_numpy(sample.scores + y[0] * row_slopes)
        gradient = np.empty_like(x)
        gradient[:n_params] = self.coordinates.pull(pullback(d_scores) + y[0] * slope)
        gradient[n_params:] = sample.ab.ravel()
        eta = share * self.step / math.sqrt(self._t + 1)
        tau = self.dual.pace * eta
        averages.add(x, y, sample, tau, self.proximal(x), share)
        steps = np.empty_like(x)
        trial = model.forward(self.params(x - eta * gradient), batch)[0].numpy()
        change = trial - scores.numpy()
        bends = sample.curvature * change + y[0] * (self.row_mean(trial, batch)[1] - row_slopes)
        steps[:n_params] = eta * self._shortening(change, bends, gradient[:n_params], eta)
        steps[n_params:] = eta / np.maximum(1.0, eta * sample.ab_curvature.ravel())
        moved = x - steps * gradient
        if self.proximity:
            moved = (moved + steps * self.proximity * self.anchor) / (1 + steps * self.proximity)
        length = math.sqrt(moved @ moved)
        self.x = moved if length <= self.radius else moved * (self.radius / length)
        self._log_y, self._alpha = self.dual.step(self._log_y, self._alpha, sample.u, sample.v, tau)
        self._t += share

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


class MirrorDescent(SaddleSteps):
    """`SaddleSteps` on mini-batches of a problem's rows, drawn in proportion to their weight, one by one."""

    def __init__(
        self,
        problem: Problem,
        dual: DualVariables,
        rng: np.random.Generator,
        x: np.ndarray,
        batch_size: int,
        step: float,
        radius: float,
        proximity: float = 0.0,
    ) -> None:
        row_mean = cast(SingleRows, problem.objective).row_mean
        super().__init__(problem.parametric, problem.coordinates, row_mean, dual, x, step, radius, proximity)
        self.batch_size, self.n_steps = batch_size, 0
        self._data, self._rng = problem.data, rng
        self._cumulative = torch.cumsum(problem.data.weights, 0).numpy()

    def run(self, level: float, n_steps: int, averages: Averages) -> None:
        """Some steps at the level ``r``; ``averages`` of the same level are continued."""
        for batch, weights in self.draw(n_steps):
            self.take(level, batch, weights, averages)
        self.n_steps += n_steps

    def draw(self, n_batches: int) -> Iterator[tuple[FairData, np.ndarray]]:
        """Mini-batches, and what their rows count in the sets."""
        at_once = max(_GATHERED // self.batch_size, 1)
        for first in range(0, n_batches, at_once):
            shape = min(at_once, n_batches - first), self.batch_size
            uniform = np.sort(self._rng.random(shape) * self._cumulative[-1], axis=1)  # rows of a group stand together
            rows = np.searchsorted(self._cumulative, uniform, side="right").clip(max=self._cumulative.size - 1)
            weights = self.dual.form.set_weights(rows) / self.batch_size
            yield from zip(self._data.batches(rows), weights, strict=True)
