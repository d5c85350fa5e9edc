"""An objective plus a penalty on the correlation of the scores with belonging to a group."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from fairconstrained.checks.messages import check_not_negative, check_positive
from fairconstrained.checks.protected import one_of_two
from fairconstrained.data import FairData
from fairconstrained.objectives._base import BoundObjective, Objective
from fairconstrained.objectives.decisions import DecisionLoss
from fairconstrained.objectives.losses import Logistic

__all__ = ["BoundCorrelationPenalty", "CorrelationPenalty"]

#: Smoothing of the penalty from whose solution the final one starts.
_FIRST_SMOOTHING = 0.03
#: A variance below this share of the mean square is rounding: the scores are constant.
_CONSTANT = 1e-24


@dataclass(frozen=True)
class CorrelationPenalty(Objective):
    r"""An objective plus ``weight`` times the absolute correlation of the scores with the protected group.

    .. math:: f(s) + \lambda \left( \sqrt{c^2 + \varepsilon^2} - \varepsilon \right), \qquad
              c = \mathrm{corr}(s, \gamma) = \sqrt{q (1 - q)} \, \frac{\bar s_a - \bar s_b}{\sigma_s}

    where :math:`\gamma` is +1 for the rows of the protected group a and -1 for the others, b; :math:`\bar s` are the
    means of the scores, :math:`\sigma_s` is their standard deviation, and q the share of the group, all weighted.
    Constant scores have correlation 0.

    :math:`|c|` is smoothed around 0, because large weights lead there and the solver is a quasi-Newton method, whose
    steps would only jump from one side of 0 to the other. The smoothed penalty is below :math:`\lambda |c|` by at most
    :math:`\lambda \varepsilon`. `path` smooths more at first.

    A single group leaves the objective as it is, and so does a weight of zero.

    Parameters
    ----------
    objective : Objective, default=Logistic()
        The :math:`f` above.
    weight : float, default=1.0
        The :math:`\lambda`, at least 0.
    protected : object, default=None
        Label of the protected group. With two groups it does not matter which one that is; with more it has to be
        given.
    smoothing : float, default=1e-3
        The :math:`\varepsilon`, positive, in units of the correlation.

    Raises
    ------
    ValueError
        If the weight is negative or the smoothing not positive.

    References
    ----------
    Yao, Lin, Yang, arXiv:2212.12603, section E.2. Beutel et al., "Fairness in Recommendation
    Ranking through Pairwise Comparisons", KDD 2019.
    """

    objective: Objective = field(default_factory=Logistic)
    weight: float = 1.0
    protected: Hashable | None = None
    smoothing: float = 1e-3

    def __post_init__(self) -> None:
        check_not_negative(weight=self.weight)
        check_positive(smoothing=self.smoothing)

    def bind(self, data: FairData) -> BoundObjective:
        """The objective with its penalty on ``data``.

        Raises
        ------
        ValueError
            If there is no group of the label ``protected``, or it has to be given.
        """
        code = one_of_two(data.labels, self.protected)
        if self.weight == 0 or data.n_groups == 1:
            return self.objective.bind(data)
        return BoundCorrelationPenalty(self, data, base=self.objective.bind(data), code=code)

    def path(self) -> tuple[Objective, ...]:
        """The path of the objective without the penalty, then a rounder penalty, then this one."""
        rounder = (replace(self, smoothing=s) for s in (_FIRST_SMOOTHING,) if s > self.smoothing)
        return (*self.objective.path(), *rounder, self)

    def probability(self, scores: np.ndarray) -> np.ndarray:
        """Implement `Objective.probability` by that of the objective without the penalty."""
        return self.objective.probability(scores)


@dataclass(frozen=True)
class BoundCorrelationPenalty(BoundObjective):
    """`CorrelationPenalty` on data."""

    loss: CorrelationPenalty
    name: str = "correlation_penalty"
    #: The objective without the penalty.
    base: BoundObjective = field(kw_only=True)
    #: Code of the protected group.
    code: int = field(kw_only=True)

    # The penalty does not change when all scores move alike; groups that move on their own would change it.
    shift: ClassVar[Literal["groups", "shared"]] = "shared"

    @property
    def gains(self) -> Tensor | None:
        """Implement `BoundObjective.gains` by those of the objective."""
        return self.base.gains

    @property
    def decisions(self) -> DecisionLoss | None:
        """Implement `BoundObjective.decisions` by that of the objective."""
        return self.base.decisions

    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Implement `FullBatch.values`; one component."""
        eps = self.loss.smoothing
        rounded = torch.sqrt(self.correlation(scores) ** 2 + eps**2) - eps
        return self.base.values(scores, aux) + self.loss.weight * rounded

    def correlation(self, scores: Tensor) -> Tensor:
        """Correlation of the scores with the protected group; a scalar in [-1, 1]."""
        weights = self.data.weights
        mean = weights @ scores
        centred = scores - mean
        variance = weights @ centred**2
        if variance <= _CONSTANT * (weights @ scores.detach() ** 2):
            return 0 * mean
        return weights @ (centred * self._standardised) / torch.sqrt(variance)

    @cached_property
    def _standardised(self) -> Tensor:
        """+1 for the protected group and -1 for the others, with mean 0 and variance 1."""
        weights = self.data.weights
        rows = self.data.slices[self.code]
        share = float(weights[rows].sum())
        member = torch.zeros_like(weights)
        member[rows] = 1.0
        return (member - share) / np.sqrt(share * (1 - share))
