"""Search for the fewest errors of a linear model under bounds on its decisions, with exact thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from typing_extensions import override

from fairconstrained.models import LinearModel
from fairconstrained.points import largest_violation
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers._base import Callback, Recorder, Solver, SolverResult, Status, solver_state
from fairconstrained.solvers._options import Count
from fairconstrained.solvers._smoothed_sums import CellSums, SmoothedSums
from fairconstrained.solvers._span_rows import LEAST_MULTIPLE, PRICES, End, SpanRows
from fairconstrained.solvers._unconstrained import unconstrained
from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.views import Exact, FullBatch

__all__ = ["SpanSearch"]

#: Multiples of the scores, of which the decisions do not depend, but the smooth count of the errors does.
_MULTIPLES = LEAST_MULTIPLE * 2.0 ** np.arange(9)
#: Widths of smooth decisions in deviations of the scores, one after the other; and the last one, which is this times
#: n^(-1/5) for n rows, the rate of Horowitz's estimator: sharper ones would follow the luck of single rows.
_WIDTHS, _SHARP = (0.6, 0.3, 0.15), 0.75
#: How many of the best ends of smooth decisions are finished by random steps, by how much the counted errors of these
#: have to exceed the smooth ones for the sweep's end to be finished as well, and the most rows of a sweep.
_FINISHED, _MISSED, _SWEPT_ROWS = 2, 0.005, 1000
#: Standard deviation of the first random steps by which each of them is finished, and how far these may lead.
_STEP, _REACH = 0.02, 0.1
#: Parameters up to which a model is moved in all directions.
_FEW = 40


@dataclass(frozen=True)
class SpanSearch(Solver):
    r"""Search for the fewest errors around the unconstrained model, by smooth decisions that become sharper.

    With the coefficients :math:`w_0` of the logistic loss and its Hessian H there, the errors are minimised over

    .. math:: w = w_0 - \sum_j b_j d_j \quad \text{and a shift of all scores,}

    with directions :math:`d_j` that are orthogonal to :math:`w_0` in H: for up to 40 coefficients all there are,
    beginning with :math:`H^{-1} X^T r_j` for the slopes :math:`r_j` of the bounded quantities in the scores
    :math:`X w_0`, and for more coefficients these alone.

    Where the bounded quantities are sums over the positive decisions, as differences of rates are, a row is predicted
    positive to the degree :math:`\sigma(s_i / h)`. For one width h after the other, a few sequential quadratic programs
    minimise the errors that this makes within the bounds that it leads to; the last width falls like
    :math:`n^{-1/5}` with the number of rows. This begins at :math:`w_0` with a wide and with a narrow h, or with the
    last one where the search for another bound ended. It also begins with the last one where a sweep by counts ends,
    over the steps along the two steepest directions, with all thresholds at once by sorting.
    The two best of these ends are finished on all rows: where the counted rows are worse than the smooth ones, random
    steps from there look for better numbers. If they find none that are nearly as good within the bounds, other random
    steps begin at the end of the sweep; and if these find none either, as where many rows have equal scores, which no
    smooth decision can divide, the solution for the logistic loss within the bounds counts as well. At last the
    threshold is chosen that makes the fewest errors of all within the bounds.

    With ``exact=True`` random steps go on from all three, each counted with all thresholds. For few numbers, such as
    those of a head, this finds the fewest errors that there are on the training rows, up to single ones. New rows gain
    little by it, as their gaps are a little larger, too.

    Clipped rates and bounds on the order of scores are counted throughout: the steps along the directions of the
    slopes are found by scans and by the method of Nelder and Mead, with all thresholds at once by sorting.

    Under demographic parity the best classifier of all is of this form if the features hold the probabilities of label
    and group: a threshold on :math:`P(y = 1 \mid x) - \sum_g \lambda_g P(g \mid x) / P(g)`.

    Takes objectives that count errors (``objective="zero_one"``), constraints on decisions, and linear scores with an
    intercept, shared by all groups. There are no multipliers.

    Parameters
    ----------
    max_iter : int, default=1
        Scans along all directions, one after the other, for each price of an excess, where bounds are counted.
    max_directions : int, default=8
        Directions of slopes at most, those that move the scores most.
    search_rows : int, default=10000
        Rows on which the search begins where there are more.
    exact : bool, default=False
        Whether errors are counted to the end where they can be counted by sums over the positive decisions.

    References
    ----------
    Horowitz, A smoothed maximum score estimator for the binary response model, Econometrica 60(3), 1992: equation 2.
    Nocedal, Wright (2006), Numerical Optimization, chapter 18 for sequential quadratic programs.
    Menon, Williamson, The cost of fairness in binary classification, FAT* 2018: proposition 4.
    Xian, Zhao, A unified post-processing framework for group fairness in classification, arXiv:2405.04025.
    """

    name: ClassVar[str] = "span_search"
    requires: ClassVar[tuple[type, ...]] = (FullBatch, Exact)
    projects: ClassVar[bool] = False
    keeps_metric: ClassVar[bool] = True
    is_final: ClassVar[bool] = True
    is_resumable: ClassVar[bool] = True

    max_iter: Count = 1
    max_directions: Count = 8
    search_rows: Count = 10_000
    exact: bool = False

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
        """Implement `Solver.solve`; from the result for another ``kappa`` it goes on from the model found there."""
        known = solver_state(start, _Free, problem.data)
        free, n_evaluations = unconstrained(problem) if known is None else (known.params, 0)
        recorder = Recorder(callback, self.verbose)
        sums = CellSums.of(problem, problem.scores(free))
        span = SpanRows.of(problem, free, self.max_directions, _FEW if sums else 0)
        near = None if start is None else span.numbers_of(start.model_state)
        best, n_sweeps = self._found(span, sums, near, random_state)
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
            surrogate_violation=largest_violation(measured.violations),
            multipliers=None if problem.constraints else {},
            history=tuple(recorder.records),
            start=Start(state, fingerprint=problem.data.fingerprint, solver_state=_Free(free)),
            candidates=(free,),
            is_stationary=sums is not None and measured.excess <= 0,
        )

    @staticmethod
    def has_smooth_sums(problem: Problem, params: np.ndarray) -> bool:
        """Whether smooth decisions show the way, so that a search from few starts finds the best numbers.

        Parameters
        ----------
        problem : Problem
        params : ndarray of shape (n_params,)
        """
        return CellSums.of(problem, problem.scores(params)) is not None

    def _found(
        self, span: SpanRows, sums: CellSums | None, known: np.ndarray | None, rng: np.random.Generator
    ) -> tuple[End, int]:
        """The best end, from the numbers for another bound where they are known; with the sweeps."""
        if sums is not None:
            return self._smoothed(span, sums, known, rng)
        rows, begin = span.terms.data, span
        if rows.n_samples > self.search_rows and span.terms.works_on_other_rows:
            begin = span.on(rows.thinned(rng, self.search_rows))
        return self._counted(span, begin, None if known is None else known[:-1], rng)

    def _smoothed(
        self, span: SpanRows, sums: CellSums, known: np.ndarray | None, rng: np.random.Generator
    ) -> tuple[End, int]:
        """The best end of searches by smooth decisions, which become sharper, and of a sweep; with the evaluations."""
        whole, zeros = span.smoothed(sums), np.zeros(span.n_directions + 1)
        begin = span.smoothed(sums.thinned(self.search_rows)).near(zeros, np.inf)
        sharp = _SHARP * sums.order.size**-0.2
        swept, n_sweeps = span.swept(span.smoothed(sums.thinned(_SWEPT_ROWS)))
        cold = [(zeros, _WIDTHS), (zeros, _WIDTHS[-1:])]
        found = []
        for numbers, widths in [*(cold if known is None else [(known, ())]), (swept, ())]:
            for width in (*widths, sharp):
                numbers, worth, n_more = begin.minimised(numbers, span.deviation * width)
                n_sweeps += n_more
            found.append((numbers, worth))
        ends, goal, least = [], np.inf, np.inf
        for numbers, _ in sorted(found, key=lambda each: each[1])[:_FINISHED]:
            numbers, worth, n_more = whole.near(numbers, np.inf).minimised(numbers, span.deviation * sharp)
            least, goal = min(least, worth), -np.inf if self.exact else worth
            end, n_trials = self._finished(span, whole, numbers, goal, rng)
            ends.append(end)
            n_sweeps += n_more + n_trials
        if _missed(ends, goal):
            end, n_trials = self._finished(span, whole, swept, goal, rng)
            ends.append(end)
            n_sweeps += n_trials
        if _missed(ends, least):
            likely = AugmentedLagrangian().solve(span.terms.with_easiest_objective(), None, rng)
            numbers = span.numbers_of(likely.model_state)
            ends += [] if numbers is None else [span.finished_by(whole, numbers)]
            n_sweeps += likely.n_evaluations
        return min(ends, key=lambda end: (end.excess, end.worth)), n_sweeps

    def solved_near(self, problem: Problem, params: np.ndarray, random_state: np.random.Generator) -> np.ndarray | None:
        """The best parameters next to those of a similar problem, such as that of more rows.

        Parameters
        ----------
        problem : Problem
            Linear scores of few features.
        params : ndarray of shape (n_params,)
        random_state : numpy.random.Generator

        Returns
        -------
        params : ndarray of shape (n_params,) or None
            None where decisions cannot be counted by sums over the positive ones.
        """
        scores = problem.scores(params)
        sums = CellSums.of(problem, scores)
        if sums is None:
            return None
        # a multiple with the same decisions, at which the logistic loss is curved for most rows
        unit = _multiplied(problem, params, 1 / (np.std(scores) or 1.0))
        span = SpanRows.of(problem, unit, self.max_directions, _FEW)
        whole, zeros = span.smoothed(sums), np.zeros(span.n_directions + 1)
        sharp = span.deviation * _SHARP * sums.order.size**-0.2
        numbers, worth, _ = whole.near(zeros, np.inf).minimised(zeros, sharp)
        return self._finished(span, whole, numbers, worth, random_state)[0].params

    @staticmethod
    def _finished(
        span: SpanRows, whole: SmoothedSums, numbers: np.ndarray, goal: float, rng: np.random.Generator
    ) -> tuple[End, int]:
        """The end of random steps from some numbers, which go on until counts of whole rows reach the goal."""
        numbers, n_trials = whole.polished(numbers, goal, _STEP, _REACH, rng)
        return span.finished_by(whole, numbers), n_trials

    def _counted(
        self, span: SpanRows, begin: SpanRows, known: np.ndarray | None, rng: np.random.Generator
    ) -> tuple[End, int]:
        """The end of a search by counts; with the sweeps."""
        found, n_sweeps = begin.searched_near(known) if known is not None and known.any() else ([], 0)
        if not found or begin.n_directions > 1:  # of several directions the best steps may lie elsewhere
            more, n_more = begin.searched(self.max_iter, rng)
            found, n_sweeps = found + more, n_sweeps + n_more
        steps = min(found, key=lambda one: span.finished(one).worth)
        best = span.finished(steps)
        steps, n_more = span.refined(steps, PRICES[-1], share=0.1, n_sweeps=10 + 5 * span.n_directions)
        return min(best, span.finished(steps), key=lambda end: (end.excess, end.worth)), n_sweeps + n_more


def _missed(ends: Sequence[End], goal: float) -> bool:
    """Whether no end within the bounds has counts nearly as good as smooth decisions had promised."""
    return min((end.worth for end in ends if end.excess <= 0), default=np.inf) > goal + _MISSED


class _Free(NamedTuple):
    """Parameters of the unconstrained model."""

    params: np.ndarray


def _scaled(problem: Problem, params: np.ndarray) -> np.ndarray:
    """Return the multiple of the distances from the threshold with the least smooth objective; decisions stay."""
    multiples = [_multiplied(problem, params, factor) for factor in _MULTIPLES]
    return min(multiples, key=lambda each: problem.objective_at(each, problem.scores(each)))


def _multiplied(problem: Problem, params: np.ndarray, factor: float) -> np.ndarray:
    """Parameters with a multiple of the distances from the threshold."""
    origin = np.zeros_like(params)
    origin[-1] = problem.threshold
    return origin + factor * (params - origin)
