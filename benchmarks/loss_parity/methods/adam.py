"""Adam without constraints, with its own number of epochs."""

from __future__ import annotations

from benchmarks.loss_parity.methods import Outcome, Setting
from benchmarks.loss_parity.methods._ours import fit

PLACE = 8
LABEL = "Adam"
ENDS_ITSELF = True


def run(setting: Setting) -> Outcome:
    """Train the network by this method."""
    return fit(setting, "adam", batch_size=256)
