"""Multilayer perceptrons as modules of torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from numbers import Integral

from torch import nn

from fairconstrained.checks.messages import is_number

__all__ = ["ACTIVATIONS", "mlp"]

#: Activations of `mlp` by name; the names of scikit-learn where it has them.
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "logistic": nn.Sigmoid,
    "silu": nn.SiLU,
    "softplus": nn.Softplus,
}


class _Layers(nn.Sequential):
    """Layers of which the last is linear with a bias."""

    @property
    def output_bias_name(self) -> str:
        """Name of the module's bias that moves its outputs, see `ModuleModel`."""
        return f"{len(self) - 1}.bias"


def mlp(
    n_features: int,
    n_outputs: int = 1,
    hidden_layer_sizes: Sequence[int] = (64,),
    activation: str = "relu",
) -> nn.Module:
    """A multilayer perceptron whose scores are zero until it is trained.

    The weights of the last layer start at zero, those of the others as torch draws them.

    Parameters
    ----------
    n_features : int
        Number of the features.
    n_outputs : int, default=1
        Number of the scores of a row.
    hidden_layer_sizes : sequence of int, default=(64,)
        Width of every hidden layer; an empty sequence makes a linear model.
    activation : {"relu", "tanh", "logistic", "silu", "softplus"}, default="relu"
        Function between the layers.

    Returns
    -------
    module : nn.Module

    Raises
    ------
    ValueError
        For an unknown activation, or a width that is no positive integer; the message lists what is known.
    """
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {sorted(ACTIVATIONS)}, got {activation!r}.")
    if not all(isinstance(width, Integral) and is_number(width) and width > 0 for width in hidden_layer_sizes):
        raise ValueError(f"hidden_layer_sizes must be positive integers, such as (64, 32); got {hidden_layer_sizes!r}.")
    output = nn.Linear([n_features, *hidden_layer_sizes][-1], n_outputs)
    nn.init.zeros_(output.weight)
    nn.init.zeros_(output.bias)
    return _Layers(*_hidden_layers(n_features, hidden_layer_sizes, ACTIVATIONS[activation]), output)


def _hidden_layers(n_features: int, widths: Sequence[int], activation: Callable[[], nn.Module]) -> Iterator[nn.Module]:
    for before, width in pairwise([n_features, *widths]):
        yield nn.Linear(before, width)
        yield activation()
