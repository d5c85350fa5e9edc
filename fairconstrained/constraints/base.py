"""Constraints that are bound to data, and checks of their bound."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch

from fairconstrained.checks.messages import is_number
from fairconstrained.constraints._resolution import CellSizes, check_sizes, resolution
from fairconstrained.constraints.offsets import free_offset
from fairconstrained.data import FairData
from fairconstrained.views import Exact

__all__ = ["BoundConstraint", "check_bound", "check_kappa"]


class BoundConstraint(Exact):
    """A constraint on data: ``metric(scores) <= kappa``, and the surrogates of it that solvers see.

    Subclasses inherit from the views of `fairconstrained.views` that they offer. They are immutable: `Exact.refined`
    returns a new object with another surrogate, and solvers keep the multipliers.
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
    #: Whether `metrics` takes hardly longer for many models than for one.
    measures_at_once: ClassVar[bool] = False
    #: Whether nothing changes when all scores move alike, so that they may move wherever the objective is best.
    ignores_shifts: ClassVar[bool] = False
    #: Width with which a solver begins that narrows surrogates, in standard deviations of the scores: wide enough to
    #: see a fifth of the rows around a threshold.
    first_blur: ClassVar[float] = 0.1

    def renamed(self, name: str) -> Self:
        """Return the constraint under the name that the user gave it."""
        # all bound constraints are dataclasses
        return self if name == self.name else replace(self, name=name)  # type: ignore[type-var]

    def with_kappa(self, kappa: float) -> Self:
        """Return the constraint with another bound."""
        return replace(self, kappa=kappa)  # type: ignore[type-var]  # all bound constraints are dataclasses

    @property
    def bounds_from_below(self) -> bool:
        """Whether ``kappa`` is the least value that is allowed, as a floor is, so that a larger one is stricter."""
        return False

    def excess(self, values: Any) -> Any:
        """Amounts by which values of the metric, one or an ndarray, are beyond ``kappa``; negative within it."""
        return self.kappa - values if self.bounds_from_below else values - self.kappa

    def is_within(self, scores: np.ndarray, most: float) -> bool:
        """Return whether what `exact` returns at some scores is at most a number."""
        return self.exact(scores) <= most

    @property
    def is_beyond(self) -> str:
        """Verb of a message about a value beyond ``kappa``."""
        return "is below" if self.bounds_from_below else "exceeds"

    def at_excess(self, excess: float) -> float:
        """Value of the metric that is so far beyond ``kappa``."""
        return self.kappa - excess if self.bounds_from_below else self.kappa + excess

    def tightened(self, margin: float) -> float:
        """Return the bound that is stricter than ``kappa`` by a margin, as far as one can be."""
        return self.kappa + margin if self.bounds_from_below else max(self.kappa - margin, 0.0)

    @property
    def value_by_chance(self) -> float:
        """Mean of the metric over random scores, which depend on nothing in the rows; NaN where it is not known.

        It helps where the metric is the largest of many gaps, which a model with few coefficients can hardly bring near
        zero.
        """
        return np.nan

    def differences(self, scores: np.ndarray) -> np.ndarray | None:
        """Return the signed differences of which the metric is the largest, with both signs of each.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)

        Returns
        -------
        differences : ndarray of shape (n_components,) or None
            None where the metric is no such thing, or a step of the scores.
        """
        return None

    def with_optimism(self, optimism: np.ndarray) -> Self:
        """Return the constraint that bounds the differences on rows not seen as well, where there are `differences`.

        Parameters
        ----------
        optimism : ndarray of shape (n_components,)
            Amounts by which the differences are larger on those rows. The surrogates are bounded there; where no amount
            is negative, the bound on rows seen follows from it.
        """
        return self

    @property
    def sees_cells_only(self) -> bool:
        """Whether rows of one group and target are alike to the metric, except for their scores."""
        return True

    @property
    def is_fitted_loss(self) -> bool:
        """Whether the metric is a loss of a group, of which new rows have no less than the rows that are fitted to."""
        return False

    @property
    def scale(self) -> float:
        """Length of one unit of the metric in units of the surrogate's components."""
        return 1.0

    @property
    def penalty_factor(self) -> float:
        """Factor from the largest component of the surrogate at ``kappa = 0`` to a gap."""
        return 1 / self.scale

    @property
    def damping(self) -> float:
        """Factor that the components have so that quadratic penalties on them do not outweigh every loss.

        Quadratic programs have no such penalties, and divide by it, so that violations compare with those of others.
        """
        return 1.0

    @property
    def strata(self) -> np.ndarray | None:
        """Groups that mini-batches should have rows of, as numbers; None: those of the data. Shape (n_samples,)."""
        return None

    @property
    def component_names(self) -> tuple[str, ...]:
        """A name for every component of the surrogate; that of the constraint where there is one component."""
        return (self.name,)

    @property
    def directions(self) -> np.ndarray:
        """Number of the direction of every component's slopes, which are those of another one or the opposite.

        ndarray of int of shape (n_components,), ascending from zero.
        """
        return np.arange(len(self.component_names))

    @property
    def compares(self) -> bool:
        """Whether there is anything to compare; otherwise the constraint has no effect."""
        return bool(self.component_names) or not np.isfinite(self.kappa)

    @property
    def fewest_groups(self) -> int:
        """The least number of groups with which there is anything to compare."""
        return 2

    @property
    def compared_as(self) -> dict[str, str | None]:
        """Names under which groups that are too small are compared, by their label; None for one that is left out."""
        return {}

    def of_decisions(self, scores: np.ndarray) -> float | None:
        """Return the metric of the decisions where ``kappa`` bounds a smooth surrogate of it; None elsewhere."""
        return None

    def value_of_decisions(self, scores: np.ndarray) -> float:
        """Return the metric of the decisions, also where ``kappa`` bounds a smooth surrogate of it."""
        value = self.of_decisions(scores)
        return self.metric(scores) if value is None else value

    def class_values(self, scores: np.ndarray) -> dict[str, float]:
        """Return the metric of every class against all others by class; empty for a constraint on two classes."""
        return {}

    def caveat(self, scores: np.ndarray) -> str | None:
        """Return a warning about decisions for which the metric has a value but no meaning; None for all others.

        By default it is about a gap between groups of which everybody is accepted, or nobody, whatever their scores.
        """
        if not self.decides_alike(scores):
            return None
        side = "above" if np.min(scores) > self.decision_threshold else "below"
        return (
            f"all scores are {side} the threshold, where {self.name} is 0 whatever the model is. Set threshold to the "
            "score above which decisions are positive, or bound a metric without a threshold, such as "
            "constraint='statistical_parity'."
        )

    def decides_alike(self, scores: np.ndarray) -> bool:
        """Whether different scores give all rows the same decision, for which the metric is 0 by definition."""
        threshold = self.decision_threshold
        if threshold is None or not np.ptp(scores) or np.min(scores) <= threshold < np.max(scores):
            return False
        return all(self.metric(np.full(scores.shape, threshold + side)) == 0 for side in (-1.0, 1.0))

    @property
    def resolution(self) -> float:
        """Largest change by one row with which ``kappa`` can be distinguished from twice its value."""
        return resolution(self.kappa)

    def compared_cells(self) -> CellSizes | None:
        """Sizes of the cells of rows that are compared; None where there are none, and `granularity` says it all."""
        return self._cell_sizes

    @cached_property
    def _cell_sizes(self) -> CellSizes | None:
        """Sizes for `compared_cells`, counted once; override this where counting takes long, else `compared_cells`."""
        return None

    def check_resolution(self) -> None:
        """Raise ValueError, with the counts, if one row counts more than `resolution`, or a compared cell is empty."""
        notion, sizes = self.name, self.compared_cells()
        if sizes is not None:
            check_sizes(notion, self.kappa, self.resolution, sizes, self.fewest_groups)
        elif self.granularity > self.resolution:
            raise ValueError(
                f"{notion} with kappa={self.kappa:g} cannot be resolved, as one row changes it by "
                f"{self.granularity:.3g}; use more rows, or raise kappa."
            )

    @property
    def n_aux(self) -> int:
        """Number of auxiliary variables."""
        return 0

    def initial_aux(self, scores: np.ndarray) -> np.ndarray:
        """Return the auxiliary variables that fit the given scores; ndarray of shape (n_aux,)."""
        return np.empty(0)

    @property
    def components(self) -> np.ndarray:
        """Keys of the components that refinement may add to, for `with_components`; here none."""
        return np.empty(0)

    def with_components(self, components: np.ndarray) -> Self:
        """Return the constraint with the components that another one of its kind had come to (a warm start)."""
        return self

    def with_restoring_slopes(self) -> Self:
        """Return the constraint with restoring slopes: nonzero where it is violated, even where the metric is constant.

        Our solvers use it; those of a paper use the paper's function, whose gradient is zero there.
        """
        return self

    def with_logistic_slopes(self) -> Self:
        """Return the constraint with a logistic function of width 1 in place of another surrogate of a step.

        Its slope at a score is the curvature of the logistic loss there.
        """
        return self

    def with_linear_components(self) -> Self:
        """Return the constraint with components that are linear in means of decisions, where there are such.

        Their largest is above zero where the metric is beyond ``kappa``, and need not be their difference.
        """
        return self

    def for_class(self) -> Self:
        """Return the constraint as solvers see it where it is that of one class of several."""
        return self

    def uncorrected(self) -> Self:
        """Return the constraint with the values of its surrogate, not corrected to those that are counted."""
        return self

    def stricter(self) -> Self | None:
        """A constraint that implies this one and has fewer local optima, to begin with; None where there is none."""
        return None

    def fair_aux(self) -> np.ndarray:
        """Auxiliary variables with which the surrogate holds when all scores are zero; shape (n_aux,)."""
        return np.empty(0)

    def offsets(self, scores: np.ndarray, gains: np.ndarray, threshold: float, shared: bool) -> np.ndarray:
        """Find the constants to add to the scores of every group for the largest gain within the exact constraint.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
        gains : ndarray of shape (n_samples,)
            Gain of the objective from predicting a row positive.
        threshold : float
            Score above which a row is positive.
        shared : bool
            Whether all groups must move alike.

        Returns
        -------
        offsets : ndarray of shape (n_groups,)
            Offsets; zero, unless the constraint can find better ones.
        """
        free = free_offset(scores, gains, threshold) if self.ignores_shifts else 0.0
        return np.full(self.data.n_groups, free)

    @property
    def decision_threshold(self) -> float | None:
        """Score above which the metric counts a row as positive; None where it counts none."""
        return None

    def decision_costs(self, scores: np.ndarray, multipliers: np.ndarray) -> np.ndarray | None:
        """Return the growth of a combination of the components when a row is decided positive, and not negative.

        It is exact to first order at the decisions by these scores, and takes no surrogate.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
        multipliers : ndarray of shape (n_components,)
            Coefficients of the combination.

        Returns
        -------
        costs : ndarray of shape (n_samples,) or None
            None where the metric depends on more than decisions, or where no formula is known.
        """
        return None

    def values_at_cuts(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray | None:
        """Return the metric of the scores after a shift that makes exactly the rows above a cut positive.

        The metric is the same for all positive multiples of the shifted scores.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
            Scores of the rows. For margins between two classes, those of the first class have the opposite sign.
        cuts : ndarray of shape (n_cuts,)
            Thresholds, in units of the scores.

        Returns
        -------
        values : ndarray of shape (n_cuts,) or None
            None where the metric depends on more than the order of the scores and on which of them are positive.
        """
        return None

    def exact(self, scores: np.ndarray) -> float:
        """Implement `Exact.exact`; where `bounds_metric` is False, a subclass measures the surrogate instead."""
        return self.excess(self.metric(scores))

    @abstractmethod
    def metric(self, scores: np.ndarray) -> float:
        """The metric of `fairconstrained.metrics` at ``scores``, in the order of the data."""

    def metric_or_nan(self, scores: np.ndarray) -> float:
        """`metric`; NaN where a cell of rows that is compared is empty."""
        cells = self.compared_cells()
        return self.metric(scores) if cells is None or cells.counts.all() else np.nan

    def metrics(self, scores: np.ndarray) -> np.ndarray:
        """The metric of several models.

        Parameters
        ----------
        scores : ndarray of shape (n_models, n_samples)

        Returns
        -------
        values : ndarray of shape (n_models,)
        """
        return np.array([self.metric(of_one) for of_one in scores])

    def metrics_with_weights(self, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The metric of the rows with other weights, for constraints that work on other rows.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
        weights : ndarray of shape (n_draws, n_samples)
            Each sums to one.

        Returns
        -------
        values : ndarray of shape (n_draws,)
        """
        others: Any = self
        data = (replace(self.data, weights=torch.from_numpy(own)) for own in weights)
        return np.array([others.on(each).metric(scores) for each in data])

    def price(self, multipliers: Mapping[str, float] | None) -> float:
        """Return the fall of the least objective per unit of kappa, to first order.

        Parameters
        ----------
        multipliers : dict or None
            Multipliers by the names of the components, those of other constraints included; None from a method without
            multipliers.

        Returns
        -------
        price : float
            Negative where a larger kappa is stricter. NaN where there are no multipliers: the price is not known then,
            which is not a price of zero.
        """
        if multipliers is None:
            return float("nan")
        own = (m for name, m in multipliers.items() if name == self.name or name.startswith(f"{self.name}["))
        price = sum(own) / self.penalty_factor
        return -price if self.bounds_from_below else price

    @property
    def why_undefined(self) -> str:
        """The reason for which the metric does not exist at some scores, and what to do about it."""
        return (
            "a group has no row to take its rate among, or no group has a rate above 0: weigh the classes, as "
            "class_weight='balanced' does, or choose another threshold"
        )

    def complaint_about_decisions(self, value: float, rows: str = "training rows") -> str:
        """Return the warning for a ``value`` of the decisions that is larger than the bound on the probabilities."""
        return (
            f"kappa={self.kappa:g} bounds {self.name} of probabilities; of the decisions it is {value:.4g} on the "
            f"{rows}. To bound the decisions, set rate='indicator', or rate='selection' of a GroupRates."
        )

    def complaint(self, value: float, rows: str = "training rows") -> str:
        """Return the warning for a ``value`` that exceeds its kappa; ``rows`` says in words where it was measured."""
        bounded = self.name if self.bounds_metric else f"the surrogate of {self.name}"
        return (
            f"{bounded} is {value:.4g} on the {rows} and {self.is_beyond} kappa={self.kappa:g} by more than its "
            f"granularity ({self.granularity:.2g})."
        )


def check_kappa(kappa: Any, most: float = 1.0) -> float:
    """Return ``kappa`` as a float in [0, most], 1 for None (no gap exceeds it); raise ValueError otherwise."""
    if kappa is None:
        return 1.0
    if not is_number(kappa):
        raise ValueError(f"kappa must be a number in [0, {most:g}] or None (unconstrained), got {kappa!r}.")
    if not 0 <= kappa <= most:
        gap = "a share or a gap between shares" if most == 1 else "a gap of AUCs"
        raise ValueError(f"kappa must be in [0, {most:g}], got {kappa}: it bounds {gap}. Use kappa=None for no bound.")
    return float(kappa)


def check_bound(kappa: Any) -> float:
    """Return ``kappa`` as a float of at least 0, infinity for None; raise ValueError otherwise."""
    if kappa is None:
        return np.inf
    if not is_number(kappa) or kappa < 0:
        raise ValueError(f"kappa must be a finite number of at least 0 or None (unconstrained), got {kappa!r}.")
    return float(kappa)
