"""Parameters of every method by one rule: eight sets each, on problems that are not shown.

The rule was fixed before the first run: the set of least loss above the best of all methods and sets, at points that
exceed kappa by at most `VIOLATION`, averaged over the problems. A run that raises an exception counts as one that stays
where all begin. The problems are law school admissions and generated rows like those of the census, with demographic
parity and with equalized odds; budgets are those of what is shown.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks._common import RESULTS, set_threads
from benchmarks._runner import Row, read, run_all
from benchmarks.rate_parity.cases import TUNING_CASES
from benchmarks.rate_parity.convergence import VIOLATION, Run, problem_of, way_of
from benchmarks.rate_parity.parameters import SETS

__all__ = ["chosen", "measure"]

COLUMNS = ("task", "status", "data", "constraint", "method", "place", "loss")
#: Points of a run at which it is measured.
_N_POINTS = 60
#: Loss of the start, where all scores are zero.
_START = float(np.log(2))


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """Mean loss above the best, of every set."""
    set_threads(1)
    path = RESULTS / f"rate_parity{'_quick' if quick else ''}_tuning_runs.csv"
    cases = TUNING_CASES[:1] if quick else TUNING_CASES
    runs = [Run(case, "auto", {}) for case in cases]
    for case in cases:
        runs += [
            Run(case, method, options) for method, sets in SETS.items() for options in sets[: 2 if quick else None]
        ]
    run_all(runs, _rows_of, path, COLUMNS, jobs=1)
    return {"tuning": summary(read(path, COLUMNS))}


def _rows_of(run: Run) -> list[Row]:
    way = way_of(problem_of(run.case), run.method, run.options, _N_POINTS, n_oracles=0)
    place = SETS[run.method].index(run.options) if run.method in SETS else 0
    return [run.columns | {"place": place, "loss": way[way.violation <= VIOLATION].objective.min()}]


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """A row for every method and set: its options, the mean loss above the best, and whether it was chosen."""
    runs = runs.assign(loss=runs.loss.fillna(_START))
    names = ["data", "constraint"]
    above = runs.assign(above=runs.loss - runs.groupby(names).loss.transform("min"))
    table = above.pivot_table(index=["method", "place"], columns=names, values="above", sort=False)
    table.columns = [f"{data}, {constraint.replace('_', ' ')}" for data, constraint in table.columns]
    table = table.assign(mean=table.mean(axis=1, skipna=False)).reset_index()
    tried = [
        SETS[method][place] if method in SETS else {} for method, place in zip(table.method, table.place, strict=True)
    ]
    table.insert(2, "options", [", ".join(f"{name}={value:g}" for name, value in _varied(o).items()) for o in tried])
    best = table.groupby("method")["mean"].transform("min")
    return table.assign(chosen=table["mean"] == best)


def _varied(options: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in options.items() if name in _VARIED}


_VARIED = ("learning_rate", "delta", "eps", "proximity", "tau", "step", "multiplier_step", "multiplier_rate")


def chosen(table: pd.DataFrame) -> dict[str, int]:
    """The place of the set that was chosen, by method; of equal ones the first."""
    rows = table[table.chosen & table.method.isin(SETS)].drop_duplicates("method")
    return dict(zip(rows.method, rows.place.astype(int), strict=True))
