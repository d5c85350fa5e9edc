"""Values of a term in the graph of the caller's scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fairconstrained.torch._points import Point

__all__ = ["values_of", "weighted_values"]


class _Values(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, point: Point) -> Tensor:
        ctx.point, ctx.like = point, (scores.shape, scores.dtype, scores.device)
        return torch.from_numpy(point.values).to(scores.device, _precision(scores))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        shape, dtype, device = ctx.like
        slopes = ctx.point.slopes(gradients[0].to("cpu", torch.float64).numpy())
        return torch.from_numpy(slopes).to(device, dtype).view(shape), None


def values_of(scores: Tensor, point: Point) -> Tensor:
    """Return the values of a point as a function of the caller's scores.

    Parameters
    ----------
    scores : Tensor of shape (n_own_rows,) or (n_own_rows, 1)
    point : Point

    Returns
    -------
    values : Tensor of shape (n_components,)
        On the device of the scores and of their type, single precision for half.
    """
    return _Values.apply(scores, point)


def weighted_values(scores: Tensor, point: Point, weights: np.ndarray, constant: float) -> Tensor:
    """Return the tangent of ``weights @ values + constant`` at the scores; Tensor of shape ().

    It has the same value and slopes, and takes less time than a function of its own in the graph.
    """
    slopes, dtype = point.slopes(weights), _precision(scores)
    offset = float(weights @ point.values - slopes @ point.own.scores) + constant
    return scores.reshape(-1).to(dtype) @ torch.from_numpy(slopes).to(scores.device, dtype) + offset


def _precision(scores: Tensor) -> torch.dtype:
    """Type of the values: half precision would round values of the size of kappa."""
    return torch.promote_types(scores.dtype, torch.float32)
