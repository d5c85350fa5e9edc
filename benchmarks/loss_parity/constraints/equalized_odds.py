"""Mean losses of the groups' positive rows, and of their negative ones: the two gaps added up, as in the paper."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from benchmarks.loss_parity.constraints import label_differences
from fairconstrained.metrics import loss_parity_gap

PLACE = 3
TITLE = "gap of mean losses, added over the labels"
PARAMS = {"constraint": "equalized_odds", "agg_labels": "sum"}


def gap(y: np.ndarray, scores: np.ndarray, groups: np.ndarray) -> float:
    """Sum of the gaps of mean losses among positive and among negative rows."""
    return loss_parity_gap(y, scores, sensitive_features=groups, **PARAMS)


def differences(losses: Tensor, y: Tensor, member: Tensor) -> Tensor:
    """Signed sums on a mini-batch: |a| + |b| is the largest of a + b, a - b and their negatives."""
    positive, negative = (label_differences(losses, chosen, member) for chosen in (y > 0, y < 0))
    return torch.cat([positive + negative, positive - negative])
