"""Section G.7: objective and infeasibility against evaluations, of IDCA, switching subgradient and our default."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.partial_fairness.tasks import PARITY, SETTINGS, Row, Split, Task
from fairconstrained.constraints import Constraint, DemographicParity, StatisticalParity
from fairconstrained.data import FairData
from fairconstrained.groups import GroupEncoder
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Logistic
from fairconstrained.problem import DifferenceOfConvexView, FullBatchView, PointSource, Problem
from fairconstrained.solvers import SolverResult, make_solver

#: Evaluations of a subproblem (T); every so many are recorded.
INNER = 150
NOTIONS: dict[str, type[Constraint]] = {
    "statistical_parity": StatisticalParity,
    "demographic_parity": DemographicParity,
}
#: The surrogate of Example D.3, for the paper's methods.
RAMP = {"surrogate": "ramp", "surrogate_width": 1.0}

#: (evaluations, z)
Visit = tuple[int, np.ndarray]


@dataclass
class Trace:
    """Where a solver has been: every `INNER`-th point that it projected, and all points that it linearised at."""

    projected: list[Visit] = field(default_factory=list)
    linearised: list[Visit] = field(default_factory=list)
    n_projected: int = 0


@dataclass(frozen=True)
class Traced(Problem):
    """A problem that remembers where a solver has been."""

    trace: Trace = field(default_factory=Trace)

    def view(self, view: type) -> Any:
        """Return a view that records where it is linearised: IDCA does so once at every outer iterate."""
        found = super().view(view)
        return _TracedView(self) if isinstance(found, DifferenceOfConvexView) else found

    def project(self, z: np.ndarray) -> np.ndarray:
        """Project and count: the switching subgradient method projects once in every iteration."""
        self.trace.n_projected += 1
        if self.trace.n_projected % INNER == 0:
            self.trace.projected.append((self.trace.n_projected, z))
        return super().project(z)


class _TracedView(DifferenceOfConvexView):
    problem: Traced

    def linearize(self, z: np.ndarray) -> PointSource:
        self.problem.trace.linearised.append((self.n_evaluations, z))
        return super().linearize(z)


def _from_visits(visits: Callable[[Trace], list[Visit]]) -> Callable[[Traced, SolverResult], list[Row]]:
    """Rows of what was visited, evaluated exactly there."""

    def rows(problem: Traced, result: SolverResult) -> list[Row]:
        table, view = [], FullBatchView(problem)
        for evaluations, z in visits(problem.trace):
            point = view.at(z)
            worst = float(point.constraints.max(initial=0.0))
            gap = problem.constraints[0].metric(point.scores)
            table.append(_row(evaluations, point.objective, worst, gap))
        return table

    return rows


def _from_history(problem: Traced, result: SolverResult) -> list[Row]:
    """Rows of the records that the solver keeps; its surrogate changes on the way and is not reported."""
    name = problem.constraints[0].name
    return [_row(r["n_evaluations"], r["objective"], np.nan, r[name]) for r in result.history]


def _row(evaluations: int, objective: float, violation: float, value: float) -> Row:
    return {
        "evaluations": evaluations,
        "objective": objective,
        "surrogate_violation": violation,
        "value": value,
    }


class Method(NamedTuple):
    """A solver, its options for a number of evaluations, options of the constraint, and the rows of a run."""

    solver: str
    options: Callable[[int], dict[str, Any]]
    surrogate: dict[str, Any]
    rows: Callable[[Traced, SolverResult], list[Row]]


def _idca(eps: float) -> Method:
    # one more subproblem than is shown: an outer iterate is seen when the next subproblem begins
    options = lambda n: {"max_outer": n // INNER + 1, "max_inner": INNER, "eps": eps}  # noqa: E731
    return Method("idca", options, RAMP, _from_visits(lambda trace: trace.linearised))


def _switching(eps: float, schedule: str) -> Method:
    options = lambda n: {"max_iter": n, "eps": eps, "schedule": schedule}  # noqa: E731
    return Method("switching_subgradient", options, RAMP, _from_visits(lambda trace: trace.projected))


#: The paper tunes eps and c in these ranges.
METHODS = {
    "IDCA, eps = 5e-4": _idca(5e-4),
    "IDCA, eps = 1e-3": _idca(1e-3),
    "IDCA, eps = 2e-3": _idca(2e-3),
    "IDCA, eps = 5e-3": _idca(5e-3),
    "switching, eps = 1e-3": _switching(1e-3, "static"),
    "switching, eps = 1/t": _switching(1.0, "diminishing"),
    "augmented Lagrangian": Method("augmented_lagrangian", lambda n: {}, {}, _from_history),
}


def run_convergence(task: Task) -> list[Row]:
    """One solver on one problem; ``parameter`` is kappa, ``max_iter`` the evaluations that it may use."""
    torch.set_num_threads(1)
    assert task.max_iter is not None
    method, data = METHODS[task.method], Split.of(task)
    problem = _problem(task, data, method)
    solver = make_solver(method.solver, method.options(task.max_iter), problem)
    begin = time.process_time()
    result = solver.solve(problem, None, np.random.default_rng(task.seed))
    shared = task.columns | {"seconds": time.process_time() - begin, "status": result.status.value}
    shared["interval"] = "{:g}-{:g}".format(*task.interval)
    gap = result.constraint_values[problem.constraints[0].name]
    # the surrogate of the last line is the solver's own, at what it returns
    returned = _row(result.n_evaluations, result.objective, result.surrogate_violation, gap)
    return [shared | row for row in (*method.rows(problem, result), returned)]


def _problem(task: Task, data: Split, method: Method) -> Traced:
    train, setting = data.parts["train"], SETTINGS[task.setting]
    groups = GroupEncoder(data.groups[train])
    bound = FairData.from_arrays(data.X[train], np.where(data.y[train] > 0, 1.0, -1.0), groups.codes, groups.labels)
    constraint = NOTIONS[PARITY[task.notion]](
        task.parameter, interval=task.interval, normalize=task.normalize, **method.surrogate
    )
    return Traced(
        model=LinearModel(bound.n_features, bound.n_groups, True, setting.alpha),
        objective=Logistic().bind(bound),
        constraints=(constraint.bind(bound),),
        data=bound,
    )
