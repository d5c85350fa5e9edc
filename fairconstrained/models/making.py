"""Networks from what the user gives: a module that is copied, or a function that makes one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from fairconstrained.checks.messages import check_arguments

__all__ = ["ModuleSpec", "make_module"]

#: A module, or what makes one from the number of features (or the shape of a row) and that of outputs.
ModuleSpec = nn.Module | Callable[[Any, int], nn.Module]


def make_module(module: ModuleSpec, n_features: int | tuple[int, ...], n_outputs: int = 1, seed: int = 0) -> nn.Module:
    """Return a new network in evaluation mode: a copy of a module, or of the module that a callable makes.

    Parameters
    ----------
    module : nn.Module or callable
        A callable is called with ``(n_features, n_outputs)`` and returns the network, see `ModuleModel`.
    n_features : int or tuple of int
        Number of the features, or the shape of a row.
    n_outputs : int, default=1
        Number of the outputs of a row.
    seed : int, default=0
        Seed of torch's global CPU generator for the callable; its state is put back afterwards.

    Returns
    -------
    module : nn.Module

    Raises
    ------
    TypeError
        If ``module`` neither is nor returns an nn.Module, or cannot be called with the two arguments.
    ValueError
        If the module rejects its input, or returns anything but a tensor of floats of the right shape.
    """
    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(seed)
        # a callable may return one object again and again, so that what it returns is copied too
        made = copy.deepcopy(module if isinstance(module, nn.Module) else _called(module, n_features, n_outputs))
        _check_outputs(made.eval(), n_features, n_outputs)
    return made


def _called(factory: Callable[[Any, int], nn.Module], n_features: int | tuple[int, ...], n_outputs: int) -> nn.Module:
    """Call a function that returns a module; raise TypeError if it takes other arguments or returns none."""
    allowed = "module must be an nn.Module, or a callable that takes (n_features, n_outputs) and returns one"
    check_arguments(factory, allowed, n_features, n_outputs)
    made = factory(n_features, n_outputs)
    if not isinstance(made, nn.Module):
        raise TypeError(f"{allowed}; {factory!r} returned {made!r}.")
    return made


def _check_outputs(module: nn.Module, n_features: int | tuple[int, ...], n_outputs: int) -> None:
    """Raise ValueError unless the module maps two rows to two rows of ``n_outputs``."""
    first = next(module.parameters(), torch.empty(0))
    shape = n_features if isinstance(n_features, tuple) else (n_features,)
    rows = torch.zeros((2, *shape), dtype=first.dtype, device=first.device)
    try:
        with torch.no_grad():
            outputs = module(rows)
    except Exception as error:  # whatever the user's forward may raise
        raise ValueError(
            f"module must map a tensor of shape (n_rows, {', '.join(map(str, shape))}) to scores, but for 2 rows of "
            f"{n_features} features its forward raised {type(error).__name__}: {error}"
        ) from error
    shapes = [(2, n_outputs)] + [(2,)] * (n_outputs == 1)
    if isinstance(outputs, Tensor) and tuple(outputs.shape) in shapes and outputs.is_floating_point():
        return
    got = f"shape {tuple(outputs.shape)} of {outputs.dtype}" if isinstance(outputs, Tensor) else repr(outputs)
    raise ValueError(
        f"module must return a tensor of floats of shape (n_rows, {n_outputs}), but for 2 rows it returned {got}."
    )
