"""The default of `fairconstrained.LossParityClassifier` in a Moreau envelope with the published parameters."""

from __future__ import annotations

from benchmarks.loss_parity.methods import Outcome, Setting
from benchmarks.loss_parity.methods._ours import fit

PLACE = 9.5
LABEL = "auto, envelope"
ENDS_ITSELF = True
LIKE = "auto"


def run(setting: Setting) -> Outcome:
    """Train the network by this method."""
    return fit(setting, "auto", batch_size=256, solver_options={"smoothing": 2.0})
