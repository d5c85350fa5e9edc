"""A task: one run of a method with one seed, its metrics on both parts, and where it was on the way."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from scipy.special import expit

from benchmarks._common import RESULTS
from benchmarks._runner import Row, TaskOfFields, joined
from benchmarks.loss_parity.constraints import CONSTRAINTS, Constraint
from benchmarks.loss_parity.datasets import DATASETS, Part, Parts, load_parts, split_seed
from benchmarks.loss_parity.methods import METHODS, Setting, Visit
from benchmarks.loss_parity.network import scores
from fairconstrained.metrics import inaccuracy, independence_gap, separation_gap, sufficiency_gap, wasserstein_gap

#: The published bound and number of runs (section 4.2 and the authors' configuration).
KAPPA = 0.005
N_SEEDS = 10
#: What the gap may exceed kappa by.
TOLERANCE = 1e-6
PARTS = ("train", "test")
METRICS = ("Ind", "Sp", "Ina", "Sf", "Wd", "gap", "signed", "loss")

_SHARED = ("dataset", "split", "constraint", "method", "seed", "limit")
COLUMNS = (
    "task",
    *_SHARED,
    "status",
    "seconds",
    "wall_seconds",
    "iterations",
    "objective",
    *(f"{part}_{metric}" for part in PARTS for metric in METRICS),
)


@dataclass(frozen=True)
class Task(TaskOfFields):
    """One run; ``limit`` is its processor time in seconds, None for methods that end by themselves."""

    no_columns: ClassVar[tuple[str, ...]] = ("stem",)

    dataset: str
    split: str
    constraint: str
    method: str
    seed: int
    limit: float | None
    stem: str = "loss_parity"

    @property
    def name(self) -> str:
        """Name of the task, which no other task has."""
        return joined(self.shared)


def time_limits(seconds: float | None = None) -> dict[str, float]:
    """Processor time of a run on every data set in seconds: that given, else its own."""
    return {name: seconds or dataset.seconds for name, dataset in DATASETS.items()}


def all_tasks(
    chosen: Sequence[Sequence[str]], seeds: int, limits: Mapping[str, float], stem: str = "loss_parity"
) -> Iterator[Task]:
    """The tasks of the chosen data sets, splits, constraints and methods, seed 0 first."""
    for seed, dataset, split, constraint, name in product(range(seeds), *chosen):
        if split in DATASETS[dataset].splits:
            limit = None if METHODS[name].ends_itself else limits[dataset]
            yield Task(dataset, split, constraint, name, seed, limit, stem)


def run_task(task: Task) -> list[Row]:
    """Train and measure; the way there goes to a file of its own, see `trace_of`."""
    torch.set_num_threads(1)
    parts = load_parts(task.dataset, split_seed(task.split, task.seed))
    constraint = CONSTRAINTS[task.constraint]
    run, begin = METHODS[task.method].run, time.perf_counter()
    setting = Setting(parts.train, constraint, KAPPA, task.seed, task.limit)
    outcome = run(setting)
    seconds, wall_seconds = setting.elapsed, time.perf_counter() - begin
    row: Row = {"seconds": seconds, "wall_seconds": wall_seconds, "iterations": outcome.iterations}
    for name, part in zip(PARTS, parts, strict=True):
        row |= {f"{name}_{metric}": value for metric, value in measures(part, outcome.params, constraint).items()}
    row["objective"] = row["train_loss"]
    row["status"] = "completed" if row["train_gap"] <= KAPPA + TOLERANCE else "infeasible"
    visits = [*setting.visits, Visit(seconds, outcome.iterations, outcome.params)]
    _save_trace(task, parts, visits, constraint)
    return [task.columns | row]


def measures(part: Part, params: np.ndarray, constraint: Constraint) -> dict[str, float]:
    """The metrics of the paper (section 2) and the mean loss; NaN where a rate has no rows."""
    found = scores(params, part.X)
    predicted, groups = np.where(found > 0, 1, -1), {"sensitive_features": part.groups}
    loss, gap, signed = _loss_and_gaps(part, found, constraint)
    return {
        "Ind": independence_gap(part.y, predicted, **groups),
        "Sp": separation_gap(part.y, predicted, **groups, agg_labels="sum", on_empty="nan"),
        "Ina": inaccuracy(part.y, predicted),
        "Sf": sufficiency_gap(part.y, predicted, **groups, on_empty="nan"),
        "Wd": wasserstein_gap(None, expit(found), **groups),
        "gap": gap,
        "signed": signed,
        "loss": loss,
    }


def _loss_and_gaps(part: Part, found: np.ndarray, constraint: Constraint) -> tuple[float, float, float]:
    loss, rows = float(np.logaddexp(0, -part.y * found).mean()), (part.y, found, part.groups)
    return loss, constraint.gap(*rows), constraint.signed_gap(*rows)


def trace_of(task: Task) -> Path:
    """Where the way of a run is, and the probabilities of its test rows."""
    return RESULTS / f"{task.stem}_runs" / f"{re.sub(r'[^A-Za-z0-9_.]+', '-', task.name)}.npz"


def _save_trace(task: Task, parts: Parts, visits: list[Visit], constraint: Constraint) -> None:
    way = []
    for visit in visits:
        values = [_loss_and_gaps(part, scores(visit.params, part.X), constraint) for part in parts]
        way.append([visit.seconds, visit.iterations, *np.ravel(values)])
    path = trace_of(task)
    path.parent.mkdir(parents=True, exist_ok=True)
    probabilities = expit(scores(visits[-1].params, parts.test.X)).astype(np.float32)
    np.savez_compressed(path, way=np.array(way), probabilities=probabilities, groups=parts.test.groups)


#: Of the table of `histories`.
HISTORY = ("seconds", "iterations", *(f"{part}_{value}" for part in PARTS for value in ("loss", "gap", "signed")))

#: Of the table of `probabilities`, beside group and probability.
PROBABILITIES = ("dataset", "split", "constraint", "method")


def _traces_of(results: pd.DataFrame, stem: str) -> Iterator[tuple[Task, dict[str, np.ndarray]]]:
    """The tasks of runs that have a file of `trace_of`, and what is in it."""
    for values in results[list(_SHARED)].itertuples(index=False):
        limit = None if pd.isna(values.limit) else float(values.limit)
        task = Task(values.dataset, values.split, values.constraint, values.method, int(values.seed), limit, stem)
        if trace_of(task).exists():
            with np.load(trace_of(task)) as trace:
                yield task, dict(trace)


def histories(results: pd.DataFrame, stem: str) -> pd.DataFrame:
    """Loss and gap on both parts on the way of every run; the last line of each is what it returned."""
    tables = [
        pd.DataFrame(trace["way"], columns=list(HISTORY)).assign(**task.columns)
        for task, trace in _traces_of(results, stem)
    ]
    names = ["task", *_SHARED, *HISTORY]
    return pd.concat(tables)[names] if tables else pd.DataFrame(columns=names)


def probabilities(results: pd.DataFrame, stem: str) -> pd.DataFrame:
    """Probabilities of the test rows of all runs, and their groups."""
    tables = [
        pd.DataFrame({"group": trace["groups"], "probability": trace["probabilities"]}).assign(
            **{name: getattr(task, name) for name in PROBABILITIES}
        )
        for task, trace in _traces_of(results, stem)
    ]
    return pd.concat(tables) if tables else pd.DataFrame(columns=list(PROBABILITIES))
