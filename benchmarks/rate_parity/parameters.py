"""The one table of parameters: of every solver, for linear scores and for networks.

Linear scores: every method has eight sets, a grid of its step and of the option that matters most beside it, and the
one that `benchmarks.rate_parity.tuning` chose on problems that are not shown. "plada, published" has the set of Table 2
of the paper as it stands. All methods on all rows have the same budget of evaluations, those on mini-batches the same
number of passes. Networks: Table 2 for plada; multiplier_model was not tuned there.
"""

from __future__ import annotations

from itertools import product
from typing import Any

__all__ = ["BUDGET", "CHOSEN", "LINEAR", "NETWORK", "SETS", "SOLVERS"]

#: Evaluations of objective, constraints and a gradient on all rows.
BUDGET = 2000
#: Passes over the rows of the methods on mini-batches, and rows of a mini-batch.
PASSES, _BATCH = 100, 500

_STEPS = (0.03, 0.1, 0.3, 1.0)
_PLADA = {"alpha": 10.0, "beta": 0.1, "gamma": 0.1}
_ALL_ROWS = {"max_epochs": BUDGET // 20, "epoch_steps": 20}
_MINI_BATCHES = {"max_epochs": PASSES, "batch_size": _BATCH}
_PROXIMAL = {"max_iter": BUDGET // 100, "inner_iter": 100}


def _sets(common: dict[str, Any], **grid: tuple[float, ...]) -> list[dict[str, Any]]:
    return [common | dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


#: The slack's step keeps the paper's bound 1 / (3 rho) = 0.067, which the published 0.1 breaks.
_PLADA_SETS = _sets(_PLADA | {"slack_rate": 0.05}, learning_rate=_STEPS, delta=(10.0, 100.0))
#: What is tried, by method.
SETS: dict[str, list[dict[str, Any]]] = {
    "plada": [_ALL_ROWS | options for options in _PLADA_SETS],
    "plada, mini-batches": [_MINI_BATCHES | options for options in _PLADA_SETS],
    "ssg": _sets({"max_iter": BUDGET}, learning_rate=_STEPS, eps=(1e-4, 1e-3)),
    "ipp_ssg": _sets(_PROXIMAL | {"tolerance": 1e-4}, learning_rate=_STEPS, proximity=(0.1, 0.3)),
    "ipp_conex": _sets(_PROXIMAL | {"proximity": 0.3}, learning_rate=_STEPS, tau=(2.0, 10.0)),
    "proxy_lagrangian": _sets({"max_iter": BUDGET}, step=(0.1, 0.3, 1.0, 3.0), multiplier_step=(1.0, 3.0)),
    "multiplier_model": _sets(_MINI_BATCHES, learning_rate=(0.005, 0.02, 0.05, 0.1), multiplier_rate=(0.005, 0.02)),
}
#: Places in `SETS` of what `benchmarks.rate_parity.tuning` chose.
CHOSEN: dict[str, int] = {
    "plada": 7,
    "plada, mini-batches": 6,
    "ssg": 6,
    "ipp_ssg": 6,
    "ipp_conex": 6,
    "proxy_lagrangian": 7,
    "multiplier_model": 4,
}
#: Options by method; `SOLVERS` says of which solver.
LINEAR: dict[str, dict[str, Any]] = {
    "auto": {},
    **{name: SETS[name][place] for name, place in CHOSEN.items()},
    "plada, published": _PLADA | _ALL_ROWS | {"slack_rate": 0.1, "learning_rate": 1e-3, "delta": 1.0},
}
#: The five hidden layers of model 5.3.
NETWORK: dict[str, dict[str, Any]] = {
    "auto": {},
    "plada": {
        "slack_rate": 0.01,
        "alpha": 10.0,
        "beta": 0.5,
        "gamma": 0.1,
        "learning_rate": 0.1,
        "max_epochs": 200,
        "batch_size": 256,
    },
    "multiplier_model": {"max_epochs": 200, "batch_size": 256, "learning_rate": 0.005, "multiplier_rate": 0.005},
}
#: Solvers of methods that have another name.
SOLVERS = {"auto": "augmented_lagrangian", "plada, mini-batches": "plada", "plada, published": "plada"}
