"""Problems as tasks of the runner, and the summary of what they came to."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from benchmarks._common import set_threads
from benchmarks._runner import Row
from benchmarks.trial.judgements import PROMISES, run
from benchmarks.trial.problems import draw_problem

__all__ = ["QUICK_SEEDS", "Task", "broken_by_promise", "of_part", "run_task", "summary"]

#: Problems of a quick run.
QUICK_SEEDS = range(60)
#: A promise on the share of the problems, and the seconds that it is about.
SHARE_UNDER, UNDER_SECONDS = 0.99, 5.0


@dataclass(frozen=True)
class Task:
    """One problem."""

    seed: int

    @property
    def name(self) -> str:
        """Name of the task, which no other task has."""
        return f"problem {self.seed}"

    @property
    def columns(self) -> Row:
        """Columns that all rows of the task share."""
        return {"task": self.name, "seed": self.seed}


def run_task(task: Task) -> list[Row]:
    """Draw the problem, fit and judge it, on one thread."""
    set_threads(1)
    return [task.columns | run(draw_problem(task.seed))]


def broken_by_promise(results: pd.DataFrame) -> dict[str, list[int]]:
    """The seeds of the problems that break every promise."""
    said = results["broken"].astype(object).fillna("").astype(str).str.split("; ")
    return {
        promise: sorted(results["seed"][said.map(lambda words, p=promise: p in words)].tolist()) for promise in PROMISES
    }


def summary(results: pd.DataFrame, n_problems: int) -> pd.DataFrame:
    """One row for every promise: of how many problems it is about, how many break it, and their seeds."""
    table = [
        {"promise": f"no problem {PROMISES[promise]}", "broken": len(seeds), "which": _shown(seeds)}
        for promise, seeds in broken_by_promise(results).items()
    ]
    late = sorted(results["seed"][results["cpu_seconds"] >= UNDER_SECONDS].tolist())
    keeps = len(late) <= (1 - SHARE_UNDER) * n_problems
    table.append(
        {
            "promise": f"{SHARE_UNDER:.0%} of the problems take less than {UNDER_SECONDS:g} seconds of one core",
            "broken": 0 if keeps else len(late),
            "which": _shown(late),
        }
    )
    missing = n_problems - results["seed"].nunique()
    table.append({"promise": "all problems are judged", "broken": missing, "which": ""})
    return pd.DataFrame(table).assign(cases=n_problems)[["promise", "cases", "broken", "which"]]


def of_part(promise: str, results: pd.DataFrame) -> pd.DataFrame:
    """Summary of a part that has one promise."""
    broken = results["task"][results["broken"].astype(object).fillna("").astype(str) != ""].tolist()
    return pd.DataFrame(
        [{"promise": promise, "cases": len(results), "broken": len(broken), "which": _shown(broken, 3)}]
    )


def _shown(cases: list, most: int = 10) -> str:
    return "; ".join(map(str, cases[:most])) + (f"; and {len(cases) - most} more" if len(cases) > most else "")
