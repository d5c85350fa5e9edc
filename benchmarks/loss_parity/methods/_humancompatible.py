"""The augmented Lagrangian methods of the package ``humancompatible-train``, in the loop that its README shows.

A mini-batch of its own sampler has eight rows of every group; they give the constraints and, weighted, the objective.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import torch
from torch import nn

from benchmarks.loss_parity.constraints import Constraint
from benchmarks.loss_parity.methods._setting import BATCH, Outcome, Setting
from benchmarks.loss_parity.methods._torch import Rows, follow, n_differences, row_losses
from benchmarks.loss_parity.network import new_network

#: The paper's parameters (section 4.2) in the package's words: tau, eta, rho, M_y; mu and beta.
LEARNING_RATE, DUAL_RATE, PENALTY, LARGEST = 0.01, 0.05, 1.0, 10.0
SMOOTHING = {"mu": 2.0, "beta": 0.5}


def loader_of(rows: Rows, batch_size: int, seed: int) -> torch.utils.data.DataLoader:
    """The package's sampler in torch's loader."""
    from humancompatible.train.fairness.utils import BalancedBatchSampler

    generator = torch.Generator().manual_seed(seed)
    sampler = BalancedBatchSampler(group_onehot=rows.member, batch_size=batch_size, generator=generator)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*rows), batch_sampler=sampler)


def steps(
    network: nn.Module,
    batches: Iterator[Rows],
    weights: torch.Tensor,
    constraint: Constraint,
    kappa: float,
    smooth: bool,
) -> Iterator[None]:
    """One update for every mini-batch; the smoothed method has SGD in a Moreau envelope."""
    from humancompatible.train.dual_optim import ALM, MoreauEnvelope

    dual = ALM(
        m=n_differences(constraint, weights.numel()),
        lr=DUAL_RATE,
        penalty=PENALTY,
        is_ineq=True,
        dual_range=(0.0, LARGEST),
        augmentation="quadratic",
    )
    optimizer = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE)
    if smooth:
        optimizer = MoreauEnvelope(optimizer, **SMOOTHING)
    for X, y, member in batches:
        losses = row_losses(network(X).squeeze(1), y)
        objective = (losses * (member @ weights)).mean()
        lagrangian = dual.forward_update(objective, constraint.differences(losses, y, member) - kappa)
        lagrangian.backward()
        optimizer.step()
        network.zero_grad()
        yield


def run(setting: Setting, smooth: bool) -> Outcome:
    """Train for the time that there is."""
    rows = Rows.of(setting.train)
    network = new_network(rows.X.shape[1], setting.seed)
    loader = loader_of(rows, BATCH * rows.member.shape[1], setting.seed)
    batches = (Rows(*batch) for epoch in repeat(loader) for batch in epoch)
    moves = steps(network, batches, rows.group_weights, setting.constraint, setting.kappa, smooth)
    return follow(setting, network, moves)
