"""Theorems of the papers in numbers: parameters of their methods, and bounds for new rows.

One function for each theorem. They take the constants of its assumptions and return what it asks for, with the term
that limits it. Worst cases over all functions with these constants, they are as a rule far from what a run needs.
"""

from fairconstrained.theory._generalization import (
    GeneralizationBound,
    ObjectiveBound,
    generalization_bound,
    objective_bound,
    rows_near_thresholds,
)
from fairconstrained.theory._idca import IDCAParameters, idca_parameters, ssg_iterations
from fairconstrained.theory._ipc import (
    IPCParameters,
    OnlineBound,
    SwitchingIterations,
    ipc_parameters,
    online_bound,
    switching_iterations,
)
from fairconstrained.theory._plada import PLADASteps, plada_steps

__all__ = [
    "GeneralizationBound",
    "IDCAParameters",
    "IPCParameters",
    "ObjectiveBound",
    "OnlineBound",
    "PLADASteps",
    "SwitchingIterations",
    "generalization_bound",
    "idca_parameters",
    "ipc_parameters",
    "objective_bound",
    "online_bound",
    "plada_steps",
    "rows_near_thresholds",
    "ssg_iterations",
    "switching_iterations",
]
