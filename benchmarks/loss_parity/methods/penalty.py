"""Stochastic gradient descent with a penalty of weight 1 on what exceeds kappa."""

from __future__ import annotations

from benchmarks.loss_parity.methods import Outcome, Setting
from benchmarks.loss_parity.methods._ours import fit

PLACE = 7
LABEL = "penalty"


def run(setting: Setting) -> Outcome:
    """See `benchmarks.loss_parity.methods`."""
    return fit(setting, "penalty")
