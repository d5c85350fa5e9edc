"""The augmented Lagrangian of the package ``cooper``, with the paper's parameters of ALM."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks.loss_parity.methods import Outcome, Setting
from benchmarks.loss_parity.methods._cooper import run as train
from benchmarks.loss_parity.methods._humancompatible import DUAL_RATE, LEARNING_RATE, PENALTY

PLACE = 13
LABEL = "ALM, Cooper"
LIKE = "alm"
REQUIRES = ("cooper",)


def run(setting: Setting) -> Outcome:
    """Train the network by this method."""
    return train(setting, partial(torch.optim.SGD, lr=LEARNING_RATE), DUAL_RATE, PENALTY)
