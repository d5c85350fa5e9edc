"""Stand-ins for the indicator ``1[x > 0]``, their convex split, and their means over groups at many thresholds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from fairconstrained.data import Cells
from fairconstrained.kernels import GroupMeans, Kernel, KernelSum, LogisticKernel, PiecewisePolynomial, QuadraticKernel

__all__ = ["SURROGATES", "Surrogate"]


@dataclass(frozen=True)
class Surrogate:
    """A surrogate ``sigma(x / width)`` of ``1[x > 0]`` with a convex split ``sigma = plus - minus``.

    Attributes
    ----------
    value, plus, minus : Kernel
        ``sigma`` and its split; ``plus`` and ``minus`` are convex.
    spread : float
        Standard deviation of the steep part of the density ``sigma'`` at width 1. Surrogates of equal
        ``width * spread`` blur the scores alike, whatever their shape.
    width : float
        Width in units of the scores; the narrower, the closer to the indicator.
    """

    value: Kernel
    plus: Kernel
    minus: Kernel
    spread: float
    width: float = 1.0

    def with_width(self, width: float) -> Surrogate:
        """Return the shape at another width."""
        return replace(self, width=width)

    def with_blur(self, blur: float) -> Surrogate:
        """Return the shape at the width for which ``width * spread = blur`` (units of the scores)."""
        return replace(self, width=blur / self.spread)

    def rates_at(self, scores: np.ndarray, thresholds: np.ndarray, cells: Cells) -> GroupMeans:
        """Smooth share of every cell above every threshold, with its slopes."""
        return self.value.means_at(scores, thresholds, self.width, cells)

    def rates(self, scores: Tensor, thresholds: Tensor, cells: Cells) -> Tensor:
        """Smooth share of every cell above every threshold; Tensor of shape (n_cells, n_thresholds)."""
        return self.value.group_means(scores, thresholds, self.width, cells)

    def split_rates(self, scores: Tensor, thresholds: Tensor, cells: Cells) -> tuple[Tensor, Tensor]:
        """The two convex parts whose difference is `rates`."""
        return (
            self.plus.group_means(scores, thresholds, self.width, cells),
            self.minus.group_means(scores, thresholds, self.width, cells),
        )


def _hinge(knot: float) -> PiecewisePolynomial:
    """``max(x - knot, 0)``."""
    return PiecewisePolynomial(np.array([knot]), np.array([[0.0, 0.0], [-knot, 1.0]]))


def _curved(kernel: Kernel, curvature: float, spread: float) -> Surrogate:
    """A smooth surrogate whose second derivative is at least ``-curvature`` (Example D.4)."""
    quadratic = QuadraticKernel(curvature)
    return Surrogate(kernel, KernelSum(kernel, quadratic), quadratic, spread)


def _footed_smoothstep(foot: float, share: float) -> PiecewisePolynomial:
    """A cubic smoothstep on [-1, 1], of which a share is stretched ``foot`` times as wide.

    Where the scores of a group leave a hole around a threshold, the steep part has no slope to offer; the foot has.
    """
    rise = np.array([0.5, 0.75, 0.0, -0.25])
    stretched = share * rise / foot ** np.arange(4)
    one = np.array([1.0, 0.0, 0.0, 0.0])
    pieces = [0 * one, stretched, (1 - share) * rise + stretched, (1 - share) * one + stretched, one]
    return PiecewisePolynomial(np.array([-foot, -1.0, 1.0, foot]), np.stack(pieces))


#: The surrogates by name, at width 1: the ramp of Example D.3, the logistic function of Example D.4, and the
#: cubic smoothstep, which is smooth like the second and costs no more per threshold than the first.
SURROGATES: dict[str, Surrogate] = {
    "logistic": _curved(LogisticKernel(), 1 / (6 * np.sqrt(3)), np.pi / np.sqrt(3)),
    "ramp": Surrogate(
        PiecewisePolynomial(np.array([-0.5, 0.5]), np.array([[0.0, 0.0], [0.5, 1.0], [1.0, 0.0]])),
        _hinge(-0.5),
        _hinge(0.5),
        1 / np.sqrt(12),
    ),
    "smoothstep": _curved(_footed_smoothstep(foot=8.0, share=0.15), 1.5, 1 / np.sqrt(5)),
}
