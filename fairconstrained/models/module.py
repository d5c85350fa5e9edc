"""Scores by any torch module, with one output for all groups or a head for every group."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial, singledispatch
from itertools import pairwise
from operator import add
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from typing_extensions import override

from fairconstrained.data import FairData
from fairconstrained.devices import found_device
from fairconstrained.features import map_rows
from fairconstrained.models._training_mode import TrainingMode
from fairconstrained.models.base import OutputModel, Pullback
from fairconstrained.models.making import ModuleSpec, make_module
from fairconstrained.models.parts import LastLayer
from fairconstrained.tables.table import Table

__all__ = ["ModuleModel", "ModuleSpec", "make_module", "part_of"]


@dataclass(frozen=True, eq=False)
class ModuleModel(OutputModel):
    """Scores ``h(x) = net(x)``, or ``net(x)_g`` for the rows of group ``g``, of a torch module.

    With one output per group the groups share all of the network but its last layer. The parameters that require a
    gradient are the variables, as one flat vector in the order of ``named_parameters``, followed by the running
    statistics of batch normalisation; other parameters and buffers stay as they are.

    On the mini-batches of a solver, a module with dropout or batch normalisation runs in training mode: the rows
    determine which values are dropped, and `after_step` moves the running statistics. Everywhere else it is in
    evaluation mode, so that scores are a function of the parameters and of the row alone. Features should be
    standardised beforehand.

    Rows go through the network in chunks. The gradient computes every chunk again, this time with a graph, so that
    the memory needed does not grow with the number of rows; only the graph of a single chunk is kept. CSR rows are
    densified chunk by chunk.

    Parameters
    ----------
    module : nn.Module or callable
        A callable, such as a class, is called with ``(n_features, n_outputs)`` and returns the network; every
        `init` calls it anew. An instance is copied, and starts from the parameters that it has.
        Its input is a tensor of shape (n_rows, n_features), or (n_rows, ...) for a tuple, its output one of
        shape (n_rows, n_outputs), or (n_rows,) for one output. A module whose outputs end with the addition of one of
        its parameters may name that parameter in an attribute ``output_bias_name``; it then serves as the intercepts.
    n_features : int or tuple of int
        Number of the features, or the shape of a row.
    n_outputs : int, default=1
        1, the number of groups, or the number of outputs of every row, see `OutputModel`.
    alpha : float, default=0.0
        Weight of the penalty ``alpha/2 |W|^2`` on parameters of two or more dimensions, at least 0; vectors, such as
        biases, are not penalised.
    dtype : torch.dtype, optional
        Precision of the network, by default torch.float64. Scores and gradients are float64 in any case; with float32,
        L-BFGS stops at a gradient of about 1e-5.
    device : str, default="auto"
        Device of the network, such as "cpu" or "cuda:1". "auto" is the CUDA device if there is one, else the CPU.
    chunk_size : int, default=8192
        Rows per chunk.

    Raises
    ------
    TypeError
        If ``module`` neither is nor returns an nn.Module, or cannot be called with the two arguments.
    ValueError
        If the module rejects its input, returns anything but a tensor of the right shape, or has nothing to train.
    """

    uses_threads: ClassVar[bool] = True
    name: ClassVar[str] = "module"

    module: ModuleSpec
    n_features: int | tuple[int, ...]
    n_outputs: int = 1
    alpha: float = 0.0
    dtype: torch.dtype = torch.float64
    device: str = "auto"
    chunk_size: int = 8192

    def __post_init__(self) -> None:
        if not self._shapes:
            raise ValueError("the module has no parameter that requires a gradient: there is nothing to train.")

    def __getstate__(self) -> dict[str, Any]:
        """The parameters alone, without what follows from them; the type of numbers by its name, which skops reads."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**state, "dtype": str(self.dtype).removeprefix("torch.")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, dtype=getattr(torch, state["dtype"]))

    @cached_property
    def n_params(self) -> int:
        """Entries of all trainable parameters, and of the running statistics."""
        return sum(shape.numel() for shape in self._all_shapes.values())

    @property
    @override
    def layout(self) -> Hashable:
        return self.n_features, self.n_outputs, tuple(self._all_shapes.items())

    def init(self, rng: np.random.Generator) -> np.ndarray:
        """Parameters of a new network, drawn with ``rng``; those of the instance if there is one.

        The networks of `mlp` score all rows zero, so that there is no gap.
        """
        return self._flatten(self._make(int(rng.integers(2**62))))

    @override
    def forward(self, params: np.ndarray, data: FairData) -> tuple[Tensor, Pullback]:
        return _forward_of(data.X, self, params, data.codes, self._seed(data))

    @override
    def forward_outputs(self, params: np.ndarray, data: FairData) -> tuple[Tensor, Pullback]:
        return _forward_of(data.X, self, params, None, self._seed(data))

    def _seed(self, data: FairData) -> int | None:
        """Seed of what is dropped on a mini-batch; None where the module is in evaluation mode."""
        return crc32(data.order.tobytes()) if data.is_sample and self.differs_in_training else None

    def _forward(
        self, params: np.ndarray, X: Any, codes: np.ndarray | None, seed: int | None = None
    ) -> tuple[Tensor, Pullback]:
        """Every row's output for its group, or all of its outputs, and their pullback."""
        flat = torch.tensor(params, dtype=self.dtype, device=self._device, requires_grad=True)
        chunks = self._chunks(X.shape[0])

        def run(rows: slice, graph: bool) -> Tensor:
            with torch.set_grad_enabled(graph):
                return self._run(flat, X[rows], part_of(codes, rows), None if seed is None else seed + rows.start)

        outputs = [run(rows, graph=len(chunks) == 1) for rows in chunks]

        def pullback(cotangent: Tensor) -> np.ndarray:
            gradient = np.zeros(params.size)
            for rows, output in zip(chunks, outputs, strict=True):
                scores = output if output.requires_grad else run(rows, graph=True)
                # a graph that is kept may be asked again
                (part,) = torch.autograd.grad(scores, flat, cotangent[rows].to(scores), retain_graph=True)
                gradient += part.cpu().numpy()
            return gradient

        return torch.cat([output.detach() for output in outputs]).to("cpu", torch.float64), pullback

    @override
    def after_step(self, params: np.ndarray) -> np.ndarray:
        latest = self._latest.pop("statistics", None)
        if latest is None:
            return params
        moved = params.copy()
        moved[self.n_params - latest.size : self.n_params] = latest
        return moved

    def placed(self, data: FairData) -> FairData:
        """Implement `Model.placed`; features that are no ndarray stay where they are, and travel chunk by chunk."""
        if self._device.type == "cpu" or not isinstance(data.X, np.ndarray):
            return data
        return replace(data, X=_as_tensor(data.X).to(self._device, self.dtype))

    def row_features(self, data: FairData) -> Any:
        """Implement `Model.row_features`; rows that were placed elsewhere come back."""
        X = data.X.to("cpu", torch.float64).numpy() if isinstance(data.X, Tensor) else data.X
        return X.reshape(X.shape[0], -1) if isinstance(self.n_features, tuple) else X

    @override
    def portable(self) -> ModuleModel:
        return replace(self, device="cpu")

    @property
    @override
    def n_heads(self) -> int:
        return self.n_outputs

    def attributes(self, params: np.ndarray, offset: float, scale: float) -> dict[str, Any]:
        """``module_``, whose outputs are the scores before ``offset`` and ``scale``."""
        return {"module_": self.fitted(params)}

    @override
    def scores(self, params: np.ndarray, X: Any, codes: np.ndarray | None = None) -> np.ndarray:
        codes = np.zeros(X.shape[0], dtype=np.int64) if codes is None else codes
        return map_rows(X, partial(_evaluated, model=self, params=params), codes)

    @override
    def outputs(self, params: np.ndarray, X: Any) -> np.ndarray:
        return map_rows(X, partial(_evaluated, model=self, params=params)).reshape(-1, self.n_outputs)

    def _evaluated(self, params: np.ndarray, X: Any, codes: np.ndarray | None) -> np.ndarray:
        """`_forward` of new rows, without the pullback."""
        flat = torch.tensor(params, dtype=self.dtype, device=self._device)
        with torch.no_grad():
            parts = [self._run(flat, X[rows], part_of(codes, rows)) for rows in self._chunks(X.shape[0])]
        return torch.cat(parts).to("cpu", torch.float64).numpy() if parts else np.empty(0)

    @override
    def penalty(self, params: np.ndarray) -> tuple[float, np.ndarray]:
        if not self.alpha:
            return 0.0, np.zeros_like(params)
        gradient = self.alpha * np.where(self._penalised, params, 0.0)
        return float(gradient @ params) / 2, gradient

    def shift_directions(self, data: FairData, shared: bool = False) -> np.ndarray:
        """The bias that the module names in ``output_bias_name``, one entry per output; none otherwise."""
        entries = np.arange(self.n_params)[self._slices.get(self._bias, slice(0))]
        directions = np.zeros((entries.size, self.n_params))
        directions[np.arange(entries.size), entries] = 1.0
        return directions.sum(axis=0, keepdims=True) if shared and entries.size else directions

    def last_layer(self, params: np.ndarray, data: FairData) -> LastLayer | None:
        """Implement `ParametricModel.last_layer`; that of the module, if its outputs are the scores."""
        linear = {name: layer for name, layer in self._module.named_modules() if isinstance(layer, nn.Linear)}
        if not linear or self.n_outputs > 1:
            return None
        name, layer = list(linear.items())[-1]
        within = name and f"{name}."  # the module may itself be the layer
        weight, bias = f"{within}weight", f"{within}bias"
        known = weight in self._shapes and (layer.bias is None or bias in self._shapes)
        if layer.out_features != 1 or not known:
            return None
        found = map_rows(data.X, partial(_end_of, model=self, params=params, name=name), data.codes)
        if not np.array_equal(found[:, -2], found[:, -1]):
            return None
        entries = np.arange(self.n_params)
        coefficients, biases = entries[self._slices[weight]], entries[self._slices.get(bias, slice(0))]
        return LastLayer(np.ascontiguousarray(found[:, :-2]), coefficients, biases)

    def fitted(self, params: np.ndarray) -> nn.Module:
        """A copy of the module with these parameters, in evaluation mode and on the CPU."""
        module = copy.deepcopy(self._module).to("cpu")
        with torch.no_grad():
            for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                if name in self._all_shapes:
                    tensor.copy_(torch.from_numpy(params[self._slices[name]]).view_as(tensor))
        return module

    @cached_property
    def _module(self) -> nn.Module:
        return self._make(seed=0)

    @cached_property
    def _device(self) -> torch.device:
        return found_device(self.device)

    @cached_property
    def _shapes(self) -> dict[str, torch.Size]:
        """Shape of every trainable parameter."""
        return {name: p.shape for name, p in self._module.named_parameters() if p.requires_grad}

    @cached_property
    def _all_shapes(self) -> dict[str, torch.Size]:
        """Shape of every trainable parameter, and then of the running statistics."""
        return self._shapes | self._training_mode.statistics

    @property
    @override
    def differs_in_training(self) -> bool:
        return self._training_mode.differs

    @cached_property
    def _training_mode(self) -> TrainingMode:
        return TrainingMode(self._module)

    @cached_property
    def _latest(self) -> dict[str, np.ndarray]:
        """The running statistics after the last mini-batch, until `after_step` takes them."""
        return {}

    @cached_property
    def _slices(self) -> dict[str, slice]:
        """Places of every trainable parameter and statistic in the flat vector."""
        ends = np.cumsum([0] + [shape.numel() for shape in self._all_shapes.values()]).tolist()
        return {name: slice(a, b) for name, (a, b) in zip(self._all_shapes, pairwise(ends), strict=True)}

    @cached_property
    def _penalised(self) -> np.ndarray:
        return np.concatenate([np.full(shape.numel(), len(shape) >= 2) for shape in self._all_shapes.values()])

    @property
    def _bias(self) -> str:
        """Name of the parameter that shifts the outputs; empty if there is none."""
        return getattr(self._module, "output_bias_name", "")

    def _make(self, seed: int) -> nn.Module:
        return make_module(self.module, self.n_features, self.n_outputs, seed).to(self._device, self.dtype)

    def _flatten(self, module: nn.Module) -> np.ndarray:
        tensors = dict(module.named_parameters()) | dict(module.named_buffers())
        parts = [tensors[name].detach().reshape(-1) for name in self._all_shapes]
        return torch.cat(parts).to("cpu", torch.float64).numpy()

    def _inputs(self, rows: Tensor) -> Tensor:
        """Rows as the network with the parameters of this model takes them."""
        return rows

    def _chunks(self, n_samples: int) -> list[slice]:
        return [slice(a, min(a + self.chunk_size, n_samples)) for a in range(0, n_samples, self.chunk_size)]

    def _run(self, flat: Tensor, X: Any, codes: np.ndarray | None, seed: int | None = None) -> Tensor:
        """Scores of rows, with whatever graph is being recorded; without codes all outputs, of shape (n_rows, ...)."""
        inputs = self._inputs(_as_tensor(X).to(self._device, self.dtype))
        parts = flat.split([shape.numel() for shape in self._all_shapes.values()])
        named = {name: part.view(shape) for (name, shape), part in zip(self._all_shapes.items(), parts, strict=True)}
        statistics = {name: named[name].detach().clone() for name in self._training_mode.statistics}
        outputs = self._training_mode.outputs(named | statistics, inputs, seed)
        if seed is not None and statistics:
            moved = torch.cat([part.reshape(-1) for part in statistics.values()])
            self._latest["statistics"] = moved.to("cpu", torch.float64).numpy()
        if codes is None:
            return outputs.reshape(-1, self.n_outputs)
        if self.n_outputs == 1:
            return outputs.reshape(-1)
        return outputs.gather(1, torch.from_numpy(codes).to(self._device)[:, None]).squeeze(1)


@singledispatch
def _forward_of(
    X: Any, model: ModuleModel, params: np.ndarray, codes: np.ndarray | None, seed: int | None
) -> tuple[Tensor, Pullback]:
    """Every row's output for its group, or all of its outputs, and their pullback."""
    return model._forward(params, X, codes, seed)


@_forward_of.register
def _(
    X: Table, model: ModuleModel, params: np.ndarray, codes: np.ndarray | None, seed: int | None
) -> tuple[Tensor, Pullback]:
    own = () if codes is None else (codes,)

    def pullback(cotangent: Tensor) -> np.ndarray:
        return X.reduce_rows(partial(_gradient, model=model, params=params), add, cotangent.numpy(), *own)

    return torch.from_numpy(X.map_rows(partial(_evaluated, model=model, params=params), *own)), pullback


def _evaluated(X: Any, codes: np.ndarray | None = None, *, model: ModuleModel, params: np.ndarray) -> np.ndarray:
    """Scores of rows; all outputs without codes."""
    return model._evaluated(params, X, codes)


def _gradient(
    X: Any, cotangent: np.ndarray, codes: np.ndarray | None = None, *, model: ModuleModel, params: np.ndarray
) -> np.ndarray:
    """Gradient in the parameters, of rows by themselves."""
    return model._forward(params, X, codes)[1](torch.from_numpy(cotangent))


def _end_of(X: Any, codes: np.ndarray, *, model: ModuleModel, params: np.ndarray, name: str) -> np.ndarray:
    """Inputs of a linear layer, its output, and the score; ndarray of shape (n_rows, n_inputs + 2).

    Output and score differ where the layer is not the last one.
    """
    seen: list[tuple[Tensor, Tensor]] = []
    layer = dict(model._module.named_modules())[name]
    hook = layer.register_forward_hook(lambda _, inputs, output: seen.append((inputs[0], output)))
    try:
        scores, _ = ModuleModel._forward(model, params, X, codes)
    finally:
        hook.remove()
    inputs, outputs = (torch.cat(parts).detach().to("cpu", torch.float64) for parts in zip(*seen, strict=True))
    if outputs.numel() != len(scores):  # the layer is used more than once
        return np.full((len(scores), 2), (0.0, 1.0))
    return torch.cat([inputs, outputs.reshape(-1, 1), scores[:, None]], dim=1).numpy()


def part_of(codes: np.ndarray | None, rows: slice) -> np.ndarray | None:
    """Return the groups of some rows; None where they do not matter."""
    return None if codes is None else codes[rows]


def _as_tensor(X: Any) -> Tensor:
    if isinstance(X, Tensor):
        return X
    # torch warns about arrays that must not be written to, although it would not write
    return torch.from_numpy(np.require(X.toarray() if sp.issparse(X) else X, requirements=("C", "W")))
