"""Objectives, without data and on data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor

from fairconstrained.data import FairData
from fairconstrained.objectives.class_weights import ClassWeights
from fairconstrained.objectives.decisions import DecisionLoss, GainLoss
from fairconstrained.views import FullBatch

__all__ = ["LEAST_CURVATURE", "BoundObjective", "Objective", "of_rows"]

#: Curvature below which a row's loss is taken as straight, and a positive number for where it is zero everywhere.
LEAST_CURVATURE, _TINY = 1e-3, 1e-12


def of_rows(weights: Tensor, slopes: Tensor) -> Tensor:
    """Slopes of the rows times their weights; of shape (n_samples,), or (n_samples, n_classes) for several classes."""
    return weights * slopes if slopes.ndim == 1 else weights[:, None] * slopes


@dataclass(frozen=True)
class Objective(ABC):
    """An objective as the user writes it, without data; two are equal if their parameters are."""

    #: Whether the group of a row matters.
    needs_groups: ClassVar[bool] = False

    @abstractmethod
    def bind(self, data: FairData) -> BoundObjective:
        """The objective on ``data``."""

    def path(self) -> tuple[Objective, ...]:
        """Objectives to minimise in turn, each from the solution of the one before; the last one is this one.

        An objective that is hard to minimise from an arbitrary start names easier ones here.
        """
        return (self,)

    def of_several_classes(self) -> Objective | None:
        """The objective for more than two classes, with a score for each; None where there is none."""
        return None

    def probability(self, scores: np.ndarray) -> np.ndarray:
        """Probability of the positive class that a score stands for; ndarray of shape (n_samples,).

        Here ``1 / (1 + exp(-s))``, which ranks like the score. It is calibrated for the logistic loss only.
        """
        return expit(scores)

    def weighing_classes(self, classes: ClassWeights) -> Objective:
        """Return the objective with rows that count times the factors of their classes.

        Raises
        ------
        ValueError
            For an objective in which classes cannot weigh more or less.
        """
        raise ValueError(f"{type(self).__name__} takes no class_weight; set class_weight=None.")

    def favouring_positives(self, factor: float) -> Objective | None:
        """Return the objective in which rows with positive targets count so many times as much.

        For starts where other decisions are made. None where classes do not weigh, and where decisions are searched for
        anyway.
        """
        return None


@dataclass(frozen=True)
class BoundObjective(FullBatch):
    """An objective on data: a function of the scores.

    Attributes
    ----------
    loss : Objective
        Objective as the user wrote it.
    data : FairData
    name : str
        Name in messages.
    shift : {"groups", "shared"}
        Scores that the exact search over `gains` may move: those of every group on their own, or all alike.
    is_mean : bool
        Whether the mean over mini-batches is the value on all rows.
    """

    loss: Objective
    data: FairData
    name: str = "objective"

    shift: ClassVar[Literal["groups", "shared"]] = "groups"
    is_mean: ClassVar[bool] = True

    def curvature(self, scores: Tensor) -> Tensor:
        """Curvature of the objective in every score, for Newton steps that take each row by itself.

        Here the absolute slopes, which no curvature of a logistic loss of pairs exceeds.

        Parameters
        ----------
        scores : Tensor of shape (n_samples,)

        Returns
        -------
        curvature : Tensor of shape (n_samples,)
            Positive.
        """
        with torch.enable_grad():
            at = scores.detach().requires_grad_()
            (slopes,) = torch.autograd.grad(self.values(at, at.new_empty(0)).sum(), at)
        return slopes.abs().clamp(min=LEAST_CURVATURE * float(slopes.abs().max()) + _TINY)

    def smoothed(self) -> BoundObjective:
        """The objective without kinks, for steps along its slopes; itself where it has none that matter."""
        return self

    @property
    def largest_of(self) -> Any:
        """Return the means (a `RowLosses`) whose largest value is the objective; None for all other objectives.

        An objective that has them has ``weighted`` and ``means_at`` as well, see `BoundLargestMean`.
        """
        return None

    @property
    def gains(self) -> Tensor | None:
        """Gain of predicting each row positive, where an exact search over the intercepts finishes the work.

        Returns
        -------
        gains : Tensor of shape (n_samples,) or None
            Gains of the rows; None for an objective that determines the intercepts itself.
        """
        return None

    @property
    def decisions(self) -> DecisionLoss | None:
        """Loss of the decisions themselves, for an exact search over thresholds; None where there is none."""
        gains = self.gains
        return None if gains is None else GainLoss(gains.numpy())

    @property
    def counts_errors(self) -> bool:
        """Whether `decisions` are what the objective itself is about, so that a search alone may solve the problem."""
        return self.decisions is not None and self.shift == "groups"
