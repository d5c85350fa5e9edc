"""Adam on a Lagrangian with exact multiplier updates, and a last layer that keeps the bound."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.models import LastLayer, LinearModel, ParametricModel
from fairconstrained.objectives import BoundLoss, Loss
from fairconstrained.points import largest_violation
from fairconstrained.problem import FullBatchView, Problem, Start
from fairconstrained.solvers._augmented.warm_start import start_after
from fairconstrained.solvers._base import Callback, SolverResult, Status, joined_history
from fairconstrained.solvers._options import Count, NonNegative, Positive, Share
from fairconstrained.solvers._rescaling import best_rescaled
from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.solvers.gradient_descent import AdamDirection
from fairconstrained.solvers.loop import IterativeSolver
from fairconstrained.solvers.stochastic import Method, Source, StochasticSolver

__all__ = ["AdamLagrangian"]

#: Newton steps to fairness.
_NEWTON = 20
#: Rows of the sample for the multipliers: for every group, and at most.
_GROUP_ROWS, _UPDATE_ROWS = 1250, 10_000
#: Epochs, and the steps that they make up at least.
_EPOCHS, _STEPS = 30, 500


@dataclass(frozen=True)
class AdamLagrangian(StochasticSolver):
    r"""The default for most networks: Adam on mini-batches first, and then the last layer with the exact metric.

    1. Adam on mini-batches of :math:`f(x) + \sum_j w_j c_j(x)`. The weights come from the constraints' values c on
       *all* rows (or a sample of them), which are computed every few steps:
       :math:`\lambda \leftarrow \max(\lambda + \eta c, 0)` and :math:`w = \max(\lambda + \rho c, 0)`. A value on a
       mini-batch would be noisy, and undefined for a small group without rows in it. The learning rate decreases
       linearly to zero. While a constraint has a weight, ``error_weight`` adds a bounded loss: the constraints may
       leave it open how a group's mean loss gets as large as that of another, and many wrong decisions are a poor way.
    2. The last layer of the network is trained again on all rows, with the outputs of the other layers as features, by
       `AugmentedLagrangian`: its scores are linear, and its iterates are judged by the exact metric. Models without
       such a layer are trained further as a whole.
    3. If that ends outside ``kappa``, Newton steps to the constraints follow. If they fail, or if this gives a better
       model, the scores are those of the best multiple and shift within ``kappa``. Between groups there is one, because
       with the factor zero all scores are equal. Where none is, as under a low bound on the loss of every group, the
       result is that of the second part.

    The options of every `StochasticSolver`, such as ``select`` and ``max_time``, apply to the first part. After an
    interruption the other two parts still run; another one ends the second part, if ``keep_on_interrupt`` is set.

    Parameters
    ----------
    max_epochs : int or None, default=None
        Epochs of the first part. None is 30, or as many as make up 500 steps.
    learning_rate : float, default=0.005
        Learning rate of Adam at the beginning.
    decay : bool, default=True
        Whether the learning rate decreases.
    dual_rate, penalty : float, default=2.0 and 5.0
        :math:`\eta` and :math:`\rho`, in units of the objective per unit of a constraint, squared.
    update_steps : int, default=10
        Steps between two computations of the values on all rows; there is also one at the beginning of every epoch.
        With fixed weights the Lagrangian of a network is not bounded from below: the loss of a group with a negative
        weight would grow without limit.
    update_rows : int or None, default=None
        Number of rows of the sample for these computations, if there are more; every epoch has another sample. None is
        1,250 for every group, and 10,000 at most.
    error_weight : float, default=0.0
        Weight, in the gradients of the first part, of the mean of :math:`1 / (1 + e^{y s})`, a smooth number of wrong
        signs of the scores s. It counts where the objective is a mean loss and y is -1 or +1.
    polish : bool, default=True
        False ends after the first part, as `StochasticSolver` does.
    tol : float, default=5e-4
        Tolerance of the second part, see `AugmentedLagrangian`.

    References
    ----------
    Kingma and Ba, Adam, ICLR 2015; Nocedal, Wright (2006), Numerical Optimization, Algorithm 17.4.
    """

    name: ClassVar[str] = "adam_lagrangian"
    restores: ClassVar[bool] = True
    keeps_metric: ClassVar[bool] = True
    projects: ClassVar[bool] = False  # in the metric of its steps the nearest point of a domain is another one

    max_epochs: Count | None = None  # type: ignore[assignment]  # the others have a number
    batch_size: Count = 256
    balance: Share = 0.5
    learning_rate: Positive = 0.005
    decay: bool = True
    dual_rate: NonNegative = 2.0
    penalty: NonNegative = 5.0
    update_steps: Count = 10
    update_rows: Count | None = None
    error_weight: NonNegative = 0.0
    polish: bool = True
    tol: NonNegative = 5e-4

    @override
    def n_epochs(self, problem: Problem) -> int:
        return self.max_epochs or max(_EPOCHS, -(-_STEPS // self.n_steps(problem)))

    @override
    def for_parts(self, problem: Problem) -> Self:
        """Implement `Solver.for_parts`, with as many epochs: rows that are seen as often are memorised as well."""
        return replace(self, max_epochs=self.n_epochs(problem))

    @override
    def first_method(self, problem: Problem, start: Start | None, rng: np.random.Generator) -> Method:
        return super().first_method(problem, problem.unless_constant(start), rng)

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _AdamLagrangian(self, z, problem, int(rng.integers(2**31)))

    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        """Implement `Solver.solve`; the callback gets the records of the first part."""
        result = super().solve(problem, start, random_state, callback)
        if not self.polish or not problem.constraints:
            return result
        exact = AugmentedLagrangian(
            coarse_rows=problem.data.n_samples,  # all rows at once: data of a head have no groups to take a sample by
            tol=self.tol,
            verbose=self.verbose,
            keep_on_interrupt=self.keep_on_interrupt,
        )
        layer = problem.parametric.last_layer(result.model_state, problem.data)
        if layer is None:
            polished = exact.solve(problem, _start(problem, result, result.model_state), random_state)
            params = (
                polished.model_state
                if _is_fair(problem, polished.model_state)
                else _restored(problem, polished.model_state)
            )
        else:
            head = _head(problem, result.model_state, layer)
            polished = exact.solve(head, _start(head, result, result.model_state[layer.entries]), random_state)
            params = _with_layer(result.model_state, layer, polished.model_state)
            candidates = tuple(_with_layer(result.model_state, layer, found) for found in polished.candidates)
            polished = replace(polished, candidates=candidates)
            if not _is_fair(problem, params):  # or fair but for the last digit, which another sum rounds differently
                # nothing is within the bounds when multiples of the first are sought, so that all of them count
                ends = [polished.model_state, _restored(head, polished.model_state)]
                made = _with_layer(params, layer, best_rescaled(head, ends))
                if not _is_fair(problem, made):  # scores so large that rounding decides
                    made[layer.entries] = 0.0
                if _is_fair(problem, made):  # a low loss of every group, say, is not that of a score of zero
                    params = made
                    polished = replace(polished, reach=float(np.ptp(head.scores(polished.model_state))))
        return self._joined(problem, result, polished, params)

    def _joined(
        self, problem: Problem, trained: SolverResult, polished: SolverResult, params: np.ndarray
    ) -> SolverResult:
        """The result of both parts; ``n_iter`` counts epochs, and the records of the second part begin again at 0."""
        point = FullBatchView(problem).at(problem.start(params))
        feasible = _is_fair(problem, params)
        has_diverged = trained.has_diverged or polished.has_diverged
        within = Status.MAX_ITER if has_diverged else Status.COMPLETED
        ended_early = polished.stopped_by or polished.has_diverged
        assert trained.start is not None  # every iterative run leaves one
        return replace(
            polished,
            model_state=params,
            status=within if feasible else Status.INFEASIBLE,
            n_iter=trained.n_iter,
            n_evaluations=trained.n_evaluations + polished.n_evaluations,
            objective=point.objective,
            surrogate_violation=largest_violation(point.constraints),
            constraint_values={c.name: c.metric(point.scores) for c in problem.constraints},
            history=joined_history(trained.history, polished.history, n_evaluations=trained.n_evaluations),
            start=replace(trained.start, model_state=params),
            multipliers=None if has_diverged else polished.multipliers,
            message=trained.message or (polished.message if ended_early else ""),
            stopped_by=trained.stopped_by or polished.stopped_by,
            has_diverged=has_diverged,
        )


class _AdamLagrangian(Method):
    _multipliers: np.ndarray
    _view: FullBatchView | None = None

    def __init__(self, options: AdamLagrangian, z: np.ndarray, problem: Problem, seed: int) -> None:
        self.z, self._direction, self._step, self._seed = z, AdamDirection(z.size), 0, seed
        self._multipliers = self._weights = np.zeros(len(problem.component_names))
        self.go_on(options, problem)

    @override
    def go_on(self, solver: IterativeSolver, problem: Problem) -> None:
        self._options = solver
        self._planned = solver.n_steps(problem) * solver.n_epochs(problem) if self._options.decay else np.inf

    def begin_epoch(self) -> None:
        """Implement `Method.begin_epoch`; the rows that stand for all are not part of the state."""
        self._view = None

    @override
    def step(self, source: Source, problem: Problem) -> None:
        o = self._options
        if self._weights.size and (self._step % o.update_steps == 0 or self._view is None):
            values = self._sample(problem).at(self.z).constraints
            moves = _shared_moves(values, self._multipliers)
            self._multipliers = np.maximum(self._multipliers + o.dual_rate * moves, 0.0)
            self._weights = np.maximum(self._multipliers + o.penalty * moves, 0.0)
        rate = o.learning_rate * max(1 - self._step / self._planned, 0.01)  # more epochs than planned go on slowly
        self._step += 1
        batch, weights = source.batch(), self._weights
        if not weights.any():  # the objective alone takes a part of the time
            batch, weights = _changed(batch, batch.problem.without_constraints()), weights[:0]
        elif o.error_weight:
            batch = _with_errors(batch, o.error_weight)
        gradient = batch.at(self.z).gradient(1.0, weights)
        self.z = problem.project(self.z - rate * self._direction.of(gradient))

    def _sample(self, problem: Problem) -> FullBatchView:
        """All rows, or those that stand for them in this epoch: others in the next, so that errors do not add up."""
        if self._view is None:
            data = problem.data
            size = self._options.update_rows or min(_GROUP_ROWS * data.n_groups, _UPDATE_ROWS)
            few, rng = data.n_samples <= size, np.random.default_rng((self._seed, self._step))
            self._view = FullBatchView(problem if few else problem.on(data.thinned(rng, size)))
        return self._view

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_view": None}


@dataclass(frozen=True)
class _LossAndErrors(Loss):
    """A loss with so many times a smooth number of errors besides."""

    loss: Loss
    weight: float

    @override
    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        return self.loss.of(scores, targets) + self.weight * torch.sigmoid(-targets * scores)

    @override
    def slope(self, scores: Tensor, targets: Tensor) -> Tensor:
        error = torch.sigmoid(-targets * scores)
        # in few operations: on a mini-batch, each takes longer than its arithmetic
        return torch.addcmul(self.loss.slope(scores, targets), targets, error - error.square(), value=-self.weight)

    @override
    def split(self, scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError  # it is for gradients alone


def _with_errors(batch: FullBatchView, weight: float) -> FullBatchView:
    """A mini-batch whose objective counts errors besides, if it is a mean loss."""
    problem, objective = batch.problem, batch.problem.objective
    if type(objective) is not BoundLoss:
        return batch
    loss = _LossAndErrors(objective.loss, weight)
    return _changed(batch, replace(problem, objective=BoundLoss(loss, objective.data)))


def _changed(batch: FullBatchView, problem: Problem) -> FullBatchView:
    """A mini-batch with another problem on its rows."""
    changed = FullBatchView(problem)
    changed.anchor = batch.anchor
    return changed


def _shared_moves(values: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """The values, those above zero and those below with factors of their own that make all together move like one.

    What a unit of ``kappa`` is worth is the sum of the multipliers, however many constraints say about the same, such
    as those of overlapping groups. If each moved by its value, their sum would go far beyond what is needed.
    """
    above, below = np.maximum(values, 0.0), np.minimum(values, 0.0)
    total, known = above.sum(), multipliers.sum()
    if total > 0:
        above *= above.max() / total
    return above + below * multipliers / known if known > 0 else above


def _start(problem: Problem, trained: SolverResult, params: np.ndarray) -> Start:
    """``params`` with the multipliers of training: with them the second part is a matter of a few iterations."""
    known = trained.multipliers or {}
    return start_after(problem, params, np.array([known.get(name, 0.0) for name in problem.component_names]))


@dataclass(frozen=True)
class _Head(LinearModel):
    """The last layer of another model, whose other parameters stay as they are and whose penalty it has."""

    whole: ParametricModel = field(kw_only=True)
    #: Parameters of ``whole``.
    params: np.ndarray = field(kw_only=True)  # of shape (n_whole,)
    #: Indices of the last layer's parameters in ``params``.
    entries: np.ndarray = field(kw_only=True)  # of shape (n_params,)

    @override
    def penalty(self, params: np.ndarray) -> tuple[float, np.ndarray]:
        joined = self.params.copy()
        joined[self.entries] = params
        value, gradient = self.whole.penalty(joined)
        return value, gradient[self.entries]


def _head(problem: Problem, params: np.ndarray, layer: LastLayer) -> Problem:
    """The problem of the last layer alone, where the other layers are those of ``params``."""
    has_intercept = layer.intercept.size > 0
    model = _Head(
        layer.coef.size, fit_intercept=has_intercept, whole=problem.parametric, params=params, entries=layer.entries
    )
    # the same coefficients for all groups, so that the model need not know of thousands of them
    n_samples = problem.data.n_samples
    features, one = np.ascontiguousarray(layer.features), np.zeros(n_samples, dtype=int)
    data = replace(problem.data, X=features, labels=(None,), codes=one)
    return replace(problem, model=model, data=data)


def _with_layer(params: np.ndarray, layer: LastLayer, found: np.ndarray) -> np.ndarray:
    """``params`` with those of the last layer replaced."""
    changed = params.copy()
    changed[layer.entries] = found
    return changed


def _is_fair(problem: Problem, params: np.ndarray, share: float = 1.0) -> bool:
    """Whether all constraints hold up to a share of their granularity."""
    return problem.holds(problem.scores(params), share)


def _restored(head: Problem, params: np.ndarray) -> np.ndarray:
    """Nearby parameters that are fair, by Newton steps of least length; ``params`` themselves if there are none."""
    view, found = FullBatchView(head), head.start(params)
    for _ in range(_NEWTON):
        point = view.at(found)
        violated = np.flatnonzero(point.constraints > 0)
        if not violated.size:
            break
        rows = np.eye(point.constraints.size)[violated]
        jacobian = np.stack([point.gradient(0.0, row) for row in rows])
        found = found - np.linalg.lstsq(jacobian, point.constraints[violated], rcond=None)[0]
    return found[: head.n_params] if _is_fair(head, found[: head.n_params], share=0.5) else params
