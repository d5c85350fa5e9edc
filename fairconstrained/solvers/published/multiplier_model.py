"""A Lagrangian whose multipliers are the outputs of a small network of features of the constraints."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, cast

import numpy as np
import torch
from torch import nn
from typing_extensions import override

from fairconstrained.models import ClassModel
from fairconstrained.problem import Problem
from fairconstrained.solvers._options import Count, Positive
from fairconstrained.solvers.gradient_descent import AdamDirection
from fairconstrained.solvers.stochastic import Method, Source, StochasticSolver
from fairconstrained.views import FullBatch

__all__ = ["MultiplierModel"]


@dataclass(frozen=True)
class MultiplierModel(StochasticSolver):
    r"""Descent in the model and ascent in the weights of a network of multipliers, for very many constraints.

    .. math:: \min_w \max_\phi \; f(w) + \sum_j \lambda_\phi(v_j) \, c_j(w), \qquad
              \lambda_\phi = \mathrm{clip}(\mathrm{network}_\phi, 0, R)

    The features :math:`v_j` of a constraint are the sums of the rows' features, weighted by the gradient of the
    constraint in the scores where all scores are zero: for the gap of two groups' rates this is proportional to the
    difference of their mean features. So constraints on similar rows have similar multipliers. For pairs of rows, as in
    a ranker, the features are differences. Both players take Adam's steps on the same mini-batch.

    ``kappa`` is kept only approximately, as in the publication, if at all; the exact gap is reported. The method takes
    models with a single score for every row.

    Parameters
    ----------
    learning_rate : float, default=0.02
        Learning rate of the model.
    multiplier_rate : float, default=0.005
        Learning rate of the network of multipliers.
    hidden_layer_sizes : tuple of int, default=(32, 32, 32)
        Widths of the hidden layers of that network.
    radius : float, default=10.0
        R, the largest multiplier.

    References
    ----------
    Narasimhan, Cotter, Zhou, Wang, Guo, Approximate Heavily-Constrained Learning with Lagrange Multiplier Models,
    NeurIPS 2020; as a baseline of "A modified proximal-perturbed Lagrangian for non-convex non-smooth representatives
    of fairness constraints" (three hidden layers).
    """

    name: ClassVar[str] = "multiplier_model"

    batch_size: Count = 256
    learning_rate: Positive = 0.02
    multiplier_rate: Positive = 0.005
    hidden_layer_sizes: tuple[Count, ...] = (32, 32, 32)
    radius: Positive = 10.0

    @classmethod
    @override
    def obstacle(cls, problem: Problem) -> str:
        return "a single score of every row" if isinstance(problem.model, ClassModel) else ""

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _MultiplierModel(self, z, problem, int(rng.integers(2**31)))


class _MultiplierModel(Method):
    _multipliers: np.ndarray

    def __init__(self, options: MultiplierModel, z: np.ndarray, problem: Problem, seed: int) -> None:
        self._options, self.z, self._direction = options, z, AdamDirection(z.size)
        self._features = torch.from_numpy(_features(problem))
        with torch.random.fork_rng(devices=[]):
            torch.random.default_generator.manual_seed(seed)
            sizes = (self._features.shape[1], *options.hidden_layer_sizes, 1)
            layers: list[nn.Module] = []
            for n_in, n_out in pairwise(sizes):
                layers += [nn.Linear(n_in, n_out, dtype=torch.float64), nn.ReLU()]
            self._network = nn.Sequential(*layers[:-1])
        self._optimizer = torch.optim.Adam(self._network.parameters(), lr=options.multiplier_rate, maximize=True)
        self._multipliers = self._clipped(self._outputs())

    def _outputs(self) -> torch.Tensor:
        return self._network(self._features)[:, 0]

    def _clipped(self, outputs: torch.Tensor) -> np.ndarray:
        return outputs.detach().clamp(0.0, self._options.radius).numpy()

    @override
    def step(self, source: Source, problem: Problem) -> None:
        o, point = self._options, source.batch().at(self.z)
        gradient = point.gradient(1.0, self._multipliers)
        self.z = problem.project(self.z - o.learning_rate * self._direction.of(gradient))
        if not self._multipliers.size:
            return
        with torch.enable_grad():
            self._optimizer.zero_grad()
            outputs, values = self._outputs(), torch.from_numpy(point.constraints)
            # an output that is clipped moves only back: all those that hold would pull the others down with them
            is_free = torch.where(values > 0, outputs < o.radius, outputs > 0)
            (outputs @ (values * is_free)).backward()
            self._optimizer.step()
        self._multipliers = self._clipped(self._outputs())


def _features(problem: Problem) -> np.ndarray:
    """Features of every component, scaled; ndarray of shape (n_components, n_row_features)."""
    features, rows = problem.model.row_features(problem.data), []
    for term in problem.constraints:
        scores = torch.zeros(problem.data.n_samples, dtype=torch.float64, requires_grad=True)
        with torch.enable_grad():
            values = cast(FullBatch, term).values(scores, torch.from_numpy(term.fair_aux()))
            slopes = [torch.autograd.grad(value, scores, retain_graph=True)[0] for value in values]
        rows += [np.asarray(features.T @ slope.numpy()) for slope in slopes]
    table = np.stack(rows) if rows else np.empty((0, features.shape[1]))
    scale = np.sqrt((table**2).mean(axis=0)) if rows else np.ones(features.shape[1])
    return table / np.where(scale > 0, scale, 1.0)
