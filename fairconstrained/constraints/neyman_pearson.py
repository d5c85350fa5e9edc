"""Bounds on the losses and errors of single classes, for rows that are margins (see `fairconstrained.models.margins`).

The groups are the classes. All margins of a sample stand together, in the order of the classes that they are about.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.constraints._blur import blurred, is_constant
from fairconstrained.constraints._cell_sums import BoundCellSums
from fairconstrained.constraints._constraint import Constraint
from fairconstrained.constraints._resolution import CellSizes
from fairconstrained.constraints._row_functions import RowFunction
from fairconstrained.constraints.base import BoundConstraint, check_bound, check_kappa
from fairconstrained.data import FairData
from fairconstrained.objectives import Loss, PositiveRate
from fairconstrained.views import FullBatch, Stochastic

__all__ = ["ClassError", "ClassLoss", "class_factors"]


def class_factors(data: FairData) -> np.ndarray:
    """Factors from weighted sums over the margins of every class to means over its samples; shape (n_classes,)."""
    return data.rows_of_sample / data.sums()


@dataclass(eq=False, repr=False)
class ClassConstraint(Constraint):
    """Bound on a number of one class."""

    #: The class.
    label: Hashable
    #: Bound on the number; None is no bound: it is only reported.
    kappa: float | None
    #: Loss of scores that are margins and targets 1.
    loss: Loss


class ClassLoss(ClassConstraint):
    r"""Bound on the loss of one class k.

    .. math:: \sum_{l \ne k} \mathbb{E} [\phi(h_k(x) - h_l(x)) \mid y = k] \le r_k

    Parameters
    ----------
    kappa : float or None
        :math:`r_k`, at least 0; None is no bound: the loss is only reported.
    loss : Loss
        :math:`\phi`, of scores that are margins and targets 1.

    References
    ----------
    Ma, Lin, Yang, Proximally Constrained Methods for Weakly Convex Optimization with Weakly Convex Constraints,
    arXiv:1908.01871, section 1.1.
    """

    @override
    def _bind(self, data: FairData) -> BoundClassLoss:
        code = data.labels.index(self.label)
        return BoundClassLoss(
            data=data,
            kappa=check_bound(self.kappa),
            name=f"loss[{self.label}]",
            function=RowFunction(self.loss, self._exact),
            label=self.label,
            code=code,
            factor=float(class_factors(data)[code]),
        )

    def _exact(self, margins: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return self.loss.of(torch.from_numpy(margins), torch.from_numpy(targets)).numpy()


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundClassLoss(BoundCellSums):
    """The loss of a class on data."""

    label: Hashable
    #: Number of the class.
    code: int
    #: Factor of the class on the whole data, from `class_factors`.
    factor: float

    @override
    def coefficients(self, kappa: float) -> np.ndarray:
        return self.factor * np.eye(self.data.n_groups)[self.code : self.code + 1]

    @override
    def limits(self, kappa: float) -> np.ndarray:
        return np.array([kappa])

    def compared_cells(self) -> CellSizes:
        """Number of samples of the class."""
        rows, n_margins = self.data.slices[self.code], self.data.rows_of_sample
        share = self.factor * float(self.data.weights[rows].max())
        counts, shares = np.array([(rows.stop - rows.start) // n_margins]), np.array([share])
        return CellSizes.of_rows([f"class {self.label}"], counts, shares)

    @override
    def of_sums(self, sums: np.ndarray) -> float:
        return float(self.factor * sums[self.code])

    @override
    def metrics_with_weights(self, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return super().metrics_with_weights(scores, weights) / self.masses(weights)

    def masses(self, weights: np.ndarray) -> np.ndarray:
        """Return the weight of the class in every draw as a multiple of that on the whole data; shape (n_draws,)."""
        return self.factor / self.data.rows_of_sample * weights[:, self.data.slices[self.code]].sum(axis=1)

    def _sums(self, values: np.ndarray) -> np.ndarray:
        rows, sums = self.data.slices[self.code], np.zeros(self.data.n_groups)
        sums[self.code] = self.data.weights.numpy()[rows] @ values[rows]
        return sums

    @override
    def complaint(self, value: float, rows: str = "training rows") -> str:
        return f"the loss of class {self.label!r} is {value:.4g} on the {rows}, above its bound {self.kappa:g}."


class ClassError(ClassConstraint):
    r"""Bound on the error rate of one class k, one minus its recall.

    .. math:: P \bigl( \arg\max_l h_l(x) \ne k \mid y = k \bigr) \le r_k

    If several outputs are the largest, the first of their classes is predicted, as in ``numpy.argmax``.

    The gradients are those of the loss of the class, see `ClassLoss`, which multipliers turn into a weight of the
    class. A smoothed indicator of the worst margin does not depend on the scale of the scores: with it, nearly zero
    scores, which predict no row of the priority classes, would be optimal where most rows of these are hard to
    classify.

    Parameters
    ----------
    kappa : float or None
        :math:`r_k`, in [0, 1]; None is no bound: the rate is only reported.
    loss : Loss
        Loss that decreases with the margin, and whose gradients replace those of the error.

    References
    ----------
    Tian, Feng, Neyman-Pearson multi-class classification via cost-sensitive learning, arXiv:2111.04597; Cotter et al.,
    Two-player games for efficient non-convex constrained optimization, ALT 2019, for rates with the slopes of losses.
    """

    @override
    def _bind(self, data: FairData) -> BoundClassError:
        # the class's loss in units of what one margin of zero has, so that it is an upper bound of the error
        unit = float(self.loss.of(torch.zeros(1), torch.ones(1)))
        loss = ClassLoss(self.label, 0.0, self.loss)._bind(data)
        heaviest = float(data.weights[data.slices[loss.code]].max())
        return BoundClassError(
            data=data,
            kappa=check_kappa(self.kappa),
            name=f"error[{self.label}]",
            loss=loss,
            slope=1 / unit,
            tolerance=loss.factor * heaviest,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundClassError(BoundConstraint, FullBatch, Stochastic):
    """The error rate of a class on data: its values are exact, its gradients those of the loss."""

    data: FairData
    kappa: float
    name: str
    #: The loss of the class.
    loss: BoundClassLoss
    #: Assumed fall of the error rate where the loss falls by one.
    slope: float
    #: Share of the class that its heaviest sample stands for.
    tolerance: float

    @property
    def granularity(self) -> float:
        """Granularity of the metric; that of a smooth one is its ``tolerance``."""
        return self.tolerance

    def compared_cells(self) -> CellSizes:
        """Number of samples of the class."""
        return self.loss.compared_cells()

    @override
    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        loss = self.slope * self.loss.values(scores, aux)
        return loss - loss.detach() + self.exact(scores.detach().numpy())

    @override
    def metric(self, scores: np.ndarray) -> float:
        code, margins = self.loss.code, self._of_class(scores)
        # the first of several largest outputs is predicted, so a tie with a class before is an error
        is_wrong = (margins[:, :code] <= 0).any(axis=1) | (margins[:, code:] < 0).any(axis=1)
        return float(self._shares @ is_wrong)

    @override
    def metrics_with_weights(self, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return super().metrics_with_weights(scores, weights) / self.loss.masses(weights)

    @property
    @override
    def decision_threshold(self) -> float | None:
        return 0.0

    def values_at_cuts(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray | None:
        """Implement `BoundConstraint.values_at_cuts`; only of two classes."""
        if self.data.n_groups > 2:
            return None
        own, shares = self._of_class(scores)[:, 0], self._shares
        order = np.argsort(own, kind="stable")
        below = np.append(0.0, np.cumsum(shares[order]))[np.searchsorted(own[order], cuts, side="right")]
        return below if self.loss.code == 1 else shares.sum() - below

    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> ClassErrorModel:
        """Implement `Exact.refined`; the blur matters for no more than the slope."""
        rows = {field.name: getattr(self.loss, field.name) for field in fields(self.loss)}
        own = {"kappa": self.kappa, "name": self.name, "tolerance": self.tolerance}
        slope = max(self.slope, self._slope_at(scores, blur))
        return ClassErrorModel(**rows | own, rate=self, slope=slope).refined(scores, blur=blur, margin=margin)

    @override
    def on(self, data: FairData) -> Self:
        return replace(self, data=data, loss=self.loss.on(data))

    @override
    def complaint(self, value: float, rows: str = "training rows") -> str:
        return (
            f"the error rate of class {self.loss.label!r} is {value:.4g} on the {rows} and exceeds its bound "
            f"{self.kappa:g} by more than a sample's share ({self.tolerance:.2g})."
        )

    def _of_class(self, values: np.ndarray) -> np.ndarray:
        """Return the values of the class by sample; ndarray of shape (n_samples of the class, n_classes - 1)."""
        return values[self.data.slices[self.loss.code]].reshape(-1, self.data.rows_of_sample)

    @property
    def _shares(self) -> np.ndarray:
        """Shares of the samples in their class; they sum to one on the whole data."""
        return self._of_class(self.data.weights.numpy())[:, 0] * self.loss.factor

    def _slope_at(self, scores: np.ndarray, blur: float) -> float:
        """Return the fall of the error rate where the loss falls by one, if all margins of the class grow alike."""
        margins, shares = self._of_class(scores), self._shares
        least, weights = margins.min(axis=1), shares / shares.sum()
        if is_constant(least, weights):
            return 0.0
        smooth, worst = blurred(PositiveRate(), least, weights, blur), torch.from_numpy(least)
        slopes = self.loss.row_loss.slope(torch.from_numpy(margins), torch.ones(margins.shape)).sum(dim=1).numpy()
        return float(shares @ smooth.slope(worst, worst).numpy() / -(shares @ slopes))


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassErrorModel(BoundClassLoss):
    """A model of the error rate near some scores: a multiple of the loss, equal to the rate at these scores."""

    #: The error rate.
    rate: BoundClassError
    #: Assumed fall of the error rate where the loss falls by one. The first refinement sets it for good, so that
    #: multipliers keep their meaning; where the rate falls less in truth, solvers take more steps.
    slope: float

    @override
    def coefficients(self, kappa: float) -> np.ndarray:
        return self.slope * super().coefficients(kappa)

    @override
    def metric(self, scores: np.ndarray) -> float:
        return self.rate.metric(scores)

    @override
    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Self:
        refined = replace(self, margin=margin, correction=0.0)
        stand_in = refined.of_losses(self._exact_values(scores), np.empty(0))
        return replace(refined, correction=self.exact(scores) + margin - stand_in)

    @override
    def on(self, data: FairData) -> Self:
        return replace(self, data=data, rate=self.rate.on(data))

    @override
    def complaint(self, value: float, rows: str = "training rows") -> str:
        return self.rate.complaint(value, rows)
