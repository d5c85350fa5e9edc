"""Search in the few directions of shrunken models, for bounds on losses and AUCs of few rows for each feature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairconstrained.problem import Problem, Start
from fairconstrained.solvers._base import SolverResult
from fairconstrained.solvers._span_searches import Kept, Search, SpanSearches
from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.solvers.cross_fitted_span import CrossFittedSpan
from fairconstrained.solvers.sequential_quadratic import SequentialQuadratic

__all__ = ["FewDirections"]

#: Rise of the objective on rows not seen, as a fraction, beyond which bounds are costly, and the fraction that more
#: directions have to save; less may be chance.
_COSTLY, _WORTH = 0.1, 0.1
#: Largest margin as a share of ``kappa``.
_MOST_MARGIN = 0.9


@dataclass(frozen=True)
class FewDirections:
    """Searches of `CrossFitted` with shrunken models: in the sums of directions, and in all where these cost much."""

    run: SpanSearches
    tol: float

    def solve(self, span: CrossFittedSpan, rng: np.random.Generator) -> Kept | None:
        """Return the better of the results in both spans, see `SpanSearches.first_kept`; None if there is none."""
        best = None
        for own in span.from_narrow(self.run.problem):
            kept = self.run.first_kept(own, self._searches(own, rng, is_last=own is span))
            if best is None or (kept is not None and kept.unseen < best.unseen * (1 - _WORTH)):
                best = kept
            least = np.inf if best is None else best.unseen
            if self.run.recorder.stop is not None or least <= own.free_objective * (1 + _COSTLY):
                break
        return best

    def _searches(self, span: CrossFittedSpan, rng: np.random.Generator, is_last: bool) -> Iterator[Search]:
        """Search with margins for what b overfits, if there are any, and without."""
        margins = self._optimism(span, rng)
        for own in [margins, np.zeros_like(margins)] if margins.any() else [margins]:
            for number, reduced in enumerate(span.with_margins(own).problems(self.run.problem)):
                found = self._in_span(reduced, span.free, rng, is_last and not own.any())
                settled = found.status.is_settled
                yield Search(reduced, found, own, number > 0, may_be_last=settled, is_completed=not settled)

    def _in_span(self, reduced: Problem, free: np.ndarray, rng: np.random.Generator, tries_all: bool) -> SolverResult:
        """Solve by few quadratic programs, and by iterations where these do not settle and nothing else follows."""
        found = SequentialQuadratic(tol=self.tol).solve(reduced, Start(free), rng)
        if found.status.is_settled or not tries_all:
            return found
        return AugmentedLagrangian(tol=self.tol).solve(reduced, None, rng)

    def _optimism(self, span: CrossFittedSpan, rng: np.random.Generator) -> np.ndarray:
        """By how much larger metrics are on rows that b has not seen, by folds; ndarray of shape (n_constraints,)."""
        reduced, folds, quick = span.problem, span.folds, SequentialQuadratic(tol=self.tol)
        whole = quick.solve(reduced, Start(span.free), rng)
        if whole.status.is_infeasible:
            return np.zeros(len(reduced.constraints))
        scores, seen, numbers = np.empty(reduced.data.n_samples), [], np.unique(folds)
        for fold in numbers:
            rest = reduced.on(reduced.data.part(np.flatnonzero(folds != fold)))
            found = quick.solve(rest, Start(whole.model_state), rng).model_state
            scores[folds == fold] = reduced.scores(found)[folds == fold]
            own = rest.scores(found)
            seen.append([c.metric(own) for c in rest.constraints])
        unseen = np.array([c.metric(scores) for c in reduced.constraints])
        grown = np.sqrt(1 - 1 / numbers.size) * (unseen - np.mean(seen, axis=0))
        return np.clip(grown, 0.0, _MOST_MARGIN * np.array([c.kappa for c in reduced.constraints]))
