"""Values of a term in the graph of the caller's scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._utils import _flatten_dense_tensors
from torch.autograd.function import once_differentiable

from fairconstrained.torch._points import Point

__all__ = ["Centre", "values_of", "weighted_values"]


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
    """Return the values of a point as a function of the caller's scores, on their device and of their type.

    They have single precision for scores of half precision.
    """
    return _Values.apply(scores, point)


def weighted_values(scores: Tensor, point: Point, weights: np.ndarray, constant: float) -> Tensor:
    """Return the tangent of ``weights @ values + constant`` at the scores; Tensor of shape ().

    It has the same value and slopes, and takes less time than a function of its own in the graph.
    """
    slopes, dtype = point.slopes(weights), _precision(scores)
    offset = float(weights @ point.values - slopes @ point.own.scores) + constant
    flat = (scores if scores.dim() == 1 else scores.reshape(-1)).to(dtype)
    tangent = torch.dot(flat, torch.from_numpy(slopes).to(flat))
    tangent.detach().add_(offset)  # without a node of its own in the graph
    return tangent


class Centre:
    """A point that follows the parameters of a network, and the distance from it.

    Parameters
    ----------
    parameters : sequence of Tensor
        May be empty.

    Attributes
    ----------
    parameters : sequence of Tensor
    vector : Tensor of shape (n_params,)
        The point.
    away : Tensor of shape (n_params,)
        The parameters less the point, when `added` was called last.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.parameters = parameters
        with torch.no_grad():
            self.vector = self.away = _vector(parameters).clone() if parameters else torch.empty(0)

    def added(self, value: Tensor, weight: float) -> Tensor:
        """Return ``value + weight / 2 * |parameters - vector|^2``; Tensor of shape ()."""
        away = torch.sub(_vector(self.parameters), self.vector)
        self.away = away.detach()
        return torch.add(value, torch.dot(away, away), alpha=weight / 2)

    def follow(self, share: float) -> None:
        """Move by a share of the way to where the parameters were."""
        self.vector.add_(self.away, alpha=share)


def _vector(parameters: Sequence[Tensor]) -> Tensor:
    """All parameters as one vector; of a single one, it shares the memory."""
    return _flatten_dense_tensors(parameters)


def _precision(scores: Tensor) -> torch.dtype:
    """Type of the values: half precision would round values of the size of kappa."""
    return torch.promote_types(scores.dtype, torch.float32)
