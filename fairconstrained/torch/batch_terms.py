"""Constraints and objectives of the package as functions of a mini-batch's scores, labels and groups."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, cast, overload

import numpy as np
from torch import Tensor
from typing_extensions import override

from fairconstrained.checks.messages import shortened
from fairconstrained.constraints import BoundConstraint, Constraint
from fairconstrained.data import FairData
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.objectives import BoundObjective, Objective
from fairconstrained.torch._graph import values_of, weighted_values
from fairconstrained.torch._points import GraphPoint, Own, Point, RowLossPoint, points_of
from fairconstrained.torch._processes import n_processes, of_all_processes
from fairconstrained.torch._rows import Known, RowCoder, numbers_of
from fairconstrained.views import FullBatch, RowLosses, Stochastic

__all__ = ["BatchConstraint", "BatchObjective", "ConstraintValues", "bind"]

#: Standard deviation by which a refined surrogate blurs the scores, in standard deviations of the scores.
BLUR = 0.2


class _OnBatches:
    """A term that was bound to training rows, and reads mini-batches like them.

    Parameters
    ----------
    term : BoundConstraint or BoundObjective
    coder : RowCoder
        Reader of the rows, which knows the classes and groups of the training rows.
    distributed : bool or None
        Whether the rows of all processes count; None: if there are several.
    """

    def __init__(self, term: Any, coder: RowCoder, distributed: bool | None) -> None:
        if not (isinstance(term, Stochastic) and isinstance(term, FullBatch)):
            raise IncompatibleProblem(
                f"{term.name!r} cannot be evaluated on mini-batches, as it does not offer the views FullBatch and "
                "Stochastic (fairconstrained.views). Take another constraint or objective, or an estimator of the "
                "package."
            )
        self._term, self._coder, self._distributed = cast(Any, term), coder, distributed
        self._point: type[Point] = RowLossPoint if isinstance(term, RowLosses) else GraphPoint
        #: Points of the term on mini-batches that came before, by the numbers of rows of every group and class.
        self._known = Known()

    @property
    def _of_given_rows(self) -> bool:
        """Whether the term compares rows that were given as masks, so that the order of the rows matters."""
        return False

    def _at(self, scores: Tensor, y: Any, groups: Any, sample_weight: Any) -> Point:
        """Return the term at the scores of a mini-batch, of all processes if they share it."""
        alone = self._distributed is False or n_processes() == 1
        if alone and sample_weight is None and self._coder.has_classes and not self._of_given_rows:
            return self._at_alike(scores, *self._coder.places(scores, y, groups))
        rows = self._coder.rows(scores, y, groups, sample_weight)
        if self._of_given_rows and rows.scores.size != self._coder.n_samples:
            raise ValueError(
                f"{self._term.name!r} compares rows that were given as masks, so it takes the scores of all "
                f"{self._coder.n_samples} rows in their order, got {rows.scores.size}. For mini-batches, name the "
                "rows: constraint='inter_group' of an AUCGap, say, or among='positives' of a GroupRates."
            )
        own = Own(rows.scores, rows.scores.size)
        if not alone:
            rows, places = of_all_processes(rows, scores.device)
            own = Own(own.scores, rows.scores.size, places, n_processes())
        order, counts = self._coder.places_of(*rows[1:])
        return self._point(self._moved(self._coder.data_of(rows, order), counts), rows.scores, order, own)

    def _at_alike(self, scores: Tensor, order: np.ndarray | None, counts: np.ndarray) -> Point:
        """Return the term at the scores of rows that count alike: what it knows of them are their numbers."""
        numbers, coder = numbers_of(scores), self._coder
        point_at = self._known.found(
            counts.tobytes(), numbers.size, lambda: points_of(self._moved(coder.data_of_counts(counts), counts))
        )
        return point_at(numbers, order, Own(numbers, numbers.size))

    def _moved(self, data: FairData, counts: np.ndarray) -> Any:
        """Return the term on the rows of a mini-batch, which are so many of every group and class."""
        return self._term.on(data)


class BatchObjective(_OnBatches):
    """An objective as a function of mini-batches, see `bind`."""

    def __init__(self, term: BoundObjective, coder: RowCoder, distributed: bool | None, needs_groups: bool) -> None:
        super().__init__(term, coder, distributed)
        self._needs_groups = needs_groups

    def __call__(self, scores: Tensor, y: Any, groups: Any = None, sample_weight: Any = None) -> Tensor:
        """Return the objective of a mini-batch.

        Parameters
        ----------
        scores, y, sample_weight
            Arguments of `BatchConstraint`.
        groups : Tensor or array-like of shape (n_rows,), optional
            Groups of the rows; only objectives that depend on them need them.

        Returns
        -------
        loss : Tensor of shape ()
            The objective, of the type and on the device of the scores, with their graph.
        """
        if groups is None:
            if self._needs_groups:
                raise ValueError(f"{self._term.name!r} depends on the groups; pass those of the rows.")
            groups = np.full(scores.numel(), self._coder.data.labels[0])
        return values_of(scores, self._at(scores, y, groups, sample_weight))[0]


class BatchConstraint(_OnBatches):
    """A constraint as a function of mini-batches, see `bind`.

    Attributes
    ----------
    name : str
    kappa : float
        Bound on the metric.
    granularity : float
        Largest change of the metric on the training rows by one row.
    component_names : tuple of str
        Names of the components; a refinement may add some at the end.
    """

    def __init__(self, term: BoundConstraint, coder: RowCoder, distributed: bool | None = None) -> None:
        super().__init__(term, coder, distributed)
        self._checked: set[bytes] = set()

    @property
    def _bound(self) -> BoundConstraint:
        return cast(BoundConstraint, self._term)

    @property
    def name(self) -> str:
        """Name of the notion."""
        return self._bound.name

    @property
    def kappa(self) -> float:
        """Bound on the metric."""
        return self._bound.kappa

    @property
    def granularity(self) -> float:
        """Largest change of the metric on the training rows by one row."""
        return self._bound.granularity

    @property
    def component_names(self) -> tuple[str, ...]:
        """Names of the components."""
        return self._bound.component_names

    @property
    @override
    def _of_given_rows(self) -> bool:
        return not self._bound.sees_cells_only

    def __call__(self, scores: Tensor, y: Any, groups: Any, sample_weight: Any = None) -> ConstraintValues:
        """Return the values of the constraint on a mini-batch.

        Auxiliary variables, such as the thresholds of `StatisticalParity`, are those that suit these scores.

        Parameters
        ----------
        scores : Tensor of shape (n_rows,) or (n_rows, 1)
            Scores of any floating type, on any device, usually with a graph.
        y : Tensor or array-like of shape (n_rows,)
            Labels or targets, coded as those that were bound.
        groups : Tensor or array-like of shape (n_rows,)
            Integers, among those that were bound.
        sample_weight : Tensor or array-like of shape (n_rows,), optional
            Non-negative weights, in any unit.

        Returns
        -------
        values : ConstraintValues

        Raises
        ------
        ValueError
            If the mini-batch has no rows of a cell that the constraint compares (the message names it), or has a class
            or group that the training rows do not have; or if the constraint compares masks of the training rows, and
            these are not all of them.
        """
        return ConstraintValues(scores, self._at(scores, y, groups, sample_weight))

    def refine(self, scores: Any, *, blur: float = BLUR, margin: float = 0.0) -> None:
        """Bring the surrogate close to the metric at the present scores of all training rows.

        The surrogate then has the value of the exact metric at these scores, and slopes from the rows near the
        threshold. Call it about once in an epoch; without it ``kappa`` bounds a wide surrogate. `StatisticalParity`
        gets further components where it is violated. Under distributed training, every process passes all rows.

        Parameters
        ----------
        scores : Tensor or array-like of shape (n_samples,)
            Scores of the rows that were bound, in their order.
        blur : float, default=0.2
            Standard deviation by which the surrogate blurs the scores, in standard deviations of the scores. On small
            mini-batches a narrow surrogate has noisy slopes.
        margin : float, default=0.0
            Amount by which the bound on the surrogate is less than ``kappa``.

        Raises
        ------
        ValueError
            If there is not one score for every row.
        """
        array = scores.detach().cpu().numpy() if isinstance(scores, Tensor) else np.asarray(scores)
        data, n_samples = self._bound.data, self._coder.n_samples
        if array.size != n_samples:
            raise ValueError(f"refine takes the scores of all {n_samples} training rows, got {array.shape}.")
        ordered = array.reshape(-1).astype(np.float64)[data.order]
        self._term = self._bound.refined(ordered, blur=blur, margin=margin)
        self._known.clear()

    def price(self, multipliers: Mapping[str, float] | None) -> float:
        """Return the fall of the least loss per unit of kappa, to first order.

        Parameters
        ----------
        multipliers : dict or None
            `Multipliers.by_name` after training; None, of a mode without multipliers, gives NaN.
        """
        return self._bound.price(multipliers)

    @override
    def _moved(self, data: FairData, counts: np.ndarray) -> Any:
        """Return the constraint on the rows of a mini-batch; raises ValueError if a compared cell has no rows."""
        moved, present = super()._moved(data, counts), (counts > 0).tobytes()
        if present not in self._checked:
            self._check_cells(moved)
            self._checked.add(present)
        return moved

    def _check_cells(self, moved: BoundConstraint) -> None:
        """Raise ValueError if a mini-batch has no rows of a compared cell."""
        sizes = moved.compared_cells()
        counts = moved.data.counts() if sizes is None else dict(zip(sizes.labels, sizes.counts, strict=True))
        empty = [label for label, count in counts.items() if not count]
        if empty:
            raise ValueError(
                f"{self.name} compares cells that have no rows in this mini-batch: {shortened(empty)}. Draw the rows "
                "with fairconstrained.torch.StratifiedBatchSampler, which takes rows of every group (and label), or "
                "take larger mini-batches."
            )


class ConstraintValues:
    """Values of a constraint on a mini-batch.

    Attributes
    ----------
    values : Tensor of shape (n_components,)
        Surrogate values of the components, at most 0 where satisfied; of the type and on the device of the scores, with
        their graph.
    numbers : ndarray of shape (n_components,)
        These values without a graph, in double precision.
    names : tuple of str
        Names of the components.
    gap : float
        The exact metric on these rows, computed when it is asked for.
    excess : float
        The exact value of what ``kappa`` bounds, minus ``kappa``; positive if violated.
    """

    def __init__(self, scores: Tensor, point: Point) -> None:
        self._given, self._point = scores, point
        self.numbers = point.values

    @cached_property
    def values(self) -> Tensor:
        """Surrogate values of the components."""
        return values_of(self._given, self._point)

    def weighted(self, weights: np.ndarray, constant: float = 0.0) -> Tensor:
        """Return ``weights @ values + constant`` for weights without a graph, in less time; Tensor of shape ()."""
        return weighted_values(self._given, self._point, weights, constant)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the components."""
        return self._point.term.component_names

    @cached_property
    def gap(self) -> float:
        """The exact metric on these rows."""
        return self._point.term.metric(self._point.scores)

    @property
    def excess(self) -> float:
        """The exact value of what ``kappa`` bounds, minus ``kappa``."""
        return self._point.term.exact(self._point.scores)


@overload
def bind(
    term: Constraint, y: Any, groups: Any, *, sample_weight: Any = None, distributed: bool | None = None
) -> BatchConstraint: ...


@overload
def bind(
    term: Objective, y: Any, groups: Any, *, sample_weight: Any = None, distributed: bool | None = None
) -> BatchObjective: ...


def bind(
    term: Constraint | Objective, y: Any, groups: Any, *, sample_weight: Any = None, distributed: bool | None = None
) -> BatchConstraint | BatchObjective:
    r"""Make a constraint or an objective a function of the scores, labels and groups of mini-batches.

    ::

        constraint = bind(RateGap(0.05), y, groups)
        c = constraint(network(X[rows]), y[rows], groups[rows])
        c.values  # differentiable, at most 0 where satisfied
        c.gap  # the exact metric

    The training rows say which groups and classes there are, and whether there are enough rows for ``kappa``; no
    features are needed. Rows come in any order. Values are computed in double precision on the CPU, to which the scores
    of a mini-batch are copied, and have the type and the device of the scores.

    Where ``torch.distributed`` is initialised with several processes, the rows of all of them make up the mini-batch,
    so that all processes get the same values; with ``DistributedDataParallel``, gradients are those of one process that
    has all rows.

    Parameters
    ----------
    term : Constraint or Objective
        One of `fairconstrained.constraints` or `fairconstrained.objectives` that is a mean over rows, or over pairs of
        rows for which a mini-batch is enough.
    y : Tensor or array-like of shape (n_samples,)
        Labels of the training rows: 0 and 1, booleans, or -1 and 1; other numbers are targets of a regression.
    groups : Tensor or array-like of shape (n_samples,)
        Group of every training row, an integer.
    sample_weight : Tensor or array-like of shape (n_samples,), optional
        Non-negative weights of the training rows, which count in `BatchConstraint.refine` and in the check of sizes.
    distributed : bool or None, default=None
        Whether the rows of all processes make up a mini-batch; None means that they do if there are several processes.
        Set it to False for an evaluation that only one of them makes.

    Returns
    -------
    function : BatchConstraint or BatchObjective

    Raises
    ------
    ValueError
        If a parameter is out of range, or a compared cell has too few rows for ``kappa``.
    IncompatibleProblem
        If the term cannot be evaluated on mini-batches: `GroupAUC` on an interval, `EqualOpportunity` and
        `EqualizedOdds` with ``ranks="group"``, `PairwiseParity`, `QuadraticAUCGap`, `PairwiseAUC` and
        `CorrelationPenalty`.
    """
    coder = RowCoder(y, groups, sample_weight)
    bound = term.bind(coder.data)
    if isinstance(bound, BoundObjective):
        return BatchObjective(bound, coder, distributed, cast(Objective, term).needs_groups)
    return BatchConstraint(bound, coder, distributed)
