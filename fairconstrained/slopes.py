"""Functions of arrays that bring their own slopes, as operations of torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["with_own_slopes"]


def with_own_slopes(
    function: Callable[..., tuple[np.ndarray, Callable[[np.ndarray], Sequence[np.ndarray]]]], *inputs: Tensor
) -> Tensor:
    """Return the values of a function of arrays, differentiable once in the inputs.

    Parameters
    ----------
    function : callable
        Takes the inputs as ndarrays; returns the values, and a function from factors of the values, an ndarray of
        their shape, to the slopes of ``(factors * values).sum()`` in every input.
    *inputs : Tensor
        Arrays of any shapes, of type float64.

    Returns
    -------
    values : Tensor
        In the shape of the values that ``function`` returns.
    """
    return _Operation.apply(function, *inputs)


class _Operation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], *inputs: Tensor) -> Tensor:
        values, ctx.slopes = function(*(given.detach().numpy() for given in inputs))
        return torch.from_numpy(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return None, *map(torch.from_numpy, ctx.slopes(gradients[0].numpy()))
