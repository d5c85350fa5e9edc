"""The outside reference: ``dual_optim.ALM`` of ``humancompatible-train`` with the published parameters."""

from __future__ import annotations

from benchmarks.loss_parity.methods import Outcome, Setting
from benchmarks.loss_parity.methods._humancompatible import run as train

PLACE = 10
LABEL = "ALM, humancompatible"
LIKE = "alm"
REQUIRES = ("humancompatible.train",)


def run(setting: Setting) -> Outcome:
    """Train the network by this method."""
    return train(setting, smooth=False)
