"""Scores by a multilayer perceptron, its gradient written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor

from fairconstrained.data import FairData
from fairconstrained.models._base import Pullback
from fairconstrained.models.module import ModuleModel

__all__ = ["Perceptron"]


def _silu_slope(z: np.ndarray, _: np.ndarray) -> np.ndarray:
    share = expit(z)
    return share * (1 + z * (1 - share))


#: Every activation ``a(z)`` of `fairconstrained.models.module.ACTIVATIONS`, and its slope from z and a.
_FUNCTIONS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "relu": (lambda z: np.maximum(z, 0), lambda z, a: a > 0),
    "tanh": (np.tanh, lambda z, a: 1 - a**2),
    "logistic": (expit, lambda z, a: a * (1 - a)),
    "silu": (lambda z: z * expit(z), _silu_slope),
    "softplus": (lambda z: np.logaddexp(0, z), lambda z, a: expit(z)),
}


@dataclass(frozen=True, eq=False)
class Perceptron(ModuleModel):
    """A `ModuleModel` of `mlp`, for a fraction of the time where the batches are small.

    On the CPU the few products of a pass and of its gradient are written out in NumPy; recording a graph for them takes
    several times as long as they do with ten rows, and as long with some hundreds. CSR rows are not densified.
    Elsewhere it is an ordinary `ModuleModel`.

    Parameters
    ----------
    activation : str
        That of ``module``, which is made by `mlp`.
    """

    activation: str = "relu"

    def forward(self, params: np.ndarray, data: FairData) -> tuple[Tensor, Pullback]:
        """See `Model.forward`."""
        if self._device.type != "cpu":
            return super().forward(params, data)
        layers, chunks = self._layers(params), self._chunks(data.n_samples)
        passes = [_Pass(layers, self.activation, data.X if len(chunks) == 1 else data.X[rows]) for rows in chunks]
        scores = [self._of_groups(run.outputs, data.codes[rows]) for run, rows in zip(passes, chunks, strict=True)]
        kept = passes if len(chunks) == 1 else None  # the layers of all rows would not fit

        def pullback(cotangent: Tensor) -> np.ndarray:
            gradient = np.zeros(params.size)
            for k, rows in enumerate(chunks):
                run = kept[k] if kept else _Pass(layers, self.activation, data.X[rows])
                self._add_gradient(run, self._to_groups(cotangent.numpy()[rows], data.codes[rows]), gradient)
            return gradient

        return torch.from_numpy(np.concatenate(scores)).double(), pullback

    def scores(self, params: np.ndarray, X: Any, codes: np.ndarray | None = None) -> np.ndarray:
        """See `Model.scores`."""
        if self._device.type != "cpu":
            return super().scores(params, X, codes)
        layers = self._layers(params)
        codes = np.zeros(X.shape[0], dtype=np.int64) if codes is None else codes
        parts = [
            self._of_groups(_Pass(layers, self.activation, X[rows]).outputs, codes[rows])
            for rows in self._chunks(X.shape[0])
        ]
        return np.concatenate([np.empty(0), *parts])

    def _layers(self, params: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Weights of shape (n_out, n_in) and biases of every layer, views of ``params``."""
        params = params.astype(self._numbers, copy=False)
        arrays = [params[rows].reshape(shape) for rows, shape in self._places]
        return list(zip(arrays[::2], arrays[1::2], strict=True))

    @cached_property
    def _places(self) -> list[tuple[slice, torch.Size]]:
        """Where every weight and bias stands in the parameters, and its shape."""
        return [(rows, self._shapes[name]) for name, rows in self._slices.items()]

    @cached_property
    def _numbers(self) -> np.dtype:
        return np.dtype(str(self.dtype).removeprefix("torch."))

    def _of_groups(self, outputs: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Every row's output for its group."""
        return outputs[:, 0] if self.n_outputs == 1 else np.take_along_axis(outputs, codes[:, None], axis=1)[:, 0]

    def _to_groups(self, slopes: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """The transpose of `_of_groups`."""
        slopes = slopes.astype(self._numbers, copy=False)[:, None]
        if self.n_outputs == 1:
            return slopes
        outputs = np.zeros((codes.size, self.n_outputs), dtype=slopes.dtype)
        np.put_along_axis(outputs, codes[:, None], slopes, axis=1)
        return outputs

    def _add_gradient(self, run: _Pass, slopes: np.ndarray, gradient: np.ndarray) -> None:
        last = 2 * len(run.layers) - 2
        for k, (weights, bias) in enumerate(run.gradients(slopes)):
            gradient[self._places[last - 2 * k][0]] += weights.ravel()
            gradient[self._places[last - 2 * k + 1][0]] += bias


class _Pass:
    """Some rows on their way through the layers."""

    def __init__(self, layers: list[tuple[np.ndarray, np.ndarray]], activation: str, X: Any) -> None:
        self.layers = layers
        function, self._slope = _FUNCTIONS[activation]
        self._inputs, self._sums = [X], []
        for weights, bias in layers[:-1]:
            sums = self._inputs[-1] @ weights.T
            sums += bias
            self._sums.append(sums)
            self._inputs.append(function(sums))
        weights, bias = layers[-1]
        self.outputs: np.ndarray = self._inputs[-1] @ weights.T + bias

    def gradients(self, slopes: np.ndarray) -> Any:
        """Of every layer's weights and bias, the last layer first; ``slopes`` are those of the outputs."""
        for k in reversed(range(len(self.layers))):
            yield slopes.T @ self._inputs[k], slopes.sum(axis=0)
            if k:
                slopes = slopes @ self.layers[k][0]
                slopes *= self._slope(self._sums[k - 1], self._inputs[k])
