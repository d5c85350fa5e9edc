"""Multipliers by a proportional and integral controller, with the defaults of the authors' newer package, and Adam."""

from __future__ import annotations

from benchmarks.loss_parity.methods import BATCH, Outcome, Setting
from benchmarks.loss_parity.methods._ours import train
from fairconstrained.solvers import NuPI

PLACE = 5.6
LABEL = "nuPI"


def run(setting: Setting) -> Outcome:
    """Train the network by this method."""
    return train(setting, NuPI(batch_size=BATCH))
