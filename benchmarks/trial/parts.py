"""The parts of the trial besides random problems: each a list of cases, run one after another in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from benchmarks._runner import read, run_all
from benchmarks.trial.bad_calls import all_calls
from benchmarks.trial.bad_inputs import judge_call
from benchmarks.trial.drop_in import all_cases, judge_case
from benchmarks.trial.interruptions import all_interruptions, judge_interruption

__all__ = ["PARTS", "Part", "run_part"]


class Part(NamedTuple):
    """Cases, and what judges one of them.

    Attributes
    ----------
    promise : str
    cases : callable
        Returns all cases; each has a name.
    judge : callable
        Function of a case that returns a row of the results, with a "task" and what is "broken".
    quick : int
        A quick run takes every so many-th case.
    """

    promise: str
    cases: Callable[[], Sequence[Any]]
    judge: Callable[[Any], dict[str, Any]]
    quick: int


PARTS: dict[str, Part] = {
    "bad_inputs": Part(
        "a wrong call raises a ValueError or TypeError that names what is wrong", all_calls, judge_call, 4
    ),
    "interruptions": Part(
        "a fit that is cut short leaves the estimator and the process as they were",
        all_interruptions,
        judge_interruption,
        6,
    ),
    "drop_in": Part("scikit-learn's tools work, or are refused in one clear sentence", all_cases, judge_case, 8),
}


#: Columns of the results, of which every part has some.
COLUMNS = ("task", "outcome", "message", "broken", "status", "seconds")


def run_part(name: str, path: Path, quick: bool) -> pd.DataFrame:
    """Run the cases that ``path`` has no rows of, and return the rows of all that are asked for."""
    part = PARTS[name]
    tasks = [_Judgement(case) for case in part.cases()[:: part.quick if quick else 1]]
    run_all(tasks, lambda task: [part.judge(task.case)], path, COLUMNS, jobs=1)
    judged, names = read(path, COLUMNS), [task.name for task in tasks]
    lost = [name for name in names if name not in set(judged["task"])]
    failed = pd.DataFrame({"task": lost, "broken": "an exception of the trial itself"})
    return pd.concat([judged[judged["task"].isin(names)], failed], ignore_index=True)


@dataclass(frozen=True)
class _Judgement:
    """A case as a task of the runner."""

    case: Any

    @property
    def name(self) -> str:
        """Name of the case."""
        return str(self.case.name)

    @property
    def columns(self) -> dict[str, Any]:
        """Column of the row of a case that could not be judged."""
        return {"task": self.name}
