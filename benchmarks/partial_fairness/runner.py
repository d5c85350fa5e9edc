"""Runs what the results do not have yet, and appends every task's rows as soon as it is done."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from joblib import Parallel, delayed
from tqdm import tqdm

from benchmarks.partial_fairness.experiments import EXPERIMENTS
from benchmarks.partial_fairness.tasks import Row, Task

#: Of the results; a row has those that its experiment knows.
COLUMNS = (
    "task",
    "experiment",
    "data",
    "notion",
    "method",
    "setting",
    "parameter",
    "trained_on",
    "interval",
    "levels",
    "seed",
    "status",
    "failed",
    "seconds",
    "evaluations",
    "objective",
    "surrogate_violation",
    *(f"{part}_{value}" for part in ("train", "val", "test") for value in ("accuracy", "gap", "rank_gap")),
    "group",
    "rank",
    "score",
)
#: How the status of a task that raised an exception begins. It is tried again by the next run.
ERROR = "error: "


def read(path: Path) -> pd.DataFrame:
    """The results so far, without those of tasks that raised an exception."""
    if not path.exists():
        return pd.DataFrame(columns=list(COLUMNS))
    table = pd.read_csv(path, low_memory=False)
    # a task that failed once and was repeated has rows of both
    return table[~table.status.astype(str).str.startswith(ERROR)]


def run_all(tasks: Iterable[Task], path: Path, jobs: int) -> None:
    """Run the tasks that ``path`` has no rows of; can be interrupted and started again."""
    done = set(read(path).task)
    todo = [task for task in tasks if task.name not in done]
    path.parent.mkdir(exist_ok=True)
    is_new = not path.exists()
    results = Parallel(jobs, return_as="generator_unordered")(delayed(_rows_of)(task) for task in todo)
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if is_new:
            writer.writeheader()
        for rows in tqdm(results, total=len(todo), desc=f"tasks ({len(done)} done before)"):
            writer.writerows(rows)
            file.flush()


def _rows_of(task: Task) -> list[Row]:
    """The rows of a task; one with the message if it raises an exception, so that the others go on."""
    try:
        return EXPERIMENTS[task.experiment].run(task)
    except Exception as error:
        return [task.columns | {"status": f"{ERROR}{error}"}]
