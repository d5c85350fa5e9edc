"""Values of a term in the graph of the caller's scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairconstrained.torch._points import Point

__all__ = ["values_of", "weighted_values"]


class _Values(torch.autograd.Function):
    """Values of a point as a function of the scores, or a number with slopes that are known."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, point: Point, weights: np.ndarray | None, constant: float) -> Tensor:
        ctx.point, ctx.weights, ctx.like = point, weights, (scores.shape, scores.dtype, scores.device)
        # half precision would round values of the size of kappa
        dtype = torch.promote_types(scores.dtype, torch.float32)
        if weights is None:
            return torch.from_numpy(point.values).to(scores.device, dtype)
        return torch.tensor(float(weights @ point.values) + constant, dtype=dtype, device=scores.device)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        shape, dtype, device = ctx.like
        if ctx.weights is None:
            slopes = ctx.point.slopes(gradients[0].to("cpu", torch.float64).numpy())
        else:
            slopes = ctx.point.slopes(ctx.weights) * gradients[0].item()
        return torch.from_numpy(slopes).to(device, dtype).view(shape), None, None, None


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
    return _Values.apply(scores, point, None, 0.0)


def weighted_values(scores: Tensor, point: Point, weights: np.ndarray, constant: float) -> Tensor:
    """Return ``weights @ values + constant``, with the values as from `values_of`; Tensor of shape ()."""
    return _Values.apply(scores, point, weights, constant)
