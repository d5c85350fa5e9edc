"""A stochastic solver of one's own: gradient descent with momentum on a Lagrangian, and ascent of its multipliers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairconstrained import LossParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.problem import Problem
from fairconstrained.solvers import StochasticSolver
from fairconstrained.solvers.stochastic import Method, Source


@dataclass(frozen=True)
class DualAscent(StochasticSolver):
    r"""Descent with momentum in the parameters, ascent in the multipliers, both on mini-batches.

    With :math:`m` for the momentum, :math:`y \leftarrow \max(y + \eta c(z), 0)`,
    :math:`m \leftarrow \theta m + \nabla f(z) + y^\top \nabla c(z)` and :math:`z \leftarrow z - \tau m`. ``kappa``
    bounds the means only up to the noise of the mini-batches.

    Parameters
    ----------
    max_epochs, batch_size, max_time, balance, select, keep_on_interrupt, smoothing, averaging
        See `StochasticSolver`.
    learning_rate : float, default=0.02
        :math:`\tau`.
    momentum : float, default=0.9
        :math:`\theta`, in [0, 1).
    dual_rate : float, default=0.05
        :math:`\eta`.
    """

    name: ClassVar[str] = "dual_ascent"

    learning_rate: float = 0.02
    momentum: float = 0.9
    dual_rate: float = 0.05

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _DualAscent(self, z, len(problem.component_names))


class _DualAscent(Method):
    def __init__(self, options: DualAscent, z: np.ndarray, n_components: int) -> None:
        self._options, self.z, self._momentum, self._y = options, z, np.zeros_like(z), np.zeros(n_components)

    @property
    def multipliers(self) -> np.ndarray:
        """Multipliers after the last step."""
        return self._y

    def step(self, source: Source, problem: Problem) -> None:
        """Take one step."""
        o, point = self._options, source.batch().at(self.z)
        self._y = np.maximum(self._y + o.dual_rate * point.constraints, 0.0)
        self._momentum = o.momentum * self._momentum + point.gradient(1.0, self._y)
        self.z = problem.project(self.z - o.learning_rate * self._momentum)


X, y, group = make_biased_classification(2000, positive_rates=(0.6, 0.2), random_state=0)
network = {"hidden_layer_sizes": (8,), "random_state": 0}
free = LossParityClassifier(kappa=None, **network).fit(X, y, sensitive_features=group)
model = LossParityClassifier(0.02, solver="dual_ascent", batch_size=64, max_epochs=30, **network)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it may end outside kappa
    model.fit(X, y, sensitive_features=group)
print(free.constraint_values_, model.constraint_values_, model.status_, model.multipliers_)
# It learns, and its gap is nearer to kappa than without a bound ...
assert model.objective_ < 0.5
assert abs(model.constraint_values_["loss_parity"] - 0.02) < abs(free.constraint_values_["loss_parity"] - 0.02)
# ... and it has all features of a stochastic solver: a record of every epoch, and a state to continue from.
assert len(model.history_) == 30
model.set_params(warm_start=True, max_epochs=31)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    model.fit(X, y, sensitive_features=group)
assert len(model.history_) == 31
