"""Mean losses of the groups' positive rows."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from benchmarks.loss_parity.constraints import label_differences
from fairconstrained.metrics import loss_parity_gap

PLACE = 2
TITLE = "gap of mean losses, positive rows"
PARAMS = {"constraint": "equal_opportunity"}


def gap(y: np.ndarray, scores: np.ndarray, groups: np.ndarray) -> float:
    """Gap of the mean losses of the groups' positive rows."""
    return loss_parity_gap(y, scores, sensitive_features=groups, **PARAMS)


def differences(losses: Tensor, y: Tensor, member: Tensor) -> Tensor:
    """Signed differences of the mean losses of positive rows on a mini-batch."""
    return label_differences(losses, y > 0, member)
