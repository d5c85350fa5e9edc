"""The penalty-barrier method in a Moreau envelope, with the defaults of the authors' newer package, and Adam."""

from __future__ import annotations

from benchmarks.loss_parity.methods import BATCH, Outcome, Setting
from benchmarks.loss_parity.methods._ours import train
from fairconstrained.solvers import PenaltyBarrier

PLACE = 5.7
LABEL = "penalty-barrier"


def run(setting: Setting) -> Outcome:
    """Train the network by this method."""
    return train(setting, PenaltyBarrier(batch_size=BATCH, smoothing=2.0))
