"""A task: a method of the package at the bound, or one of another package and ours at the value that it reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import ClassVar

import numpy as np

from benchmarks._common import missing, set_threads
from benchmarks._runner import Row, TaskOfFields
from benchmarks.any_model.methods import UNCONSTRAINED
from benchmarks.any_model.tasks import measures
from benchmarks.notions import aif360_methods, fairlearn_methods, heads, linear, oxonfair_methods
from benchmarks.notions.linear import Fitted, Method
from benchmarks.notions.peer import Peer
from benchmarks.notions.setting import Setting

#: Methods of the package, and of others. A module with further ones registers them here.
METHODS: dict[str, Method] = linear.METHODS | heads.METHODS
PEERS: dict[str, Peer] = fairlearn_methods.PEERS | oxonfair_methods.PEERS | aif360_methods.PEERS

_SHARED = ("data", "seed", "notion")
COLUMNS = (
    "task", *_SHARED, "method", "against", "bound", "kappa", "status", "train_gap", "promised", "granularity",
    "test_gap", "error", "floor", "floor_of_several", "accuracy", "auc", "log_loss", "seconds", "training_share",
)  # fmt: skip


@dataclass(frozen=True)
class Task(TaskOfFields):
    """A method on one split, for one notion and its bound; of another package, with ours at the value it reached."""

    no_columns: ClassVar[tuple[str, ...]] = ("method",)  # a row has that of its own

    data: str
    seed: int
    notion: str
    method: str


def all_tasks(
    data: Sequence[str], notions: Sequence[str], methods: Sequence[str], seeds: Sequence[int]
) -> Iterator[Task]:
    """The tasks of the chosen parts, one split after the other."""
    for seed, name, notion, method in product(seeds, data, notions, methods):
        if notion in (METHODS | PEERS)[method].notions and seed < _n_splits(method):
            yield Task(name, seed, notion, method)


def lacks(method: str) -> str:
    """Return the reason why a method cannot be run here; empty if it can."""
    return missing([PEERS[method].package] if method in PEERS else [])


def _n_splits(method: str) -> float:
    return METHODS[method].splits if method in METHODS else np.inf


@lru_cache(maxsize=16)
def _unconstrained(method: str, setting: Setting) -> Fitted:
    return METHODS[method].fit(setting)


def run_task(task: Task) -> list[Row]:
    """Fit, and measure on both parts."""
    set_threads(1)
    setting = Setting(task.data, task.seed, task.notion, np.inf)
    bounded = setting.bounded_by(setting.entry.bound_for(task.data))
    rows = list(_of_peer(task.method, bounded) if task.method in PEERS else _of_method(task.method, bounded))
    return [task.columns | {"bound": bounded.bound} | row for row in rows]


def _of_method(method: str, bounded: Setting) -> Iterator[Row]:
    """A method of the package at the bound, and without one: the other end of its front."""
    yield _row(method, bounded, METHODS[method].fit(bounded))
    if METHODS[method].answers:
        # without a bound the notion does not enter
        plain = Setting(bounded.data, bounded.seed, "demographic_parity", UNCONSTRAINED)
        yield _row(method, bounded, _unconstrained(method, plain))


def _of_peer(peer: str, bounded: Setting) -> Iterator[Row]:
    """A method of another package, and those of ours with the same information at the value it reached in training."""
    theirs = _row(peer, bounded, Fitted(PEERS[peer].fit(bounded)))
    yield theirs
    if np.isnan(theirs["train_gap"]):
        return
    reached = bounded.bounded_by(theirs["train_gap"])
    for name, method in METHODS.items():
        if peer in method.answers and bounded.notion in method.notions:
            yield _row(name, reached, method.fit(reached)) | {"against": peer}


def _row(method: str, setting: Setting, fitted: Fitted) -> Row:
    found = measures(setting.split, setting.entry, fitted.outcome)  # type: ignore[arg-type]
    sizes = [part.y.size for part in setting.split]
    shared = {"method": method, "granularity": fitted.granularity, "training_share": sizes[0] / sum(sizes)}
    return shared | found
