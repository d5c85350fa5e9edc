"""A training loop as users write it: it reaches the bound, and a head on its scores keeps it exactly."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fairconstrained import PartialParityClassifier
from fairconstrained.constraints import RateGap
from fairconstrained.torch import Multipliers, StratifiedBatchSampler, bind
from tests.torch.conftest import Natural

KAPPA = 0.05


def trained(rows, mode, n_epochs=15):
    """A float32 network with batch normalisation and dropout, and its multipliers."""
    X = rows.X.float()
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 1))
    constraint = bind(RateGap(KAPPA), rows.y, rows.groups)
    parameters = {"parameters": network.parameters(), "smoothing": 0.2} if mode == "ssl_alm" else {}
    multipliers = Multipliers(mode, dual_rate=0.3, **parameters)
    optimizer, loss_of = torch.optim.Adam(network.parameters(), lr=0.01), nn.BCEWithLogitsLoss()
    sampler = StratifiedBatchSampler(rows.groups, batch_size=200)
    for _ in range(n_epochs):
        for batch in sampler:
            scores = network(X[batch]).squeeze(1)
            loss = loss_of(scores, rows.y[batch].float())
            optimizer.zero_grad()
            multipliers.lagrangian(loss, constraint(scores, rows.y[batch], rows.groups[batch])).backward()
            optimizer.step()
            multipliers.step()
        with torch.no_grad():
            constraint.refine(network.eval()(X))
        network.train()
    with torch.no_grad():
        scores = network.eval()(X).squeeze(1)
    return scores, constraint, multipliers


@pytest.mark.parametrize("mode", ["augmented_lagrangian", pytest.param("ssl_alm", marks=pytest.mark.slow)])
def test_a_loop_reaches_the_bound(mode):
    natural = Natural(2000, seed=1)
    scores, constraint, multipliers = trained(natural, mode)
    labels = bind(RateGap(KAPPA), natural.y, natural.groups)(natural.y - 0.5, natural.y, natural.groups)
    assert labels.gap > 0.15
    assert constraint(scores, natural.y, natural.groups).gap < KAPPA + 0.03
    assert ((scores > 0).int() == natural.y).float().mean() > 0.7
    assert 0 < constraint.price(multipliers.by_name()) < 5
    head = PartialParityClassifier(KAPPA, constraint="demographic_parity")
    head.fit(scores.reshape(-1, 1), natural.y, sensitive_features=natural.groups)
    assert head.status_ == "optimal"
    assert head.constraint_values_["demographic_parity"] <= KAPPA + head.granularity_["demographic_parity"]
    assert head.score(scores.reshape(-1, 1), natural.y) > 0.7
