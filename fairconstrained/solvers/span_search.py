"""Search in the few directions in which bounds on decisions move a linear model, with exact thresholds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from typing_extensions import override

from fairconstrained.models import LinearModel
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers._base import Callback, Recorder, Solver, SolverResult, Status
from fairconstrained.solvers._options import Count
from fairconstrained.solvers._span_rows import PRICES, End, SpanRows
from fairconstrained.solvers._span_values import are_sums, calibration, components_at, decisions_of
from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.views import Exact, FullBatch

__all__ = ["SpanSearch"]

#: Multiples of the scores, of which the decisions do not depend, but the smooth count of the errors does.
_MULTIPLES = 2.0 ** np.arange(-2, 7)
#: Times that expected values are made exact for the decisions found so far.
_ROUNDS = 4
#: Difference by counts from which on other steps may be the better ones.
_LOSS = 0.005


@dataclass(frozen=True)
class SpanSearch(Solver):
    r"""Search in the span of the unconstrained model and the slopes of the bounded rates, by sorting.

    With the coefficients :math:`w_0` of the logistic loss, its Hessian H there, and the slopes :math:`r_j` of the
    bounded quantities in the scores :math:`s_0 = X w_0`, the errors are minimised over

    .. math:: w = w_0 - \sum_j \lambda_j H^{-1} X^T r_j \quad \text{and a shift of all scores},

    exactly over the shift: for given :math:`\lambda` the decisions change at the scores of the rows only, so that all
    their rates come from one sorting. :math:`\lambda` is found by scans along the directions, by the method of Nelder
    and Mead and, of several directions, by random steps, on a part of the rows and then on all.

    Under demographic parity the best classifier of all is of this form if the features hold the probabilities of label
    and group: a threshold on :math:`P(y = 1 \mid x) - \sum_g \lambda_g P(g \mid x) / P(g)`. Few numbers are chosen,
    so that little of the bound is learnt from the noise of the rows.

    Of many steps and thresholds of nearly the same error, those whose counted error and rates are low by luck would be
    chosen. So where the bounded quantities are sums over the positive decisions, as differences of rates are, the
    search goes by *expected* errors and sums: the label of a row counts as :math:`\sigma(s_0)`, and the amount
    :math:`a_{ij}` that it adds to the quantity j as the regression of :math:`a_j` on the features,

    .. math:: x_i^T H^{-1} X^T r_j, \qquad
              r_{ij} = w_i \, \sigma(s_{0i}) \, (1 - \sigma(s_{0i})) \, a_{ij}.

    What the counted quantities at the solution exceed these by is added to them, and the search repeated. At last
    :math:`\lambda` is multiplied by the factor, and the threshold chosen, that are the best by expected values of
    those which keep the bounds as counted. So the bounds hold exactly on the rows of the fit, as elsewhere.

    Takes objectives that count errors (``objective="zero_one"``), constraints on decisions, and linear scores with an
    intercept, shared by all groups. There are no multipliers.

    Parameters
    ----------
    max_iter : int, default=1
        Scans along all directions, one after the other, for each price of an excess.
    max_directions : int, default=8
        Directions at most, those that move the scores most.
    search_rows : int, default=10000
        Rows on which the search begins where there are more.

    References
    ----------
    Menon, Williamson, The cost of fairness in binary classification, FAT* 2018: proposition 4.
    Xian, Zhao, A unified post-processing framework for group fairness in classification, arXiv:2405.04025.
    """

    name: ClassVar[str] = "span_search"
    requires: ClassVar[tuple[type, ...]] = (FullBatch, Exact)
    projects: ClassVar[bool] = False
    keeps_metric: ClassVar[bool] = True
    is_resumable: ClassVar[bool] = True

    max_iter: Count = 1
    max_directions: Count = 8
    search_rows: Count = 10_000

    @classmethod
    @override
    def obstacle(cls, problem: Problem) -> str:
        model = problem.model
        if not isinstance(model, LinearModel) or model.n_copies != 1 or not model.fit_intercept:
            return "linear scores with an intercept, shared by all groups"
        if not problem.objective.counts_errors:
            return "an objective that counts errors, such as objective='zero_one'"
        nothing = np.zeros(problem.data.n_samples)
        for constraint in problem.constraints:
            at_threshold = constraint.decision_threshold in (None, problem.threshold)
            if not at_threshold or constraint.values_at_cuts(nothing, nothing[:1]) is None:
                return f"bounds on decisions or on the order of scores, which {constraint.name!r} is not"
        return ""

    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        """Implement `Solver.solve`; from the result for another ``kappa`` it goes on from the steps found there."""
        known = None if start is None else start.on(problem.data).solver_state
        known = known if isinstance(known, _Known) and known.free.size == problem.n_params else None
        free, n_evaluations = (known.free, 0) if known else self._unconstrained(problem, random_state)
        recorder = Recorder(callback, self.verbose)
        span = SpanRows.of(problem, free, self.max_directions)
        near = known is not None and known.steps.size == span.n_directions and bool(known.steps.any())
        best, n_sweeps = self._found(span, known.steps if known is not None and near else None, random_state)
        state = _scaled(problem, best.params)
        scores = problem.scores(state)
        measured, objective = problem.measured(scores), problem.objective_at(state, scores)
        errors = span.counts.error(scores)
        recorder.add(n_iter=1, n_sweeps=n_sweeps, objective=objective, error=errors, **measured.values)
        return SolverResult(
            model_state=state,
            status=Status.COMPLETED if measured.excess <= 0 else Status.INFEASIBLE,
            n_iter=1,
            n_evaluations=n_evaluations + 2,
            objective=objective,
            constraint_values=measured.values,
            surrogate_violation=float(measured.violations.max(initial=0.0)),
            multipliers=None if problem.constraints else {},
            history=tuple(recorder.records),
            start=Start(state, fingerprint=problem.data.fingerprint, solver_state=_Known(free, best.steps)),
            candidates=(free,),
        )

    def _found(self, span: SpanRows, known: np.ndarray | None, rng: np.random.Generator) -> tuple[End, int]:
        """The best end, from expected values where there are any that keep the counted bounds; with the sweeps."""
        rows, begin = span.terms.data, span
        if rows.n_samples > self.search_rows and span.terms.works_on_other_rows:
            begin = span.on(rows.thinned(rng, self.search_rows))
        if not are_sums(begin.terms, begin.scores):
            return self._counted(span, begin, known, rng)
        line = calibration(span.scores, decisions_of(span.terms))
        best, hoped, expecting, n_sweeps = self._expected(span.expecting(line), begin.expecting(line), known, rng)
        if best.excess > 0 or best.worth > hoped + _LOSS:
            other, n_more = self._counted(span, begin, known, rng)
            ends = [best, expecting.finished(other.steps)]
            best, n_sweeps = min(ends, key=lambda end: (end.excess, end.worth)), n_sweeps + n_more
        return best, n_sweeps

    def _counted(
        self, span: SpanRows, begin: SpanRows, known: np.ndarray | None, rng: np.random.Generator
    ) -> tuple[End, int]:
        """The end of a search by counts; with the sweeps."""
        found, n_begin = self._starts(begin, known, rng)
        best = min((span.finished(steps) for steps in found), key=lambda end: end.worth)
        steps, n_more = span.refined(best.steps, PRICES[-1], share=0.1, n_sweeps=10 + 5 * span.n_directions)
        return min(best, span.finished(steps), key=lambda end: end.worth), n_begin + n_more

    def _expected(
        self, span: SpanRows, begin: SpanRows, known: np.ndarray | None, rng: np.random.Generator
    ) -> tuple[End, float, SpanRows, int]:
        """The end of a search by expected values, made exact for the decisions found so far.

        Also returns what the steps would be worth without the counted bounds, the rows with the last expected values,
        and the number of sweeps.
        """
        span, begin = _made_exact(span, begin, np.zeros(span.n_directions), span.terms.threshold)
        found, n_sweeps = self._starts(begin, known, rng)
        values, counted = ([of(one, PRICES[-1]) for one in found] for of in (begin.value, begin.counted))
        first, other = int(np.argmin(values)), int(np.argmin(counted))
        # the expected values are not exact yet: steps that are far better by counts are another start
        chosen = [first, other] if counted[other] < counted[first] - _LOSS else [first]
        results = [self._from(span, begin, found[place]) for place in chosen]
        # by counts, as either has expected values of its own
        best, hoped, expecting, _ = min(results, key=lambda result: (result[0].excess, span.error(result[0])))
        return best, hoped, expecting, n_sweeps + sum(n_more for *_, n_more in results)

    @staticmethod
    def _from(span: SpanRows, begin: SpanRows, steps: np.ndarray) -> tuple[End, float, SpanRows, int]:
        """The end of a search by expected values that begins at some steps; the results are those of `_expected`."""
        n_sweeps = 0
        for _ in range(_ROUNDS):
            steps, n_more = begin.refined(steps, PRICES[-1], share=0.3, n_sweeps=60 + 10 * span.n_directions)
            span, begin = _made_exact(span, begin, steps, begin.best_cut(steps))
            n_sweeps += n_more
        ends = [span.finished(one) for one in span.within_counts(steps)]
        best = min(ends, key=lambda end: (end.excess, end.worth))
        return best, span.value(steps, PRICES[-1]), span, n_sweeps

    def _starts(
        self, begin: SpanRows, known: np.ndarray | None, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], int]:
        """Steps that may be good ones, and the sweeps that they took."""
        found, n_sweeps = begin.searched_near(known) if known is not None else ([], 0)
        if known is None or begin.n_directions > 1:  # of several directions the best steps may lie elsewhere
            more, n_more = begin.searched(self.max_iter, rng)
            found, n_sweeps = found + more, n_sweeps + n_more
        return found, n_sweeps

    @staticmethod
    def _unconstrained(problem: Problem, rng: np.random.Generator) -> tuple[np.ndarray, int]:
        """Minimise the first objective on the way to the one that counts errors, without constraints."""
        smooth = problem.objective.loss.path()[0].bind(problem.data)
        found = AugmentedLagrangian().solve(replace(problem, objective=smooth, constraints=()), None, rng)
        return found.model_state, found.n_evaluations


class _Known(NamedTuple):
    """Parameters of the unconstrained model, and the steps that were found for a bound."""

    free: np.ndarray
    steps: np.ndarray


def _made_exact(span: SpanRows, part: SpanRows, steps: np.ndarray, cut: float) -> tuple[SpanRows, SpanRows]:
    """All rows and a part, with expected values that are the counted ones of all rows above a cut after some steps."""
    components = components_at(span.terms, span.moved(steps) - cut + span.terms.threshold)
    return span.exact_at(steps, cut, components), part.exact_at(steps, cut, components)


def _scaled(problem: Problem, params: np.ndarray) -> np.ndarray:
    """Return the multiple of the distances from the threshold with the least smooth objective; decisions stay."""
    origin = np.zeros_like(params)
    origin[-1] = problem.threshold
    multiples = [origin + factor * (params - origin) for factor in _MULTIPLES]
    return min(multiples, key=lambda each: problem.objective_at(each, problem.scores(each)))
