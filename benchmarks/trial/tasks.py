"""Problems as tasks of the runner, and the summary of what they came to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks._common import set_threads
from benchmarks._runner import Row
from benchmarks.trial.judgements import PROMISES, run
from benchmarks.trial.problems import draw_problem

__all__ = ["Task", "broken_by_promise", "run_task", "summary"]

#: A promise on the share of the problems, and the seconds that it is about.
SHARE_UNDER, UNDER_SECONDS = 0.99, 5.0


@dataclass(frozen=True)
class Task:
    """One problem."""

    seed: int

    @property
    def name(self) -> str:
        """See `benchmarks._runner.Task`."""
        return f"problem {self.seed}"

    @property
    def columns(self) -> Row:
        """See `benchmarks._runner.Task`."""
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
    """One row for every promise: how many of the problems break it, and their seeds."""
    table = [
        {"promise": f"no problem {PROMISES[promise]}", "broken": len(seeds), "seeds": _shown(seeds)}
        for promise, seeds in broken_by_promise(results).items()
    ]
    quick = float(np.mean(results["seconds"] < UNDER_SECONDS)) if len(results) else np.nan
    about_share = f"{SHARE_UNDER:.0%} of the problems take less than {UNDER_SECONDS:g} seconds"
    slow = results["seed"][results["seconds"] >= UNDER_SECONDS]
    table.append({"promise": about_share, "broken": 0 if quick >= SHARE_UNDER else len(slow), "seeds": f"{quick:.1%}"})
    missing = n_problems - results["seed"].nunique()
    table.append({"promise": "all problems are judged", "broken": missing, "seeds": ""})
    return pd.DataFrame(table)


def _shown(seeds: list[int], most: int = 10) -> str:
    return " ".join(map(str, seeds[:most])) + (f" and {len(seeds) - most} more" if len(seeds) > most else "")
