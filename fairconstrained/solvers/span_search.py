"""Search in the few directions in which bounds on decisions move a linear model, with exact thresholds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import ClassVar, NamedTuple, cast

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import expit
from typing_extensions import override

from fairconstrained.data import FairData
from fairconstrained.domains import Domain
from fairconstrained.models import LinearModel
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers._base import Callback, Recorder, Solver, SolverResult, Status
from fairconstrained.solvers._options import Count
from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.views import Exact, FullBatch

__all__ = ["SpanSearch"]

#: Steps along a direction that are tried at first, in standard deviations of the scores.
_STEPS = 0.02 * 2.0 ** np.arange(8)
#: Thresholds that are tried in the search; the last one of all is chosen among all rows.
_CUTS = 400
#: Error rates that count as much as an excess of one, in turn. With the first, the search stays near thresholds that
#: classify well; with the last, no excess pays, as the error falls by less than a group's share per unit of its rates.
_PRICES = (0.25, 0.5, 1.0, 2.0)
#: Singular values of the directions, relative to the first one, below which a direction is left out.
_RANK = 1e-3
#: Standard deviation of a logistic distribution of scale 1.
_LOGISTIC = np.pi / np.sqrt(3)
#: Multiples of the scores, of which the decisions do not depend, but the smooth count of the errors does.
_MULTIPLES = 2.0 ** np.arange(-2, 7)
#: Rounding of the metric that is no excess.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class SpanSearch(Solver):
    r"""Search in the span of the unconstrained model and the slopes of the bounded rates, by sorting.

    With the coefficients :math:`w_0` of the logistic loss, its Hessian H there, and the slopes :math:`r_j` of the
    bounded quantities in the scores :math:`s_0 = X w_0`, the errors are minimised over

    .. math:: w = w_0 - \sum_j \lambda_j H^{-1} X^T r_j \quad \text{and a shift of all scores},

    exactly over the shift: for given :math:`\lambda` the decisions change at the scores of the rows only, so that all
    their rates come from one sorting. :math:`\lambda` is found by scans along the directions and by the method of
    Nelder and Mead, on a part of the rows and then on all.

    Under demographic parity the best classifier of all is of this form if the features hold the probabilities of label
    and group: a threshold on :math:`P(y = 1 \mid x) - \sum_g \lambda_g P(g \mid x) / P(g)`. Few numbers are chosen,
    so that little of the bound is learnt from the noise of the rows.

    Takes objectives that count errors (``objective="zero_one"``), constraints on decisions, and linear scores with an
    intercept, shared by all groups. There are no multipliers.

    Parameters
    ----------
    max_iter : int, default=1
        Scans along all directions, one after the other, for each price of an excess.
    max_directions : int, default=8
        Directions at most, those that move the scores most.
    search_rows : int, default=20000
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

    max_iter: Count = 1
    max_directions: Count = 8
    search_rows: Count = 20_000

    @classmethod
    @override
    def accepts(cls, domain: Domain) -> bool:
        return False

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
        span = _Span.of(problem, free, self.max_directions)
        rows = problem.data
        if rows.n_samples > self.search_rows and problem.works_on_other_rows:
            begin = span.on(rows.thinned(random_state, self.search_rows))
        else:
            begin = span
        near = known is not None and known.steps.size == span.n_directions and bool(known.steps.any())
        found, n_sweeps = begin.searched_near(known.steps) if known is not None and near else ([], 0)
        if not near or span.n_directions > 1:  # of several directions the best steps may lie elsewhere
            more, n_more = begin.searched(self.max_iter, random_state)
            found, n_sweeps = found + more, n_sweeps + n_more
        best = min((span.finished(steps) for steps in found), key=lambda end: end.error)
        steps, n_more = span.refined(best.steps, _PRICES[-1], share=0.1, n_sweeps=10 + 5 * span.n_directions)
        best = min(best, span.finished(steps), key=lambda end: end.error)
        state = _scaled(problem, best.params)
        scores = problem.scores(state)
        measured, objective = problem.measured(scores), problem.objective_at(state, scores)
        recorder.add(n_iter=1, n_sweeps=n_sweeps + n_more, objective=objective, error=best.error)
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


class _End(NamedTuple):
    """Steps, the parameters there with the best threshold, and the error less that of predicting no row positive."""

    steps: np.ndarray
    params: np.ndarray
    error: float


@dataclass(frozen=True, eq=False)
class _Span:
    """Scores of some rows as functions of the steps along the directions, and what their decisions are worth.

    Attributes
    ----------
    terms : Problem
    params : ndarray of shape (n_params,)
        Coefficients and intercept of the unconstrained model.
    directions : ndarray of shape (n_params, n_directions)
    scores : ndarray of shape (n_samples,)
        Scores of the unconstrained model.
    moves : ndarray of shape (n_samples, n_directions)
        Changes of the scores for a step along every direction.
    """

    terms: Problem
    params: np.ndarray
    directions: np.ndarray
    scores: np.ndarray
    moves: np.ndarray

    @classmethod
    def of(cls, problem: Problem, params: np.ndarray, most: int) -> _Span:
        """Find the directions at the unconstrained model."""
        model, data = cast(LinearModel, problem.model), problem.data
        at_params, pullback = model.forward(params, data)
        scores = at_params.numpy()
        slopes = [pullback(slope) for slope in _slopes(problem, scores)]
        hessian = model.curvature(data, data.weights.numpy() * expit(scores) * expit(-scores))
        hessian[np.diag_indices_from(hessian)] += 1e-6 * (hessian.trace() / len(hessian) + 1e-12)
        root = np.linalg.cholesky(hessian)
        # Directions that move the scores alike are one: the leading singular vectors of their moves.
        steep = np.linalg.solve(root, np.column_stack([np.empty((params.size, 0)), *slopes]))
        left, sizes, _ = np.linalg.svd(steep, full_matrices=False)
        kept = min(most, int((sizes > _RANK * sizes.max(initial=0.0)).sum()))
        directions = np.linalg.solve(root.T, left[:, :kept])
        moves = _moves(model, data, directions)
        deviation = moves.std(axis=0)
        deviation = np.where(deviation > 0, deviation, 1.0) / (scores.std() or 1.0)
        return cls(problem, params, directions / deviation, scores, moves / deviation)

    def on(self, data: FairData) -> _Span:
        """Return the same directions on some of the rows."""
        model = cast(LinearModel, self.terms.model)
        moves = _moves(model, data, self.directions)
        return replace(self, terms=self.terms.on(data), scores=model.training_scores(self.params, data), moves=moves)

    @property
    def n_directions(self) -> int:
        return self.moves.shape[1]

    def moved(self, steps: np.ndarray) -> np.ndarray:
        """Scores after some steps; ndarray of shape (n_samples,)."""
        return self.scores - self.moves @ steps

    def searched(self, n_scans: int, rng: np.random.Generator) -> tuple[list[np.ndarray], int]:
        """Steps that may be good ones, and the number of evaluations that they took."""
        steps, n_evaluations = self._scanned(n_scans)
        found = [steps]
        if self.n_directions > 1:  # along one direction after the other the largest of several gaps may be stuck
            start, n_smooth = self._smooth_solution(rng)
            steps, n_sweeps = self.refined(start, _PRICES[-1], share=0.3, n_sweeps=15 + 10 * self.n_directions)
            found += [start, steps]
            n_evaluations += n_smooth + n_sweeps
        return found, n_evaluations

    def searched_near(self, steps: np.ndarray) -> tuple[list[np.ndarray], int]:
        """Steps near those of another bound, and the number of sweeps that they took."""
        found, n_sweeps = self.refined(steps, _PRICES[-1], share=0.5, n_sweeps=15 + 10 * self.n_directions)
        return [steps, found], n_sweeps

    def _scanned(self, n_scans: int) -> tuple[np.ndarray, int]:
        """Steps from scans along one direction after the other and refinement, with one price after the other."""
        steps, n_sweeps = np.zeros(self.n_directions), 0
        for price in _PRICES:
            for unit in np.tile(np.eye(self.n_directions), (n_scans, 1)):
                tried = steps + np.concatenate([[0.0], _STEPS, -_STEPS])[:, None] * unit
                values = [self.value(one, price) for one in tried]
                n_sweeps += len(values)
                steps = tried[int(np.argmin(values))]
            steps, n_more = self.refined(steps, price, share=0.3, n_sweeps=15 + 10 * self.n_directions)
            n_sweeps += n_more
        return steps, n_sweeps

    def _smooth_solution(self, rng: np.random.Generator) -> tuple[np.ndarray, int]:
        """Steps of the augmented Lagrangian's solution in the span, none if it leads nowhere; with the evaluations."""
        data = replace(self.terms.data, X=np.column_stack([self.scores, self.moves]))
        model = LinearModel(1 + self.n_directions)
        found = AugmentedLagrangian().solve(replace(self.terms, data=data, model=model), None, rng)
        own, *others = found.model_state[:-1]
        return -np.array(others) / own if own > 0 else np.zeros(self.n_directions), found.n_evaluations

    def refined(self, steps: np.ndarray, price: float, share: float, n_sweeps: int) -> tuple[np.ndarray, int]:
        """Search around the steps by the method of Nelder and Mead; ``share`` of each is the first move."""
        if not self.n_directions:
            return steps, 0
        moves = np.diag(np.maximum(share * np.abs(steps), 0.3 * _STEPS[0]))
        options = {"initial_simplex": np.vstack([steps, steps + moves]), "maxfev": n_sweeps}
        options |= {"xatol": 1e-4, "fatol": 1e-7}
        found = minimize(self.value, steps, args=(price,), method="Nelder-Mead", options=options)
        return found.x, found.nfev

    def value(self, steps: np.ndarray, price: float) -> float:
        """The least error, with the price of the excess, over thresholds at evenly spread ranks."""
        scores = self.moved(steps)
        ordered = np.sort(scores)
        cuts = ordered[np.unique(np.linspace(0, ordered.size - 1, _CUTS).astype(int))]
        if not 0 < len(self._cells) * _CUTS < scores.size:
            return float(_worth(self.terms, scores, cuts, price).min())
        # Between two cuts, the rows of a cell are as good as one row with the weight of all.
        mass = np.array([cell.between(scores, cuts) for cell in self._cells])
        rows = np.repeat([cell.rows.start for cell in self._cells], cuts.size + 1)
        terms = self.terms.on(self._bare.at(rows, torch.from_numpy(mass.ravel())))
        intervals = np.tile(np.arange(cuts.size + 1.0), len(self._cells))
        return float(_worth(terms, intervals, np.arange(cuts.size) + 0.5, price).min())

    @cached_property
    def _cells(self) -> list[_Cell]:
        """The rows of every group and label; none where the bounds depend on more than the decisions in each cell."""
        if not self.terms.works_on_other_rows or any(c.decision_threshold is None for c in self.terms.constraints):
            return []
        data = self.terms.data
        codes, y, weights = data.codes, data.y.numpy(), data.weights.numpy()
        ends = np.flatnonzero((np.diff(codes) != 0) | (np.diff(y) != 0)) + 1
        return [_Cell.of(slice(a, b), weights) for a, b in pairwise([0, *ends.tolist(), data.n_samples])]

    @cached_property
    def _bare(self) -> FairData:
        """The data without features, for terms that see scores only."""
        return replace(self.terms.data, X=np.empty((self.terms.data.n_samples, 0)))

    def finished(self, steps: np.ndarray) -> _End:
        """Choose the best threshold of all that keep the bounds."""
        scores = self.moved(steps)
        levels = np.unique(scores)
        beyond = 1e-6 * (1 + np.abs(levels[[0, -1]]))
        ends = np.concatenate([levels[:1] - beyond[0], levels, levels[-1:] + beyond[1]])
        cuts = (ends[1:] + ends[:-1]) / 2
        terms, scores = self._in_order(scores)
        excess = _excess(terms, scores, cuts)
        worth = np.where(excess <= max(excess.min(), 0.0), _worth(terms, scores, cuts, 0.0), np.inf)
        best = int(np.argmin(worth))
        params = self.params - self.directions @ steps
        params[-1] -= cuts[best] - self.terms.threshold
        return _End(steps, params, float(worth[best]))

    def _in_order(self, scores: np.ndarray) -> tuple[Problem, np.ndarray]:
        """The terms and the scores with the rows of every cell in order, so that a search finds neighbours in turn."""
        if not self._cells:
            return self.terms, scores
        rows = np.concatenate([np.argsort(scores[cell.rows]) + cell.rows.start for cell in self._cells])
        return self.terms.on(self._bare.at(rows, self._bare.weights[rows])), scores[rows]


@dataclass(frozen=True, eq=False)
class _Cell:
    """Rows of one group and label, which only their scores and weights tell apart.

    Attributes
    ----------
    rows : slice
    weights : ndarray of shape (n_rows,)
    weight : float or None
        The weight of every row, if all weigh alike.
    """

    rows: slice
    weights: np.ndarray
    weight: float | None

    @classmethod
    def of(cls, rows: slice, weights: np.ndarray) -> _Cell:
        own = weights[rows]
        return cls(rows, own, float(own[0]) if (own == own[0]).all() else None)

    def between(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
        """Weight of the rows up to the first of the cuts, which ascend, between two of them, and above the last."""
        own = scores[self.rows]
        if self.weight is not None:
            n_below = np.searchsorted(np.sort(own), cuts, side="right")
            return self.weight * np.diff(n_below, prepend=0, append=own.size)
        order = np.argsort(own)
        up_to = np.append(0.0, np.cumsum(self.weights[order]))
        below = up_to[np.searchsorted(own[order], cuts, side="right")]
        return np.diff(below, prepend=0.0, append=up_to[-1])


def _worth(terms: Problem, scores: np.ndarray, cuts: np.ndarray, price: float) -> np.ndarray:
    """Error less that of predicting all rows negative, with the price of the excess; shape (n_cuts,)."""
    gains = terms.objective.gains
    assert gains is not None  # see `SpanSearch.obstacle`
    above = np.bincount(np.searchsorted(cuts, scores), gains.numpy(), minlength=cuts.size + 1)
    gained = np.cumsum(above[::-1])[::-1][1:]
    return -gained + (price * _excess(terms, scores, cuts) if price else 0.0)


def _excess(terms: Problem, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """The largest excess over kappa at every threshold, at least 0; ndarray of shape (n_cuts,)."""
    excess = np.zeros(cuts.size)
    for constraint in terms.constraints:
        values = constraint.values_at_cuts(scores, cuts)
        assert values is not None
        excess = np.maximum(excess, np.nan_to_num(values, nan=np.inf) - constraint.kappa - _ROUNDING)
    return excess


def _scaled(problem: Problem, params: np.ndarray) -> np.ndarray:
    """Return the multiple of the distances from the threshold with the least smooth objective; decisions stay."""
    origin = np.zeros_like(params)
    origin[-1] = problem.threshold
    multiples = [origin + factor * (params - origin) for factor in _MULTIPLES]
    return min(multiples, key=lambda each: problem.objective_at(each, problem.scores(each)))


def _slopes(problem: Problem, scores: np.ndarray) -> list[torch.Tensor]:
    """Slopes of all components of the constraints in the scores, each a Tensor of shape (n_samples,).

    The surrogate is a logistic function of width 1. So the slopes are the curvature of the logistic loss times a
    constant for every cell of rows, and the directions are regressions of the cells on the features.
    """
    blur = _LOGISTIC / (scores.std() or 1.0)
    smooth = [c.with_logistic_slopes().refined(scores, blur=blur, margin=0.0) for c in problem.constraints]
    near = replace(problem, constraints=tuple(smooth))
    point = near.at_scores(torch.from_numpy(scores.copy()), near.initial_aux(scores))
    return [point.slopes(0.0, unit)[0] for unit in np.eye(point.constraints.size)]


def _moves(model: LinearModel, data: FairData, directions: np.ndarray) -> np.ndarray:
    """Changes of the scores for a step along every direction; ndarray of shape (n_samples, n_directions)."""
    moves = [model.training_scores(direction, data) for direction in directions.T]
    return np.column_stack([np.empty((data.n_samples, 0)), *moves])
