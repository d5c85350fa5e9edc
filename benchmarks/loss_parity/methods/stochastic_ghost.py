"""Stochastic ghost, Algorithm 1 with the published parameters."""

from __future__ import annotations

from benchmarks.loss_parity.methods import Outcome, Setting, published
from benchmarks.loss_parity.methods._ours import fit

PLACE = 2
LABEL = "ghost"
PUBLISHED = {("acs_income_ok", "demographic_parity"): published((0.049, 0.096, 0.276, 0.211, 0.0028), train_gap=0.034)}


def run(setting: Setting) -> Outcome:
    """See `benchmarks.loss_parity.methods`."""
    return fit(setting, "stochastic_ghost")
