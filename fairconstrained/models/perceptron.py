"""Scores by a multilayer perceptron, with a hand-written gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import expit
from torch import Tensor, nn
from typing_extensions import override

from fairconstrained.data import FairData
from fairconstrained.features import squares
from fairconstrained.models.base import Pullback
from fairconstrained.models.layers import mlp
from fairconstrained.models.module import ModuleModel, part_of
from fairconstrained.models.scales import Scales

__all__ = ["Perceptron"]


#: Rows of a pass; it takes up to three times as long for each of eight times as many.
_AT_ONCE = 1024

#: Root of the mean square of a feature beyond which the first layer's units hardly depend on any smaller one. It is in
#: the network's unit, as is the next one.
_LARGE = 10.0
#: Largest absolute value of a feature that is too small.
_SMALL = 1e-3

#: Weights of shape (n_out, n_in), and biases.
_Layer = tuple[np.ndarray, np.ndarray]


def _silu_slope(z: np.ndarray, _: np.ndarray) -> np.ndarray:
    share = expit(z)
    return share * (1 + z * (1 - share))


#: Every activation ``a(z)`` of `fairconstrained.models.layers.ACTIVATIONS`, and its slope from z and a.
_FUNCTIONS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "relu": (lambda z: np.maximum(z, 0), lambda z, a: a > 0),
    "tanh": (np.tanh, lambda z, a: 1 - a**2),
    "logistic": (expit, lambda z, a: a * (1 - a)),
    "silu": (lambda z: z * expit(z), _silu_slope),
    "softplus": (lambda z: np.logaddexp(0, z), lambda z, a: expit(z)),
}


@dataclass(frozen=True, eq=False)
class Perceptron(ModuleModel):
    """A `ModuleModel` of `mlp` that takes a fraction of the time on small batches.

    On the CPU the few products of a pass and of its gradient are written out in NumPy; recording a graph for them takes
    several times as long as they do with ten rows, and as long with some hundreds. CSR rows are not densified.
    Elsewhere it is an ordinary `ModuleModel`.

    Parameters
    ----------
    activation : str, default="relu"
        Activation of ``module``, which is made by `mlp`.
    unit : float, default=1.0
        The parameters, and with them the penalty, are those of a network of the features divided by this number.
        `fitted` returns a network of the features themselves. Rows are not changed.
    """

    activation: str = "relu"
    unit: float = 1.0

    def enlarging(self, data: FairData) -> Perceptron:
        """Return the model whose ``unit`` is the largest standard deviation of a feature of ``data``, at most 1.

        Where all features are small, the penalty would hold the weights back, and the scores would be all but constant.
        It is one number for all features: with a deviation of its own, a category that few rows have would become so
        large that the network memorises these rows.
        """
        return replace(self, unit=min(Scales.of(data).largest, 1.0))

    @override
    def _forward(
        self, params: np.ndarray, X: Any, codes: np.ndarray | None, seed: int | None = None
    ) -> tuple[Tensor, Pullback]:
        if self._device.type != "cpu":
            return super()._forward(params, X, codes)
        layers, parts = self._layers(params), _parts(X.shape[0])
        if len(parts) == 1:
            return self._forward_part(_Pass(layers, self.activation, X), slice(None), codes)

        def run(rows: slice) -> _Pass:
            return _Pass(layers, self.activation, X[rows])

        # the layers of very many rows would not fit
        kept = [run(rows) for rows in parts] if X.shape[0] <= self.chunk_size else None
        scores = self._joined(kept or map(run, parts), parts, codes)

        def pullback(cotangent: Tensor) -> np.ndarray:
            slopes, gradient = cotangent.numpy(), np.zeros(params.size)
            for rows, own in zip(parts, kept or map(run, parts), strict=True):
                gradient += own.gradient(self._to_groups(slopes[rows], part_of(codes, rows)))
            return self._pulled(gradient)

        return torch.from_numpy(scores.astype(float, copy=False)), pullback

    def forward_each(self, params: np.ndarray, parts: Sequence[FairData]) -> list[tuple[Tensor, Pullback]]:
        """Implement `ParametricModel.forward_each`; small dense mini-batches go through the layers as one."""
        ends = list(accumulate((data.n_samples for data in parts), initial=0))
        if self._device.type != "cpu" or sp.issparse(parts[0].X) or ends[-1] > self.chunk_size:
            return super().forward_each(params, parts)
        run = _Pass(self._layers(params), self.activation, np.concatenate([data.X for data in parts]))
        return [
            self._forward_part(run, slice(first, end), data.codes)
            for first, end, data in zip(ends[:-1], ends[1:], parts, strict=True)
        ]

    def _forward_part(self, run: _Pass, rows: slice, codes: np.ndarray | None) -> tuple[Tensor, Pullback]:
        """Scores of some of the rows of a pass, and their pullback."""

        def pullback(cotangent: Tensor) -> np.ndarray:
            gradient = run.gradient(self._to_groups(cotangent.numpy(), codes), rows)
            return self._pulled(gradient.astype(float, copy=False))

        scores = self._of_groups(run.outputs[rows], codes)
        return torch.from_numpy(scores.astype(float, copy=False)), pullback

    @override
    def _evaluated(self, params: np.ndarray, X: Any, codes: np.ndarray | None) -> np.ndarray:
        if self._device.type != "cpu":
            return super()._evaluated(params, X, codes)
        layers, parts = self._layers(params), _parts(X.shape[0])
        runs = (_Pass(layers, self.activation, X[rows]) for rows in parts)
        return self._joined(runs, parts, codes).astype(float, copy=False)

    def _joined(self, runs: Iterable[_Pass], parts: Sequence[slice], codes: np.ndarray | None) -> np.ndarray:
        """The outputs of all parts of the rows."""
        found = [self._of_groups(run.outputs, part_of(codes, rows)) for run, rows in zip(runs, parts, strict=True)]
        return np.concatenate(found) if found else np.empty(0)

    @override
    def unscaled_columns(self, data: FairData) -> np.ndarray:
        weights = data.weights.numpy()
        return np.flatnonzero(squares(self.row_features(data), weights) > (_LARGE * self.unit) ** 2 * weights.sum())

    @property
    @override
    def least_size(self) -> float:
        return _SMALL * self.unit

    def divided(self, n_parts: int, fewest: int) -> Perceptron | None:
        """A network of which so many fit side by side into the hidden layers of this one, with one score.

        Parameters
        ----------
        n_parts : int
        fewest : int
            Units that every hidden layer has to have; None is returned if there is none with so many.
        """
        widths = [shape[0] // n_parts for _, shape in self._places[:-2:2]]
        if not widths or min(widths) < fewest:
            return None
        layers = partial(mlp, hidden_layer_sizes=widths, activation=self.activation)
        return replace(self, module=layers, n_outputs=1)

    def side_by_side(self, part: Perceptron, networks: Sequence[np.ndarray]) -> np.ndarray:
        """Parameters of this network with the hidden layers of others in its own, and a last layer of zeros.

        Parameters
        ----------
        part : Perceptron
            Model of the others, see `divided`.
        networks : sequence of ndarray of shape (n_part_params,)

        Returns
        -------
        params : ndarray of shape (n_params,)
            The units that are left have weights of zero.
        """
        params = np.zeros(self.n_params)
        for number, own in enumerate(networks):
            for k, (weights, bias) in enumerate(part._arrays(own)[:-1]):
                (n_out, n_in), ((rows, shape), (others, _)) = weights.shape, self._places[2 * k : 2 * k + 2]
                outputs = slice(number * n_out, (number + 1) * n_out)
                inputs = slice(number * n_in, (number + 1) * n_in) if k else slice(None)
                params[rows].reshape(shape)[outputs, inputs] = weights
                params[others][outputs] = bias
        return params

    def last_layers(self, part: Perceptron, networks: Sequence[np.ndarray]) -> np.ndarray:
        """Last layers of networks `side_by_side`, one in each column: weights of this network's last units, and bias.

        ndarray of shape (n_last + 1, n_networks).
        """
        n_last = self._places[-2][1][1]
        columns = np.zeros((n_last + 1, len(networks)))
        for number, own in enumerate(networks):
            weights, bias = part._arrays(own)[-1]
            columns[number * weights.size : (number + 1) * weights.size, number] = weights[0]
            columns[-1, number] = bias[0]
        return columns

    @override
    def fitted(self, params: np.ndarray) -> nn.Module:
        return super().fitted(self._plain(params))

    @override
    def _inputs(self, rows: Tensor) -> Tensor:
        return rows / self.unit

    def _plain(self, params: np.ndarray) -> np.ndarray:
        """Parameters with which the layers take the features as they are."""
        plain = params.copy()
        plain[self._places[0][0]] /= self.unit
        return plain

    def _pulled(self, gradient: np.ndarray) -> np.ndarray:
        """Gradient in the parameters from that in those of `_plain`, in its place."""
        gradient[self._places[0][0]] /= self.unit
        return gradient

    def _layers(self, params: np.ndarray) -> list[_Layer]:
        """Layers that take the features as they are."""
        return self._arrays(self._plain(params).astype(self._numbers, copy=False))

    def _arrays(self, params: np.ndarray) -> list[_Layer]:
        """Weights of shape (n_out, n_in) and biases of every layer, views of ``params``."""
        arrays = [params[rows].reshape(shape) for rows, shape in self._places]
        return list(zip(arrays[::2], arrays[1::2], strict=True))

    @cached_property
    def _places(self) -> list[tuple[slice, torch.Size]]:
        """Places and shapes of every weight and bias in the parameters."""
        return [(rows, self._shapes[name]) for name, rows in self._slices.items()]

    @cached_property
    def _numbers(self) -> np.dtype:
        return np.dtype(str(self.dtype).removeprefix("torch."))

    def _of_groups(self, outputs: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        """Return every row's output for its group, or all outputs without codes."""
        if codes is None:
            return outputs
        return outputs[:, 0] if self.n_outputs == 1 else np.take_along_axis(outputs, codes[:, None], axis=1)[:, 0]

    def _to_groups(self, slopes: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        """The transpose of `_of_groups`."""
        slopes = slopes.astype(self._numbers, copy=False)
        if codes is None:
            return slopes
        slopes = slopes[:, None]
        if self.n_outputs == 1:
            return slopes
        outputs = np.zeros((codes.size, self.n_outputs), dtype=slopes.dtype)
        np.put_along_axis(outputs, codes[:, None], slopes, axis=1)
        return outputs


def _parts(n_rows: int) -> list[slice]:
    """Rows that go through the layers together: of more, the intermediate results would not stay in the cache."""
    return [slice(first, min(first + _AT_ONCE, n_rows)) for first in range(0, n_rows, _AT_ONCE)]


class _Pass:
    """Intermediate results of the layers for some rows."""

    def __init__(self, layers: list[_Layer], activation: str, X: Any) -> None:
        self._layers = layers
        function, self._slope = _FUNCTIONS[activation]
        self._inputs, self._sums = [X], []
        for weights, bias in layers[:-1]:
            sums = self._inputs[-1].dot(weights.T)  # with few rows, @ takes half as long again
            sums += bias
            self._sums.append(sums)
            self._inputs.append(function(sums))
        weights, bias = layers[-1]
        self.outputs: np.ndarray = self._inputs[-1].dot(weights.T) + bias

    def gradient(self, slopes: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        """Return the gradient in the parameters, in their order; ``slopes`` are those of the outputs of ``rows``."""
        n_params = sum(weights.size + bias.size for weights, bias in self._layers)
        found = np.empty(n_params, dtype=self.outputs.dtype)
        end = found.size
        for k in reversed(range(len(self._layers))):
            (weights, bias), inputs = self._layers[k], self._inputs[k][rows]
            middle = end - bias.size
            slopes.sum(axis=0, out=found[middle:end])
            end = middle - weights.size
            if isinstance(inputs, np.ndarray):
                np.dot(slopes.T, inputs, out=found[end:middle].reshape(weights.shape))
            else:
                found[end:middle] = (slopes.T @ inputs).ravel()
            if k:
                slopes = slopes.dot(weights)
                slopes *= self._slope(self._sums[k - 1][rows], inputs)
        return found
