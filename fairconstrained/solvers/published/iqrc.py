"""The inexact quadratically regularized constrained method: the level-set method for modules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

import numpy as np

from fairconstrained.problem import FullBatchView, Problem, Start
from fairconstrained.solvers._base import (
    Callback,
    Recorder,
    Solver,
    SolverResult,
    named_multipliers,
    surrogate_result,
)
from fairconstrained.solvers._options import AtLeastOne, Count, NonNegative, NonNegativeInt, Positive
from fairconstrained.solvers.published.level_set import (
    Choice,
    ChooseWithin,
    Levels,
    feasible_point,
    infeasible_start,
    start_saddle,
)
from fairconstrained.views import Exact, FullBatch, SingleRows

__all__ = ["IQRC"]


@dataclass(frozen=True)
class IQRC(Solver):
    r"""The inexact quadratically regularized constrained method (Algorithm 3): level sets for modules.

    The losses of pairs are weakly convex in the parameters of a network. Outer iteration s makes them convex
    by a proximal term in the objective and in every constraint (eq. 32),

    .. math::
        \tilde x_{s+1} \approx \arg\min_x \; f_0(x) + \tfrac{\hat\rho}{2} \|x - \tilde x_s\|^2 \quad \text{s.t.} \quad
        f_j(x) + \tfrac{\hat\rho}{2} \|x - \tilde x_s\|^2 \le 0 \;\; \forall j,

    and solves this by the level-set method, see `LevelSet`, whose oracle then has the same term (eqs. 27 and 33); x are
    the parameters and the auxiliary variables a and b. The oracle starts at :math:`\tilde x_s` and not at zero, where a
    network has no gradient. As there, all iterates are checked on all data, and those that are reported are feasible
    for the *surrogate* that ``kappa`` bounds.

    The paper returns an iterate drawn at random from all, which its theorem is about; here the best one is returned.
    Its reference module has one hidden layer of 10 sigmoid units,
    ``fairconstrained.models.mlp(hidden_layer_sizes=(10,), activation="logistic")``.

    Parameters
    ----------
    max_iter : int, default=10
        Outer iterations (S).
    level_iter : int, default=5
        Levels of every subproblem; fewer if it is solved.
    tol : float, default=5e-4
        Of the subproblems, see `LevelSet`.
    inner_iter : int, default=1000
        Steps of stochastic mirror descent at every level (T), of which there may be more.
    max_doublings : int, default=3
        How often T is doubled within a subproblem. When that did not help, the method ends.
    proximity : float, default=1e-5
        :math:`\hat\rho`, the value of the paper. In theory it exceeds the modulus of weak convexity.
    step, batch_size, theta, restart, choose_within
        See `LevelSet`.
    radius : float, default=100.0
        Of the ball in which the parameters, a and b are kept; at least twice the length of the first ones.
    verbose : int, default=0
        Positive: print a line for every level.

    References
    ----------
    Yao, Lin, Yang, arXiv:2212.12603, section 5, Algorithm 3, eqs. 27, 32, 33 and section E.3; Ma, Lin, Yang,
    arXiv:1908.01871.
    """

    name: ClassVar[str] = "iqrc"
    requires: ClassVar[tuple[type, ...]] = (SingleRows, FullBatch, Exact)
    projects: ClassVar[bool] = False

    max_iter: Count = 10
    level_iter: Count = 5
    tol: NonNegative = 5e-4
    inner_iter: Count = 1000
    max_doublings: NonNegativeInt = 3
    proximity: NonNegative = 1e-5
    step: Positive = 0.3
    batch_size: Count = 100
    theta: AtLeastOne = 1.0
    radius: Positive = 100.0
    restart: bool = False
    choose_within: ChooseWithin = "surrogate"

    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        """Implement `Solver.solve`.

        An evaluation is a pass over as many rows as the data have, in mini-batches or at once.
        """
        recorder, view = Recorder(callback, self.verbose), FullBatchView(problem)
        params = feasible_point(view, start, random_state)
        if params is None:
            return infeasible_start(problem, recorder)
        oracle = start_saddle(
            problem, params, random_state, view, self.step, self.batch_size, self.radius, self.proximity
        )
        levels = Levels(oracle, view, self.tol, self.theta, self.inner_iter, self.max_doublings, self.restart)
        best = found = levels.first(params)
        choice, outer = Choice(view, self.choose_within, found), 0
        for outer in range(1, self.max_iter + 1):
            anchor = best
            oracle.anchor = anchor.x
            for found in islice(levels.steps(anchor), self.level_iter):
                best = min(best, found, key=lambda step: step.objective)
                choice.see(found)
                recorder.add(found.params, n_iter=outer, n_evaluations=levels.n_evaluations, **found.record())
            if best is anchor:  # no feasible point below its objective was found: nearly stationary, or out of steps
                break
        result = surrogate_result(problem, choice.best.params, outer, levels.n_evaluations, recorder)
        return replace(result, multipliers=named_multipliers(problem.component_names, found.multipliers))
