"""The outside reference: the same in a ``MoreauEnvelope``, which is SSL-ALM."""

from __future__ import annotations

from benchmarks.loss_parity.methods import Outcome, Setting
from benchmarks.loss_parity.methods._humancompatible import run as train

PLACE = 11
LABEL = "SSL-ALM, humancompatible"
LIKE = "ssl_alm"
REQUIRES = ("humancompatible.train",)


def run(setting: Setting) -> Outcome:
    """Train the network by this method."""
    return train(setting, smooth=True)
