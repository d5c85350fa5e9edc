"""Stochastic ghost, Algorithm 1 with the published parameters."""

from __future__ import annotations

from benchmarks.loss_parity.methods import BATCH, Outcome, Setting, published
from benchmarks.loss_parity.methods._ours import train
from fairconstrained.solvers import StochasticGhost

PLACE = 2
LABEL = "ghost"
PUBLISHED = {
    ("acs_income_ok", "demographic_parity"): published(
        train="0.047964 0.049369 0.273076+-0.024253 0.200477+-0.037679 0.002160+-0.001485",
        test="0.049311 0.095833 0.275698+-0.021965 0.211302+-0.032551 0.002811+-0.002232",
        train_gap=0.034,
    )
}


def run(setting: Setting) -> Outcome:
    """Train the network by this method."""
    return train(setting, StochasticGhost(batch_size=BATCH))
