"""Stochastic gradient descent with a regulariser of the package ``fairret``, as in the authors' configuration.

The regulariser is the norm of what the groups' (soft) accuracies differ from the overall one by, with weight 1/2. As in
the authors' loop, four rows of either group give it and the mean loss, in which both groups then count alike.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from benchmarks.loss_parity.methods._setting import BATCH, Outcome, Setting
from benchmarks.loss_parity.methods._torch import Rows, even_batches, follow, row_losses
from benchmarks.loss_parity.network import new_network

LEARNING_RATE, WEIGHT = 0.05, 0.5


def run(setting: Setting) -> Outcome:
    """Train the network by this method."""
    rows = Rows.of(setting.train)
    network = new_network(rows.X.shape[1], setting.seed)
    return follow(setting, network, _steps(network, rows, setting.seed))


def _steps(network: nn.Module, rows: Rows, seed: int) -> Iterator[None]:
    from fairret.loss import NormLoss
    from fairret.statistic import Accuracy

    regulariser = NormLoss(Accuracy())
    optimizer = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE)
    for X, y, member in even_batches(rows, BATCH, seed):
        logits = network(X)
        objective = row_losses(logits.squeeze(1), y).mean()
        labels = (y[:, None] + 1) / 2
        (objective + WEIGHT * regulariser(logits, member, labels)).backward()
        optimizer.step()
        optimizer.zero_grad()
        yield
