"""Objective, violation and near-stationarity against processor time, for every solver from the same start.

All begin where all scores are zero, which is feasible. Near-stationarity at x is measured alike for all: the distance
to the solution of

    min_v f(v) + r |v - x|^2 / 2    s.t.  c_j(v) + r |v - x|^2 / 2 <= max(max_j c_j(x), 0)  for all j,

where r is twice a bound on the modulus of weak convexity of the gap between two groups' rates, and 1.7 to 3.2
times that of the gaps that are bounded here, so that this problem is convex. With the right side, which is zero for a
feasible x, it has a solution for any x; how far x is from feasible is the violation's to say.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._common import RESULTS, set_threads
from benchmarks._runner import Row, read, run_all
from benchmarks.rate_parity.cases import CASES, KAPPA, Case
from benchmarks.rate_parity.parameters import LINEAR, SOLVERS
from fairconstrained.problem import FullBatchView, Problem, Start
from fairconstrained.solvers import make_solver, near_stationarity

__all__ = ["COLUMNS", "DISTANCE", "VIOLATION", "Run", "measure", "problem_of", "way_of"]

#: Of the objective to the best one of any method, and of the gap to kappa, within which a method has arrived.
DISTANCE = 1e-3
VIOLATION = 1e-4
#: Largest slope of the sigmoid's derivative.
_CURVATURE = 1 / (6 * np.sqrt(3))
#: Points of a run at which near-stationarity is measured.
_N_ORACLES = 12
COLUMNS = ("task", "status", "data", "constraint", "method", "seconds", "objective", "violation", "distance")


@dataclass(frozen=True)
class Run:
    """One method with its options on one problem."""

    case: Case
    method: str
    options: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of the run, with its options, so that other options are another run."""
        return f"{self.case.data}, {self.case.constraint}, {self.method}, {self.options}"

    @property
    def columns(self) -> Row:
        """Columns that all rows of the run share."""
        return {
            "task": self.name,
            "data": self.case.data,
            "constraint": self.case.constraint,
            "method": self.method,
            "status": "ok",
        }


problem_of = cache(Case.problem)


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """Measure every run; the course of each is saved beside the table, and runs that are there are not repeated."""
    set_threads(1)
    cases = CASES[:1] if quick else CASES
    runs = [Run(case, method, _options(method, quick)) for case in cases for method in LINEAR]
    path = RESULTS / f"rate_parity{'_quick' if quick else ''}_way.csv"
    run_all(runs, _rows_of, path, COLUMNS, jobs=1)
    way = read(path, COLUMNS)
    return {"convergence": _summary(way[way.task.isin([run.name for run in runs])])}


def _options(method: str, quick: bool) -> dict[str, Any]:
    return {name: value // 20 if quick and "max" in name else value for name, value in LINEAR[method].items()}


def _rows_of(run: Run) -> list[Row]:
    way = way_of(problem_of(run.case), run.method, run.options)
    return [run.columns | row for row in way.to_dict("records")]


class _Trace:
    """Parameters by processor time."""

    def __init__(self) -> None:
        self.visits: list[tuple[float, np.ndarray]] = []
        self._begin = time.process_time()

    @property
    def seconds(self) -> float:
        return time.process_time() - self._begin

    def __call__(self, record: Mapping[str, Any]) -> None:
        self.visits.append((self.seconds, record["params"].copy()))


def way_of(
    problem: Problem, method: str, options: dict[str, Any], n_points: int = 400, n_oracles: int | None = None
) -> pd.DataFrame:
    """Objective and violation at some points of a run, and near-stationarity at few of them."""
    solver = make_solver(SOLVERS.get(method, method), options, problem)
    trace = _Trace()
    start = Start(np.zeros(problem.n_params))
    result = solver.solve(problem, start, np.random.default_rng(0), trace)
    trace.visits.append((trace.seconds, result.model_state))
    kept = np.unique(np.linspace(0, len(trace.visits) - 1, n_points).astype(int))
    n_oracles = _N_ORACLES if n_oracles is None else n_oracles
    judged = set(np.unique(np.geomspace(1, len(kept), n_oracles).astype(int) - 1)) if n_oracles else set()
    view, proximity, rows = FullBatchView(problem), _proximity(problem), []
    for number, (seconds, params) in enumerate(trace.visits[k] for k in kept):
        point = view.at(problem.start(params))
        gap = max(c.metric(point.scores) for c in problem.constraints)
        distance = near_stationarity(problem, params, proximity) if number in judged else np.nan
        rows.append((seconds, point.objective, max(gap - KAPPA, 0.0), distance))
    return pd.DataFrame(rows, columns=["seconds", "objective", "violation", "distance"])


def _proximity(problem: Problem) -> float:
    """r, see above."""
    largest = [np.linalg.eigvalsh(_second_moment(block))[-1] for block in problem.data.blocks]
    return 2 * _CURVATURE * 2 * max(largest)


def _second_moment(block: Any) -> np.ndarray:
    with_one = np.hstack([block.toarray() if hasattr(block, "toarray") else block, np.ones((block.shape[0], 1))])
    return with_one.T @ with_one / len(with_one)


def _summary(way: pd.DataFrame) -> pd.DataFrame:
    """For every run: the best objective that nearly keeps the bound, where it ended, and when it had arrived."""
    rows = []
    for names, case in way.groupby(["data", "constraint"], sort=False):
        holds = case[case.violation <= VIOLATION]
        best = holds.objective.min()
        arrived = holds[holds.objective <= best + DISTANCE].groupby("method").seconds.min()
        auto = arrived.get("auto", np.nan)
        for method, run in case.groupby("method", sort=False):
            last, own = run.iloc[-1], holds[holds.method == method]
            rows.append(
                {
                    "data": names[0],
                    "constraint": names[1],
                    "method": method,
                    "best": own.objective.min() - best,
                    "end": last.objective - best,
                    "violation": last.violation,
                    "distance": last.distance,
                    "seconds": last.seconds,
                    "arrived": arrived.get(method, np.nan),
                    "times_auto": arrived.get(method, last.seconds) / auto,
                }
            )
    return pd.DataFrame(rows)
