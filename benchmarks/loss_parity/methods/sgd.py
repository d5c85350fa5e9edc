"""Stochastic gradient descent without constraints; the step length is that of the authors' configuration."""

from __future__ import annotations

from benchmarks.loss_parity.methods import Outcome, Setting, published
from benchmarks.loss_parity.methods._ours import fit

PLACE = 1
LABEL = "SGD"
PUBLISHED = {("acs_income_ok", "demographic_parity"): published((0.097, 0.176, 0.215, 0.171, 0.0084), train_gap=0.063)}


def run(setting: Setting) -> Outcome:
    """See `benchmarks.loss_parity.methods`."""
    return fit(setting, "sgd", learning_rate=0.005)
