"""Stochastic switching subgradient, Algorithm 3 with the published parameters."""

from __future__ import annotations

from benchmarks.loss_parity.methods import BATCH, Outcome, Setting, published
from benchmarks.loss_parity.methods._ours import train
from fairconstrained.solvers import StochasticSwitching

PLACE = 5
LABEL = "switching"
PUBLISHED = {
    ("acs_income_ok", "demographic_parity"): published(
        train="0.077298+-0.028892 0.114662+-0.028553 0.223959+-0.017304 0.132848+-0.014592 0.001401",
        test="0.080345+-0.029126 0.144289+-0.050398 0.228739+-0.012889 0.175419+-0.030738 0.001724",
        train_gap=0.033,
    )
}


def run(setting: Setting) -> Outcome:
    """Train the network by this method."""
    return train(setting, StochasticSwitching(batch_size=BATCH))
