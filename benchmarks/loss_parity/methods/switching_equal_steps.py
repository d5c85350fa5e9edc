"""Stochastic switching subgradient with equal steps of 0.02 on both (figure 5 of the paper)."""

from __future__ import annotations

from benchmarks.loss_parity.methods import BATCH, Outcome, Setting
from benchmarks.loss_parity.methods._ours import train
from fairconstrained.solvers import StochasticSwitching

PLACE = 5.5
LABEL = "switching, equal steps"


def run(setting: Setting) -> Outcome:
    """Train the network by this method."""
    return train(setting, StochasticSwitching(batch_size=BATCH, learning_rate=0.02, constraint_rate=0.02))
