"""Places in the graph of torch: values of a term in that of the scores, and the distance of parameters to a centre."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairconstrained.torch._points import Point

__all__ = ["half_squared_distance", "values_of", "weighted_values"]


class _Values(torch.autograd.Function):
    """Values of a point as a function of the scores, or their sum with weights."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, point: Point, weights: np.ndarray | None) -> Tensor:
        ctx.point, ctx.weights, ctx.like = point, weights, (scores.shape, scores.dtype, scores.device)
        # half precision would round values of the size of kappa
        dtype = torch.promote_types(scores.dtype, torch.float32)
        if weights is None:
            return torch.from_numpy(point.values).to(scores.device, dtype)
        return torch.tensor(float(weights @ point.values), dtype=dtype, device=scores.device)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        shape, dtype, device = ctx.like
        if ctx.weights is None:
            slopes = torch.from_numpy(ctx.point.slopes(gradients[0].to("cpu", torch.float64).numpy()))
            return slopes.to(device, dtype).view(shape), None, None
        # multiplied where it is, so that nothing waits for the device
        slopes = torch.from_numpy(ctx.point.slopes(ctx.weights)).to(device, dtype)
        return (slopes * gradients[0]).to(dtype).view(shape), None, None


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
    return _Values.apply(scores, point, None)


def weighted_values(scores: Tensor, point: Point, weights: np.ndarray) -> Tensor:
    """Return ``weights @ values`` as `values_of` returns the values; Tensor of shape ()."""
    return _Values.apply(scores, point, weights)


class _HalfSquaredDistance(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: float, away: list[Tensor], *parameters: Tensor) -> Tensor:
        ctx.weight, ctx.away = weight, away
        lengths = torch.stack([length.to(away[0]) for length in torch._foreach_norm(away)])
        return torch.dot(lengths, lengths).mul_(weight / 2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        # all parameters of a network get the same factor, usually one
        return None, None, *torch._foreach_mul(ctx.away, ctx.weight * gradients[0].item())


def half_squared_distance(weight: float, away: list[Tensor], parameters: list[Tensor]) -> Tensor:
    """Return ``weight / 2`` times the squared length of what parameters are away from a centre; Tensor of shape ()."""
    return _HalfSquaredDistance.apply(weight, away, *parameters)
