"""The parts of the augmented Lagrangian's state: multipliers and penalty, the surrogates' width, and when to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairconstrained.constraints import BoundConstraint
from fairconstrained.problem import Point, Problem

__all__ = ["FINAL_BLUR", "FIRST_BLUR", "Penalties", "Progress", "Surrogates"]

#: Blur of the surrogate in standard deviations of the scores: wide enough to see a fifth of the rows around a
#: threshold, and narrow enough that the margins have little left to correct.
FIRST_BLUR, FINAL_BLUR = 0.1, 0.02
#: Components per group for which the first penalty is meant: ten levels, from below and from above.
_COMPONENTS = 20
#: Largest penalty: above it, L-BFGS sees little but the constraints.
_MAX_PENALTY = 1000.0
#: Iterations without coming nearer to feasibility after which a run begins anew, and is given up the second time.
_STALLS_BEFORE_RESTART = 5
#: Iterations that promise a better optimum without reaching it, after which a run ends.
_PROMISES = 12
#: Rounding of sums of shares.
_ROUNDING = 1e-9
#: Share of the excess over the bounds by which an iterate has to come nearer to count.
_NEARER = 0.1


class Penalties:
    """The multipliers of all components, and the weight of the squares beside them.

    Parameters
    ----------
    problem : Problem
    penalty : float
        The first one, for up to 20 components per group.

    Attributes
    ----------
    multipliers : ndarray of shape (n_components,)
    penalty, first : float
        The present one, and the first.
    violation : float
        The largest component after the last update, at least 0.
    """

    def __init__(self, problem: Problem, penalty: float) -> None:
        n_components = len(problem.component_names)
        # More levels are more components for the same gap; together they should weigh no more than a few do.
        crowd = n_components / (_COMPONENTS * problem.data.n_groups)
        self.first = self.penalty = penalty / max(crowd, 1.0)
        self.multipliers, self.violation = np.zeros(n_components), np.inf

    def lagrangian(self, point: Point) -> tuple[float, np.ndarray]:
        """Value and gradient of the augmented Lagrangian."""
        multipliers, penalty = self.multipliers, self.penalty
        updated = np.maximum(multipliers + penalty * point.constraints, 0)
        value = point.objective + float(updated @ updated - multipliers @ multipliers) / (2 * penalty)
        return value, point.gradient(1.0, updated)

    def update(self, constraints: np.ndarray) -> None:
        """Move the multipliers, and double the penalty where the violation has not halved."""
        self.multipliers = np.maximum(self.multipliers + self.penalty * constraints, 0)
        violation = max(float(constraints.max(initial=0.0)), 0.0)
        if violation > self.violation / 2:
            self.penalty = min(2 * self.penalty, _MAX_PENALTY)
        self.violation = violation

    @property
    def is_largest(self) -> bool:
        """Whether the penalty grows no more."""
        return self.penalty >= _MAX_PENALTY

    def restart(self) -> None:
        """Forget the multipliers."""
        self.multipliers = np.zeros_like(self.multipliers)
        self.penalty, self.violation = self.first, np.inf


class Surrogates:
    """How closely the surrogates follow the metrics: their blur, and the margins that they keep from ``kappa``.

    Attributes
    ----------
    blur : float
        Width of the surrogates, in standard deviations of the scores.
    margins : ndarray of shape (n_constraints,)
        Amounts that are subtracted from ``kappa``; negative where the surrogate is stricter than the metric.
    """

    def __init__(self, constraints: tuple[BoundConstraint, ...]) -> None:
        self.blur, self._final = FIRST_BLUR, FINAL_BLUR
        #: Number by which the blur is divided after an iteration.
        self._narrowing = 2.0
        self.margins = np.zeros(len(constraints))
        self._kappas = np.array([c.kappa for c in constraints])
        self._scales = np.array([c.scale for c in constraints])
        granularity = np.array([c.granularity for c in constraints])
        # A finer surrogate than this sees no more than a few rows at a time, and no slope.
        self._finest = 3 * float((granularity * self._scales).max(initial=0.0))

    @property
    def is_narrowing(self) -> bool:
        """Whether the blur is still larger than planned."""
        return self.blur > self._final

    def start_narrow(self) -> None:
        """Begin with the final blur."""
        self.blur = self._final

    def narrow_in_two_steps(self) -> None:
        """Begin with the first blur, and reach the final one sooner."""
        self.blur, self._narrowing = FIRST_BLUR, (FIRST_BLUR / FINAL_BLUR) ** 0.5

    def restart(self) -> None:
        """Begin anew, and end with surrogates that look further than a few rows."""
        self.margins = np.zeros_like(self.margins)
        self.blur, self._final = FIRST_BLUR, FIRST_BLUR / 2

    def refined(self, constraints: tuple[BoundConstraint, ...], scores: np.ndarray) -> tuple[BoundConstraint, ...]:
        """The constraints with surrogates that are nearer to the metrics around these scores."""
        pairs = zip(constraints, self.margins, strict=True)
        return tuple(c.refined(scores, blur=self.blur, margin=margin) for c, margin in pairs)

    def tighten(self, violations: np.ndarray, unresolved: float, is_settled: np.ndarray) -> None:
        """Set the next blur, and then the margins, from how the exact metrics turned out.

        Parameters
        ----------
        violations : ndarray of shape (n_constraints,)
            Exact values less ``kappa``.
        unresolved : float
            Largest component of the surrogates, which is for the multipliers to resolve and not for the margins.
        is_settled : ndarray of shape (n_constraints,)
            Whether a margin may move all the same.
        """
        if self.is_narrowing:
            self.blur = max(self.blur / self._narrowing, self._final)
            return
        resolved = (violations <= 0) | (violations > 2 * unresolved / self._scales) | is_settled
        self.margins = np.minimum(self.margins + resolved * violations / 2, self._kappas)
        if (self.margins >= self._kappas).any():
            # The surrogate has no tolerance left; only a finer one can do better, as far as there are rows to see.
            self.blur, self.margins = min(self.blur, max(self.blur / 2, self._finest)), self.margins / 2


@dataclass
class Progress:
    """Whether to go on: iterations that have stalled, in shares of ``patience``.

    Parameters
    ----------
    patience : int
    tol : float
        Fraction of the best objective that counts as an improvement.

    Attributes
    ----------
    is_over : bool
        Whether as many iterations have stalled as there is patience for.
    restarted : bool
        Whether the run has begun anew.
    """

    patience: int
    tol: float
    restarted: bool = False
    _stalled: float = 0.0
    #: The least excess over the bounds, and what it was when it last became smaller by as much as counts.
    _least: float = np.inf
    _counted: float = np.inf
    _comes_nearer: bool = False

    @property
    def is_over(self) -> bool:
        return self._stalled > self.patience - _ROUNDING

    def see(self, excess: float) -> None:
        """Note by how much an iterate exceeds the bounds."""
        self._least = min(self._least, excess)
        self._comes_nearer = self._least <= (1 - _NEARER) * self._counted
        if self._comes_nearer:
            self._counted = self._least

    def restart(self) -> None:
        """Begin to count anew."""
        self.restarted, self._stalled = True, 0.0
        self._least = self._counted = np.inf

    def reset(self) -> None:
        """Count an iteration that comes too early to be judged."""
        self._stalled = 0.0

    def count_infeasible(self, is_hopeful: Callable[[], bool], is_pressed: bool) -> None:
        """Count an iteration before which no iterate was feasible, and which has not changed that.

        An iterate that is no better than what is to be had without any search gives no hope, and one that the largest
        penalty has not brought nearer gives less.
        """
        if self._comes_nearer:
            self._stalled = 0.0
            return
        share = 2 / _STALLS_BEFORE_RESTART if is_pressed else 1 / _STALLS_BEFORE_RESTART
        self._stalled += self.patience * share if is_hopeful() else 1.0

    def count_feasible(self, previous: float, best: float, objective: float, waits: bool) -> None:
        """Count an iteration that follows a feasible iterate, or is the first one.

        Parameters
        ----------
        previous, best : float
            The best objective before and after.
        objective : float
            Objective of the iteration, which may not be feasible.
        waits : bool
            Whether an iterate that is better but not yet feasible may still become feasible.
        """
        if best < previous - self.tol * abs(previous):
            self._stalled = 0.0
        else:
            is_promising = objective < best - self.tol * abs(best)
            self._stalled += self.patience / _PROMISES if waits and is_promising else 1.0
