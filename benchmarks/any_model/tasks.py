"""A task: one method on one split for one notion, with all bounds that share a fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import ClassVar

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks._common import set_threads
from benchmarks._runner import Row, TaskOfFields, joined
from benchmarks.any_model.data import Split, load_split
from benchmarks.any_model.fronts import HEAD, HEAD_WITH_GROUPS
from benchmarks.any_model.methods import METHODS, ONLY_FOR, UNCONSTRAINED, Outcome, Setting
from benchmarks.any_model.notions import FRONT_KAPPAS, NOTIONS, Notion, Response, floor, floor_of_several
from benchmarks.any_model.peers import NOTIONS_OF_PEERS, PEERS

ALL_METHODS = METHODS | PEERS
NOTIONS_OF = dict.fromkeys(METHODS, tuple(NOTIONS)) | ONLY_FOR | NOTIONS_OF_PEERS
#: Methods with a fit for every bound that is so long that each is a task of its own.
ONE_BY_ONE = ("exponentiated_gradient",)

_SHARED = ("data", "seed", "notion", "method")
COLUMNS = (
    "task", *_SHARED, "kappa", "status", "train_gap", "promised", "test_gap", "error", "floor", "floor_of_several",
    "accuracy", "auc", "log_loss", "seconds", "bounds",
)  # fmt: skip


@dataclass(frozen=True)
class Task(TaskOfFields):
    """One method on one split for one notion."""

    no_columns: ClassVar[tuple[str, ...]] = ("kappas",)

    data: str
    seed: int
    notion: str
    method: str
    kappas: tuple[float, ...]

    @property
    def name(self) -> str:
        """Name of the task, which no other task has; bounds that are fitted one by one are part of it."""
        bounds = [f"{kappa:g}" for kappa in self.kappas if self.method in ONE_BY_ONE]
        return "|".join([joined(self.shared), *bounds])


def all_tasks(
    data: Sequence[str], notions: Sequence[str], methods: Sequence[str], seeds: Sequence[int], kappas: Sequence[float]
) -> Iterator[Task]:
    """The tasks of the chosen parts. Those of one split follow each other, as they share fits of the trees.

    ``kappas`` chooses among the bounds of methods that are fitted for one bound at a time; the others have all.
    """
    for seed, name, notion, method in product(seeds, data, notions, methods):
        if notion in NOTIONS_OF[method]:
            yield from _of_method(name, seed, notion, method, kappas)


def _of_method(data: str, seed: int, notion: str, method: str, kappas: Sequence[float]) -> Iterator[Task]:
    bounds = _bounds(NOTIONS[notion], method)
    if method in ONE_BY_ONE:
        for kappa in bounds:
            if kappa in kappas:
                yield Task(data, seed, notion, method, (kappa,))
    else:
        yield Task(data, seed, notion, method, (UNCONSTRAINED,) if method == "trees" else bounds)


def _bounds(notion: Notion, method: str) -> tuple[float, ...]:
    """Bounds of a method, more of them where others are compared with its front."""
    is_compared_with = notion.kind == "rate" and method in (HEAD, HEAD_WITH_GROUPS)
    return tuple(sorted({*notion.kappas, *FRONT_KAPPAS})) if is_compared_with else notion.kappas


@lru_cache(maxsize=2)
def _split(data: str, seed: int) -> Split:
    return load_split(data, seed)


def run_task(task: Task) -> list[Row]:
    """Fit for all bounds and measure on both parts."""
    set_threads(1)
    split = _split(task.data, task.seed)
    setting = Setting(split, task.notion, task.kappas, task.seed)
    outcomes = list(ALL_METHODS[task.method](setting))
    return [task.columns | {"bounds": len(outcomes)} | measures(split, setting.entry, outcome) for outcome in outcomes]


def measures(split: Split, notion: Notion, outcome: Outcome) -> Row:
    """Gaps on both parts, and performance on new rows, with six digits."""
    row = _exact_measures(split, notion, outcome)
    return {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in row.items()}


def _exact_measures(split: Split, notion: Notion, outcome: Outcome) -> Row:
    test = notion.measure(split.test, outcome.test)
    train_gap = notion.measure(split.train, outcome.train).gap
    return {
        "kappa": outcome.kappa,
        "status": outcome.status,
        "train_gap": train_gap,
        "promised": train_gap if np.isnan(outcome.promised) else outcome.promised,
        "test_gap": test.gap,
        "error": test.error,
        **_floors(split, notion, outcome, test.error),
        "seconds": outcome.seconds,
        **performance(split.test.y, outcome.test),
    }


def _floors(split: Split, notion: Notion, outcome: Outcome, error: float) -> Row:
    """Gaps that sampling alone explains: of one difference, and of the largest of several where the gap is that."""
    if not np.isfinite(outcome.kappa):
        return {"floor": np.nan, "floor_of_several": np.nan}
    one = floor(outcome.kappa, error)
    if not notion.of_several:
        return {"floor": one, "floor_of_several": one}
    answers = outcome.train if outcome.promise is None else outcome.promise
    several = floor_of_several(notion, outcome.kappa, split.train, answers, split.test.y.size)
    return {"floor": one, "floor_of_several": several}


def performance(y: np.ndarray, response: Response) -> Row:
    """Accuracy, expected where decisions are random; AUC and log loss of scores, if there are any."""
    right = np.where(y == 1, response.decisions, 1 - response.decisions)
    row: Row = {"accuracy": float(right.mean())}
    if response.scores is not None:
        row["auc"] = float(roc_auc_score(y, response.scores))
        row["log_loss"] = float(np.logaddexp(0, -(2 * y - 1) * response.scores).mean())
    return row
