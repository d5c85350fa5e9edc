"""The Moreau envelope around any method on mini-batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from fairconstrained.points import Anchor
from fairconstrained.problem import Point, Problem
from fairconstrained.solvers.method import Method
from fairconstrained.solvers.source import Source
from fairconstrained.terms import Measured

if TYPE_CHECKING:
    from fairconstrained.solvers.loop import IterativeSolver
    from fairconstrained.solvers.stochastic import StochasticSolver

__all__ = ["MoreauEnvelope"]


class MoreauEnvelope(Method):
    r"""Another method, on the objective with a term that keeps its iterate near a centre, which follows slowly.

    In place of f the method sees :math:`f(x) + \tfrac{\mu}{2} \|x - z\|^2` in all its mini-batches; after its step from
    x, :math:`z \leftarrow z + \beta (x - z)`. So it minimises the Moreau envelope of what it minimises otherwise,
    :math:`\min_x f(x) + \tfrac{\mu}{2} \|x - z\|^2`, by steps along its gradient :math:`\mu (z - x)` in z, and has the
    same solutions.

    Parameters
    ----------
    method : Method
        Method at its start, where the centre begins.
    options : StochasticSolver
        Has ``smoothing``, :math:`\mu`, and ``averaging``, :math:`\beta`.

    Attributes
    ----------
    method : Method
    center : ndarray of shape (n_variables,)
        z, never changed in place.

    References
    ----------
    Huang, Zhang, Alacaoglu, arXiv:2504.07607 (for the augmented Lagrangian); Bosák, Kliachkin, Lepšová, Bareilles,
    Mareček, Stochastic Penalty-Barrier Methods for Constrained Machine Learning, arXiv:2605.18618 (for others).
    """

    def __init__(self, method: Method, options: StochasticSolver) -> None:
        self.method, self._options, self.center = method, options, method.z

    @property
    def z(self) -> np.ndarray:
        """Variables of the method."""
        return self.method.z

    @z.setter
    def z(self, value: np.ndarray) -> None:
        self.method.z = value

    @override
    def step(self, source: Source, problem: Problem) -> None:
        o, x = self._options, self.method.z
        source.anchor = Anchor(self.center, o.smoothing)
        self.method.step(source, problem)
        self.center = self.center + o.averaging * (x - self.center)

    @override
    def go_on(self, solver: IterativeSolver, problem: Problem) -> None:
        super().go_on(solver, problem)
        self.method.go_on(solver, problem)

    @override
    def begin_epoch(self) -> None:
        self.method.begin_epoch()

    @property
    @override
    def multipliers(self) -> np.ndarray | None:
        return self.method.multipliers

    @override
    def observe(self, point: Point, measured: Measured) -> None:
        self.method.observe(point, measured)

    @override
    def named_multipliers(self, names: Sequence[str]) -> dict[str, float] | None:
        return self.method.named_multipliers(names)

    @override
    def numbers(self, point: Point) -> dict[str, Any]:
        return self.method.numbers(point)

    @override
    def output(self) -> np.ndarray:
        return self.method.output()
