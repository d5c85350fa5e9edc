"""`Problem`: model, objective, constraints and domain, combined for solvers.

A solver works on flat vectors ``z = (params, aux)`` and sees *points*: the objective and constraint values at
``z``, and the gradient of any combination of them that it chooses after having seen the values. One point costs
one forward pass; its gradient one backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from fairconstrained.constraints import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.domains import Domain
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.models import Coordinates, LinearMoments, Model, ParametricModel, Pullback, ScoreShifts
from fairconstrained.points import Anchor, AnchoredPoint, ChangedPoint, ModelPoint, Point, PointSource
from fairconstrained.sampling import ClusterSampler, Sampler, sampler_of
from fairconstrained.terms import DifferentiatedPoint, RowLossTerms, Terms, TermsPoint
from fairconstrained.views import ConvexQuadratic, DifferenceOfConvex, Exact, FullBatch, Stochastic

__all__ = [
    "DifferenceOfConvexView",
    "FullBatchView",
    "Point",
    "PointSource",
    "Problem",
    "Start",
    "StochasticView",
    "are_all_equal",
]

#: Scores of a parametric model and the map that pulls gradients back, see `ParametricModel.forward`.
Forward = tuple[Tensor, Pullback]


def are_all_equal(scores: np.ndarray) -> bool:
    """Return whether all rows have the same score, or the same scores of classes."""
    return not np.ptp(scores, axis=0).any()


@dataclass(frozen=True)
class Start:
    """Start of a solver: a state of the model, and multipliers and components of an earlier run.

    It holds no data, so it carries over to another ``kappa`` and, as far as `on` says, to other rows.

    Attributes
    ----------
    model_state : object
        State that the model's scores depend on; the parameters, an ndarray of shape (n_params,), if it is parametric.
    components, multipliers : tuple of ndarray, one for each constraint, or empty
        Keys for `BoundConstraint.with_components`, and the multiplier of every component.
    previous : ndarray of shape (n_params,), optional
        Parameters that the run which ended here was itself warm-started from, for a solver that follows a path.
    fingerprint : int, optional
        Fingerprint of the data that components and multipliers belong to; None for any data.
    solver_state : object, optional
        Further state, for the solver that it comes from.
    """

    model_state: Any
    components: tuple[np.ndarray, ...] = ()
    multipliers: tuple[np.ndarray, ...] = ()
    previous: np.ndarray | None = None
    fingerprint: int | None = None
    solver_state: Any = None

    @property
    def is_of_other_rows(self) -> bool:
        """Whether it comes from a fit to other rows: it has multipliers, and no fingerprint."""
        return self.fingerprint is None and bool(self.multipliers)

    def on(self, data: FairData) -> Start:
        """Return this start, or only its model state if the data differ."""
        return self if self.fingerprint in (None, data.fingerprint) else Start(self.model_state)

    def continued(self, constraints: tuple[BoundConstraint, ...]) -> tuple[tuple[BoundConstraint, ...], np.ndarray]:
        """Return the constraints with the components of this start, and the multipliers of all their components.

        The multipliers are zero where they do not fit, such as those of other constraints, or of one without a bound.
        """
        known = np.empty(0)
        if len(self.components) == len(constraints):
            pairs = zip(constraints, self.components, strict=True)
            constraints = tuple(c.with_components(own) if own.size else c for c, own in pairs)
            known = np.concatenate([known, *self.multipliers])
        n_components = sum(len(c.component_names) for c in constraints)
        return constraints, known if known.size == n_components else np.zeros(n_components)


@dataclass(frozen=True)
class Problem(Terms):
    """minimise ``f(h_w(X)) + penalty(w)`` over ``w`` in a domain, subject to ``c(h_w(X), aux) <= 0``.

    Parameters
    ----------
    objective : BoundObjective
    constraints : tuple of BoundConstraint
    data : FairData
    threshold : float
        Score above which a row is predicted positive.
    model : Model
        Source of the scores ``h_w(X)``.
    domain : Domain, optional
        The set of the parameters ``w``; None is the whole space.
    """

    model: Model = field(kw_only=True)
    domain: Domain | None = field(default=None, kw_only=True)

    @property
    def parametric(self) -> ParametricModel:
        """The model, for a solver that works on its parameters ``w``."""
        return cast(ParametricModel, self.model)

    @property
    def n_params(self) -> int:
        """Length of ``w``."""
        return self.parametric.n_params

    def view(self, view: type) -> Any:
        """The problem as seen through a view.

        Parameters
        ----------
        view : type
            Class of the view, one of `fairconstrained.views`.

        Returns
        -------
        FullBatchView, StochasticView or DifferenceOfConvexView

        Raises
        ------
        IncompatibleProblem
            If a term does not offer the view; the message names it and the solvers that would work.
        """
        self.check((ParametricModel, view))
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
        self.check((needs.model, *needs.requires), solver=name)
        if obstacle := needs.obstacle(self):
            raise IncompatibleProblem(f"solver {name!r} needs {obstacle}. {self._advice}")

    def working_solvers(self) -> list[str]:
        """Names of the registered solvers that take the problem: its terms offer their views, they take its domain."""
        return sorted(
            name
            for name, needs in SOLVER_REQUIREMENTS.items()
            if (self.domain is None or needs.accepts(self.domain))
            and not any(self._missing((needs.model, *needs.requires)))
            and not needs.obstacle(self)
        )

    def _missing(self, views: Sequence[type]) -> Iterator[str]:
        """Say in words which views the terms do not offer."""
        for view in views:
            for term in self._terms(view):
                if not isinstance(term, view):
                    yield f"the view {view.__name__}, which {term.name!r} does not offer."

    @property
    def _advice(self) -> str:
        working = ", ".join(repr(name) for name in self.working_solvers()) or "none"
        return f"Solvers that work with this problem: {working}."

    def _terms(self, view: type) -> tuple[Any, ...]:
        """Return the terms, or the model, that have to offer a view."""
        if view in _MODEL_VIEWS:
            return (self.model,)
        return self.constraints if view in _CONSTRAINT_VIEWS else (self.objective, *self.constraints)

    def start(self, params: np.ndarray) -> np.ndarray:
        """``z`` at ``params`` with the auxiliary variables that suit the scores there."""
        return np.concatenate([params, self.initial_aux(self.scores(params))])

    def fair_start(self, start: Start | None, rng: np.random.Generator) -> np.ndarray:
        """``z`` at ``start``, or, if that is None, where the surrogates hold because all scores are zero."""
        if start is not None:
            return self.start(start.model_state)
        return np.concatenate([self.parametric.init(rng), self.fair_aux()])

    def unless_constant(self, start: Start | None) -> Start | None:
        """Return the start, or None if it gives all rows the same score.

        Such scores keep bounds on gaps whatever the data are. Surrogates are as wide as the scores vary, here not at
        all, and the multipliers that led to the constant would hold the run there.
        """
        return None if start is None or are_all_equal(self.scores(start.model_state)) else start

    @property
    def works_on_other_rows(self) -> bool:
        """Whether all terms have the view that `on` needs."""
        return all(isinstance(term, Stochastic) for term in self._terms(Stochastic))

    def on(self, data: FairData) -> Problem:
        """Return the problem on other rows."""
        return Problem(  # `replace` would take longer than a step of a small network may
            cast(Stochastic, self.objective).on(data),
            tuple([cast(Stochastic, term).on(data) for term in self.constraints]),
            data,
            self.threshold,
            model=self.model,
            domain=self.domain,
        )

    def with_margins(self, margins: np.ndarray) -> Problem:
        """Return the problem with smaller bounds, at least zero; one margin for every constraint is taken off."""
        bounds = zip(self.constraints, margins, strict=True)
        return replace(self, constraints=tuple(c.with_kappa(c.tightened(float(m))) for c, m in bounds))

    def scores(self, state: Any) -> np.ndarray:
        """Scores at a state of the model, or at a ``z``, in the order of ``data``; ndarray of shape (n_samples,)."""
        return self.model.training_scores(state, self.data)

    def objective_at(self, state: Any, scores: np.ndarray) -> float:
        """The objective with its penalty at a state of the model, whose scores are known."""
        return self.loss_at(scores) + self.model.penalty_at(state)

    def loss_at(self, scores: np.ndarray) -> float:
        """The objective without its penalty."""
        return self.without_constraints().at_scores(torch.from_numpy(scores), np.empty(0)).loss

    def point(
        self, z: np.ndarray, terms_at: Callable[[Tensor, np.ndarray], TermsPoint], forward: Forward | None = None
    ) -> ModelPoint:
        """The point at ``z`` of terms which ``terms_at`` takes at scores and auxiliary variables.

        Parameters
        ----------
        z : ndarray of shape (n_variables,)
        terms_at : callable
            Such as `Terms.at_scores`.
        forward : tuple of Tensor and callable, optional
            Result of the model's ``forward`` at ``z``, where it is known.
        """
        params = z[: self.n_params]
        scores, pullback = forward or self.parametric.forward(params, self.data)
        return ModelPoint(self.parametric, params, terms_at(scores, z[params.size :]), pullback)

    def project(self, z: np.ndarray) -> np.ndarray:
        """``z`` with its parameters projected onto the domain."""
        if self.domain is None:
            return z
        return np.concatenate([self.domain.project(z[: self.n_params]), z[self.n_params :]])

    @cached_property
    def coordinates(self) -> Coordinates:
        """Well-scaled coordinates of the parameters, for standardised features."""
        return self.parametric.coordinates(self.data)

    @cached_property
    def penalised_coordinates(self) -> Coordinates:
        """Coordinates that are well scaled also where the penalty outweighs the losses, for features in any unit."""
        return self.parametric.coordinates(self.data, penalised=True)

    @cached_property
    def shifts(self) -> ScoreShifts | None:
        """Shifts of the scores that the model can make for the objective; None where it has none."""
        return self.model.shifts(self.data, shared=self.objective.shift == "shared")

    @property
    def has_group_shifts(self) -> bool:
        """Whether the model can move the scores of every group on their own."""
        return self.shifts is not None and self.shifts.n_shifts == self.data.n_groups


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

    def at(self, z: np.ndarray) -> ModelPoint | AnchoredPoint:
        """The point at ``z``."""
        return self._at(z, None)

    @staticmethod
    def at_each(views: Sequence[FullBatchView], z: np.ndarray) -> list[ModelPoint | AnchoredPoint]:
        """The points of several mini-batches at one ``z`` for less than one by one; each may have other terms."""
        if any(view._row_losses is None for view in views):
            return [view.at(z) for view in views]
        problem = views[0].problem
        runs = problem.parametric.forward_each(z[: problem.n_params], [view.problem.data for view in views])
        return [view._at(z, run) for view, run in zip(views, runs, strict=True)]

    def _at(self, z: np.ndarray, forward: Forward | None) -> ModelPoint | AnchoredPoint:
        self.n_evaluations += 1
        point = self.problem.point(z, partial(self.problem.at_scores, row_losses=self._row_losses), forward)
        return point if self.anchor is None else AnchoredPoint(point, z, self.anchor)


class StochasticView:
    """Points of the problem on group-stratified mini-batches."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._samplers: dict[tuple[int, float], Sampler | ClusterSampler] = {}
        self._objective_samplers: dict[int, Sampler | ClusterSampler] = {}

    @cached_property
    def whole(self) -> FullBatchView:
        """All rows."""
        return FullBatchView(self.problem)

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
        base = _part_of(self.problem, z, "minus")
        m = base.constraints.size
        tangents = np.stack([base.loss_gradient(1.0, np.zeros(m)), *(base.loss_gradient(0.0, e) for e in np.eye(m))])
        return _Linearized(self, z, np.concatenate([[base.loss], base.constraints]), tangents)


def _part_of(problem: Problem, z: np.ndarray, part: str) -> ModelPoint:
    """The point of one of the two convex parts of the terms."""
    return problem.point(z, partial(DifferentiatedPoint, problem, part=part))


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
        plus = _part_of(self.view.problem, v, "plus")
        return _LinearizedPoint(plus, self.minus + self.tangents @ (v - self.z), self.tangents)


class _LinearizedPoint(ChangedPoint):
    def __init__(self, plus: ModelPoint, minus: np.ndarray, tangents: np.ndarray) -> None:
        super().__init__(plus)
        self._tangents = tangents
        self.objective = plus.objective - float(minus[0])
        self.constraints = plus.constraints - minus[1:]

    def gradient(self, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """Gradient of a combination, as in `Point.gradient`."""
        tangent = objective * self._tangents[0] + multipliers @ self._tangents[1:]
        return self._point.gradient(objective, multipliers) - tangent


_PROBLEM_VIEWS: dict[type, Callable[[Problem], Any]] = {
    FullBatch: FullBatchView,
    Stochastic: StochasticView,
    DifferenceOfConvex: DifferenceOfConvexView,
}

#: Views that an objective need not offer.
_CONSTRAINT_VIEWS = (ConvexQuadratic, Exact)
#: Views that a solver may need of the model.
_MODEL_VIEWS = (ParametricModel, LinearMoments)


class SolverRequirements(Protocol):
    """Requirements of a solver for the problems that it takes."""

    requires: ClassVar[tuple[type, ...]]
    model: ClassVar[type]

    @classmethod
    def accepts(cls, domain: Domain) -> bool:
        """Whether it keeps the parameters in this domain."""

    @classmethod
    def obstacle(cls, problem: Problem) -> str:
        """Need of the solver that the problem does not meet, beside views and domain; empty where there is none."""


#: Requirements of every registered solver, by the solver's name; filled by `fairconstrained.solvers`.
SOLVER_REQUIREMENTS: dict[str, type[SolverRequirements]] = {}
