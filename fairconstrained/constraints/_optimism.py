"""Constraints on signed differences that may also be bounded on rows which the model has not seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np
from typing_extensions import override

from fairconstrained.constraints.base import BoundConstraint

__all__ = ["KnowsOptimism"]


class KnowsOptimism(BoundConstraint):
    """A constraint whose metric is the largest of its `differences`, with what is known of these on rows not seen."""

    #: Amounts by which the differences are larger on rows that the model has not seen, see `with_optimism`. With it,
    #: ``kappa`` no longer bounds the metric alone.
    optimism: np.ndarray | None  # of shape (n_components,)

    @override
    def with_optimism(self, optimism: np.ndarray) -> Self:
        return replace(self, optimism=optimism)  # type: ignore[type-var]  # all bound constraints are dataclasses

    @override
    def exact(self, scores: np.ndarray) -> float:
        excess = super().exact(scores)
        if self.optimism is None:
            return excess
        differences = self.differences(scores)
        assert differences is not None  # they have an optimism
        return max(excess, float((differences + self.optimism).max()) - self.kappa)
