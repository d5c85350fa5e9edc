"""`Problem`: model, objective, constraints and domain, combined into what a solver may ask.

A solver works on flat vectors ``z = (params, aux)`` and sees *points*: the objective and constraint values at
``z``, and the gradient of any combination of them that it chooses after having seen the values. One point costs
one forward pass; its gradient one backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from fairconstrained.constraints import BoundConstraint
from fairconstrained.constraints.offsets import free_offset
from fairconstrained.data import FairData
from fairconstrained.domains import Domain
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.models import Coordinates, LinearMoments, Model
from fairconstrained.objectives import BoundObjective
from fairconstrained.points import (
    Anchor,
    AnchoredPoint,
    Point,
    PointSource,
    RowLossPoint,
    RowLossTerms,
    ScorePoint,
)
from fairconstrained.sampling import ClusterSampler, Sampler, sampler_of
from fairconstrained.views import ConvexQuadratic, DifferenceOfConvex, Exact, FullBatch, RowLosses, Stochastic

__all__ = ["DifferenceOfConvexView", "FullBatchView", "Point", "PointSource", "Problem", "Start", "StochasticView"]


@dataclass(frozen=True)
class Start:
    """Where a solver begins: a state of the model, and what an earlier run learnt about the constraints.

    It holds no data, so it carries over to another ``kappa`` and, as far as `on` says, to other rows.

    Attributes
    ----------
    model_state : object
        What the model's scores depend on; the parameters, an ndarray of shape (n_params,), if it is parametric.
    components, multipliers : tuple of ndarray, one for each constraint, or empty
        What `BoundConstraint.with_components` takes, and the multiplier of every component.
    previous : ndarray of shape (n_params,), optional
        Parameters that the run which ended here was itself warm-started from, for a solver that follows a path.
    fingerprint : int, optional
        That of the data which components and multipliers are about; None for any.
    solver_state : object, optional
        What only the solver that it comes from can go on from.
    """

    model_state: Any
    components: tuple[np.ndarray, ...] = ()
    multipliers: tuple[np.ndarray, ...] = ()
    previous: np.ndarray | None = None
    fingerprint: int | None = None
    solver_state: Any = None

    def on(self, data: FairData) -> Start:
        """Return this start, or only its model state if the data differ."""
        return self if self.fingerprint in (None, data.fingerprint) else Start(self.model_state)


@dataclass(frozen=True)
class Problem:
    """minimise ``f(h_w(X)) + penalty(w)`` over ``w`` in a domain, subject to ``c(h_w(X), aux) <= 0``.

    Parameters
    ----------
    model : Model
    objective : BoundObjective
    constraints : tuple of BoundConstraint
    data : FairData
    domain : Domain, optional
        The set of the parameters ``w``; None is the whole space.
    threshold : float
        Score above which a row is predicted positive.
    """

    model: Model
    objective: BoundObjective
    constraints: tuple[BoundConstraint, ...]
    data: FairData
    domain: Domain | None = None
    threshold: float = 0.0

    @property
    def n_params(self) -> int:
        """Length of ``w``."""
        return self.model.n_params

    @cached_property
    def aux_slices(self) -> tuple[slice, ...]:
        """Where the auxiliary variables of every constraint stand in ``z``."""
        ends = accumulate((c.n_aux for c in self.constraints), initial=self.n_params)
        return tuple(slice(a, b) for a, b in pairwise(ends))

    @property
    def row_losses(self) -> RowLossTerms | None:
        """The losses of the rows that the terms are linear in; None if one is in none."""
        terms = self._terms(RowLosses)
        return RowLossTerms.of([t.row_loss for t in terms]) if all(isinstance(t, RowLosses) for t in terms) else None

    @property
    def component_names(self) -> tuple[str, ...]:
        """Names of the constraint components, in the order of ``Point.constraints``."""
        return tuple(name for constraint in self.constraints for name in constraint.component_names)

    def view(self, view: type) -> Any:
        """The problem as seen through a view.

        Parameters
        ----------
        view : type
            One of the classes of `fairconstrained.views`.

        Returns
        -------
        FullBatchView, StochasticView or DifferenceOfConvexView

        Raises
        ------
        IncompatibleProblem
            If a term does not offer the view; the message names it and the solvers that would work.
        """
        self.check((view,))
        return _PROBLEM_VIEWS[view](self)

    def check(self, views: Sequence[type], solver: str | None = None) -> None:
        """Raise `IncompatibleProblem` unless the terms offer all ``views`` (see `view`)."""
        needs = f"solver {solver!r} needs" if solver else "asked for"
        for obstacle in self._missing(views):
            raise IncompatibleProblem(f"{needs} {obstacle} {self._advice}")

    def check_solver(self, name: str) -> None:
        """Raise `IncompatibleProblem` unless the registered solver of that name takes the problem, domain included."""
        needs = SOLVER_REQUIREMENTS[name]
        if self.domain is not None and not needs.accepts(self.domain):
            raise IncompatibleProblem(f"solver {name!r} does not take the domain {self.domain}. {self._advice}")
        self.check(needs.requires, solver=name)

    def working_solvers(self) -> list[str]:
        """Names of the registered solvers that take the problem: its terms offer their views, they take its domain."""
        return sorted(
            name
            for name, needs in SOLVER_REQUIREMENTS.items()
            if (self.domain is None or needs.accepts(self.domain)) and not any(self._missing(needs.requires))
        )

    def _missing(self, views: Sequence[type]) -> Iterator[str]:
        """What the terms do not offer, in words."""
        for view in views:
            for term in self._terms(view):
                if not isinstance(term, view):
                    yield f"the view {view.__name__}, which {term.name!r} does not offer."

    @property
    def _advice(self) -> str:
        working = ", ".join(repr(name) for name in self.working_solvers()) or "none"
        return f"Solvers that work with this problem: {working}."

    def _terms(self, view: type) -> tuple[Any, ...]:
        """What has to offer a view."""
        if view in _MODEL_VIEWS:
            return (self.model,)
        return self.constraints if view in _CONSTRAINT_VIEWS else (self.objective, *self.constraints)

    def start(self, params: np.ndarray) -> np.ndarray:
        """``z`` at ``params`` with the auxiliary variables that suit the scores there."""
        scores = self.scores(params)
        return np.concatenate([params, *(c.initial_aux(scores) for c in self.constraints)])

    def fair_start(self, start: Start | None, rng: np.random.Generator) -> np.ndarray:
        """``z`` at ``start``, or, if that is None, where the surrogates hold because all scores are zero."""
        if start is not None:
            return self.start(start.model_state)
        return np.concatenate([self.model.init(rng), *(c.fair_aux() for c in self.constraints)])

    def holds(self, scores: np.ndarray, share: float = 1.0) -> bool:
        """Whether the exact values of all constraints are at most a share of their granularity."""
        return all(c.exact(scores) <= share * c.granularity for c in self.constraints)

    @cached_property
    def strata(self) -> np.ndarray:
        """Number of the group of every row, as mini-batches tell groups apart; ndarray of shape (n_samples,).

        The groups of the first constraint that has its own.
        """
        return next((c.strata for c in self.constraints if c.strata is not None), self.data.codes)

    @property
    def works_on_other_rows(self) -> bool:
        """Whether all terms have the view that `on` needs."""
        return all(isinstance(term, Stochastic) for term in self._terms(Stochastic))

    def on(self, data: FairData) -> Problem:
        """The same problem on other rows."""
        return Problem(  # `replace` would take longer than a step of a small network may
            self.model,
            cast(Stochastic, self.objective).on(data),
            tuple([cast(Stochastic, term).on(data) for term in self.constraints]),
            data,
            self.domain,
            self.threshold,
        )

    def scores(self, z: np.ndarray) -> np.ndarray:
        """Scores at ``z`` in the order of ``data``; ndarray of shape (n_samples,)."""
        return self.model.forward(z[: self.n_params], self.data)[0].numpy()

    def project(self, z: np.ndarray) -> np.ndarray:
        """``z`` with its parameters projected onto the domain."""
        if self.domain is None:
            return z
        return np.concatenate([self.domain.project(z[: self.n_params]), z[self.n_params :]])

    @cached_property
    def coordinates(self) -> Coordinates:
        """Well-scaled coordinates of the parameters, for standardised features."""
        return self.model.coordinates(self.data)

    @cached_property
    def penalised_coordinates(self) -> Coordinates:
        """Coordinates that are well scaled also where the penalty outweighs the losses, for features in any unit."""
        return self.model.coordinates(self.data, penalised=True)

    @cached_property
    def _shift_directions(self) -> np.ndarray:
        return self.model.shift_directions(self.data, shared=self.objective.shift == "shared")

    @property
    def has_group_shifts(self) -> bool:
        """Whether the model can move the scores of every group on their own."""
        return len(self._shift_directions) == self.data.n_groups

    def finish(self, params: np.ndarray) -> np.ndarray:
        """``params`` with the intercepts that make the fewest errors, by exact search, where the objective wants it.

        Parameters
        ----------
        params : ndarray of shape (n_params,)

        Returns
        -------
        params : ndarray of shape (n_params,)
            Unchanged for other objectives, for models without intercepts, and where the search would break a
            constraint: with several of them, each one's search sees its own only.
        """
        gains = self.objective.gains
        directions = self._shift_directions
        if gains is None or not len(directions):
            return params
        shared = self.objective.shift == "shared" or not self.has_group_shifts
        scores = self.scores(params)
        searches = [constraint.offsets for constraint in self.constraints] or [self._unconstrained_offsets]
        for search in searches:
            offsets = search(scores, gains.numpy(), self.threshold, shared)
            shifted = self.project(params + offsets[: len(directions)] @ directions)
            moved = self.scores(shifted)
            if all(c.exact(moved) <= max(c.exact(scores), c.granularity) for c in self.constraints):
                params, scores = shifted, moved
        return params

    def _unconstrained_offsets(
        self, scores: np.ndarray, gains: np.ndarray, threshold: float, shared: bool
    ) -> np.ndarray:
        """`BoundConstraint.offsets` where there is no constraint."""
        parts = [slice(None)] if shared else self.data.slices
        offsets = [free_offset(scores[rows], gains[rows], threshold) for rows in parts]
        return np.resize(offsets, self.data.n_groups)

    def with_way_back(self) -> Problem:
        """The same problem, its constraints with slopes wherever they are violated."""
        return replace(self, constraints=tuple(c.with_way_back() for c in self.constraints))

    def stricter(self) -> Problem | None:
        """A problem to begin with, whose constraints imply those of this one; None where no constraint has any such."""
        found = [c.stricter() for c in self.constraints]
        if not any(found):
            return None
        return replace(self, constraints=tuple(s or c for s, c in zip(found, self.constraints, strict=True)))

    def without_constraints(self) -> Problem:
        """The same objective, unconstrained."""
        return replace(self, constraints=())


class FullBatchView:
    """Points of the problem itself.

    Attributes
    ----------
    n_evaluations : int
        Points computed so far.
    anchor : Anchor or None
        A term that the objective of the points has besides.
    """

    anchor: Anchor | None = None

    def __init__(self, problem: Problem, row_losses: RowLossTerms | None = None) -> None:
        """``row_losses`` are those of the problem, where they are known."""
        self.problem = problem
        self.n_evaluations = 0
        self._row_losses = row_losses or problem.row_losses

    def at(self, z: np.ndarray) -> ScorePoint | RowLossPoint | AnchoredPoint:
        """The point at ``z``."""
        self.n_evaluations += 1
        problem, terms = self.problem, self._row_losses
        if terms is None:
            return self._anchored(ScorePoint(problem, z, "values", "values"), z)
        forward = problem.model.forward(z[: problem.n_params], problem.data)
        return self._anchored(RowLossPoint(problem, z, terms, forward), z)

    @staticmethod
    def at_each(views: Sequence[FullBatchView], z: np.ndarray) -> list[ScorePoint | RowLossPoint | AnchoredPoint]:
        """The points of several mini-batches at one ``z`` for less than one by one; each may have other terms."""
        terms = [view._row_losses for view in views]
        if any(own is None for own in terms):
            return [view.at(z) for view in views]
        problem = views[0].problem
        runs = problem.model.forward_each(z[: problem.n_params], [view.problem.data for view in views])
        of_views = zip(views, terms, runs, strict=True)
        return [
            view._anchored(RowLossPoint(view.problem, z, own, run), z) for view, own, run in of_views if own is not None
        ]

    def _anchored(self, point: Any, z: np.ndarray) -> Any:
        return point if self.anchor is None else AnchoredPoint(point, z, self.anchor)


class StochasticView:
    """Points of the problem on group-stratified mini-batches."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._samplers: dict[tuple[int, float], Sampler | ClusterSampler] = {}
        self._objective_samplers: dict[int, Sampler | ClusterSampler] = {}

    def sample(self, rng: np.random.Generator, size: int) -> FullBatchView:
        """The problem on a mini-batch of about ``size`` rows; its rates and losses are unbiased."""
        return next(self.batches(rng, size, n_batches=1))

    def batches(
        self, rng: np.random.Generator, size: int, balance: float = 0.0, n_batches: int | None = None
    ) -> Iterator[FullBatchView]:
        """The problem on mini-batches, for less than one by one; see `fairconstrained.sampling`."""
        if (size, balance) not in self._samplers:
            self._samplers[size, balance] = sampler_of(self.problem.data, size, balance, self.problem.strata)
        return self._on_each(self.problem, self._samplers[size, balance].batches(rng, n_batches))

    def objective_batches(self, rng: np.random.Generator, size: int) -> Iterator[FullBatchView]:
        """The objective alone on mini-batches of exactly ``size`` rows, drawn from all rows, endless.

        Data of clusters have whole clusters of about so many rows.
        """
        if size not in self._objective_samplers:
            data = self.problem.data
            together = np.zeros(data.n_samples, dtype=int)
            self._objective_samplers[size] = sampler_of(data, size, strata=together)
        return self._on_each(self.problem.without_constraints(), self._objective_samplers[size].batches(rng))

    @staticmethod
    def _on_each(problem: Problem, batches: Iterator[FairData]) -> Iterator[FullBatchView]:
        losses = problem.row_losses
        for batch in batches:
            problem = problem.on(batch)  # of the batch before: terms may keep what is the same in both
            yield FullBatchView(problem, losses)


class DifferenceOfConvexView:
    """Convex models of the problem: ``minus`` replaced by its tangent.

    Attributes
    ----------
    n_evaluations : int
        Points computed so far.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.n_evaluations = 0

    def linearize(self, z: np.ndarray) -> PointSource:
        """The convex model that touches the problem at ``z`` from above (eqs. 31-32 of the paper)."""
        self.n_evaluations += 1
        base = ScorePoint(self.problem, z, "minus", "minus")
        m = base.constraints.size
        tangents = np.stack([base.loss_gradient(1.0, np.zeros(m)), *(base.loss_gradient(0.0, e) for e in np.eye(m))])
        return _Linearized(self, z, np.concatenate([[base.loss], base.constraints]), tangents)


@dataclass
class _Linearized:
    """Points of ``plus(v) - minus(z) - tangents (v - z)``."""

    view: DifferenceOfConvexView
    z: np.ndarray
    minus: np.ndarray
    tangents: np.ndarray

    def at(self, v: np.ndarray) -> Point:
        """The model's point at ``v``."""
        self.view.n_evaluations += 1
        plus = ScorePoint(self.view.problem, v, "plus", "plus")
        return _LinearizedPoint(plus, self.minus + self.tangents @ (v - self.z), self.tangents)


class _LinearizedPoint:
    def __init__(self, plus: ScorePoint, minus: np.ndarray, tangents: np.ndarray) -> None:
        self._plus, self._tangents = plus, tangents
        self.objective = plus.objective - float(minus[0])
        self.constraints = plus.constraints - minus[1:]

    @property
    def scores(self) -> np.ndarray:
        """See `Point.scores`."""
        return self._plus.scores

    def gradient(self, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """See `Point.gradient`."""
        tangent = objective * self._tangents[0] + multipliers @ self._tangents[1:]
        return self._plus.gradient(objective, multipliers) - tangent


_PROBLEM_VIEWS: dict[type, Callable[[Problem], Any]] = {
    FullBatch: FullBatchView,
    Stochastic: StochasticView,
    DifferenceOfConvex: DifferenceOfConvexView,
}

#: Views that an objective need not offer.
_CONSTRAINT_VIEWS = (ConvexQuadratic, Exact)
#: What a solver may need of the model.
_MODEL_VIEWS = (LinearMoments,)


class SolverRequirements(Protocol):
    """What a solver says of the problems that it takes."""

    requires: ClassVar[tuple[type, ...]]

    @classmethod
    def accepts(cls, domain: Domain) -> bool:
        """Whether it keeps the parameters in this domain."""


#: What every registered solver needs, by the solver's name; filled by `fairconstrained.solvers`.
SOLVER_REQUIREMENTS: dict[str, type[SolverRequirements]] = {}
