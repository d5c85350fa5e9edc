"""Options of every method.

ipc: those of the paper's experiments (precision 1e-2, so ten thousand steps for a subproblem). exact_penalty: the
better of two first radii and four penalties on the credit data.
"""

from __future__ import annotations

from typing import Any

__all__ = ["PARAMETERS", "SOLVERS"]

_PROXIMITY = 10**-2.5
#: The solver of a method that is called otherwise.
SOLVERS = {"auto": "augmented_lagrangian", "ipc_online": "ipc"}
PARAMETERS: dict[str, dict[str, Any]] = {
    "auto": {},
    "ipc": {"proximity": _PROXIMITY, "max_iter": 5},
    "ipc_online": {"oracle": "online", "proximity": _PROXIMITY, "max_iter": 2},
    "exact_penalty": {"sigma": 10.0, "max_iter": 2000},
    "online_subgradient": {"max_iter": 8_000},
}
