"""Newton boosting in score space: trees along the slopes of a Lagrangian whose multipliers follow the exact gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch

from fairconstrained.exceptions import StopTraining
from fairconstrained.models.boosted_trees import BoostedTrees, Ensemble, Growth
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers._base import Callback, Recorder, Solver, SolverResult, Status, named_multipliers
from fairconstrained.solvers._options import Count, Positive
from fairconstrained.views import Exact, FullBatch

__all__ = ["NewtonBoosting"]


@dataclass(frozen=True)
class NewtonBoosting(Solver, is_registered=False):
    name: ClassVar[str] = "newton_boosting"
    requires: ClassVar[tuple[type, ...]] = (FullBatch, Exact)
    model: ClassVar[type] = BoostedTrees
    keeps_metric: ClassVar[bool] = True
    iterations_option: ClassVar[str] = "n_trees"

    n_trees: Count = 300
    learning_rate: Positive = 0.1
    blur: Positive = 0.1
    step: Positive = 0.3
    penalty: Positive = 10.0
    ascent: Positive = 0.1
    measure_every: Count = 5
    patience: Count | None = None

    def solve(self, problem, start, random_state, callback=None) -> SolverResult:
        return self.solve_judged(problem, problem, start, random_state, callback)

    def solve_judged(self, problem, judged, start, random_state, callback=None) -> SolverResult:
        recorder = Recorder(callback, self.verbose)
        run = _Run(self, problem, judged, start, random_state)
        try:
            for round_ in range(self.n_trees):
                if round_ % self.measure_every == 0:
                    run.measure(recorder)
                if not run.grow():
                    break
        except StopTraining:
            pass
        else:
            run.measure(recorder)
        return run.result(recorder)


class _Run:
    def __init__(self, solver, problem, judged, start, rng):
        self.o, self.problem, self.judged = solver, problem, judged
        self.model = problem.model
        begin = Ensemble(constant=_best_constant(problem)) if start is None else start.model_state
        params = {"learning_rate": solver.learning_rate, "seed": int(rng.integers(2**31 - 1))}
        others = judged.data if judged is not problem else None
        self.growth = Growth(self.model, problem.data, others, begin, params)
        self.bounds = _Bounds(solver, problem)
        self.best = None
        self.n_rounds = self.n_measured = 0
        self.read()

    def read(self):
        self.scores, *rest = self.growth.scores()
        self.judged_scores = rest[0] if rest else self.scores

    def grow(self):
        s = torch.from_numpy(self.scores.copy())
        objective = self.problem.objective
        h = objective.curvature(s).numpy()
        point = self.problem.without_constraints().at_scores(s, np.empty(0))
        g = point.slopes(1.0, np.empty(0))[0].numpy()
        if self.problem.constraints:
            c, extra = self.bounds.slopes(self.scores, h)
            g = g + c
            h = h + extra
        n = self.problem.data.n_samples
        self.n_rounds += 1
        out = self.growth.grow(n * g, n * h)
        self.read()
        return out

    def measure(self, recorder):
        measured = self.judged.measured(self.judged_scores)
        loss = self.judged.without_constraints().at_scores(torch.from_numpy(self.judged_scores.copy()), np.empty(0)).loss
        key = (max(measured.excess, 0.0), loss)
        state = self.growth.state()
        if self.best is None or key < self.best[0]:
            self.best = (key, state, self.judged_scores.copy(), self.scores.copy(), measured, loss, self.bounds.average.copy())
        if self.problem.constraints:
            own = measured if self.judged is self.problem else self.problem.measured(self.scores)
            self.bounds.refine(self.scores, own.violations, measured.violations)
        recorder.add(n_trees=self.n_rounds, objective=loss, **measured.values, excess=measured.excess)

    def result(self, recorder):
        key, state, js, ts, measured, loss, multipliers = self.best
        self.model.remember(state, self.judged.data, js)
        names = self.bounds.names
        return SolverResult(
            model_state=state,
            status=Status.COMPLETED if measured.excess <= 0 else Status.INFEASIBLE,
            n_iter=self.n_rounds, n_evaluations=self.n_rounds, objective=loss,
            constraint_values=measured.values, surrogate_violation=0.0,
            multipliers=dict(zip(names, multipliers)), history=tuple(recorder.records))


class _Bounds:
    def __init__(self, o, problem):
        self.o, self.terms = o, problem
        self.multipliers = np.zeros(len(problem.component_names))
        self.average = self.multipliers.copy()
        self.response = None
        self.is_fair = True
        self.margins = np.zeros(len(problem.constraints))
        self.spread = 1.0

    @property
    def names(self):
        return self.terms.component_names

    def refine(self, scores, violations, judged):
        self.margins = self.margins + 0.3 * (judged - violations - self.margins)
        kap = np.array([c.kappa for c in self.terms.constraints])
        self.margins = np.clip(self.margins, -kap, kap)
        constraints, multipliers, average, first = [], [], [], 0
        for c, m in zip(self.terms.constraints, self.margins):
            new = c.refined(scores, blur=self.o.blur, margin=float(m))
            n, k = len(c.component_names), len(new.component_names)
            multipliers.append(np.append(self.multipliers[first:first+n], np.zeros(k-n)))
            average.append(np.append(self.average[first:first+n], np.zeros(k-n)))
            first += n
            constraints.append(new)
        self.terms = replace(self.terms, constraints=tuple(constraints))
        self.multipliers, self.average = np.concatenate(multipliers), np.concatenate(average)
        spread = float(np.std(scores))
        self.spread = spread if spread > 1e-9 * np.abs(scores).max() else 1.0

    def slopes(self, scores, h):
        o = self.o
        aux = self.terms.initial_aux(scores)
        point = self.terms.at_scores(torch.from_numpy(scores.copy()), aux)
        c = point.constraints
        if self.response is None:
            d = np.maximum(c, 0)
            if not d.any():
                return 0.0, 0.0
            g = point.slopes(0.0, d)[0].numpy()
            self.response = float((g * g / h).sum() / (d @ d)) 
            if not self.response: 
                self.response=None; return 0.0, 0.0
        rho = o.penalty / self.response
        m = np.maximum(self.multipliers + rho * c, 0)
        self.multipliers = np.maximum(self.multipliers + o.ascent * rho * c, 0)
        self.average += 0.1 * (m - self.average)
        if not m.any():
            return 0.0, 0.0
        g = point.slopes(0.0, m)[0].numpy()
        new = float((g * g / h).sum() / (m @ m))
        if new > 0:
            self.response += 0.1 * (new - self.response)
        self.last = (c, m, rho)
        return g, np.abs(g) / (o.step * self.spread)


def _best_constant(problem):
    y, w = problem.data.y.numpy(), problem.data.weights.numpy()
    scores = torch.zeros(len(y), dtype=torch.float64)
    total = 0.0
    for _ in range(20):
        s = scores + total
        g = float(problem.without_constraints().at_scores(s.clone(), np.empty(0)).slopes(1.0, np.empty(0))[0].sum())
        h = float(problem.objective.curvature(s).sum())
        step = -g / h
        total += step
        if abs(step) < 1e-12: break
    return total
