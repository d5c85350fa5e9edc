"""Mean losses of the groups (the paper's experiment)."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from benchmarks.loss_parity.constraints import signed_pairs
from fairconstrained.metrics import loss_parity_gap

PLACE = 1
TITLE = "gap of mean losses"
PARAMS = {"constraint": "demographic_parity"}


def gap(y: np.ndarray, scores: np.ndarray, groups: np.ndarray) -> float:
    """Gap of the mean losses of the groups."""
    return loss_parity_gap(y, scores, sensitive_features=groups, **PARAMS)


def differences(losses: Tensor, y: Tensor, member: Tensor) -> Tensor:
    """Signed differences of the groups' mean losses on a mini-batch."""
    return signed_pairs(losses @ member / member.sum(dim=0))
