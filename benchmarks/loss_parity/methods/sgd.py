"""Stochastic gradient descent without constraints; the step length is that of the authors' configuration."""

from __future__ import annotations

from benchmarks.loss_parity.methods import BATCH, Outcome, Setting, published
from benchmarks.loss_parity.methods._ours import train
from fairconstrained.solvers import SGD

PLACE = 1
LABEL = "SGD"
PUBLISHED = {
    ("acs_income_ok", "demographic_parity"): published(
        train="0.094443+-0.004259 0.132486+-0.006998 0.200677 0.114701+-0.006428 0.007532+-0.000458",
        test="0.096775+-0.005544 0.176032+-0.016177 0.214565+-0.001823 0.171057 0.008435+-0.000438",
        train_gap=0.063,
    )
}


def run(setting: Setting) -> Outcome:
    """Train the network by this method."""
    return train(setting, SGD(batch_size=BATCH, learning_rate=0.005))
