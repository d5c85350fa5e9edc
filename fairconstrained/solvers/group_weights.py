"""Weights of groups in turn with fits under these weights, for the least largest mean loss of any model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np
from typing_extensions import override

from fairconstrained.objectives import BoundLargestMean
from fairconstrained.problem import FullBatchView, Problem, Start
from fairconstrained.solvers._base import Callback, Recorder, Solver, SolverResult, exact_result, named_multipliers
from fairconstrained.solvers._options import Count, Positive
from fairconstrained.solvers.gradient_descent import Adam
from fairconstrained.views import Exact, FullBatch, Stochastic

__all__ = ["GroupWeights"]

#: Steps that a round has where there are rows enough, and rows that a mini-batch has at least.
_STEPS, _FEWEST_ROWS = 64, 16


@dataclass(frozen=True)
class GroupWeights(Solver):
    r"""Multiplicative weights of groups, for :math:`\min_\theta \max_g L_g(\theta)` with any model.

    In every round the model is trained, from where it stands, on :math:`\sum_g p_g L_g(\theta)`; then the weights of
    groups with large losses grow,

    .. math:: p_g \propto p_g \exp \Bigl( \frac{\eta}{\sqrt{t}} \frac{L_g - \min_h L_h}{\max_h L_h - \min_h L_h} \Bigr)

    in round t. The result is the model of the round whose exact largest mean was least. Rounds are epochs of Adam on
    mini-batches.

    Takes the largest of several mean losses as the objective (``kappa="minimax"``), without other bounds.

    Parameters
    ----------
    max_iter : int, default=30
        Rounds.
    round_epochs : int, default=2
        Epochs of Adam in a round.
    batch_size : int, default=256
        Approximate number of rows of a mini-batch. It is smaller where a round would have fewer than 64 steps, but not
        below 16.
    learning_rate : float, default=0.01
        Learning rate of Adam in the first round; it falls linearly to zero.
    weight_rate : float, default=1.0
        The factor :math:`\eta`.

    References
    ----------
    Sagawa, Koh, Hashimoto, Liang, Distributionally robust neural networks for group shifts, ICLR 2020, Algorithm 1,
    with rounds in place of single steps.
    """

    name: ClassVar[str] = "group_weights"
    requires: ClassVar[tuple[type, ...]] = (FullBatch, Stochastic, Exact)

    max_iter: Count = 30
    round_epochs: Count = 2
    batch_size: Count = 256
    learning_rate: Positive = 0.01
    weight_rate: Positive = 1.0

    @classmethod
    @override
    def obstacle(cls, problem: Problem) -> str:
        if problem.objective.largest_of is None:
            return "the largest of several mean losses as the objective (kappa='minimax')"
        return "no bounds beside the largest mean loss" if problem.component_names else ""

    @override
    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        recorder = Recorder(callback, self.verbose)
        objective, free = cast(BoundLargestMean, problem.objective), problem.without_constraints()
        names, view = objective.means.component_names, FullBatchView(free)
        params = problem.parametric.init(random_state) if start is None else start.model_state
        enough = max(self.round_epochs * problem.data.n_samples // _STEPS, _FEWEST_ROWS)
        size = min(self.batch_size, enough)
        weights = np.full(len(names), 1 / len(names))
        best, least, best_weights, n_evaluations = params, np.inf, weights, 0
        for round_ in range(1, self.max_iter + 1):
            part = replace(free, objective=objective.weighted(weights))
            rate = self.learning_rate * (1 - (round_ - 1) / self.max_iter)
            inner = Adam(max_epochs=self.round_epochs, batch_size=size, learning_rate=rate)
            found = inner.solve(part, Start(params), random_state)
            params, n_evaluations = found.model_state, n_evaluations + found.n_evaluations + 1
            point = view.at(params)
            if point.objective < least:
                best, least, best_weights = params, point.objective, weights
            means = objective.means_at(point.scores)
            record = {"n_iter": round_, "n_evaluations": n_evaluations}
            recorder.add(params, **record, objective=point.objective, weights=weights)
            if recorder.stop is not None:
                best = best if recorder.stop.params is None else recorder.stop.params
                break
            spread = max(float(np.ptp(means)), np.finfo(float).tiny)
            weights = weights * np.exp(self.weight_rate / np.sqrt(round_) * (means - means.max()) / spread)
            weights = weights / weights.sum()
        multipliers = named_multipliers(names, best_weights)
        return exact_result(
            problem, best, n_evaluations, recorder, n_iter=len(recorder.records), multipliers=multipliers
        )
