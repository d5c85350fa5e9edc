"""Costs of decisions by true class and decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from fairconstrained.data import FairData
from fairconstrained.objectives._base import Objective
from fairconstrained.objectives._loss import BoundLoss, ClassLoss, Loss
from fairconstrained.objectives.class_weights import ClassWeights
from fairconstrained.objectives.losses import ZeroOne

__all__ = ["CostMatrix"]


@dataclass(frozen=True)
class CostMatrix(Objective):
    r"""Mean cost of the decisions: a smoothed zero-one loss, followed by an exact choice of the intercepts.

    .. math:: \sum_i w_i \, C_{y_i, \hat y_i}, \qquad C = \begin{pmatrix} C_{00} & C_{01} \\ C_{10} & C_{11}
              \end{pmatrix}

    Only the difference between the costs of the wrong and of the right decision matters: an error counts
    :math:`C_{01} - C_{00}` for a negative, and :math:`C_{10} - C_{11}` for a positive. The value that is reported is
    the smooth one, divided by the cost of deciding wrongly on all rows, so that it is in [0, 1] whatever the unit of
    the costs.

    Parameters
    ----------
    costs : sequence of two pairs of float
        The C above: a row for each true class, a column for each decision, in the order of ``classes_``. Negative
        costs are benefits.
    width : float, default=0.25
        Width of the smooth zero-one loss, in units of the score.

    Raises
    ------
    ValueError
        If ``costs`` are not 2 x 2 finite numbers, or a wrong decision does not cost more than the right one.

    Examples
    --------
    A missed positive costs as much as five false alarms:

    >>> from fairconstrained.objectives import CostMatrix
    >>> CostMatrix([[0, 1], [5, 0]]).classes
    ClassWeights(factors=(1.0, 5.0), balanced=False)
    """

    costs: Sequence[Sequence[float]]
    width: float = 0.25

    def __post_init__(self) -> None:
        table = self._table
        if table.shape != (2, 2) or not np.isfinite(table).all():
            raise ValueError(
                "costs must be two rows, one for each true class, of two finite numbers, one for each decision, such "
                f"as [[0, 1], [5, 0]]; got {self.costs!r}."
            )
        if not (table[[0, 1], [1, 0]] > table.diagonal()).all():
            raise ValueError(
                "costs must be higher for a wrong decision than for the right one, so that the first row rises and the "
                f"second one falls; got {self.costs!r}."
            )

    @property
    def classes(self) -> ClassWeights:
        """Costs of an error in each class."""
        (right, wrong), (missed, hit) = self._table.tolist()
        return ClassWeights((wrong - right, missed - hit))

    @property
    def _table(self) -> np.ndarray:
        return np.asarray(self.costs, dtype=np.float64)

    @property
    def _loss(self) -> ClassLoss:
        return ClassLoss(ZeroOne(self.width), self.classes)

    @override
    def bind(self, data: FairData) -> BoundLoss:
        return self._loss.bind(data)

    @override
    def path(self) -> tuple[Loss, ...]:
        return self._loss.path()

    @override
    def probability(self, scores: np.ndarray) -> np.ndarray:
        return self._loss.probability(scores)

    @override
    def weighing_classes(self, classes: ClassWeights) -> ClassLoss:
        return self._loss.weighing_classes(classes)
