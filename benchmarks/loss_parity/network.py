"""The network that all methods train: 64 and 32 hidden units with ReLU, as one vector of parameters."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import torch
from torch import nn

from fairconstrained.models import Perceptron, make_module, mlp

__all__ = ["HIDDEN", "layers", "new_network", "parameters_of", "perceptron", "scores"]

#: Hidden layers of the paper's network (section 4.2).
HIDDEN = (64, 32)
layers = partial(mlp, hidden_layer_sizes=HIDDEN)


def new_network(n_features: int, seed: int) -> nn.Module:
    """The network in float32, as the estimators begin with it."""
    return make_module(layers, n_features, seed=seed).train()


def parameters_of(network: nn.Module) -> np.ndarray:
    """All parameters as one vector; ndarray of shape (n_params,)."""
    return nn.utils.parameters_to_vector(network.parameters()).detach().double().numpy().copy()


@cache
def perceptron(n_features: int) -> Perceptron:
    """The network as a function of that vector."""
    return Perceptron(layers, n_features, device="cpu")


def scores(params: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Log-odds of the rows; ndarray of shape (n_samples,)."""
    with torch.no_grad():
        return perceptron(X.shape[1]).scores(params, X)
