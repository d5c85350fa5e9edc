"""The log loss of several classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from scipy.special import softmax
from torch import Tensor
from typing_extensions import override

from fairconstrained.objectives._loss import ConvexLoss

__all__ = ["MultinomialLogistic"]


def _by_class(scores: Tensor) -> Tensor:
    """Scores of shape (n_classes, n_samples), class by class: torch is several times slower where rows are short."""
    return scores.T.contiguous()


@dataclass(frozen=True)
class MultinomialLogistic(ConvexLoss):
    r"""Log loss :math:`\log \sum_k e^{s_k} - s_y` of the scores s of all classes and the number y of the own class.

    For two classes it is `Logistic` of the difference of their scores.
    """

    @override
    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Loss of every row.

        Parameters
        ----------
        scores : Tensor of shape (n_samples, n_classes)
        targets : Tensor of shape (n_samples,)
            Numbers of the classes.

        Returns
        -------
        losses : Tensor of shape (n_samples,)
        """
        return -F.log_softmax(_by_class(scores), dim=0).gather(0, targets.long()[None])[0]

    @override
    def slope(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Softmax, less one for the own class; Tensor of shape (n_samples, n_classes)."""
        slopes = torch.softmax(_by_class(scores), dim=0).T
        slopes[torch.arange(len(slopes)), targets.long()] -= 1.0
        return slopes

    @override
    def curvature(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Second derivatives ``p (1 - p)`` in the score of every class; Tensor of shape (n_samples, n_classes)."""
        shares = torch.softmax(_by_class(scores), dim=0).T
        return (shares * (1 - shares)).clamp(min=1e-12)

    def probability(self, scores: np.ndarray) -> np.ndarray:
        """Softmax of the scores; ndarray of shape (n_samples, n_classes)."""
        return softmax(scores, axis=1)

    @override
    def favouring_positives(self, factor: float) -> None:
        return None
