"""The augmented Lagrangian method, Algorithm 2 without smoothing, with the published parameters."""

from __future__ import annotations

from benchmarks.loss_parity.methods import Outcome, Setting, published
from benchmarks.loss_parity.methods._ours import fit

PLACE = 3
LABEL = "ALM"
PUBLISHED = {("acs_income_ok", "demographic_parity"): published((0.058, 0.114, 0.244, 0.221, 0.0033), train_gap=0.017)}


def run(setting: Setting) -> Outcome:
    """See `benchmarks.loss_parity.methods`."""
    return fit(setting, "alm")
