"""A training loop under a bound: the loop, the exact step at its end, several constraints, a saved state."""

# ruff: noqa: E402 - the page shows the imports of the part that it explains

import io
import warnings

import numpy as np
import torch

from fairconstrained.datasets import make_biased_classification

features, labels, sensitive = make_biased_classification(5000, 10, random_state=0)
X, y, groups = torch.tensor(features, dtype=torch.float32), torch.tensor(labels), torch.tensor(sensitive)
torch.manual_seed(0)
network = torch.nn.Sequential(
    torch.nn.Linear(10, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 1)
)

# the loop
from fairconstrained.constraints import RateGap
from fairconstrained.torch import Multipliers, StratifiedBatchSampler, bind

constraint = bind(RateGap(kappa=0.02), y, groups)
multipliers = Multipliers()
sampler = StratifiedBatchSampler(groups, batch_size=256)
optimizer, loss_of = torch.optim.Adam(network.parameters(), lr=0.003), torch.nn.BCEWithLogitsLoss()

for _ in range(20):
    for rows in sampler:
        scores = network(X[rows]).squeeze(1)
        c = constraint(scores, y[rows], groups[rows])
        optimizer.zero_grad()
        multipliers.lagrangian(loss_of(scores, y[rows].float()), c).backward()
        optimizer.step()
        multipliers.step()
    with torch.no_grad():
        constraint.refine(network.eval()(X))
    network.train()
# end of the loop

# its gap
with torch.no_grad():
    scores = network.eval()(X).squeeze(1)
shares = [y[groups == group].float().mean().item() for group in (0, 1)]
print(f"gap of the decisions {constraint(scores, y, groups).gap:.3f}, of the labels {abs(shares[0] - shares[1]):.3f}")
# end of its gap
trained = constraint(scores, y, groups).gap
assert trained < 0.03
assert np.mean((scores.numpy() > 0) == y.numpy()) > 0.77

# exactly
from fairconstrained import PartialParityClassifier

head = PartialParityClassifier(kappa=0.02, constraint="demographic_parity")
head.fit(scores.reshape(-1, 1), y, sensitive_features=groups)
print(head.status_, head.constraint_values_, head.coef_, head.intercept_)
# end of exactly
assert head.status_ == "optimal"
assert head.constraint_values_["demographic_parity"] <= 0.02 + head.granularity_["demographic_parity"]
assert head.score(scores.reshape(-1, 1), y) > 0.77

# the price
print(constraint.price(multipliers.by_name()))
# end of the price
assert 0.2 < constraint.price(multipliers.by_name()) < 2

# several
from fairconstrained.constraints import AUCGap

aucs = bind(AUCGap(0.05), y, groups)
rows = next(iter(StratifiedBatchSampler(groups, y, batch_size=256)))
scores = network(X[rows]).squeeze(1)
both = Multipliers("nupi")
total = both.lagrangian(
    loss_of(scores, y[rows].float()),
    constraint(scores, y[rows], groups[rows]),
    aucs(scores, y[rows], groups[rows]),
    scores.mean() - 1,  # any inequality of your own: at most 0 where it holds
)
# end of several
total.backward()
both.step()
assert len(both.by_name()) == 5

# a checkpoint
file = io.BytesIO()
torch.save({"multipliers": both.state_dict(), "epoch": sampler.epoch}, file)
file.seek(0)
saved = torch.load(file)
both.load_state_dict(saved["multipliers"])
sampler.epoch = saved["epoch"]
# end of a checkpoint
assert sampler.epoch == 20

# a mini-batch without a group is refused
first = torch.nonzero(groups == 0).squeeze(1)[:100]
try:
    constraint(scores[:100], y[first], groups[first])
except ValueError as error:
    message = str(error)
assert "no rows in this mini-batch" in message

# the page says that such rows make a head of the layer before the last one
with warnings.catch_warnings():
    warnings.simplefilter("error")
    # more than the scores
    from sklearn.preprocessing import StandardScaler

    with torch.no_grad():
        outputs = StandardScaler().fit_transform(network[:-1](X))
    head = PartialParityClassifier(kappa=0.05, constraint="statistical_parity", interval=(0.05, 0.3))
    head.set_params(new_row_folds=None)  # the network has seen all rows: an estimate would not be one of new rows
    head.fit(outputs, y, sensitive_features=groups)
    # end of more than the scores
assert head.status_ == "optimal"
