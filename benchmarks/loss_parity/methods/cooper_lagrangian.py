"""Gradient descent and ascent of the package ``cooper``, with the optimisers and rates of its README."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks.loss_parity.methods import Outcome, Setting
from benchmarks.loss_parity.methods._cooper import run as train

PLACE = 12
LABEL = "Lagrangian, Cooper"
REQUIRES = ("cooper",)


def run(setting: Setting) -> Outcome:
    """Train the network by this method."""
    return train(setting, partial(torch.optim.Adam, lr=1e-3), dual_rate=1e-2)
