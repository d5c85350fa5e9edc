"""The inexact quadratically regularized constrained method: the level-set method for modules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from fairconstrained.problem import Point, Problem
from fairconstrained.solvers._base import SolverResult, Status
from fairconstrained.solvers._options import Count, NonNegative, NonNegativeInt, Positive
from fairconstrained.solvers.method import Method
from fairconstrained.solvers.published.level_set import LevelMethod, LevelSet
from fairconstrained.solvers.source import Source
from fairconstrained.views import Exact, FullBatch, SingleRows

__all__ = ["IQRC"]


@dataclass(frozen=True)
class IQRC(LevelSet):
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
    max_doublings : int, default=3
        Number of times that T may be doubled within a subproblem. If that does not help, the method ends.
    proximity : float, default=1e-5
        :math:`\hat\rho`, the value of the paper. In theory it exceeds the modulus of weak convexity.
    radius : float, default=100.0
        Radius of the ball in which the parameters, a and b are kept; at least twice the norm of the first parameters.

    References
    ----------
    Yao, Lin, Yang, arXiv:2212.12603, section 5, Algorithm 3, eqs. 27, 32, 33 and section E.3; Ma, Lin, Yang,
    arXiv:1908.01871.
    """

    name: ClassVar[str] = "iqrc"
    requires: ClassVar[tuple[type, ...]] = (SingleRows, FullBatch, Exact)

    max_iter: Count = 10
    level_iter: Count = 5
    max_doublings: NonNegativeInt = 3
    proximity: NonNegative = 1e-5
    radius: Positive = 100.0

    @override
    def n_epochs(self, problem: Problem) -> int:
        return self.max_iter * self.level_iter

    @override
    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _Regularised(self, z)


class _Regularised(LevelMethod):
    """Levels of one subproblem after the other, each around the best point so far."""

    _options: IQRC

    def __init__(self, options: IQRC, z: np.ndarray) -> None:
        super().__init__(options, z, options.proximity)
        self._outer, self._n_levels = 1, 0

    @override
    def begin(self, source: Source, problem: Problem) -> None:
        super().begin(source, problem)
        if self._oracle is not None:
            self._nearest = self._anchor = self._found

    @override
    def step(self, source: Source, problem: Problem) -> None:
        assert self._oracle is not None  # it is finished without
        if self._is_solved:
            self._outer, self._n_levels, self._anchor = self._outer + 1, 0, self._nearest
            self._begin_at(self._anchor)
        self._oracle.anchor = self._anchor.x
        super().step(source, problem)
        self._n_levels += 1
        self._nearest = min(self._nearest, self._found, key=lambda step: step.objective)

    @property
    def _is_solved(self) -> bool:
        """Whether the subproblem is over."""
        return super().finished or self._n_levels == self._options.level_iter

    @property
    @override
    def finished(self) -> bool:
        """Also where no feasible point below the anchor's objective was found: nearly stationary, or out of steps."""
        is_last = self._outer == self._options.max_iter
        return self._oracle is None or (self._is_solved and (is_last or self._nearest is self._anchor))

    @override
    def numbers(self, point: Point) -> dict[str, Any]:
        return {**super().numbers(point), "n_iter": self._outer}

    @override
    def conclude(self, result: SolverResult, problem: Problem) -> SolverResult:
        status = Status.INFEASIBLE if self._oracle is None else result.status
        return replace(result, status=status, n_iter=self._outer)
