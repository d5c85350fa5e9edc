r"""The multiples and shifts of the scores of a state, as a plane in which the best one within the bounds is sought.

For scores :math:`s` of an iterate, all :math:`a s + b` with :math:`a \ge 0` are scores of the same model: constant
ones, smaller ones that hedge more, shifted ones. The search is in two dimensions, whatever the model is, and costs no
product with the features. Where the bounds depend on which rows are above the threshold, that is on the cut
:math:`t = (\theta - b) / a` alone, it is exact for a convex objective: on the ray of a cut the least objective is a
quasi-convex function of the cut, so that of the cuts that are allowed only those next to the free optimum matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from scipy.optimize import minimize

from fairconstrained.constraints.offsets import allowed_in_order
from fairconstrained.models import Rescaling
from fairconstrained.objectives import sums_from
from fairconstrained.problem import Problem
from fairconstrained.solvers._plane_objective import PlaneObjective

__all__ = ["GAIN", "HALVINGS", "ROUNDING", "Proposal", "ScorePlane", "is_within"]

#: Gain of the objective, relative to it, that is worth a change.
GAIN = 1e-9
#: By how much a metric may be further from kappa than that of the solver's result, for its rounding. Points of the
#: plane may use half of it, as the scores of their parameters are rounded once more.
ROUNDING = 1e-12
#: Steps of a bisection on the way to the border of what is allowed.
HALVINGS = 30
#: Cuts that are looked at; of more, so many that are evenly spread over the ranks.
_MAX_CUTS = 5_000
#: Allowed cuts next to the free optimum, on either side, that are tried at most.
_NEXT = 4
#: Cuts next to the free optimum that are looked at first, and the factor of that where others may be better.
_FEW, _MORE = 50, 5
#: Multiple of what may be lost on a ray, by an estimate, at which it is sure not to beat what is known.
_SURE = 1.5
#: How far into an interval between two scores a cut is laid, as a share of it.
_INSIDE = 1e-9
#: Multiples of the scores between nothing and the free optimum from which the search begins where no cut decides.
_SHARES = (0.0, 0.02, 0.1, 0.3, 0.6, 1.0)
#: Secants with which the point is found from which on a way is better than what is known.
_SECANTS = 3
#: Least multiple on the ray of a cut, as a share of the free optimum's.
_LEAST_SHARE = 1e-3


@dataclass(frozen=True, eq=False)
class Proposal:
    """A state that may be the best one; its scores, which read the features, are computed when they are needed."""

    problem: Problem
    state: Any
    #: The objective with its penalty, up to rounding; NaN where it is not known without the scores.
    objective: float = np.nan

    @cached_property
    def scores(self) -> np.ndarray:
        """Scores of the training rows."""
        return self.problem.scores(self.state)

    @cached_property
    def merit(self) -> float:
        """The error rate where the objective counts errors, else the objective with its penalty."""
        problem, scores = self.problem, self.scores
        decisions = problem.objective.decisions
        if problem.objective.counts_errors and decisions is not None:
            return decisions.of(scores > problem.threshold)
        return problem.objective_at(self.state, scores)

    @property
    def is_in_domain(self) -> bool:
        """Whether the state is in the domain, up to rounding."""
        problem, state = self.problem, self.state
        return problem.domain is None or np.allclose(problem.project(state), state, rtol=1e-9, atol=1e-12)

    def keeps(self, tolerances: np.ndarray) -> bool:
        """Whether no metric is further above its kappa than tolerances of shape (n_constraints,)."""
        return is_within(self.problem, self.scores, tolerances)

    def scores_towards(self, other: Proposal, share: float) -> np.ndarray:
        """Scores on the way to another state; where they are linear, they need no product with the features."""
        if self.problem.model.is_linear:
            return self.scores + share * (other.scores - self.scores)
        return self.problem.scores(self.state + share * (other.state - self.state))


def is_within(problem: Problem, scores: np.ndarray, tolerances: np.ndarray) -> bool:
    """Whether no metric is further above its kappa at some scores than tolerances of shape (n_constraints,)."""
    pairs = zip(problem.constraints, tolerances.tolist(), strict=True)
    return all(constraint.is_within(scores, most) for constraint, most in pairs)


@dataclass(frozen=True, eq=False)
class ScorePlane:
    r"""States of the model with the scores :math:`u z + c`, of standardised scores z."""

    problem: Problem
    #: Rescaling of the state that the plane goes through.
    rescaling: Rescaling
    #: Scores of that state, times the signs of the rescaling.
    scores: np.ndarray  # of shape (n_samples,)
    #: Largest excess over kappa that each metric is allowed.
    tolerances: np.ndarray  # of shape (n_constraints,)

    @classmethod
    def of(cls, own: Proposal, tolerances: np.ndarray) -> ScorePlane | None:
        """The plane through the state of a proposal; None where the model cannot scale its scores."""
        rescaling = own.problem.model.rescaling(own.state, own.problem.data)
        if rescaling is None:
            return None
        return cls(own.problem, rescaling, rescaling.signs * own.scores, tolerances)

    @cached_property
    def centre(self) -> float:
        """The mean of the scores, if they can be shifted."""
        return 0.0 if not self.rescaling.can_shift else float(self.problem.data.weights.numpy() @ self.scores)

    @cached_property
    def _spread(self) -> float:
        if self.rescaling.can_shift and not np.ptp(self.scores):
            return 0.0  # the mean of equal scores may differ from them by rounding
        return float(np.sqrt(self.problem.data.weights.numpy() @ (self.scores - self.centre) ** 2))

    @cached_property
    def _standard(self) -> np.ndarray:
        return (self.scores - self.centre) / (self._spread or 1.0)

    @cached_property
    def objective(self) -> PlaneObjective:
        """The objective as a function of (u, c)."""
        whole = PlaneObjective(self.problem, self.rescaling, self._standard, self.centre, self._spread)
        return whole if self._spread else whole.of_constants

    def at(self, u: float, c: float) -> Any:
        """The state with the scores ``u z + c``."""
        return self.rescaling.at(*self.objective.of_scores(u, c))

    def _proposal(self, point: np.ndarray) -> Proposal:
        objective = self.objective if point[0] else self.objective.of_constants
        return Proposal(self.problem, self.at(*point), objective.value(point))

    def proposals(self, least: float, with_constants: bool, searches: bool = True) -> Iterator[Proposal]:
        """States that may be better than ``least``, the most promising ones first.

        Perhaps with constant scores, and with points on the border of what is allowed if ``searches``.
        """
        if self.problem.objective.counts_errors:
            yield from self._by_errors()
            return
        if not (with_constants or self._may_hold):
            return
        multiples = np.array([[1.0, 0.0]] if self._spread else np.empty((0, 2)))
        free = self.objective.least(np.array([self._spread, self.centre]), np.vstack([multiples, self._shifts]))
        best = self._proposal(free)
        if np.isfinite(least) and best.objective >= least - GAIN * abs(least):
            return  # no point of the plane is better
        yield best
        if with_constants:
            if self._spread:
                yield self.least_of_constants
            # just not positive, where the best constant score accepts everybody beyond the bounds
            yield from (self._proposal(np.array([0.0, at])) for at in self._thresholds if self.rescaling.can_shift)
            for state in self.problem.model.one_class_states(self.problem.data):
                yield Proposal(self.problem, state)
        if self._spread and searches:
            yield from self._by_cuts(free, least) if self._cuts_decide else self._by_search(free, least)

    @property
    def _shifts(self) -> np.ndarray:
        """The directions in which scores can be shifted, at most one; ndarray of shape (n_directions, 2)."""
        return np.array([[0.0, 1.0]] if self.rescaling.can_shift else np.empty((0, 2)))

    @property
    def least_of_constants(self) -> Proposal:
        """The constant scores of least objective, whatever the bounds are."""
        return self._proposal(self.objective.of_constants.least(np.array([0.0, self.centre]), self._shifts))

    @cached_property
    def _may_hold(self) -> bool:
        """Whether points of the plane may be within the bounds; bounds on the order of the scores hold for all or none.

        Constant scores are an exception, which `with_constants` tries.
        """
        if any(c.decision_threshold is not None for c in self.problem.constraints) or not self._cuts_decide:
            return True
        return bool(self._allowed(self.scores[:1]).all())

    @cached_property
    def _thresholds(self) -> list[float]:
        """Scores above which rows are positive, for the constraints that count them, each once."""
        found = [constraint.decision_threshold for constraint in self.problem.constraints]
        return sorted({threshold for threshold in found if threshold is not None}) or [self.problem.threshold]

    @cached_property
    def _cuts_decide(self) -> bool:
        """Whether the bounds depend on the order of the scores, and on which of them are above one threshold."""
        constraints = self.problem.constraints
        known = all(c.values_at_cuts(self.scores, self.scores[:1]) is not None for c in constraints)
        return known and len(self._thresholds) == 1

    def _cuts(self) -> np.ndarray:
        """Cuts just above and just below every score, ascending; shape (n_cuts,)."""
        levels = np.unique(self.scores)
        if levels.size > _MAX_CUTS:
            levels = levels[np.linspace(0, levels.size - 1, _MAX_CUTS).astype(int)]
        reach = 1 + np.ptp(levels)
        gaps = np.diff(levels, prepend=levels[0] - reach, append=levels[-1] + reach)
        rounding = 64 * np.spacing(np.abs(levels).max(initial=1.0))
        above = levels + np.maximum(_INSIDE * gaps[1:], rounding)
        below = levels - np.maximum(_INSIDE * gaps[:-1], rounding)
        return np.sort(np.concatenate([above, below]))

    def _allowed(self, cuts: np.ndarray) -> np.ndarray:
        """Return which of the cuts are within the bounds; boolean ndarray of shape (n_cuts,)."""
        allowed = np.ones(cuts.size, dtype=bool)
        for constraint, most in zip(self.problem.constraints, self.tolerances.tolist(), strict=True):
            values = constraint.values_at_cuts(self.scores, cuts)
            assert values is not None  # see `_cuts_decide`
            allowed &= constraint.excess(values) <= most
        return allowed

    def _by_cuts(self, free: np.ndarray, least: float) -> Iterator[Proposal]:
        """The best states on the rays of the allowed cuts next to the free optimum, as far as they beat ``least``."""
        cuts = self._cuts()
        if not self.rescaling.can_shift:
            yield from self._by_multiples(cuts[self._allowed(cuts)], free)
            return
        free_cut = (self._thresholds[0] - free[1]) / max(free[0], 1e-300)
        own = int(np.searchsorted((cuts - self.centre) / self._spread, free_cut))
        for side in (cuts[:own][::-1], cuts[own:]):
            tried: list[Proposal] = []
            for cut in islice(allowed_in_order(self._promising(side, free, least), self._allowed), _NEXT):
                proposal = self._proposal(self._on_ray(cut, free))
                if proposal.objective >= least:  # nor is a cut further away better
                    break
                tried.append(proposal)
                if proposal.keeps(np.full(self.tolerances.size, ROUNDING)):  # within kappa itself
                    break
            yield from reversed(tried)  # of two that are as good, the one within kappa comes first

    def _by_multiples(self, cuts: np.ndarray, free: np.ndarray) -> Iterator[Proposal]:
        """The allowed multiples next to the free optimum, where scores cannot be shifted.

        The multiple a of the scores has the cut ``threshold / a``; a threshold of zero has the same cut for all.
        """
        with np.errstate(divide="ignore"):
            multiples = np.sort(self._thresholds[0] / cuts) * self._spread
        multiples = multiples[(multiples > 0) & np.isfinite(multiples)]
        place = int(np.searchsorted(multiples, free[0]))
        for multiple in multiples[max(place - _NEXT, 0) : place + _NEXT].tolist():
            yield self._proposal(np.array([multiple, 0.0]))

    def _promising(self, side: np.ndarray, free: np.ndarray, least: float) -> np.ndarray:
        """The first of the cuts on one side of the free optimum, at least all whose rays beat ``least``.

        Of a smooth objective, by its curvature at the free optimum.
        """
        if not np.isfinite(least):
            return side
        if self.objective.is_smooth:
            lines = np.column_stack([(side - self.centre) / self._spread, np.ones(side.size)])
            loss = self.objective.on_lines(free, lines, np.full(side.size, self._thresholds[0]))
            return side[loss < _SURE * (least - self.objective.value(free))]
        size = _FEW
        while size < side.size and self.objective.value(self._on_ray(side[size], free)) < least:
            size *= _MORE
        return side[:size]

    def _on_ray(self, cut: float, free: np.ndarray) -> np.ndarray:
        """The best point whose scores are at the threshold where those of the state are at ``cut``."""
        standard = (cut - self.centre) / self._spread
        lowest = _LEAST_SHARE * max(free[0], 1e-3)  # scores of zero are on neither side of the cut
        u = max(self._spread, lowest)
        start = np.array([u, self._thresholds[0] - u * standard])
        return self.objective.least(start, np.array([[1.0, -standard]]), lowest)

    def _by_search(self, free: np.ndarray, least: float) -> Iterator[Proposal]:
        """States better than ``least`` on the border of what is allowed, on the way from inside to the free optimum.

        The bounds are not convex in general, so this finds a good point and not always the best.
        """
        starts = [np.array([self._spread, self.centre])]
        levels = dict.fromkeys([float(free[1]), *self._thresholds, self.centre] if self.rescaling.can_shift else [0.0])
        starts += [np.array([share * free[0], level]) for share in _SHARES for level in levels]
        ways: list[tuple[np.ndarray, np.ndarray]] = []  # each better than the one before
        for start in starts:
            good = self._as_good(start, free, least) if self._holds(start) else None
            if good is None or not self._holds(good):
                continue
            found = self._towards(good, free)
            if (value := self.objective.value(found)) <= least:
                least = value
                ways.append((found, start))
        yield from (self._proposal(found) for found, _ in reversed(ways))
        if ways:
            best, inside = ways[-1]
            near = minimize(
                self.objective.with_slopes,
                best,
                jac=True,
                method="SLSQP",
                bounds=[(0.0, None), (None, None) if self.rescaling.can_shift else (0.0, 0.0)],
                constraints=[{"type": "ineq", "fun": self._room}],
                options={"maxiter": 30, "ftol": 1e-10},
            ).x
            # beyond the border by rounding, as a rule
            yield self._proposal(near if self._holds(near) else self._towards(inside, near))

    def _room(self, point: np.ndarray) -> np.ndarray:
        """Distance of the metrics from their limits, negative beyond them; shape (n_constraints,)."""
        scores = self.rescaling.signs * (point[0] * self._standard + point[1])
        most = self.tolerances - np.minimum(self.tolerances, ROUNDING) / 2
        room = most - self.problem.exact(scores)
        return np.where(np.isposinf(room), 1.0, room)  # any positive number, where there is no bound

    def _holds(self, point: np.ndarray) -> bool:
        return bool((self._room(point) >= 0).all())

    def _towards(self, inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
        """The last allowed point found on the way."""
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._holds(inside + middle * (outside - inside)) else (low, middle)
        return inside + low * (outside - inside)

    def _as_good(self, start: np.ndarray, free: np.ndarray, least: float) -> np.ndarray:
        """The first point on the way to the free optimum that is better than ``least``, nearly.

        Where that is beyond the bounds, the way has no better point within them.
        """
        above, below = self.objective.value(start) - least, self.objective.value(free) - least
        if not (np.isfinite(above) and above > 0 > below):  # nothing is known to be as good, or the start is
            return start
        low, high = 0.0, 1.0
        for _ in range(_SECANTS):  # they end beyond the point, as the objective is convex along the way
            middle = low + above / (above - below) * (high - low)
            value = self.objective.value(start + middle * (free - start)) - least
            low, high, above, below = (middle, high, value, below) if value > 0 else (low, middle, above, value)
        return start + high * (free - start)

    def _by_errors(self) -> Iterator[Proposal]:
        """Constant scores on both sides of the threshold and at it, and the allowed cut of the fewest errors."""
        threshold, unit = self.problem.threshold, max(self._spread, 1.0)
        for constant in (threshold + unit, threshold - unit, threshold):
            yield Proposal(self.problem, self.at(0.0, constant))
        if not self.rescaling.can_shift or not self._spread:
            return
        decisions = self.problem.objective.decisions
        assert decisions is not None  # errors are counted
        if self._cuts_decide and self._thresholds == [threshold]:
            cuts = self._cuts()
            order = np.argsort(self.scores, kind="stable")
            above = sums_from(decisions.columns[:, order])[:, np.searchsorted(self.scores[order], cuts, side="right")]
            loss = np.where(self._allowed(cuts), decisions.of_sums(above), np.inf)
            if np.isfinite(loss).any():
                cut = float(cuts[np.argmin(loss)])
                yield Proposal(self.problem, self.at(self._spread, self.centre + threshold - cut))
