"""Parameters of estimators: declared, documented and checked once, by every class that has them."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from fairconstrained.checks.parameters import CheckedParameters, parameter, with_parameters

__all__ = [
    "SMALL_GROUPS",
    "CheckedParameters",
    "ChoosesSolver",
    "HandlesSmallGroups",
    "HasGroupModels",
    "HasIntercept",
    "HasThreshold",
    "Iterates",
    "Reports",
    "StartsWarm",
    "parameter",
    "with_parameters",
]


#: Allowed values of ``small_groups``.
SMALL_GROUPS = [StrOptions({"error", "merge", "ignore"})]


@with_parameters
class Reports:
    """Parameter of every estimator.

    Parameters
    ----------
    verbose : int, default=0
        1: a progress bar with the objective and the bounded metrics, and a summary of the fit. 2 and more: the numbers
        of every iteration of the solver in place of the bar.
    """

    verbose: int = parameter(0, ["verbose"])


@with_parameters
class StartsWarm:
    """Parameter of estimators that may go on from their last fit.

    Parameters
    ----------
    warm_start : bool, default=False
        Start from the last fit, its multipliers included, also after `set_params` with another ``kappa``. Ignored where
        the features, the groups or the layers have changed.
    """

    warm_start: bool = parameter(False, ["boolean"])


@with_parameters
class ChoosesSolver(Reports):
    """Parameters of estimators that leave the choice of the solver to the user.

    Parameters
    ----------
    solver : str, default="auto"
        Name of a solver of `fairconstrained.solvers`. "auto" chooses one that suits the scores and the constraints.
    solver_options : dict, optional
        Options of the solver, see its class in `fairconstrained.solvers`.
    random_state : int, RandomState instance or None, default=None
        Seed of the first weights of a module, of mini-batches, and of the part of the rows with which
        "augmented_lagrangian" begins where there are more than 60,000. None is another seed every time; numpy's global
        generator is left alone.
    """

    solver: str = parameter("auto", [str])  # looked up in fit: solvers may be registered at any time
    solver_options: Mapping[str, Any] | str | None = parameter(None, [Mapping, None])
    random_state: Any = parameter(None, ["random_state"])


@with_parameters
class Iterates:
    """Parameters of estimators whose solvers stop by a number of iterations or by a tolerance.

    Parameters
    ----------
    max_iter : int or None, default=None
        Outer iterations of the solver; None is the solver's own default, which is 50 for "augmented_lagrangian",
        "span" and "cross_fitted".
    tol : float, default=5e-4
        Relative improvement of the objective below which "augmented_lagrangian" and the steps of
        "sequential_quadratic" stop, also where "span" and "cross_fitted" call them.
    """

    max_iter: int | None = parameter(None, [Interval(Integral, 1, None, closed="left"), None])
    tol: float = parameter(5e-4, [Interval(Real, 0, None, closed="left")])


@with_parameters
class HasIntercept:
    """Parameter of linear scores.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether linear scores have an intercept.
    """

    fit_intercept: bool = parameter(True, ["boolean"])


@with_parameters
class HasGroupModels:
    """Parameter of estimators that may have a model for every group.

    Parameters
    ----------
    group_interactions : bool, default=False
        Whether every group has a coefficient vector and an intercept of its own, or an output of the module of its own;
        prediction then needs ``sensitive_features``.
    """

    group_interactions: bool = parameter(False, ["boolean"])


@with_parameters
class HasThreshold:
    """Parameter of classifiers that do not always decide at zero.

    Parameters
    ----------
    threshold : float, default=0.0
        Score above which the positive class is predicted.
    """

    threshold: float = parameter(0.0, [Interval(Real, None, None, closed="neither")])


@with_parameters
class HandlesSmallGroups:
    """Parameter of estimators that compare groups, some of which may be too small.

    Parameters
    ----------
    small_groups : {"error", "merge", "ignore"}, default="error"
        How to treat groups with fewer rows than ``min_group_size``, or, where there is no such parameter, with a cell
        so small that one of its rows counts more than ``max(kappa, 0.02)`` in a gap that is bounded: "error" raises
        ValueError with the counts, "merge" puts them together, as one group named "(small groups)", with the next
        smaller ones if they are still too small, and "ignore" leaves them out of the constraints.

    Attributes
    ----------
    ignored_groups_ : list
        Labels of the groups that ``small_groups="ignore"`` left out of the constraints.
    constraint_values_all_groups_ : dict
        ``constraint_values_`` with the ignored groups compared as well; NaN where one of them has an empty cell.
    """

    small_groups: str = parameter("error", SMALL_GROUPS)
