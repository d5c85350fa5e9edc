"""Settings of the papers' experiments, which ``solver_options="paper"`` asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sklearn.utils._param_validation import StrOptions

from fairconstrained.estimators.parameters import ChoosesSolver, parameter, with_parameters

__all__ = ["PAPER", "FollowsPaper", "published_settings"]

#: Value of ``solver_options`` for the options and the problem of a paper's experiment.
PAPER = "paper"


@with_parameters
class FollowsPaper(ChoosesSolver):
    """Estimators that can repeat the experiment of the paper which their solver is from.

    Parameters
    ----------
    solver_options : dict or "paper", optional
        Options of the solver, see its class in `fairconstrained.solvers`. "paper" is the paper's experiment.

    Attributes
    ----------
    published_params_ : dict
        Parameters that the fit had in place of this estimator's own; only with ``solver_options="paper"``.
    """

    solver_options: Mapping[str, Any] | str | None = parameter(None, [Mapping, StrOptions({PAPER}), None])


@contextmanager
def published_settings(estimator: Any) -> Iterator[None]:
    """Let an estimator have the parameters of the paper that its solver is from, if its options ask for them.

    Parameters
    ----------
    estimator : BaseFairEstimator
        Estimator that is fitted. With ``solver_options="paper"`` its parameters are those of its table ``_published``
        until the block is left, and ``published_params_`` says afterwards which these were.

    Raises
    ------
    ValueError
        If nothing is published for its solver.
    """
    if estimator.solver_options != PAPER:
        yield
        return
    if estimator.solver not in estimator._published:
        raise ValueError(
            f"solver_options={PAPER!r} stands for the published settings of a paper's solver. For "
            f"{type(estimator).__name__}, solver must be one of {sorted(estimator._published)}; got "
            f"{estimator.solver!r}."
        )
    published = dict(estimator._published[estimator.solver])
    own = {name: getattr(estimator, name) for name in published}
    estimator.__dict__ |= published
    try:
        yield
    finally:
        estimator.__dict__ |= own
    estimator.published_params_ = published
