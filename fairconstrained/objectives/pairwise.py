"""Pairwise losses of positives against negatives: the area under the ROC curve, whole or in part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from fairconstrained.checks.messages import check_positive
from fairconstrained.data import FairData
from fairconstrained.kernels import PiecewisePolynomial, QuadraticKernel
from fairconstrained.metrics.intervals import PercentileIntervals
from fairconstrained.objectives._base import BoundObjective, Objective
from fairconstrained.objectives.class_weights import ClassWeights
from fairconstrained.pairwise import PairTerms, SoftplusKernel, interval_weights, pair_mean
from fairconstrained.views import DifferenceOfConvex, SaddleMoments

__all__ = ["PAIR_LOSSES", "BoundPairwiseAUC", "PairLoss", "PairwiseAUC"]

_WHOLE = (0.0, 1.0)


def one_interval(interval: Any, name: str = "interval") -> tuple[float, float]:
    """A validated pair ``(alpha, beta)``; raises ValueError for anything else."""
    parsed = PercentileIntervals.parse(interval, (), name)
    if parsed.alpha.shape != (1, 1):
        raise ValueError(f"{name} must be one interval (alpha, beta) here; got {interval!r}.")
    return float(parsed.alpha[0, 0]), float(parsed.beta[0, 0])


class PairLoss(NamedTuple):
    """A convex loss ``l(x - margin)`` of the difference ``x`` of a positive's and a negative's score."""

    #: Kernels that `pair_mean` knows: ``l`` and the part of it that falls.
    value: Callable[[Tensor], Tensor]
    decreasing: Callable[[Tensor], Tensor]
    #: The part that rises, ``l = decreasing + increasing``; None if ``l`` rises nowhere.
    increasing: Callable[[Tensor], Tensor] | None = None
    margin: float = 0.0


def _rounded_hinge(smoothing: float) -> PairLoss:
    """``max(1 - x, 0)``, its corner a parabola as in `fairconstrained.objectives.Hinge`."""
    corner = [smoothing / 4, -1 / 2, 1 / (4 * smoothing)]
    kernel = PiecewisePolynomial(np.array([-smoothing, smoothing]), np.array([[0.0, -1.0, 0.0], corner, [0.0] * 3]))
    return PairLoss(kernel, kernel, margin=1.0)


def _quadratic() -> PairLoss:
    """``(1 - x)^2 / 2``, and its two halves."""
    falling = PiecewisePolynomial(np.zeros(1), np.array([[0.0, 0.0, 0.5], [0.0] * 3]))
    rising = PiecewisePolynomial(np.zeros(1), np.array([[0.0] * 3, [0.0, 0.0, 0.5]]))
    return PairLoss(QuadraticKernel(1.0), falling, rising, margin=1.0)


#: Values of ``loss``: from the objective to the loss of a pair.
PAIR_LOSSES: dict[str, Callable[[PairwiseAUC], PairLoss]] = {
    "logistic": lambda objective: PairLoss(SoftplusKernel(), SoftplusKernel()),
    "hinge": lambda objective: _rounded_hinge(objective.smoothing),
    "quadratic": lambda objective: _quadratic(),
}


@dataclass(frozen=True)
class PairwiseAUC(Objective):
    r"""A pairwise loss, a surrogate of ``1 - AUC``, whole or on an interval of false positive rates.

    .. math:: \frac{1}{n_+ (n_-^\beta - n_-^\alpha)} \sum_{i=1}^{n_+} \sum_{j = n_-^\alpha + 1}^{n_-^\beta}
              \ell(s_i^+ - s_{[j]}^-)

    Here :math:`s_{[j]}^-` is the j-th largest score of a negative, and :math:`n_-^\alpha = \alpha n_-`: ranks among
    the negatives are false positive rates. Rows at the ends of the interval count in part, so no number is rounded to
    whole rows, and sample weights are normalised within each class. It takes O(n log n) time, because no pair is ever
    formed, see `fairconstrained.pairwise`.

    The loss is the same for shifted scores: the solver leaves the intercept open, and a shift that all rows share
    (`BoundObjective.gains`) puts the decision threshold where the training error is least.

    Parameters
    ----------
    loss : {"logistic", "hinge", "quadratic"}, default="logistic"
        ``log(1 + exp(-x))``, ``max(1 - x, 0)`` or ``(1 - x)^2 / 2``.
    interval : pair of floats, default=(0.0, 1.0)
        False positive rates ``[alpha, beta)``, ``0 <= alpha < beta <= 1``; (0, 1) is the AUC.
    smoothing : float, default=0.01
        Half the width of the parabola that rounds the corner of the hinge; positive. Other losses ignore it.
    classes : ClassWeights, optional
        Factors with which the errors of each class count for the shift. Pairs are the same whatever these are.

    Raises
    ------
    ValueError
        If ``loss`` is unknown, ``interval`` is not one valid pair, or ``smoothing`` is not positive.

    Notes
    -----
    Convex split. Write the loss as a decreasing plus an increasing convex function,
    :math:`\ell = \ell_\downarrow + \ell_\uparrow`; the hinge and the logistic loss have
    :math:`\ell_\uparrow = 0`, the quadratic one :math:`\max(1 - x, 0)^2 / 2 + \max(x - 1, 0)^2 / 2`. The negatives with
    the largest :math:`\ell_\downarrow` are those that score highest, the ones with the largest :math:`\ell_\uparrow`
    those that score lowest. So the sum of :math:`\ell_\downarrow` over the top share of the negatives, and that of
    :math:`\ell_\uparrow` over the bottom share, are maxima over subsets of convex functions, and convex:

    .. math:: f^+ &= \frac{1}{\beta - \alpha} \left( \mathrm{top}_\beta \ell_\downarrow
                  + \mathrm{bottom}_{1 - \alpha} \ell_\uparrow \right) \\
              f^- &= \frac{1}{\beta - \alpha} \left( \mathrm{top}_\alpha \ell_\downarrow
                  + \mathrm{bottom}_{1 - \beta} \ell_\uparrow \right)

    The paper takes the top shares of the whole loss (Example D.2), which is right where the loss falls. Where the
    quadratic loss rises, its sum over the top share is a *minimum* over subsets and has concave kinks, so it is not
    weakly convex. The whole AUC has :math:`f^- = 0` and needs no split.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530, eqs. 80-83 and Example D.2.
    """

    loss: str = "logistic"
    interval: tuple[float, float] = _WHOLE
    smoothing: float = 0.01
    classes: ClassWeights = field(default_factory=ClassWeights)

    def __post_init__(self) -> None:
        if self.loss not in PAIR_LOSSES:
            raise ValueError(f"loss must be one of {sorted(PAIR_LOSSES)}, got {self.loss!r}.")
        check_positive(smoothing=self.smoothing)
        one_interval(self.interval)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The interval as floats."""
        return one_interval(self.interval)

    def bind(self, data: FairData) -> BoundPairwiseAUC:
        """The mean over the pairs of ``data``.

        Raises
        ------
        ValueError
            If the targets are not -1 and +1, both of them.
        """
        found = np.unique(data.y.numpy())
        if found.tolist() != [-1.0, 1.0]:
            raise ValueError(
                "an objective of pairs compares positives with negatives, so y must have two classes, and rows of "
                f"both, as the targets -1 and 1; got {found[:5].tolist()}."
            )
        bound = BoundQuadraticAUC if self.loss == "quadratic" and self.ends == _WHOLE else BoundPairwiseAUC
        return bound(replace(self, classes=self.classes.on(data)), data)

    def path(self) -> tuple[Objective, ...]:
        """The whole AUC first, which is convex; before it the hinge with rounder corners."""
        whole = replace(self, interval=_WHOLE)
        rounder = (replace(whole, smoothing=s) for s in (0.5, 0.1) if self.loss == "hinge" and s > self.smoothing)
        return (*rounder, *([] if self.ends == _WHOLE else [whole]), self)

    def weighing_classes(self, classes: ClassWeights) -> Self:
        """Implement `Objective.weighing_classes`; classes weigh in the choice of the shift only."""
        return replace(self, classes=self.classes * classes)


@dataclass(frozen=True)
class BoundPairwiseAUC(BoundObjective, DifferenceOfConvex):
    """`PairwiseAUC` on data.

    It has no `Stochastic` view: the pairs of a mini-batch are unbiased for the whole AUC only, and noisy.
    """

    loss: PairwiseAUC
    name: str = "pairwise_auc"

    shift: ClassVar[Literal["groups", "shared"]] = "shared"

    @property
    def gains(self) -> Tensor:
        """The error rate falls by the weight of a row when its label is predicted."""
        return self.loss.classes.of_rows(self.data) * self.data.y

    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Implement `FullBatch.values`; one component."""
        return self._mean(self._pair_loss.value, scores, *self.loss.ends).reshape(1)

    def plus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Implement `DifferenceOfConvex.plus`, and the notes of `PairwiseAUC`."""
        alpha, beta = self.loss.ends
        return self._split(scores, falls_until=beta, rises_from=alpha)

    def minus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Implement `DifferenceOfConvex.minus`, and the notes of `PairwiseAUC`."""
        alpha, beta = self.loss.ends
        return self._split(scores, falls_until=alpha, rises_from=beta)

    @cached_property
    def _pair_loss(self) -> PairLoss:
        return PAIR_LOSSES[self.loss.loss](self.loss)

    @cached_property
    def _classes(self) -> tuple[_Class, _Class]:
        """Positives and negatives."""
        return _Class.of(self.data, self.data.y > 0), _Class.of(self.data, self.data.y < 0)

    def _split(self, scores: Tensor, falls_until: float, rises_from: float) -> Tensor:
        """The falling part over the negatives of the first ranks, and the rising part over those of the last."""
        pair_loss = self._pair_loss
        total = self._mean(pair_loss.decreasing, scores, 0.0, falls_until)
        if pair_loss.increasing is not None:
            total = total + self._mean(pair_loss.increasing, scores, rises_from, 1.0)
        return total.reshape(1)

    def _mean(self, kernel: Any, scores: Tensor, alpha: float, beta: float) -> Tensor:
        """Sum over all positives and the negatives at ranks in ``[alpha, beta)``, divided by the interval's length."""
        if alpha == beta:
            return scores.new_zeros(())
        positives, negatives = self._classes
        first = scores.index_select(0, positives.rows) - self._pair_loss.margin
        second = scores.index_select(0, negatives.rows)
        is_whole = (alpha, beta) == (0.0, 1.0)
        weights = negatives.weights if is_whole else interval_weights(second, negatives.weights, alpha, beta)
        length = self.loss.ends[1] - self.loss.ends[0]
        return pair_mean(kernel, first, second, positives.weights, weights) / length


@dataclass(frozen=True)
class BoundQuadraticAUC(BoundPairwiseAUC, SaddleMoments):
    """`PairwiseAUC` with the quadratic loss on the whole interval: a function of the moments of the scores."""

    def pair_terms(self) -> PairTerms:
        """Implement `SaddleMoments.pair_terms`; cells are those of group and label, as in constraints."""
        rows = [r for y in (1.0, -1.0) for r in self.data.groups_with_label(y).slices if r.start < r.stop]
        mass = np.array([float(self.data.weights[r].sum()) for r in rows])
        shares = torch.zeros_like(self.data.weights)
        for r, total in zip(rows, mass, strict=True):
            shares[r] = self.data.weights[r] / total
        positive = np.array([float(self.data.y[r.start]) > 0 for r in rows])
        sets = np.stack([mass * positive / mass[positive].sum(), mass * ~positive / mass[~positive].sum()])
        zero, one = np.zeros(1, dtype=int), np.ones(1, dtype=int)
        return PairTerms(tuple(rows), shares, sets, component=zero, first=zero, second=one, constant=np.zeros(1))


class _Class(NamedTuple):
    """The rows of one class, and their weights, which sum to one."""

    rows: Tensor
    weights: Tensor

    @classmethod
    def of(cls, data: FairData, member: Tensor) -> _Class:
        rows = torch.nonzero(member).flatten()
        weights = data.weights[rows]
        return cls(rows, weights / weights.sum())
