"""Objective and constraint against data passes and processor time, for every solver from the projected all-ones start.

The constraint is the paper's, in units of a row's rate: c times the mean rate on S minus the minority's part of it. A
data pass is an evaluation of values and gradients on all rows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from benchmarks._common import set_threads
from benchmarks.weakly_convex.cases import CASES, Case
from benchmarks.weakly_convex.parameters import PARAMETERS, SOLVERS
from fairconstrained.problem import FullBatchView
from fairconstrained.solvers import make_solver, near_stationarity

__all__ = ["DISTANCE", "VIOLATION", "measure"]

#: Of the objective to the best one of any method, and of the constraint to zero, within which a method has arrived.
DISTANCE = 1e-3
VIOLATION = 1e-4
#: Points of a run that are kept.
_KEPT = 300
#: Proximal parameter of the near-stationarity of the ends, the same for all.
_PROXIMITY = 1.0


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """The way of every run, and what came of it."""
    set_threads(1)
    runs = [(case, method) for case in (CASES[-1:] if quick else CASES) for method in PARAMETERS]
    ways = []
    for case, method in tqdm(runs, desc="runs"):
        options = PARAMETERS[method]
        if quick:
            options = {name: max(value // 50, 1) if "iter" in name else value for name, value in options.items()}
        ways.append(_way_of(case, method, options).assign(data=case.data, min_share=case.min_share, method=method))
    way = pd.concat(ways, ignore_index=True)
    return {"way": way, "convergence": _summary(way)}


class _Trace:
    """Parameters by processor time and data passes."""

    def __init__(self, start: np.ndarray) -> None:
        self.visits = [(0.0, 0, start)]
        self._begin = time.process_time()

    def visit(self, n_evaluations: int, params: np.ndarray) -> None:
        self.visits.append((time.process_time() - self._begin, n_evaluations, params.copy()))

    def __call__(self, record: Mapping[str, Any]) -> None:
        self.visit(record["n_evaluations"], record["params"])


def _way_of(case: Case, method: str, options: dict[str, Any]) -> pd.DataFrame:
    problem = case.problem()
    start = case.start(problem)
    solver = make_solver(SOLVERS.get(method, method), options, problem)
    trace = _Trace(start.params)
    result = solver.solve(problem, start, np.random.default_rng(0), trace)
    trace.visit(result.n_evaluations, result.params)
    kept = np.unique(np.linspace(0, len(trace.visits) - 1, _KEPT).astype(int))
    view, rows = FullBatchView(problem), []
    for seconds, passes, params in (trace.visits[k] for k in kept):
        point = view.at(params)
        rows.append((seconds, passes, point.objective, float(point.constraints[0])))
    way = pd.DataFrame(rows, columns=["seconds", "passes", "objective", "constraint"])
    way["stationarity"] = np.nan
    way.loc[way.index[-1], "stationarity"] = near_stationarity(problem, result.params, _PROXIMITY)
    return way


def _summary(way: pd.DataFrame) -> pd.DataFrame:
    """For every run: the best objective that nearly keeps the bound, where it ended, and when it had arrived."""
    rows = []
    for (data, min_share), case in way.groupby(["data", "min_share"], sort=False):
        holds = case[case.constraint <= VIOLATION]
        best = holds.objective.min()
        arrivals = holds[holds.objective <= best + DISTANCE].groupby("method").first()
        for method, run in case.groupby("method", sort=False):
            last, arrived = run.iloc[-1], arrivals.seconds.get(method, np.nan)
            rows.append(
                {
                    "data": data,
                    "min_share": min_share,
                    "method": method,
                    "objective": last.objective,
                    "above_best": last.objective - best,
                    "constraint": last.constraint,
                    "stationarity": last.stationarity,
                    "passes": last.passes,
                    "seconds": last.seconds,
                    "arrived": arrived,
                    "times_auto": (last.seconds if np.isnan(arrived) else arrived) / arrivals.seconds["auto"],
                }
            )
    return pd.DataFrame(rows)
