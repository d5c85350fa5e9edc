"""The contract of a constraint: what the user writes, and what it becomes on data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from fairconstrained.data import Cells, FairData
from fairconstrained.views import Exact

__all__ = ["BoundConstraint", "Constraint"]


class BoundConstraint(Exact):
    """A constraint on data: ``metric(scores) <= kappa``, and the surrogates of it that solvers see.

    Subclasses inherit from the views of `fairconstrained.views` that they offer. They are immutable: a solver
    that wants another surrogate gets another object from `Exact.refined`, and multipliers live in the solver.
    """

    #: Name of the notion, such as ``"statistical_parity"``.
    name: str
    #: Bound on the metric that the user reads.
    kappa: float
    data: FairData
    #: Whether ``kappa`` bounds the metric. Where it bounds a surrogate, `exact` is about that and the metric is only
    #: reported.
    bounds_metric: ClassVar[bool] = True
    #: Whether the metric counts rows at thresholds, so that a narrow surrogate sees only the rows near to them.
    counts_rows: ClassVar[bool] = False

    def renamed(self, name: str) -> Self:
        """The same constraint under the name that the user gave it."""
        return replace(self, name=name)  # type: ignore[type-var]  # all bound constraints are dataclasses

    @property
    def scale(self) -> float:
        """What one unit of the metric is in units of the surrogate's components."""
        return 1.0

    @property
    def penalty_factor(self) -> float:
        """What turns the largest component of the surrogate at ``kappa = 0`` into a gap."""
        return 1 / self.scale

    @property
    def strata(self) -> np.ndarray | None:
        """Groups that mini-batches should have rows of, as numbers; None: those of the data. Shape (n_samples,)."""
        return None

    @property
    @abstractmethod
    def component_names(self) -> tuple[str, ...]:
        """A name for every component of the surrogate."""

    @property
    def n_aux(self) -> int:
        """Number of auxiliary variables."""
        return 0

    def initial_aux(self, scores: np.ndarray) -> np.ndarray:
        """Auxiliary variables that suit the given scores; ndarray of shape (n_aux,)."""
        return np.empty(0)

    @property
    def components(self) -> np.ndarray:
        """What tells the components apart that refinement may add to, for `with_components`; here nothing."""
        return np.empty(0)

    def with_components(self, components: np.ndarray) -> Self:
        """The same constraint with the components that another one of its kind had come to (a warm start)."""
        return self

    def fair_aux(self) -> np.ndarray:
        """Auxiliary variables with which the surrogate holds when all scores are zero; shape (n_aux,)."""
        return np.empty(0)

    def offsets(self, scores: np.ndarray, gains: np.ndarray, threshold: float, shared: bool) -> np.ndarray:
        """What to add to the scores of every group for the largest gain within the exact constraint.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
        gains : ndarray of shape (n_samples,)
            What predicting a row positive is worth.
        threshold : float
            Score above which a row is positive.
        shared : bool
            Whether all groups must move alike.

        Returns
        -------
        offsets : ndarray of shape (n_groups,)
            Zero, unless the constraint knows better.
        """
        return np.zeros(self.data.n_groups)

    def exact(self, scores: np.ndarray) -> float:
        """What kappa bounds, see `bounds_metric`, minus kappa: positive is a violation."""
        return self.metric(scores) - self.kappa

    @abstractmethod
    def metric(self, scores: np.ndarray) -> float:
        """The metric of `fairconstrained.metrics` at ``scores``, in the order of the data."""

    def price(self, multipliers: Mapping[str, float]) -> float:
        """By how much the least objective falls per unit of kappa, to first order.

        Parameters
        ----------
        multipliers : dict
            By the names of the components, of this constraint and of others.
        """
        own = (m for name, m in multipliers.items() if name == self.name or name.startswith(f"{self.name}["))
        return sum(own) / self.penalty_factor

    def complaint(self, value: float) -> str:
        """What to tell the user where ``value``, of what kappa bounds, is too large."""
        bounded = self.name if self.bounds_metric else f"the surrogate of {self.name}"
        return (
            f"{bounded} is {value:.4g} on the training data and exceeds kappa={self.kappa:g} by more than its "
            f"granularity ({self.granularity:.2g})."
        )


class Constraint(BaseEstimator, ABC):
    """What the user writes: parameters only, no data and no multipliers.

    A new constraint is one file with a subclass of this and one of `BoundConstraint`.
    """

    #: Whether it is about scores of a classifier: those above zero are positive, and targets are -1 and 1.
    is_of_classes: ClassVar[bool] = False

    @abstractmethod
    def bind(self, data: FairData) -> BoundConstraint:
        """The constraint on ``data``.

        Raises
        ------
        ValueError
            If a parameter is out of range, or a group is too small for ``kappa`` to be resolved; the message
            gives the counts.
        """

    def in_units(self, offset: float, scale: float) -> Self:
        """The same constraint on scores ``(s - offset) / scale``, for targets that the solver sees standardised.

        Raises
        ------
        ValueError
            If it is of classes, whose scores have no such units.
        """
        if self.is_of_classes and (offset, scale) != (0.0, 1.0):
            raise ValueError(
                f"{type(self).__name__} is about the scores of a classifier, of which positive ones mean the positive "
                "class; a regressor takes constraints such as StatisticalParity and DemographicParity."
            )
        params = self.get_params(deep=False)
        changed: dict[str, Any] = {}
        if "threshold" in params:
            changed["threshold"] = (params["threshold"] - offset) / scale
        if not isinstance(params.get("surrogate_width", "auto"), str):
            changed["surrogate_width"] = params["surrogate_width"] / scale
        return type(self)(**{**params, **changed})


def check_kappa(kappa: Any) -> float:
    """``kappa`` as a float in [0, 1], 1 for None (no gap of shares exceeds it); raises ValueError otherwise."""
    if kappa is None:
        return 1.0
    if isinstance(kappa, bool) or not isinstance(kappa, (int, float, np.integer, np.floating)):
        raise ValueError(f"kappa must be a number in [0, 1] or None (unconstrained), got {kappa!r}.")
    if not 0 <= kappa <= 1:
        raise ValueError(
            f"kappa must be in [0, 1], got {kappa}: it bounds a difference of shares. Use kappa=None for no bound."
        )
    return float(kappa)


def check_bound(kappa: Any) -> float:
    """``kappa`` as a float of at least 0, infinity for None; raises ValueError otherwise."""
    if kappa is None:
        return np.inf
    if (
        isinstance(kappa, bool)
        or not isinstance(kappa, (int, float, np.integer, np.floating))
        or not 0 <= kappa < np.inf
    ):
        raise ValueError(f"kappa must be a finite number of at least 0 or None (unconstrained), got {kappa!r}.")
    return float(kappa)


def check_resolution(blocks: Sequence[Cells], kappa: float | None, lengths: np.ndarray, notion: str) -> None:
    """Raise ValueError if a cell has too few rows for a gap of ``kappa`` on an interval of its length.

    A single row changes the gap by ``1 / (n_g length)``; a bound below that cannot be told from zero. Without a
    bound (``kappa=None``) nothing has to be resolved, but every cell needs a row.

    Parameters
    ----------
    blocks : sequence of Cells
    kappa : float or None
    lengths : ndarray of shape (n_groups,) or (1,)
    notion : str
        For the message.
    """
    counts = {label: count for cells in blocks for label, count in cells.counts().items()}
    for cells in blocks:
        for (_, count), length in zip(cells.counts().items(), np.broadcast_to(lengths, len(cells)), strict=True):
            finest = length if kappa is None or kappa == 0 else length * min(kappa, 1.0)
            needed = 1 if kappa is None else int(np.ceil(1 / finest - 1e-9))
            if count < needed:
                raise ValueError(
                    f"{notion} with kappa={kappa} on an interval of length {length:g} needs at least {needed} rows in "
                    f"every group, but the groups have {counts} rows. Merge small groups, widen the "
                    "interval or raise kappa."
                )
