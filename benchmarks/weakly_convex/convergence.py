"""Objective and constraint against data passes and processor time, for every solver from the projected all-ones start.

The constraint is the paper's, in units of a row's rate: c times the mean rate on S minus the minority's part of it. A
data pass is an evaluation of values and gradients on all rows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._common import RESULTS, set_threads
from benchmarks._runner import Row, read, run_all
from benchmarks.weakly_convex.cases import CASES, Case
from benchmarks.weakly_convex.parameters import PARAMETERS, SOLVERS
from benchmarks.weakly_convex.simple_example import SimpleExample
from fairconstrained.problem import FullBatchView
from fairconstrained.solvers import make_solver, near_stationarity

__all__ = ["DISTANCE", "VIOLATION", "measure", "run_methods", "shortened", "way_of"]

#: Of the objective to the best one of any method, and of the constraint to zero, within which a method has arrived.
DISTANCE = 1e-3
VIOLATION = 1e-4
#: Points of a run that are kept.
_KEPT = 300
_COLUMNS = ("task", "status", "problem", "method", "seconds", "passes", "objective", "constraint", "stationarity")


@dataclass(frozen=True)
class _Run:
    """A method on a problem, as a task that can be left out where it has been done."""

    case: Case | SimpleExample
    method: str
    quick: bool

    @property
    def name(self) -> str:
        """Problem and method."""
        return f"{self.case.name}/{self.method}"

    @property
    def columns(self) -> Row:
        """Columns that all rows of the task share."""
        return {"task": self.name, "problem": self.case.name, "method": self.method}


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """The way of every run, and what came of it; goes on where it was interrupted."""
    cases, path = (CASES[:2], "weakly_convex_quick_runs.csv") if quick else (CASES, "weakly_convex_runs.csv")
    run_methods(list(PARAMETERS), cases, RESULTS / path, quick)
    runs = read(RESULTS / path, _COLUMNS).drop(columns=["task", "status"])
    names, methods = [case.name for case in cases], list(PARAMETERS)
    order = runs.problem.map(names.index) * len(methods) + runs.method.map(methods.index)
    way = runs.loc[order.sort_values(kind="stable").index].reset_index(drop=True)
    return {"way": way, "convergence": _summary(way)}


def run_methods(methods: Sequence[str], cases: Sequence[Case | SimpleExample], path: Path, quick: bool = False) -> None:
    """Run some methods on some problems, as far as ``path`` has not got them."""
    set_threads(1)
    run_all([_Run(case, method, quick) for method in methods for case in cases], _rows, path, _COLUMNS, jobs=1)


def _rows(run: _Run) -> list[Row]:
    options = run.case.options(PARAMETERS[run.method])
    way = way_of(run.case, run.method, shortened(options) if run.quick else options)
    return [run.columns | {"status": "done"} | row for row in way.to_dict("records")]


def shortened(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a run that takes a fiftieth of the iterations."""
    return {name: max(value // 50, 1) if "iter" in name else value for name, value in options.items()}


class _Trace:
    """Parameters by processor time and data passes."""

    def __init__(self, start: np.ndarray) -> None:
        self.visits = [(0.0, 0, start)]
        self._begin = time.process_time()

    def visit(self, n_evaluations: int, params: np.ndarray) -> None:
        self.visits.append((time.process_time() - self._begin, n_evaluations, params.copy()))

    def __call__(self, record: Mapping[str, Any]) -> None:
        self.visit(record["n_evaluations"], record["params"])


def way_of(case: Case | SimpleExample, method: str, options: dict[str, Any]) -> pd.DataFrame:
    """Objective, constraint, passes and seconds along a run, and the near-stationarity of its end."""
    problem = case.problem()
    start = case.start(problem)
    solver = make_solver(SOLVERS.get(method, method), options, problem)
    trace = _Trace(start.model_state)
    result = solver.solve(problem, start, np.random.default_rng(0), trace)
    trace.visit(result.n_evaluations, result.model_state)
    kept = np.unique(np.linspace(0, len(trace.visits) - 1, _KEPT).astype(int))
    view, rows = FullBatchView(problem), []
    for seconds, passes, params in (trace.visits[k] for k in kept):
        point = view.at(params)
        rows.append((seconds, passes, point.objective, float(point.constraints[0])))
    way = pd.DataFrame(rows, columns=["seconds", "passes", "objective", "constraint"])
    way["stationarity"] = np.nan
    way.loc[way.index[-1], "stationarity"] = near_stationarity(problem, result.model_state, case.proximity)
    return way


def _summary(way: pd.DataFrame) -> pd.DataFrame:
    """For every run: the best objective that nearly keeps the bound, where it ended, and when it had arrived."""
    rows = []
    for problem, case in way.groupby("problem", sort=False):
        holds = case[case.constraint <= VIOLATION]
        best = holds.objective.min()
        arrivals = holds[holds.objective <= best + DISTANCE].groupby("method").first()
        soonest = arrivals.passes["auto"]
        for method, run in case.groupby("method", sort=False):
            last, arrived = run.iloc[-1], arrivals.passes.get(method, np.nan)
            rows.append(
                {
                    "problem": problem,
                    "method": method,
                    "objective": last.objective,
                    "above_best": last.objective - best,
                    "constraint": last.constraint,
                    "stationarity": last.stationarity,
                    "passes": last.passes,
                    "seconds": last.seconds,
                    "arrived": arrived,
                    "seconds_arrived": arrivals.seconds.get(method, np.nan),
                    "times_auto": (last.passes if np.isnan(arrived) else arrived) / soonest,
                }
            )
    return pd.DataFrame(rows)
