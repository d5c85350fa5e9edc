"""The augmented Lagrangian method, Algorithm 2 without smoothing, with the published parameters."""

from __future__ import annotations

from benchmarks.loss_parity.methods import BATCH, Outcome, Setting, published
from benchmarks.loss_parity.methods._ours import train
from fairconstrained.solvers import StochasticALM

PLACE = 3
LABEL = "ALM"
PUBLISHED = {
    ("acs_income_ok", "demographic_parity"): published(
        train="0.058148+-0.006806 0.061222+-0.015689 0.239594+-0.012417 0.196727+-0.011451 0.002603+-0.000449",
        test="0.057785+-0.011813 0.113852+-0.014183 0.243527+-0.007427 0.221226+-0.016810 0.003345+-0.000567",
        train_gap=0.017,
    )
}


def run(setting: Setting) -> Outcome:
    """Train the network by this method."""
    return train(setting, StochasticALM(batch_size=BATCH))
