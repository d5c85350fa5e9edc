"""PLADA's multipliers against its iterations, and what alpha and beta change: figures 4 to 6 of the paper.

Demographic parity. Sensitivity on Adult, with the step that `benchmarks.rate_parity.parameters` has for ``plada``;
multipliers on all three data sets, with that set and with the published one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmarks._common import RESULTS, set_threads
from benchmarks._runner import Row, read, run_all
from benchmarks.rate_parity.cases import KAPPA, Case
from benchmarks.rate_parity.convergence import VIOLATION, Run, problem_of
from benchmarks.rate_parity.parameters import LINEAR
from fairconstrained.problem import Start
from fairconstrained.solvers import PLADA, p_lagrangian

__all__ = ["measure"]

_NAMES = ("n_iter", "objective", "violation", "dual_distance", "multiplier", "auxiliary", "p_lagrangian")
COLUMNS = ("task", "status", "data", "constraint", "method", *_NAMES, "residual", "kkt")
ALPHAS, BETAS = (2.0, 5.0, 10.0, 50.0), (0.05, 0.1, 0.5, 0.9)
#: Epochs between two records at which the residuals are computed.
_EVERY = 10


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """Where every run ended; the way of each is kept beside it, and runs that are there already are not repeated."""
    set_threads(1)
    path = RESULTS / f"rate_parity{'_quick' if quick else ''}_duals.csv"
    runs = _runs(5 if quick else LINEAR["plada"]["max_epochs"])
    run_all(runs[:1] if quick else runs, _rows_of, path, COLUMNS, jobs=1)
    return {"sensitivity": _summary(read(path, COLUMNS))}


def _runs(epochs: int) -> list[Run]:
    chosen = LINEAR["plada"] | {"max_epochs": epochs}
    adult = Case("adult", "demographic_parity")
    runs = [Run(adult, f"alpha={alpha:g}", chosen | {"alpha": alpha}) for alpha in ALPHAS]
    runs += [Run(adult, f"beta={beta:g}", chosen | {"beta": beta}) for beta in BETAS]
    for name in ("plada", "plada, published"):
        options = LINEAR[name] | {"max_epochs": epochs}
        runs += [Run(Case(data, "demographic_parity"), name, options) for data in ("compas", "adult", "bank")]
    return runs


def _rows_of(run: Run) -> list[Row]:
    problem, solver = problem_of(run.case), PLADA(**run.options)
    rows: list[Row] = []

    def note(record: Any) -> None:
        largest = {
            "multiplier": max(record["multipliers"]),
            "auxiliary": max(record["auxiliary_multipliers"]),
            "violation": max(*(record[c.name] for c in problem.constraints), KAPPA) - KAPPA,
        }
        row = run.columns | {name: record[name] for name in _NAMES if name in record} | largest
        if record["n_iter"] % _EVERY == 0:
            slacks, auxiliary = record["slacks"], record["auxiliary_multipliers"]
            found = p_lagrangian(problem, record["params"], slacks, auxiliary, solver)
            row |= {"residual": found.residual, "kkt": found.kkt}
        rows.append(row | {"n_iter": record["n_iter"] * solver.epoch_steps})

    solver.solve(problem, Start(np.zeros(problem.n_params)), np.random.default_rng(0), note)
    return rows


def _summary(way: pd.DataFrame) -> pd.DataFrame:
    """The least loss within the bound, above the best of any run on these data, and what the last record has."""
    rows = []
    for data, case in way.groupby("data", sort=False):
        best = case[case.violation <= VIOLATION].objective.min()
        for method, run in case.groupby("method", sort=False):
            last, own = run.iloc[-1], run[run.violation <= VIOLATION]
            row: Row = {"data": data, "set": method, "best": own.objective.min() - best, "loss": last.objective}
            names = ("violation", "dual_distance", "multiplier", "auxiliary", "p_lagrangian", "residual", "kkt")
            rows.append(row | {name: last[name] for name in names})
    return pd.DataFrame(rows)
