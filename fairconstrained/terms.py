"""Terms of a problem: an objective and constraints, which are functions of the scores and know no model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple, Protocol, Self, cast

import numpy as np
import torch
from torch import Tensor

from fairconstrained.constraints import BoundConstraint
from fairconstrained.constraints.offsets import free_offset
from fairconstrained.data import FairData
from fairconstrained.objectives import BoundObjective, Loss, of_rows
from fairconstrained.views import DirectSlopes, Pull, RowLosses

__all__ = ["DifferentiatedPoint", "RowLossTerms", "Terms", "TermsPoint", "evaluated"]

#: Components whose slopes are computed together.
_AT_ONCE = 16


class TermsPoint(Protocol):
    """Values of the terms at some scores and auxiliary variables."""

    @property
    def loss(self) -> float:
        """The objective without a penalty on the model."""

    @property
    def constraints(self) -> np.ndarray:
        """Components, satisfied where at most 0; ndarray of shape (n_components,)."""

    @property
    def scores(self) -> np.ndarray:
        """Scores of all rows; ndarray of shape (n_samples,)."""

    def slopes(self, objective: float, multipliers: np.ndarray) -> tuple[Tensor, np.ndarray]:
        """Slopes of ``objective * loss + multipliers @ constraints``.

        Parameters
        ----------
        objective : float
        multipliers : ndarray of shape (n_components,)

        Returns
        -------
        scores : Tensor of shape (n_samples,)
            Derivatives with respect to the scores.
        aux : ndarray of shape (n_aux,)
            Derivatives with respect to the auxiliary variables.
        """

    def component_slopes(self, chosen: np.ndarray) -> Iterator[tuple[Tensor, np.ndarray]]:
        """Slopes of some of the constraints, one after the other.

        Parameters
        ----------
        chosen : ndarray of int of shape (n_chosen,)
            Numbers of the components, ascending.

        Yields
        ------
        scores, aux
            As `slopes` returns them.
        """


class Measured(NamedTuple):
    """The exact metrics at some scores."""

    #: The metric of every constraint, by its name.
    values: dict[str, float]
    #: The exact values less ``kappa``.
    violations: np.ndarray  # of shape (n_constraints,)
    #: The largest violation beyond the metric's granularity; at most 0 where all constraints hold, and -inf without
    #: constraints.
    excess: float


@dataclass(frozen=True)
class Terms:
    """Minimise ``f(scores)`` subject to ``c(scores, aux) <= 0``, whatever the scores come from.

    Parameters
    ----------
    objective : BoundObjective
    constraints : tuple of BoundConstraint
    data : FairData
    threshold : float
        Score above which a row is predicted positive.
    """

    objective: BoundObjective
    constraints: tuple[BoundConstraint, ...]
    data: FairData
    threshold: float = 0.0

    def at_scores(self, scores: Tensor, aux: np.ndarray, row_losses: RowLossTerms | None = None) -> TermsPoint:
        """Values and slopes of the terms.

        Parameters
        ----------
        scores : Tensor of shape (n_samples,)
            Scores in the order of the data, without a graph.
        aux : ndarray of shape (n_aux,)
            Auxiliary variables, see `initial_aux`; those of constraints that these terms leave out may follow.
        row_losses : RowLossTerms, optional
            Losses of the rows for these terms, where they are known.
        """
        losses = row_losses or self.row_losses
        if losses is not None:
            return _RowLossPoint(self, scores, aux, losses)
        if isinstance(self.objective, RowLosses) and all(isinstance(c, DirectSlopes) for c in self.constraints):
            return _DirectPoint(self, scores, aux)
        return DifferentiatedPoint(self, scores, aux)

    @property
    def row_losses(self) -> RowLossTerms | None:
        """Losses of the rows that the terms are linear in; None if a term is linear in none."""
        terms = (self.objective, *self.constraints)
        found = [term.row_loss for term in terms if isinstance(term, RowLosses)]
        return RowLossTerms.of(found) if len(found) == len(terms) else None

    @property
    def component_names(self) -> tuple[str, ...]:
        """Names of the constraint components, in the order of ``TermsPoint.constraints``."""
        return tuple(chain.from_iterable(constraint.component_names for constraint in self.constraints))

    @cached_property
    def _dampings(self) -> np.ndarray:
        return np.repeat([c.damping for c in self.constraints], [len(c.component_names) for c in self.constraints])

    def undamped(self, values: np.ndarray, chosen: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return components, their multipliers or gradients in rows, divided by `BoundConstraint.damping`.

        ``chosen`` has the numbers of these components, by default of all.
        """
        return (values.T / self._dampings[chosen]).T

    @cached_property
    def aux_slices(self) -> tuple[slice, ...]:
        """Places of the auxiliary variables of every constraint among those of all."""
        return tuple(slice(a, b) for a, b in pairwise(accumulate((c.n_aux for c in self.constraints), initial=0)))

    def initial_aux(self, scores: np.ndarray) -> np.ndarray:
        """Auxiliary variables that suit the scores; ndarray of shape (n_aux,)."""
        return np.concatenate([np.empty(0), *(c.initial_aux(scores) for c in self.constraints)])

    def fair_aux(self) -> np.ndarray:
        """Auxiliary variables with which the surrogates hold when all scores are zero; ndarray of shape (n_aux,)."""
        return np.concatenate([np.empty(0), *(c.fair_aux() for c in self.constraints)])

    def measured(self, scores: np.ndarray) -> Measured:
        """The exact metrics at given scores."""
        values, violations = {}, []
        for c in self.constraints:
            values[c.name] = c.metric(scores)
            known = c.bounds_metric and not np.isnan(values[c.name])
            # a metric that does not exist counts as the worst there is
            violations.append(c.excess(values[c.name]) if known else c.exact(scores))
        excess = max((v - c.granularity for v, c in zip(violations, self.constraints, strict=True)), default=-np.inf)
        return Measured(values, np.array(violations), float(excess))

    @property
    def granularities(self) -> np.ndarray:
        """Granularity of every constraint; ndarray of shape (n_constraints,)."""
        return np.array([c.granularity for c in self.constraints])

    def exact(self, scores: np.ndarray) -> np.ndarray:
        """Return `BoundConstraint.exact` of every constraint; ndarray of shape (n_constraints,)."""
        return np.array([c.exact(scores) for c in self.constraints])

    def holds(self, scores: np.ndarray, share: float = 1.0) -> bool:
        """Whether the exact values of all constraints are at most a share of their granularity."""
        return all(c.exact(scores) <= share * c.granularity for c in self.constraints)

    @cached_property
    def strata(self) -> np.ndarray:
        """Number of the group of every row, as mini-batches tell groups apart; ndarray of shape (n_samples,).

        The groups of the first constraint that has its own.
        """
        return next((c.strata for c in self.constraints if c.strata is not None), self.data.codes)

    def offset_searches(self) -> list[Any]:
        """Exact searches for the offsets of every group's scores, see `BoundConstraint.offsets`.

        One for each constraint, which sees no other one; without constraints, that of the fewest errors.
        """
        return [constraint.offsets for constraint in self.constraints] or [self._unconstrained_offsets]

    def _unconstrained_offsets(
        self, scores: np.ndarray, gains: np.ndarray, threshold: float, shared: bool
    ) -> np.ndarray:
        parts = [slice(None)] if shared else self.data.slices
        offsets = [free_offset(scores[rows], gains[rows], threshold) for rows in parts]
        return np.resize(offsets, self.data.n_groups)

    def with_restoring_slopes(self) -> Self:
        """Return the terms with slopes of the constraints wherever they are violated."""
        return replace(self, constraints=tuple(c.with_restoring_slopes() for c in self.constraints))

    def refined(self, scores: np.ndarray, blur: float, margins: np.ndarray | None = None) -> Self:
        """Return the terms with surrogates closer to the metrics, see `Exact.refined`; without margins for None."""
        margins = np.zeros(len(self.constraints)) if margins is None else margins
        pairs = zip(self.constraints, margins.tolist(), strict=True)
        return replace(self, constraints=tuple(c.refined(scores, blur=blur, margin=margin) for c, margin in pairs))

    def stricter(self) -> Self | None:
        """Terms to begin with, whose constraints imply those of these; None where no constraint has any such."""
        found = [c.stricter() for c in self.constraints]
        if not any(found):
            return None
        return replace(self, constraints=tuple(s or c for s, c in zip(found, self.constraints, strict=True)))

    def without_constraints(self) -> Self:
        """Return the objective, unconstrained."""
        return replace(self, constraints=())

    def with_easiest_objective(self) -> Self:
        """Return the terms with the first objective on the way to theirs, such as the logistic loss for errors."""
        return replace(self, objective=self.objective.loss.path()[0].bind(self.data))

    def favouring_positives(self, factor: float) -> Self | None:
        """Return the terms with an objective in which rows with positive targets count so many times as much.

        None where there is no such objective.
        """
        objective = self.objective.loss.favouring_positives(factor)
        return None if objective is None else replace(self, objective=objective.bind(self.data))


def evaluated(terms: Terms, scores: Tensor, aux: Tensor, part: str) -> tuple[Tensor, Tensor]:
    """The objective, of shape (1,), and the constraints, of shape (n_components,).

    Arguments are those of `DifferentiatedPoint`, with ``aux`` as a Tensor.
    """
    objective, slices = getattr(terms.objective, part)(scores, aux[:0]), terms.aux_slices
    constraints = [getattr(c, part)(scores, aux[own]) for c, own in zip(terms.constraints, slices, strict=True)]
    return objective, torch.cat(constraints) if constraints else aux[:0]


class DifferentiatedPoint:
    """The point of terms that torch differentiates.

    Parameters
    ----------
    terms : Terms
    scores : Tensor
        As for `Terms.at_scores`; from now on torch records what is done with them.
    aux : ndarray of shape (n_aux,)
    part : {"values", "plus", "minus"}, default="values"
        Method of the terms that is evaluated; the last two are those of `DifferenceOfConvex`.
    """

    def __init__(self, terms: Terms, scores: Tensor, aux: np.ndarray, part: str = "values") -> None:
        self._scores = scores.requires_grad_()
        self._aux = torch.from_numpy(aux.copy()).requires_grad_()
        with torch.enable_grad():
            self._f, self._c = evaluated(terms, self._scores, self._aux, part)
        self.loss = self._f.item()
        self.constraints: np.ndarray = self._c.detach().numpy()

    @property
    def scores(self) -> np.ndarray:
        """Implement `TermsPoint.scores`."""
        return self._scores.detach().numpy()

    def slopes(self, objective: float, multipliers: np.ndarray) -> tuple[Tensor, np.ndarray]:
        """Implement `TermsPoint.slopes`."""
        # what a combination does not have is not differentiated either
        parts = [torch.from_numpy(multipliers) @ self._c] if multipliers.any() else []
        parts += [objective * self._f.sum()] if objective else []
        combination = torch.stack(parts or [self._c.new_zeros(())]).sum()
        if not combination.requires_grad:  # constant, such as the concave part of a convex objective may be
            return torch.zeros_like(self._scores), np.zeros(self._aux.numel())
        d_scores, d_aux = torch.autograd.grad(
            combination, (self._scores, self._aux), retain_graph=True, materialize_grads=True
        )
        return d_scores, d_aux.numpy()

    def component_slopes(self, chosen: np.ndarray) -> Iterator[tuple[Tensor, np.ndarray]]:
        """Implement `TermsPoint.component_slopes`, one combination after the other."""
        for number in chosen.tolist():
            unit = np.zeros(self.constraints.size)
            unit[number] = 1.0
            yield self.slopes(0.0, unit)


class _DirectPoint:
    """The point of a mean of losses under constraints whose slopes are computed by formulas; it needs no graph."""

    def __init__(self, terms: Terms, scores: Tensor, aux: np.ndarray) -> None:
        self._free, self._scores, self._aux = _RowLossPoint.of_objective(terms, scores), scores, aux.copy()
        self._terms = terms

    @property
    def loss(self) -> float:
        return self._free.loss

    @cached_property
    def _parts(self) -> list[tuple[np.ndarray, Pull]]:
        """Components of every constraint, with what gives their slopes."""
        terms, scores = self._terms, self.scores
        pairs = zip(terms.constraints, terms.aux_slices, strict=True)
        return [cast(DirectSlopes, constraint).with_slopes(scores, self._aux[own]) for constraint, own in pairs]

    @cached_property
    def constraints(self) -> np.ndarray:
        return np.concatenate([np.empty(0), *(values for values, _ in self._parts)])

    @property
    def scores(self) -> np.ndarray:
        return self._scores.numpy()

    def slopes(self, objective: float, multipliers: np.ndarray) -> tuple[Tensor, np.ndarray]:
        of_scores, of_aux = np.zeros(self._scores.shape), np.zeros(self._aux.size)
        if objective:
            of_scores = self._free.slopes(objective, np.empty(0))[0].numpy()
        first = 0
        for (values, pull), own_aux in zip(self._parts, self._terms.aux_slices, strict=True):
            own = multipliers[first : first + values.size]
            first += values.size
            if own.any():
                slopes, of_aux[own_aux] = pull(own)
                of_scores = of_scores + slopes
        return torch.from_numpy(of_scores), of_aux

    def component_slopes(self, chosen: np.ndarray) -> Iterator[tuple[Tensor, np.ndarray]]:
        first = 0
        for (values, pull), own_aux in zip(self._parts, self._terms.aux_slices, strict=True):
            for number in chosen[(chosen >= first) & (chosen < first + values.size)] - first:
                unit, of_aux = np.zeros(values.size), np.zeros(self._aux.size)
                unit[number] = 1.0
                of_scores, of_aux[own_aux] = pull(unit)
                yield torch.from_numpy(of_scores), of_aux
            first += values.size


class RowLossTerms(NamedTuple):
    """Row losses in which the terms of a problem are linear.

    Attributes
    ----------
    losses : tuple of Loss
        Each once, the objective's first.
    places : tuple of int
        The number of the loss of every constraint.
    """

    losses: tuple[Loss, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, losses: Sequence[Loss]) -> Self:
        """Collect the loss of every term, the objective's first."""
        distinct = tuple(dict.fromkeys(losses))
        return cls(distinct, tuple(distinct.index(loss) for loss in losses[1:]))


class _RowLossPoint:
    """The point of terms that are linear in losses of the rows; it needs no graph."""

    def __init__(self, terms: Terms, scores: Tensor, aux: np.ndarray, row_losses: RowLossTerms) -> None:
        self._terms, self._row_losses, self._scores, self._aux = terms, row_losses, scores, aux.copy()
        self._known: dict[int, np.ndarray] = {}

    @classmethod
    def of_objective(cls, terms: Terms, scores: Tensor) -> _RowLossPoint:
        """The point of the objective alone."""
        free = Terms(terms.objective, (), terms.data)
        return cls(free, scores, np.empty(0), RowLossTerms.of([cast(RowLosses, terms.objective).row_loss]))

    def _losses(self, place: int) -> np.ndarray:
        """Losses of the rows, of one kind: a step may ask for those of the bounds alone, or for nothing but slopes."""
        if place not in self._known:
            self._known[place] = self._row_losses.losses[place].of(self._scores, self._terms.data.y).numpy()
        return self._known[place]

    @property
    def loss(self) -> float:
        return float(cast(RowLosses, self._terms.objective).of_losses(self._losses(0), self._aux[:0])[0])

    @cached_property
    def _parts(self) -> list[np.ndarray]:
        """Components of every constraint."""
        terms = self._terms
        return [
            cast(RowLosses, constraint).of_losses(self._losses(place), self._aux[own])
            for constraint, place, own in zip(terms.constraints, self._row_losses.places, terms.aux_slices, strict=True)
        ]

    @cached_property
    def constraints(self) -> np.ndarray:
        return self._parts[0] if len(self._parts) == 1 else np.concatenate([np.empty(0), *self._parts])

    @property
    def scores(self) -> np.ndarray:
        return self._scores.numpy()

    def slopes(self, objective: float, multipliers: np.ndarray) -> tuple[Tensor, np.ndarray]:
        terms, losses = self._terms, self._row_losses.losses
        weights: list[np.ndarray | None] = [None] * len(losses)  # of those that the combination has
        if objective:
            weights[0] = cast(RowLosses, terms.objective).row_weights(np.array([objective]))[0]
        slopes_aux, first = [], 0
        # one constraint has all multipliers, whose values need not be known
        sizes = [multipliers.size] if len(terms.constraints) == 1 else [part.size for part in self._parts]
        for constraint, place, size in zip(terms.constraints, self._row_losses.places, sizes, strict=True):
            chosen = multipliers[first : first + size]
            first += size
            aux = np.zeros(constraint.n_aux)
            if chosen.any():
                own, aux = cast(RowLosses, constraint).row_weights(chosen)
                weights[place] = own if weights[place] is None else weights[place] + own
            if aux.size:
                slopes_aux.append(aux)
        n_other = self._aux.size - sum(constraint.n_aux for constraint in terms.constraints)
        if n_other:  # variables of constraints that these terms are without
            slopes_aux.append(np.zeros(n_other))
        return self._weighted(weights), np.concatenate(slopes_aux) if slopes_aux else np.empty(0)

    def component_slopes(self, chosen: np.ndarray) -> Iterator[tuple[Tensor, np.ndarray]]:
        terms, first = self._terms, 0
        parts = zip(terms.constraints, self._row_losses.places, terms.aux_slices, strict=True)
        for constraint, place, own_aux in parts:
            size = len(constraint.component_names)
            own = chosen[(chosen >= first) & (chosen < first + size)] - first
            first += size
            slope = self._row_losses.losses[place].slope(self._scores, terms.data.y) if own.size else self._scores
            for start in range(0, own.size, _AT_ONCE):
                block = own[start : start + _AT_ONCE]
                units = np.zeros((block.size, size))
                units[np.arange(block.size), block] = 1.0
                weights, slopes_aux = cast(RowLosses, constraint).row_weights(units)
                for of_rows_alone, of_aux in zip(torch.from_numpy(weights), slopes_aux, strict=True):
                    aux = np.zeros(self._aux.size)
                    aux[own_aux] = of_aux
                    yield of_rows(of_rows_alone, slope), aux

    def _weighted(self, weights: Sequence[np.ndarray | None]) -> Tensor:
        """Slopes of the sum of the losses with these weights of the rows; Tensor of shape (n_samples,)."""
        scores, y = self._scores, self._terms.data.y
        slopes = [
            of_rows(torch.from_numpy(own), loss.slope(scores, y))
            for loss, own in zip(self._row_losses.losses, weights, strict=True)
            if own is not None
        ]
        if not slopes:
            return torch.zeros_like(scores)
        return sum(slopes[1:], slopes[0])
