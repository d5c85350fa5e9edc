"""The smoothed augmented Lagrangian method, Algorithm 2 with the published parameters."""

from __future__ import annotations

from benchmarks.loss_parity.methods import Outcome, Setting, published
from benchmarks.loss_parity.methods._ours import fit

PLACE = 4
LABEL = "SSL-ALM"
PUBLISHED = {("acs_income_ok", "demographic_parity"): published((0.066, 0.117, 0.240, 0.215, 0.0040), train_gap=0.026)}


def run(setting: Setting) -> Outcome:
    """See `benchmarks.loss_parity.methods`."""
    return fit(setting, "ssl_alm")
