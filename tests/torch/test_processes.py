"""Several processes get the values and the gradients that one process with all rows has."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from fairconstrained.constraints import AUCGap, RateGap
from fairconstrained.objectives import Logistic
from fairconstrained.torch import Multipliers, _processes, bind


def rows(n_samples=200):
    rng = np.random.default_rng(0)
    groups = (rng.random(n_samples) < 0.3).astype(int)
    X = rng.normal(size=(n_samples, 3)) + groups[:, None]
    y = (X[:, 0] + rng.normal(size=n_samples) > 0.5).astype(int)
    return torch.from_numpy(X), torch.from_numpy(y), torch.from_numpy(groups)


def trained(part, wrap):
    """Parameters, multipliers and gap after some steps on the rows of a part."""
    X, y, groups = rows()
    torch.manual_seed(0)
    network = wrap(nn.Linear(3, 1, dtype=torch.float64))
    objective = bind(Logistic(), y, groups)
    constraints = [bind(RateGap(0.05), y, groups), bind(AUCGap(0.05), y, groups)]
    multipliers = Multipliers(dual_rate=0.5)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
    X, y, groups = X[part], y[part], groups[part]
    for _ in range(20):
        scores = network(X)
        c = [constraint(scores, y, groups) for constraint in constraints]
        optimizer.zero_grad()
        multipliers.lagrangian(objective(scores, y, groups), *c).backward()
        optimizer.step()
        multipliers.step()
    return [p.detach().clone() for p in network.parameters()], multipliers.values, c[0].gap


def train_one_of_two(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    # parts of different sizes, the first of which has rows of one group only
    groups = rows()[2]
    first = torch.nonzero(groups == 0)[:90, 0]
    parts = [first, torch.from_numpy(np.setdiff1d(np.arange(200), first.numpy()))]
    torch.save(trained(parts[rank], DistributedDataParallel), f"{folder}/{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()
    # torch's threads may abort a process whose interpreter shuts down while they still run, so it does not shut down
    os._exit(0)


@pytest.mark.slow
def test_two_processes_are_one(tmp_path):
    mp.spawn(train_one_of_two, args=(str(tmp_path),), nprocs=2)
    one = trained(slice(None), lambda network: network)
    assert one[1].max() > 0.01
    for rank in (0, 1):
        parameters, multipliers, gap = torch.load(tmp_path / f"{rank}.pt")
        for ours, expected in zip(parameters, one[0], strict=True):
            torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(multipliers, one[1], rtol=1e-10, atol=1e-12)
        assert gap == one[2]


class Meeting:
    """A stand-in for torch.distributed of two processes, the other of which has these rows."""

    def __init__(self, rank, other):
        self.rank, self.other, self.calls = rank, torch.from_numpy(np.stack(other)), 0

    def get_world_size(self):
        return 2

    def get_rank(self):
        return self.rank

    def is_available(self):
        return True

    is_initialized = is_available

    def all_gather(self, tables, own):
        """Fill the tables with the sizes, and then with the rows."""
        self.calls += 1
        theirs = torch.tensor([self.other.shape[1]])
        if own.ndim == 2:
            theirs = torch.zeros_like(own)
            theirs[:, : self.other.shape[1]] = self.other
        tables[self.rank].copy_(own)
        tables[1 - self.rank].copy_(theirs)


@pytest.mark.parametrize("rank", [0, 1])
def test_own_slopes_times_the_number_of_processes(rank, monkeypatch):
    """DistributedDataParallel takes the mean of the processes' gradients."""
    _, y, groups = rows()
    scores = torch.randn(200, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ours, theirs = torch.arange(120), torch.arange(120, 200)
    both = torch.cat([ours, theirs] if rank == 0 else [theirs, ours])
    whole = scores[both].clone().requires_grad_()
    constraint = bind(RateGap(0.05), y, groups)
    expected = constraint(whole, y[both], groups[both])
    expected.values[0].backward()
    known = (scores[theirs].numpy(), 2.0 * y[theirs].numpy() - 1, groups[theirs].double().numpy(), np.ones(80))
    meeting = Meeting(rank, known)
    monkeypatch.setattr(_processes, "dist", meeting)
    own = scores[ours].clone().requires_grad_()
    c = constraint(own, y[ours], groups[ours])
    torch.testing.assert_close(c.values, expected.values)
    assert c.gap == expected.gap
    c.values[0].backward()
    place = slice(0, 120) if rank == 0 else slice(80, 200)
    torch.testing.assert_close(own.grad, 2 * whole.grad[place])
    assert meeting.calls == 2
    alone = bind(RateGap(0.05), y, groups, distributed=False)(own, y[ours], groups[ours])
    assert meeting.calls == 2
    assert alone.gap != c.gap
