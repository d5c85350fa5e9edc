"""Runs what the results do not have yet, and appends every task's rows as soon as it is done."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import pandas as pd
from joblib import Parallel, delayed
from tqdm import tqdm

from benchmarks._common import begun

__all__ = ["Row", "Task", "TaskOfFields", "joined", "read", "results_of", "run_all", "without_missing"]

Row = dict[str, Any]
#: How the status of a task that raised an exception begins. It is tried again by the next run.
ERROR = "error: "


class Task(Protocol):
    """One unit of work, with the name by which the results know that it has been done."""

    @property
    def name(self) -> str:
        """Name of the task, which no other task has."""

    @property
    def columns(self) -> Row:
        """Columns that all rows of the task share, its name as "task" among them."""


@dataclass(frozen=True)
class TaskOfFields:
    """A task that its fields tell, all of which are columns but those that are named in ``no_columns``."""

    no_columns: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        """Name of the task, which no other task has."""
        return joined(asdict(self))

    @property
    def columns(self) -> Row:
        """Columns that all rows of the task share."""
        return {"task": self.name} | self.shared

    @property
    def shared(self) -> Row:
        """The fields that are columns."""
        return {name: value for name, value in asdict(self).items() if name not in self.no_columns}


def joined(fields: Row) -> str:
    """The values of fields as a name."""
    return "|".join(map(str, fields.values()))


AnyTask = TypeVar("AnyTask", bound=Task)


def read(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """The results so far, without those of tasks that raised an exception."""
    if not path.exists():
        return pd.DataFrame(columns=list(columns))
    table = pd.read_csv(path, low_memory=False)
    # a task that failed once and was repeated has rows of both
    return table[~table.status.astype(str).str.startswith(ERROR)]


def run_all(
    tasks: Iterable[AnyTask],
    run: Callable[[AnyTask], list[Row]],
    path: Path,
    columns: Sequence[str],
    jobs: int,
    lacks: Callable[[str], str] | None = None,
) -> None:
    """Run the tasks that ``path`` has no rows of; can be interrupted and started again.

    ``columns`` are those of the table; "task" and "status" are among them, and a row has those that it knows. Tasks
    that raised an exception are counted at the end, with the message of one of them. ``lacks`` gives the reason why a
    method cannot be run, empty if it can; tasks of such methods are left out.
    """
    done = set(read(path, columns).task)
    todo = [task for task in tasks if task.name not in done]
    if lacks is not None:
        able = without_missing({task.method: lacks(task.method) for task in todo})
        todo = [task for task in todo if task.method in able]
    path.parent.mkdir(exist_ok=True)
    is_new = not path.exists()
    if not is_new and path.read_text(encoding="utf-8").partition("\n")[0].split(",") != list(columns):
        raise ValueError(f"{path} has other columns than {', '.join(columns)}; move it away, or delete it.")
    results = Parallel(jobs, return_as="generator_unordered")(delayed(_rows_of)(run, task) for task in todo)
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        if is_new:
            writer.writeheader()
        failed: list[Row] = []
        for rows in tqdm(results, total=len(todo), desc=f"tasks ({len(done)} done before)"):
            writer.writerows(rows)
            file.flush()
            failed += [row for row in rows if str(row.get("status")).startswith(ERROR)]
    if failed:
        first = f"{failed[0]['task']}: {failed[0]['status']}"
        print(f"{len(failed)} tasks failed and are tried again by the next run, such as {first}")


def without_missing(reasons: dict[str, str]) -> list[str]:
    """Return the names of what can be run, and print the reasons for the others; that of what can be run is empty."""
    for name, reason in reasons.items():
        if reason:
            print(f"{name} is left out: {reason}")
    return [name for name, reason in reasons.items() if not reason]


def results_of(
    name: str,
    tasks: Iterable[AnyTask],
    run: Callable[[AnyTask], list[Row]],
    columns: Sequence[str],
    arguments: argparse.Namespace,
    lacks: Callable[[str], str] | None = None,
) -> pd.DataFrame:
    """The results of a file, after `run_all` has added to them unless ``--plots`` is asked for; see `begun`."""
    path = begun(name)
    if not arguments.plots:
        run_all(tasks, run, path, columns, arguments.jobs, lacks)
    return read(path, columns)


def _rows_of(run: Callable[[AnyTask], list[Row]], task: AnyTask) -> list[Row]:
    """The rows of a task; one with the message if it raises an exception, so that the others go on."""
    try:
        return run(task)
    except Exception as error:
        return [task.columns | {"status": f"{ERROR}{error}"}]
