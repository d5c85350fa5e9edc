"""The smoothed augmented Lagrangian method, Algorithm 2 with the published parameters."""

from __future__ import annotations

from benchmarks.loss_parity.methods import BATCH, Outcome, Setting, published
from benchmarks.loss_parity.methods._ours import train
from fairconstrained.solvers import SSLALM

PLACE = 4
LABEL = "SSL-ALM"
PUBLISHED = {
    ("acs_income_ok", "demographic_parity"): published(
        train="0.065700+-0.008725 0.071423+-0.015466 0.233350+-0.017184 0.186114+-0.013367 0.003141+-0.000789",
        test="0.066243+-0.011337 0.117294+-0.022977 0.240095+-0.011787 0.215484+-0.021818 0.003987+-0.000941",
        train_gap=0.026,
    )
}


def run(setting: Setting) -> Outcome:
    """Train the network by this method."""
    return train(setting, SSLALM(batch_size=BATCH))
