"""Stochastic gradient descent with a penalty of weight 1 on what exceeds kappa, both from eight rows of every group."""

from __future__ import annotations

import numpy as np

from benchmarks.loss_parity.methods import BATCH, Outcome, Setting
from benchmarks.loss_parity.methods._ours import train
from fairconstrained.solvers import StochasticPenalty

PLACE = 7
LABEL = "penalty"


def run(setting: Setting) -> Outcome:
    """Train the network by this method."""
    n_groups = np.unique(setting.train.groups).size
    return train(setting, StochasticPenalty(batch_size=BATCH * n_groups))
