"""A primal-dual interior point method for `RowProgram`: Newton steps on the conditions of optimality."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairconstrained.solvers._row_program import Factor, RowProgram, Values

__all__ = ["Iterate", "followed", "interior"]

#: Share of the way to the boundary that a step goes.
_TO_BOUNDARY = 0.99
#: Halvings of a step that makes the residuals larger than the gap and than this multiple of those of the last few.
_HALVINGS, _WORSE, _REMEMBERED = 8, 1.1, 4
#: Consecutive short steps after which the iterates have stalled, and what is short.
_STALLED, _SHORT = 6, 1e-3


class Iterate(NamedTuple):
    """Variables of the method."""

    #: The program at the parameters.
    values: Values
    #: The level t, 0 where it is no variable.
    level: float
    #: slacks and multipliers: both positive.
    slacks: np.ndarray  # of shape (n_means,)
    multipliers: np.ndarray  # of shape (n_means,)

    @property
    def complementarity(self) -> float:
        """Sum of the products of slacks and multipliers: the duality gap, as far as the residuals are zero."""
        return float(self.slacks @ self.multipliers)

    @property
    def worst(self) -> float:
        """The largest of the means less their bounds."""
        return float(self.values.means.max())


@dataclass(eq=False)
class _System:
    """The Newton system at an iterate; its matrix is factorised once."""

    program: RowProgram
    at: Iterate

    def __post_init__(self) -> None:
        program, at = self.program, self.at
        self.jacobian = at.values.jacobian()
        self._of_parameters = Factor(at.values.hessian(program.objective, at.multipliers))
        self.of_parameters = at.values.gradient(program.objective, at.multipliers)
        self.of_level = 1 - at.multipliers.sum() if program.has_level else 0.0
        self.of_means = at.values.means - at.level + at.slacks
        solved = self._of_parameters.solve(np.column_stack([self.of_parameters, self.jacobian.T]))
        self._newton, self._directions = solved[:, 0], solved[:, 1:]
        self._factor = Factor(self.jacobian @ self._directions + np.diag(at.slacks / at.multipliers))

    def step(self, of_products: np.ndarray) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
        """Steps of parameters, level, slacks and multipliers for a residual of the products of slacks and multipliers.

        With the residuals r: ``H dw + J' dm = -r_w``, ``J dw - dt + ds = -r_c``, ``sum(dm) = r_t`` and
        ``m ds + s dm = -r_p``.
        """
        at = self.at
        right = self.of_means - of_products / at.multipliers - self.jacobian @ self._newton
        moved, d_level = self._factor.solve(right), 0.0
        if self.program.has_level:
            ones = self._factor.solve(np.ones_like(right))
            d_level = (moved.sum() - self.of_level) / ones.sum()
            moved = moved - d_level * ones
        d_slacks = -(of_products + at.slacks * moved) / at.multipliers
        return -self._newton - self._directions @ moved, float(d_level), d_slacks, moved

    def merit(self, at: Iterate) -> float:
        """Size of the residuals at an iterate in units of the objective, by the curvature at this one."""
        program = self.program
        of_parameters = at.values.gradient(program.objective, at.multipliers)
        of_level = abs(1 - at.multipliers.sum()) * abs(at.level) if program.has_level else 0.0
        of_means = float(at.multipliers @ np.abs(at.values.means - at.level + at.slacks))
        return float(of_parameters @ self._of_parameters.solve(of_parameters)) + of_means + of_level


def interior(program: RowProgram, values: Values, multipliers: np.ndarray | None = None) -> Iterate:
    """Iterate where another program has these values, with slacks of about the size of the means' spread."""
    values = program.at(values.params, values.duals)
    spread = max(float(np.ptp(values.means)), 1e-2 * float(np.abs(values.means).max()), 1e-12)
    level = float(values.means.max()) + 0.1 * spread if program.has_level else 0.0
    slacks = np.maximum(level - values.means, 0.0 if program.has_level else 1e-1 * spread)
    if not program.has_level and (values.means < 0).all():
        slacks = -values.means
    if multipliers is None:
        multipliers = np.full(program.n_means, 1 / program.n_means)
    return Iterate(values, level, slacks, np.maximum(multipliers, 1e-3 / program.n_means))


def followed(
    program: RowProgram,
    start: Iterate,
    tol: float,
    max_iter: int,
    finished: Callable[[Iterate], bool],
    record: Callable[[Iterate], None],
) -> tuple[Iterate, int]:
    """Follow the central path; returns the last iterate and the number of evaluations.

    It ends with a duality gap of the fraction ``tol`` of the objective, or where ``finished`` tells that an iterate is
    good enough already. ``record`` is called with every iterate.
    """
    at, n_evaluations, n_short = start, 1, 0
    recent: list[float] = []
    for _ in range(max_iter):
        system = _System(program, at)
        merit, size = system.merit(at), _size(program, at)
        recent = [*recent, merit][-_REMEMBERED:]
        is_optimal = max(merit, at.complementarity) <= tol * size and (program.has_level or at.worst <= 0)
        if is_optimal or finished(at):
            break
        mean = at.complementarity / program.n_means
        _, _, d_slacks, d_multipliers = system.step(at.slacks * at.multipliers)
        ahead = _length(at.slacks, d_slacks), _length(at.multipliers, d_multipliers)
        then = float((at.slacks + ahead[0] * d_slacks) @ (at.multipliers + ahead[1] * d_multipliers)) / program.n_means
        # Mehrotra's rule: the better the step without centring, the less of it
        wanted = max(min(then / mean, 1.0) ** 3 * mean, 1e-4 * mean, 1e-2 * tol * size / program.n_means)
        products = at.slacks * at.multipliers + ahead[0] * ahead[1] * d_slacks * d_multipliers - wanted
        at, length, taken = _moved(system, products, max(_WORSE * max(recent), at.complementarity))
        n_evaluations += taken
        record(at)
        n_short = n_short + 1 if length < _SHORT else 0
        if n_short == _STALLED:
            break
    return at, n_evaluations


def _size(program: RowProgram, at: Iterate) -> float:
    """Size of the objective, which the gap is compared with."""
    value = program.objective * at.values.mean + at.values.penalty
    return max(abs(value + at.level), 1e-12) if not program.has_level else max(abs(at.values.penalty + at.level), 1e-12)


def _length(values: np.ndarray, steps: np.ndarray) -> float:
    """Longest step, at most 1, that leaves the values positive."""
    falls = steps < 0
    return float(min(1.0, _TO_BOUNDARY * np.min(-values[falls] / steps[falls], initial=np.inf)))


def _moved(system: _System, products: np.ndarray, most: float) -> tuple[Iterate, float, int]:
    """The next iterate, by a step so short that the residuals do not grow by much."""
    at = system.at
    d_params, d_level, d_slacks, d_multipliers = system.step(products)
    length = min(_length(at.slacks, d_slacks), _length(at.multipliers, d_multipliers))
    n_tried = 0
    while True:
        n_tried += 1
        moved = Iterate(
            at.values.moved(d_params, length),
            at.level + length * d_level,
            at.slacks + length * d_slacks,
            at.multipliers + length * d_multipliers,
        )
        if system.merit(moved) <= most or n_tried > _HALVINGS:
            return moved, length, n_tried
        length /= 2
