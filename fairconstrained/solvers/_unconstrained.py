"""Parameters that are best without constraints, for all rows or for parts of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from fairconstrained.problem import FullBatchView, Problem
from fairconstrained.solvers._fitted_at_once import fitted_at_once
from fairconstrained.solvers._last_of_data import LastOfData
from fairconstrained.solvers._linear_losses import LinearLosses, has_linear_losses
from fairconstrained.solvers._newton_coordinates import has_convex_hessian
from fairconstrained.solvers.smooth import Stop, minimise, minimise_values

__all__ = ["unconstrained", "unconstrained_of_parts"]

#: When the minimisation ends; what is left of it is in the span, as the Newton step is one of the directions.
_STOP = Stop(max_iter=2000, gtol=1e-3, gain=1e-6)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two terms are equal, and what they hold is, too.

    The equality of a dataclass looks at its fields alone, and a subclass of the user that is no dataclass inherits it.
    """
    if one is other:
        return True
    try:
        is_equal = type(one) is type(other) and bool(one == other)
    except (ValueError, RuntimeError):  # arrays or tensors, which differ in parts
        return False
    held, others = getattr(one, "__dict__", {}), getattr(other, "__dict__", {})
    # a cached property may be there in one of them only
    if any(not isinstance(getattr(type(one), name, None), cached_property) for name in held.keys() ^ others.keys()):
        return False
    return is_equal and all(_is_same(held[name], others[name]) for name in held.keys() & others.keys())


#: The last unconstrained model of every data set: a path asks for the same one under every bound, of all rows and of
#: the folds.
_MODELS = LastOfData(same=_is_same)


def unconstrained(problem: Problem) -> tuple[np.ndarray, int]:
    """Return parameters that are best without constraints, nearly, and the number of evaluations that these take."""

    def fitted() -> tuple[np.ndarray, int]:
        (found,), n_evaluations = unconstrained_of_parts(problem, [None])
        return found, n_evaluations

    easiest = problem.with_easiest_objective().objective.loss
    # counted in any case: what a fit says of itself does not depend on what was fitted before
    return _MODELS.get(problem.data, (easiest, problem.model), fitted)


def unconstrained_of_parts(problem: Problem, parts: Iterable[np.ndarray | None]) -> tuple[list[np.ndarray], int]:
    """Return the parameters for parts of the rows, and the number of evaluations in units of all rows.

    A part has its rows, ascending, or is None for all rows.
    """
    free = problem.without_constraints().with_easiest_objective()
    if has_convex_hessian(free):
        return fitted_at_once(free, parts)
    found, n_rows = [], 0
    for rows in parts:
        own = free if rows is None else free.on(free.data.part(rows))
        params, n_evaluations = _minimum(own)
        found.append(params)
        n_rows += n_evaluations * own.data.n_samples
    return found, int(np.ceil(n_rows / free.data.n_samples))


def _minimum(free: Problem) -> tuple[np.ndarray, int]:
    """Parameters of the least objective of a problem without constraints, and the number of evaluations."""
    begin = np.zeros(free.n_params)
    if has_linear_losses(free):
        losses = LinearLosses(free)
        (params, _), n_saved = minimise_values(free, losses.of_all, begin, _STOP)
        return params, losses.n_evaluations + n_saved
    view, nothing = FullBatchView(free), np.empty(0)
    params, _ = minimise(view, lambda p: (p.objective, p.gradient(1.0, nothing)), begin, _STOP)
    return params, view.n_evaluations
