"""Stochastic switching subgradient, Algorithm 3 with the published parameters."""

from __future__ import annotations

from benchmarks.loss_parity.methods import Outcome, Setting, published
from benchmarks.loss_parity.methods._ours import fit

PLACE = 5
LABEL = "switching"
PUBLISHED = {("acs_income_ok", "demographic_parity"): published((0.080, 0.144, 0.229, 0.175, 0.0017), train_gap=0.033)}


def run(setting: Setting) -> Outcome:
    """See `benchmarks.loss_parity.methods`."""
    return fit(setting, "stochastic_switching")
