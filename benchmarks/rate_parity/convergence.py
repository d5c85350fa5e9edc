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
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from benchmarks._common import set_threads
from benchmarks.rate_parity.cases import CASES, KAPPA
from benchmarks.rate_parity.parameters import LINEAR, SOLVERS
from fairconstrained.problem import FullBatchView, Problem, Start
from fairconstrained.solvers import make_solver, near_stationarity

__all__ = ["DISTANCE", "VIOLATION", "measure"]

#: Of the objective to the best one of any method, and of the gap to kappa, within which a method has arrived.
DISTANCE = 1e-3
VIOLATION = 1e-4
#: Largest slope of the sigmoid's derivative.
_CURVATURE = 1 / (6 * np.sqrt(3))
#: Points of a run at which near-stationarity is measured.
_N_ORACLES = 12


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """The way of every run, and what came of it."""
    set_threads(1)
    cases = CASES[-1:] if quick else CASES
    runs = [(case, method) for case in cases for method in LINEAR]
    ways, problems = [], {case: case.problem() for case in cases}
    for case, method in tqdm(runs, desc="runs"):
        options = {name: value // 20 if quick and "max" in name else value for name, value in LINEAR[method].items()}
        way = _way_of(problems[case], method, options)
        ways.append(way.assign(data=case.data, constraint=case.constraint, method=method))
    way = pd.concat(ways, ignore_index=True)
    return {"way": way, "convergence": _summary(way)}


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


def _way_of(problem: Problem, method: str, options: dict[str, Any]) -> pd.DataFrame:
    solver = make_solver(SOLVERS.get(method, method), options, problem)
    trace = _Trace()
    start = Start(np.zeros(problem.n_params))
    result = solver.solve(problem, start, np.random.default_rng(0), trace)
    trace.visits.append((trace.seconds, result.params))
    kept = np.unique(np.linspace(0, len(trace.visits) - 1, 400).astype(int))
    judged = set(np.unique(np.geomspace(1, len(kept), _N_ORACLES).astype(int) - 1))
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
