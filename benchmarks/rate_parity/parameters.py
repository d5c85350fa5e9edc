"""The one table of parameters: of every solver, for linear scores and for networks.

plada: Table 2 of the paper, its two sets. The others, linear: chosen among two to twelve sets on COMPAS and Adult with
demographic parity, and for ipp_conex a step with which it does not diverge on Bank; multiplier_model for networks was
not tuned. Iterations are so many that the methods on all rows make about as many passes.
"""

from __future__ import annotations

from typing import Any

__all__ = ["LINEAR", "NETWORK"]

_PROXIMAL = {"max_iter": 60, "inner_iter": 100, "proximity": 0.3}
_PLADA = {"slack_rate": 0.1, "alpha": 10.0, "beta": 0.1, "gamma": 0.1, "learning_rate": 1e-3}

#: Options by method; `SOLVERS` says of which solver.
LINEAR: dict[str, dict[str, Any]] = {
    "auto": {},
    "plada": {**_PLADA, "max_epochs": 300, "epoch_steps": 20},
    "plada, mini-batches": {**_PLADA, "max_epochs": 200, "batch_size": 1000},
    "ssg": {"max_iter": 6000, "learning_rate": 0.5, "eps": 1e-4},
    "ipp_ssg": {**_PROXIMAL, "learning_rate": 0.5, "tolerance": 1e-4},
    "ipp_conex": {**_PROXIMAL, "learning_rate": 0.1, "tau": 2.0},
    "proxy_lagrangian": {"max_iter": 6000, "step": 1.0, "multiplier_step": 3.0},
    "multiplier_model": {"max_epochs": 60, "batch_size": 1000, "learning_rate": 0.02, "multiplier_rate": 0.005},
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
SOLVERS = {"auto": "augmented_lagrangian", "plada, mini-batches": "plada"}
