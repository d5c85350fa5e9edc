"""Stochastic mirror descent for quadratic losses over pairs, on rows that are drawn or that come one at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fairconstrained.models import Coordinates, ParametricModel
from fairconstrained.points import largest_violation
from fairconstrained.problem import Point, Problem
from fairconstrained.solvers._options import Count, Positive
from fairconstrained.solvers.loop import IterativeSolver
from fairconstrained.solvers.method import Incumbent, Method
from fairconstrained.solvers.published._duals import BoundedMultipliers
from fairconstrained.solvers.published.saddle_form import SaddleForm
from fairconstrained.solvers.published.saddle_steps import LateAverages, MirrorDescent, RowMean, SaddleSteps
from fairconstrained.solvers.source import Source
from fairconstrained.terms import Measured
from fairconstrained.views import Exact, FullBatch, SingleRows

__all__ = ["StochasticMirrorDescent"]


@dataclass(frozen=True)
class StochasticMirrorDescent(IterativeSolver):
    r"""Stochastic mirror descent with bounded multipliers: the online method for quadratic losses over pairs.

    A loss over pairs is a saddle function of single rows with auxiliary variables a, b and :math:`\alpha` (Lemma 1),

    .. math::
        \min_{w, a, b} \; \max_{\alpha,\; \lambda \ge 0,\; \sum_j \lambda_j \le \Lambda} \;
        E\left[ F_0 + \alpha_0 G_0 \right] - c_1 \alpha_0^2
        + \sum_j \lambda_j \left( E\left[ F_j + \alpha_j G_j \right] - c_1 \alpha_j^2 - \kappa \right),

    so that one row is enough for a step. Steps are those of Algorithm 2. In place of the levels of Algorithm 1, which
    change by an upper bound that would be too noisy with single rows, the constraints have multipliers. The model is
    the mean of the iterates over the last half to three quarters of the steps. For linear scores this is the saddle
    point of a convex problem, which the mean converges to if no multiplier exceeds :math:`\Lambda`; for networks there
    is no theory.

    `AUCFairClassifier.partial_fit` takes these steps on rows in the order in which they come. `fit` draws rows, and
    returns the best of the means after every pass: the one with the least objective among those that keep the
    surrogates' bounds, or with the smallest violation.

    Parameters
    ----------
    max_iter : int, default=20
        Passes over as many rows as the data have.
    step : float, default=0.3
        Step size c of the first step, which falls as :math:`1 / \sqrt{t + 1}`.
    dual_step : float, default=0.3
        Step size of the first step of :math:`\alpha` and the multipliers, which falls at the same rate.
    batch_size : int, default=10
        Rows of a step. A step on fewer rows, such as one, is shorter in proportion.
    radius : float, default=100.0
        Radius of the ball in which the parameters, a and b are kept.
    max_multiplier : float, default=10.0
        :math:`\Lambda`, the largest sum of the multipliers.

    References
    ----------
    Yao, Lin, Yang, arXiv:2212.12603, Lemma 1, Algorithm 2, Lemma 3.
    """

    name: ClassVar[str] = "mirror_descent"
    requires: ClassVar[tuple[type, ...]] = (SingleRows, FullBatch, Exact)
    projects: ClassVar[bool] = False
    step_option: ClassVar[str] = "step"

    max_iter: Count = 20
    step: Positive = 0.3
    dual_step: Positive = 0.3
    batch_size: Count = 10
    radius: Positive = 100.0
    max_multiplier: Positive = 10.0

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _Passes(self, z)

    def duals(self, form: SaddleForm) -> BoundedMultipliers:
        """The dual variables, whose intervals hold for points that are feasible and better than constant scores."""
        constant = form.constant + form.total(form.c1 * form.c2**2)
        duals = BoundedMultipliers.of(form, float(constant[0]))
        return replace(duals, largest_sum=self.max_multiplier, pace=self.dual_step / self.step)

    def length(self, x: np.ndarray) -> float:
        """The radius of the ball, at least twice the length of the first variables."""
        return max(self.radius, 2 * float(np.linalg.norm(x)))

    def steps(self, model: ParametricModel, row_mean: RowMean, form: SaddleForm, x: np.ndarray) -> SaddleSteps:
        """Steps in the parameters themselves on rows that come from anywhere, from ``x`` on; see `SaddleSteps`."""
        return SaddleSteps(model, Coordinates(), row_mean, self.duals(form), x, self.step, self.length(x))


class _Passes(Method):
    """A step is a pass over as many rows as the data have; the iterate is the mean of the late steps' iterates."""

    holds_rows = True

    def __init__(self, options: StochasticMirrorDescent, z: np.ndarray) -> None:
        self._options, self.z, self._best = options, z, Incumbent()

    @override
    def begin(self, source: Source, problem: Problem) -> None:
        o, form, params = self._options, SaddleForm.of(problem), self.z[: problem.n_params]
        ab = form.best_ab(source.view.at(self.z).scores)
        x = np.concatenate([problem.coordinates.from_params(params), ab.ravel()])
        self._descent = MirrorDescent(problem, o.duals(form), source.rng, x, o.batch_size, o.step, o.length(x))
        self._late = LateAverages(self._descent.averages)

    @override
    def step(self, source: Source, problem: Problem) -> None:
        for batch, weights in self._descent.draw(-(-problem.data.n_samples // self._options.batch_size)):
            self._descent.take(0.0, batch, weights, self._late.newest)
            self._late.roll()
        self.z = self._descent.params(self._late.mean)
        source.count(problem.data.n_samples)

    @property
    @override
    def multipliers(self) -> np.ndarray:
        return self._late.sums.multipliers

    @override
    def observe(self, point: Point, measured: Measured) -> None:
        self._best.offer(self.z, point.objective, largest_violation(point.constraints))

    @override
    def output(self) -> np.ndarray:
        """The best of the means: of least objective within the surrogates' bounds, or of the smallest violation."""
        return self._best.best_or(self.z)
