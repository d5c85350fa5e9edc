"""Functions of the four counts of decisions, such as F1."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.checks.messages import check_positive
from fairconstrained.data import FairData
from fairconstrained.objectives._base import BoundObjective, Objective
from fairconstrained.objectives.class_weights import ClassWeights
from fairconstrained.objectives.decisions import CountedLoss
from fairconstrained.objectives.losses import Logistic
from fairconstrained.views import Stochastic

__all__ = ["F1", "BoundUtility", "DecisionUtility", "Utility"]


@dataclass(frozen=True)
class Utility(Objective):
    r"""Utility of the decisions, a function of the four counts, which is maximised; a subclass says which one.

    .. math:: \min \; -u(\mathrm{tn}, \mathrm{fp}, \mathrm{fn}, \mathrm{tp})

    The solver has smooth counts, sums of :math:`1 / (1 + e^{-s / \mathrm{width}})`; an exact choice of the intercepts
    by the counts themselves follows. The value that is reported is the smooth one. In mini-batches it is that of their
    own counts, which is biased where they have few rows.
    """

    width: float = field(default=0.25, kw_only=True)
    classes: ClassWeights = field(default_factory=ClassWeights, kw_only=True)

    def __post_init__(self) -> None:
        check_positive(width=self.width)

    @abstractmethod
    def of_counts(self, tn: Any, fp: Any, fn: Any, tp: Any) -> Any:
        """Utility of decisions.

        Parameters
        ----------
        tn, fp, fn, tp : float, ndarray or Tensor
            True negatives, false positives, false negatives and true positives, as shares of all rows.
        """

    @override
    def bind(self, data: FairData) -> BoundUtility:
        return BoundUtility(replace(self, classes=self.classes.on(data)), data, name="utility")

    @override
    def path(self) -> tuple[Objective, ...]:
        """The logistic loss, then this one, as for `ZeroOne`."""
        return Logistic().weighing_classes(self.classes), self

    @override
    def weighing_classes(self, classes: ClassWeights) -> Self:
        return replace(self, classes=self.classes * classes)


@dataclass(frozen=True)
class DecisionUtility(Utility):
    """Any function of the four counts, to be maximised, see `Utility`.

    Parameters
    ----------
    function : callable
        Takes ``(tn, fp, fn, tp)``, true negatives, false positives, false negatives and true positives as shares of all
        rows, and returns the utility. It is called with arrays and with tensors of torch, so it has to consist of
        arithmetic and powers. It should not fall where a decision becomes right. If it is a ratio of linear functions,
        the exact search over thresholds finds the best ones. For other functions the search replaces the utility by a
        linear approximation in each of its steps, and ends where this approximation leads to no other thresholds.
    width : float, default=0.25
        Width of the smooth counts, in units of the score.
    classes : ClassWeights, optional
        Factors with which the rows of each class count.

    Examples
    --------
    The geometric mean of the two rates of right decisions:

    >>> from fairconstrained.objectives import DecisionUtility
    >>> mean = DecisionUtility(lambda tn, fp, fn, tp: (tn / (tn + fp) * tp / (tp + fn)) ** 0.5)
    >>> mean.of_counts(0.4, 0.1, 0.1, 0.4)
    0.8
    """

    function: Callable[[Any, Any, Any, Any], Any]

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.function):
            raise ValueError(f"function must be callable with (tn, fp, fn, tp); got {self.function!r}.")

    @override
    def bind(self, data: FairData) -> BoundUtility:
        """Implement `Objective.bind`; raises TypeError for a function that fails on tensors of torch."""
        counts = torch.full((4,), 0.25, dtype=torch.float64, requires_grad=True)
        try:
            self.of_counts(*counts)
        except (TypeError, RuntimeError) as error:
            raise TypeError(
                f"the objective cannot be computed from tensors of torch: {error} Write it with arithmetic and powers "
                "alone, such as (tp * tn) ** 0.5 in place of np.sqrt(tp * tn)."
            ) from error
        return super().bind(data)

    @override
    def of_counts(self, tn: Any, fp: Any, fn: Any, tp: Any) -> Any:
        return self.function(tn, fp, fn, tp)


@dataclass(frozen=True)
class F1(Utility):
    r"""The F1 score of the positive class, to be maximised, see `Utility`.

    .. math:: \frac{2 \, \mathrm{tp}}{2 \, \mathrm{tp} + \mathrm{fp} + \mathrm{fn}}

    Parameters
    ----------
    width : float, default=0.25
        Width of the smooth counts, in units of the score.
    classes : ClassWeights, optional
        Factors with which the rows of each class count.

    References
    ----------
    Dinkelbach, On nonlinear fractional programming, Management Science 13 (1967), for the search over thresholds.
    """

    @override
    def of_counts(self, tn: Any, fp: Any, fn: Any, tp: Any) -> Any:
        return 2 * tp / (2 * tp + fp + fn)


@dataclass(frozen=True)
class BoundUtility(BoundObjective, Stochastic):
    """`Utility` on data."""

    loss: Utility

    is_mean: ClassVar[bool] = False

    @cached_property
    def weights(self) -> Tensor:
        """Weight of every row; Tensor of shape (n_samples,)."""
        return self.loss.classes.of_rows(self.data)

    @override
    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        positive = torch.sigmoid(scores / self.loss.width)
        is_positive = self.data.y > 0
        tp, fp = (self.weights * positive)[is_positive].sum(), (self.weights * positive)[~is_positive].sum()
        fn, tn = self.weights[is_positive].sum() - tp, self.weights[~is_positive].sum() - fp
        return -torch.as_tensor(self.loss.of_counts(tn, fp, fn, tp), dtype=torch.float64).reshape(1)

    @cached_property
    @override
    def decisions(self) -> CountedLoss:
        return CountedLoss(self.loss.of_counts, self.weights.numpy(), self.data.y.numpy() > 0)
