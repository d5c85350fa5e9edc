"""A task: one fit of one method on one split, for one notion and bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

from benchmarks._common import set_threads
from benchmarks._runner import Row, TaskOfFields, joined
from benchmarks.any_model.methods import Setting
from benchmarks.any_model.notions import NOTIONS
from benchmarks.any_model.tasks import measures
from benchmarks.new_rows.methods import FRONT_OF_ERRORS, METHODS, ONLY_FOR, split_of

KAPPAS = (0.02, 0.05)
#: Further bounds, by method: of the front that others are compared with, and the default of networks.
MORE_KAPPAS = {FRONT_OF_ERRORS: (0.005, 0.01, 0.1, 0.2), "network": (0.005,), "network_before": (0.005,)}
_SHARED = ("data", "seed", "notion", "method")
COLUMNS = (
    "task", *_SHARED, "kappa", "status", "train_gap", "promised", "test_gap", "error", "floor", "floor_of_several",
    "granularity", "estimate", "estimate_error", "accuracy", "auc", "log_loss", "seconds",
)  # fmt: skip


@dataclass(frozen=True)
class Task(TaskOfFields):
    """One method on one split, for one notion and bound."""

    no_columns: ClassVar[tuple[str, ...]] = ("kappa",)  # a row has that of its own

    data: str
    seed: int
    notion: str
    method: str
    kappa: float

    @property
    def name(self) -> str:
        """Name of the task, which no other task has."""
        return joined(self.shared | {"kappa": f"{self.kappa:g}"})


def all_tasks(
    data: Sequence[str], notions: Sequence[str], methods: Sequence[str], seeds: Sequence[int], kappas: Sequence[float]
) -> Iterator[Task]:
    """The tasks of the chosen parts, one split after the other."""
    for seed, name, notion, method in product(seeds, data, notions, methods):
        if notion in ONLY_FOR.get(method, NOTIONS):
            for kappa in dict.fromkeys([*kappas, *MORE_KAPPAS.get(method, ())]):
                yield Task(name, seed, notion, method, kappa)


def run_task(task: Task) -> list[Row]:
    """Fit, and measure on both parts."""
    set_threads(1)
    split = split_of(task.data, task.seed)
    setting = Setting(split, task.notion, (task.kappa,), task.seed)
    fitted = METHODS[task.method](task.data, setting, task.kappa)
    more = {"granularity": fitted.granularity, "estimate": fitted.estimate, "estimate_error": fitted.estimate_error}
    rounded = {name: float(f"{value:.6g}") for name, value in more.items()}
    return [task.columns | measures(split, setting.entry, fitted.outcome) | rounded]
