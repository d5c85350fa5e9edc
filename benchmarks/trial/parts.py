"""The parts of the trial besides random problems: each a list of cases, run one after another in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    cases = part.cases()[:: part.quick if quick else 1]
    run_all(cases, lambda case: [part.judge(case)], path, COLUMNS, jobs=1)
    results = read(path, COLUMNS)
    return results[results["task"].isin([case.name for case in cases])]
