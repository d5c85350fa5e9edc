"""A task: one fit of one method on one split, and the AUC and the gap of the models that it leads to."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from benchmarks._common import Table
from benchmarks._runner import Row, TaskOfFields
from benchmarks.auc_fairness.methods import CASES, GAPS, METHODS, MODELS, Scores, Setting, scores_of
from benchmarks.partial_fairness.cases import split, standardised
from fairconstrained import AUCFairClassifier
from fairconstrained.constraints import AUCGap
from fairconstrained.data import FairData
from fairconstrained.exceptions import ConvergenceWarning
from fairconstrained.groups import GroupEncoder

N_SEEDS = 5
QUICK_ROWS = 2000
PARTS = ("train", "val", "test")
COLUMNS = (
    "task",
    "data",
    "metric",
    "model",
    "method",
    "parameter",
    "step",
    "seed",
    "status",
    "seconds",
    "evaluations",
    "granularity",
    *(f"{part}_{value}" for part in PARTS for value in ("auc", "gap")),
)


@dataclass(frozen=True)
class Task(TaskOfFields):
    """One fit; ``parameter`` is kappa, or the weight of a penalty."""

    no_columns: ClassVar[tuple[str, ...]] = ("rows",)

    data: str
    metric: str
    model: str
    method: str
    parameter: float
    step: float
    seed: int
    rows: int | None = None


def all_tasks(
    seeds: int, models: Sequence[str], methods: Sequence[str], cases: Sequence[str] = tuple(CASES), quick: bool = False
) -> Iterator[Task]:
    """Every method on every data set, metric and model, seed 0 first."""
    for seed, model, metric, data in product(range(1 if quick else seeds), models, GAPS, cases):
        for name in methods:
            method = METHODS[name]
            plan = method.plans.get(model)
            if plan is None or metric not in method.metrics or data not in plan.data or seed >= plan.n_seeds:
                continue
            for parameter, step in plan.parameters[:: 3 if quick else 1]:
                yield Task(data, metric, model, name, parameter, step, seed, QUICK_ROWS if quick else None)


@lru_cache(maxsize=1)
def _prepared(data: str, seed: int, rows: int | None) -> tuple[Any, Table, dict[str, np.ndarray]]:
    """Features, standardised by the training part; everything else of the table; and the rows of every part."""
    case = CASES[data]
    table: Table = case.load()
    parts = split(case, table, seed, rows)
    return standardised(table.X, parts["train"]), table, parts


@lru_cache(maxsize=8)
def _unconstrained(data: str, model: str, seed: int, rows: int | None, **params: Any) -> AUCFairClassifier:
    """The fit that all metrics share."""
    X, table, parts = _prepared(data, seed, rows)
    train = parts["train"]
    estimator = AUCFairClassifier(None, random_state=seed, **(MODELS[model] | params))
    return estimator.fit(X[train], table.y[train], sensitive_features=table.groups[train])


def run_task(task: Task) -> list[Row]:
    """Fit on the training part; a row for every model of which none has a smaller gap there and a better validation."""
    torch.set_num_threads(1)
    X, table, parts = _prepared(task.data, task.seed, task.rows)
    train = parts["train"]
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status tells
        shared = partial(_unconstrained, task.data, task.model, task.seed, task.rows)
        setting = Setting(task.data, task.metric, task.model, task.parameter, task.step, task.seed, shared)
        fitted = METHODS[task.method].build(setting)
        fitted.fit(X[train], table.y[train], sensitive_features=table.groups[train])
    known = task.columns | {
        "seconds": time.process_time() - begin,
        "status": fitted.status_,
        "evaluations": getattr(fitted, "n_evaluations_", np.nan),
        "granularity": _granularity(task.metric, table.y[train], table.groups[train]),
    }

    def measure(scores: Scores, part: str) -> Row:
        y, groups = table.y[parts[part]], table.groups[parts[part]]
        found = scores(X[parts[part]], groups)
        gap = GAPS[task.metric](y, found, sensitive_features=groups)
        return {f"{part}_auc": roc_auc_score(y, found), f"{part}_gap": gap}

    measured = [(scores, measure(scores, "train") | measure(scores, "val")) for scores in scores_of(fitted)]
    return [known | row | measure(scores, "test") for scores, row in _undominated(measured)]


def _granularity(metric: str, y: np.ndarray, groups: np.ndarray) -> float:
    """Change of the gap that one training row can make: by so much may the gap exceed its bound."""
    encoder = GroupEncoder(groups)
    data = FairData.from_arrays(np.zeros((y.size, 1)), y.astype(float), encoder.codes, encoder.labels)
    return AUCGap(None, constraint=metric).bind(data).granularity


def _undominated(models: list[tuple[Scores, Row]]) -> list[tuple[Scores, Row]]:
    """Models that can be chosen by the best validation AUC within some bound on the training gap."""
    kept, best = [], -np.inf
    for scores, row in sorted(models, key=lambda model: (model[1]["train_gap"], -model[1]["val_auc"])):
        if row["val_auc"] > best:
            kept.append((scores, row))
            best = row["val_auc"]
    return kept
