"""Options of every method: eight sets each, and the one that was the soonest in `tuning`, on a problem not shown.

"auto" has no options to tune. "ipc" has the paper's proximal parameter, which its authors chose on their own three data
sets; with 10,000 steps for a subproblem, a run is too long to try eight. "online_theory" is "online_subgradient" with
the parameters that its theory for convex problems has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["FIXED", "GRIDS", "PARAMETERS", "SOLVERS"]

#: The solver of a method that is called otherwise.
SOLVERS = {
    "auto": "augmented_lagrangian",
    "online_theory": "online_subgradient",
    "ipc_alm": "ipc",
    "ipc_online": "ipc",
}
#: What is the same in all sets: the length of the runs, and which oracle there is.
FIXED: dict[str, dict[str, Any]] = {
    "auto": {},
    "exact_penalty": {"max_iter": 500},
    "online_subgradient": {"max_iter": 1500},
    "online_theory": {"max_iter": 1500, "V": "theory", "alpha": "theory"},
    "ipc_alm": {"oracle": "augmented_lagrangian", "max_iter": 15},
    "ipc_online": {"oracle": "online", "max_iter": 5, "inner_iter": 400},
    "ipc": {"proximity": 10**-2.5, "max_iter": 5},
}
_FACTORS = ("auto", 0.1, 0.3, 1.0)
GRIDS: dict[str, list[dict[str, Any]]] = {
    "exact_penalty": [{"sigma": sigma, "radius": radius} for sigma in (0.1, 1.0, 10.0, 100.0) for radius in (0.1, 1.0)],
    "online_subgradient": [
        {"V": V, "alpha": factor if isinstance(factor, str) else V * factor} for V in (0.3, 1.0) for factor in _FACTORS
    ],
    "ipc_alm": [{"proximity": 10.0**power} for power in np.arange(-3.5, 0.5, 0.5)],
    "ipc_online": [{"online_V": V, "proximity": 10.0**power} for V in (0.01, 0.03, 0.1, 0.3) for power in (-2.5, -1.5)],
}
#: The set of each method that was the soonest in `tuning`.
CHOSEN: dict[str, dict[str, Any]] = {
    "exact_penalty": {"sigma": 1.0, "radius": 1.0},
    "online_subgradient": {"V": 0.3, "alpha": 0.09},
    "ipc_alm": {"proximity": 10**-2.5},
    "ipc_online": {"online_V": 0.01, "proximity": 10**-2.5},
}
PARAMETERS = {method: fixed | CHOSEN.get(method, {}) for method, fixed in FIXED.items()}
