"""Differences of a torch module in training: dropout, and normalisation by the statistics of mini-batches."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.nn.modules.dropout import _DropoutNd

__all__ = ["TrainingMode"]


class TrainingMode:
    """The parts of a module that differ in training.

    Parameters
    ----------
    module : nn.Module
        Module in evaluation mode, in which it is left.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module

    @cached_property
    def has_noise(self) -> bool:
        """Whether a layer drops values at random."""
        return any(_dropped(layer) > 0 for layer in self._module.modules())

    @cached_property
    def statistics(self) -> dict[str, torch.Size]:
        """Names and shapes of the running means and variances of batch (and instance) normalisation."""
        normalised = [n for n, layer in self._module.named_modules() if isinstance(layer, _NormBase)]
        names = {f"{name}.{kind}".lstrip(".") for name in normalised for kind in ("running_mean", "running_var")}
        return {name: buffer.shape for name, buffer in self._module.named_buffers() if name in names}

    @property
    def differs(self) -> bool:
        """Whether anything differs in training."""
        has_batches = any(isinstance(layer, _BatchNorm) for layer in self._module.modules())
        return self.has_noise or has_batches or bool(self.statistics)

    def outputs(self, named: dict[str, Tensor], inputs: Tensor, seed: int | None) -> Tensor:
        """Return the outputs with these parameters and statistics, in training mode if there is a seed.

        Parameters
        ----------
        named : dict of str to Tensor
            Parameters and statistics by name. In training mode the statistics move towards those of the inputs, in
            place.
        inputs : Tensor of shape (n_rows, ...)
        seed : int or None
            Seed of what is dropped. The state of torch's global generators stays as it was.
        """
        if seed is None:
            return functional_call(self._module, named, (inputs,))
        buffers = {name: buffer.clone() for name, buffer in self._module.named_buffers()}  # those of the module stay
        with ExitStack() as at_end:
            if self.has_noise:
                at_end.enter_context(torch.random.fork_rng([inputs.device] if inputs.is_cuda else []))
                torch.manual_seed(seed)
            at_end.callback(self._module.eval)
            self._module.train()
            return functional_call(self._module, buffers | named, (inputs,))


def _dropped(layer: nn.Module) -> float:
    """Share of the values that a layer drops in training."""
    share = layer.p if isinstance(layer, _DropoutNd) else getattr(layer, "dropout", 0.0)  # of attention, and of LSTMs
    return share if isinstance(share, float) else 0.0
