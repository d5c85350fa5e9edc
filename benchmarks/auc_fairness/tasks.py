"""A task: one fit of one method on one split, and the AUC and the gap on every part."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
import torch
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score

from benchmarks._common import Table, load_a9a, load_bank_table, load_compas_table
from benchmarks._runner import Row
from benchmarks.partial_fairness.cases import Case, split, standardised
from fairconstrained import AUCFairClassifier, CorrelationPenaltyClassifier
from fairconstrained.exceptions import ConvergenceWarning
from fairconstrained.metrics import group_auc_gap, inter_group_auc_gap, intra_group_auc_gap
from fairconstrained.postprocessing import ScoreShiftPostprocessor

N_SEEDS = 5
GAPS = {"group": group_auc_gap, "inter_group": inter_group_auc_gap, "intra_group": intra_group_auc_gap}
#: The splits of the paper (appendix E.1).
CASES: dict[str, Case] = {
    "a9a": Case(load_a9a, (0.0, 1.0), (0.9, 0.1), {}),
    "bank": Case(load_bank_table, (0.0, 1.0), (0.6, 0.2), {}),
    "compas": Case(load_compas_table, (0.0, 1.0), (0.6, 0.2), {}),
}
#: One hidden layer of ten sigmoid units (section 6). Without a penalty it learns the few rows by heart.
MODELS: dict[str, dict[str, Any]] = {"linear": {}, "network": {"hidden_layer_sizes": (10,), "alpha": 1e-3}}
#: Rows of every part, at most: five seeds of all baselines on networks take hours as it is.
ROWS = {"linear": None, "network": 3_000}
#: The parameter that stands for "no constraint".
UNCONSTRAINED = 1e9

COLUMNS = (
    "task",
    "data",
    "metric",
    "model",
    "method",
    "parameter",
    "seed",
    "status",
    "seconds",
    "evaluations",
    *(f"{part}_{value}" for part in ("train", "val", "test") for value in ("auc", "gap", "accuracy")),
)


@dataclass(frozen=True)
class Task:
    """One fit; ``parameter`` is kappa, or the weight of a penalty."""

    data: str
    metric: str
    model: str
    method: str
    parameter: float
    seed: int
    rows: int | None = None

    @property
    def name(self) -> str:
        """See `benchmarks._runner.Task`."""
        return "|".join(str(value) for value in asdict(self).values())

    @property
    def columns(self) -> Row:
        """See `benchmarks._runner.Task`."""
        shared = ("data", "metric", "model", "method", "parameter", "seed")
        return {"task": self.name} | {name: getattr(self, name) for name in shared}


def _ours(task: Task, **params: Any) -> Any:
    if task.parameter == UNCONSTRAINED and not params:
        return FrozenEstimator(_unconstrained(task.data, task.model, task.seed, task.rows))
    kappa = None if task.parameter == UNCONSTRAINED else task.parameter
    return AUCFairClassifier(kappa, metric=task.metric, random_state=task.seed, **(MODELS[task.model] | params))


@lru_cache(maxsize=8)
def _unconstrained(data: str, model: str, seed: int, rows: int | None) -> AUCFairClassifier:
    """The fit that all metrics share, and of networks the dearest: no constraint ends it early."""
    X, table, parts = _prepared(data, seed, rows)
    train = parts["train"]
    estimator = AUCFairClassifier(None, random_state=seed, **MODELS[model])
    return estimator.fit(X[train], table.y[train], sensitive_features=table.groups[train])


def _correlation(task: Task) -> Any:
    network = {**MODELS[task.model], "activation": "logistic"}
    return CorrelationPenaltyClassifier(task.parameter, random_state=task.seed, **network)


def _score_shift(task: Task) -> Any:
    unconstrained = _unconstrained(task.data, task.model, task.seed, task.rows)
    return ScoreShiftPostprocessor(FrozenEstimator(unconstrained), kappa=task.parameter, metric=task.metric)


#: What the paper runs: quadratic losses in objective and constraints.
QUADRATIC = {"surrogate": "quadratic", "objective": "auc"}
BOUNDS = (0.0, 0.01, 0.02, 0.05, 0.1)
SURROGATE_BOUNDS = (0.05, 0.1, 0.2, 0.5, 1.0, 3.0)


@dataclass(frozen=True)
class Method:
    """How a method is built, its parameters, and the metrics and models that it is for."""

    build: Callable[[Task], Any]
    parameters: tuple[float, ...]
    metrics: tuple[str, ...] = tuple(GAPS)
    models: tuple[str, ...] = tuple(MODELS)


METHODS = {
    "ours": Method(_ours, (UNCONSTRAINED, *BOUNDS)),
    "ours, AUC objective": Method(partial(_ours, objective="auc"), (UNCONSTRAINED, *BOUNDS), models=("linear",)),
    "quadratic, moments": Method(partial(_ours, **QUADRATIC), SURROGATE_BOUNDS, models=("linear",)),
    "level set": Method(
        partial(_ours, solver="level_set", validation_fraction=0.1, **QUADRATIC), (0.1, 0.5, 3.0), models=("linear",)
    ),
    "IQRC": Method(
        # the iterate that is best on rows set aside: no penalty is needed
        partial(_ours, solver="iqrc", validation_fraction=0.1, alpha=0.0, **QUADRATIC),
        (0.1, 3.0),
        models=("network",),
    ),
    "proxy-Lagrangian": Method(partial(_ours, solver="proxy_lagrangian"), (0.01, 0.05)),
    "correlation penalty": Method(_correlation, (0.1, 0.3, 1.0, 3.0), metrics=("group",)),
    "score shift": Method(_score_shift, (0.01, 0.02, 0.05, 0.1), metrics=("group", "inter_group")),
}


def all_tasks(seeds: int, models: list[str], quick: bool = False) -> Iterator[Task]:
    """Every method on every data set, metric and model, seed 0 first."""
    for seed, model, metric, data in product(range(1 if quick else seeds), models, GAPS, CASES):
        for name, method in METHODS.items():
            if metric in method.metrics and model in method.models:
                for parameter in method.parameters[:: 3 if quick else 1]:
                    yield Task(data, metric, model, name, parameter, seed, 2000 if quick else ROWS[model])


@lru_cache(maxsize=1)
def _prepared(data: str, seed: int, rows: int | None) -> tuple[Any, Table, dict[str, np.ndarray]]:
    """Features, standardised by the training part; everything else of the table; and the rows of every part."""
    case = CASES[data]
    table: Table = case.load()
    parts = split(case, table, seed, rows)
    return standardised(table.X, parts["train"]), table, parts


def run_task(task: Task) -> list[Row]:
    """Fit on the training part and measure on every part."""
    torch.set_num_threads(1)
    X, table, parts = _prepared(task.data, task.seed, task.rows)
    train = parts["train"]
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status tells
        model = METHODS[task.method].build(task)
        model.fit(X[train], table.y[train], sensitive_features=table.groups[train])
    row = task.columns | {"seconds": time.process_time() - begin, "status": model.status_}
    row["evaluations"] = getattr(model, "n_evaluations_", np.nan)
    for part, rows in parts.items():
        scores = model.decision_function(X[rows], sensitive_features=table.groups[rows])
        y, groups = table.y[rows], table.groups[rows]
        row[f"{part}_auc"] = roc_auc_score(y, scores)
        row[f"{part}_gap"] = GAPS[task.metric](y, scores, sensitive_features=groups)
        row[f"{part}_accuracy"] = np.mean((scores > 0) == (y > 0))
    return [row]
